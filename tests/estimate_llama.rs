//! The forecast beside a real llama-server: its log and the kernel's count.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "support/llama.rs"]
mod llama;

use llama::Llama;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vramp::app::model::{Model, Restored, Settings, Who};
use vramp::app::rig::Connection;
use vramp::clock::Now;
use vramp::discover::model::{Served, of_server};
use vramp::engine::start::{Known, Reader};
use vramp::engine::{Endpoint, Kind};
use vramp::host::Local;
use vramp::memory::{Deployment, Measured};
use vramp::profile::Launch;
use vramp::service::Config;

/// A real llama-server, and its log.
struct Server {
    child: Child,
    log: tempfile::NamedTempFile,
    argv: Vec<String>,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(llama: &Llama, total: u64, kind: &str) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        drop(socket);
        let words = format!(
            "--ctx-size {total} --parallel 2 -lv 4 --no-warmup -ctk {kind} -ctv {kind} -fa on --threads 1 --poll 0 --host 127.0.0.1 \
             --port {port}"
        );
        let own = [&llama.server, &PathBuf::from("--model"), &llama.model];
        let mut argv: Vec<String> = own.map(|word| word.display().to_string()).to_vec();
        argv.extend(words.split_whitespace().map(String::from));
        let child = Command::new(&llama.server)
            .args(argv.iter().skip(1))
            .stdin(Stdio::null())
            .stdout(log.reopen().unwrap())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let server = Server {
            child,
            log,
            argv,
            port,
        };
        let until = Instant::now() + Duration::from_secs(120);
        while !server.said().contains("listening on http") {
            assert!(Instant::now() < until, "{}", server.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log.path()).unwrap()).into_owned()
    }

    /// MiB of the cache, from its own log.
    fn cache(&self) -> f64 {
        let said = self.said();
        let (_, rest) = said.split_once("llama_kv_cache: size = ").unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// MiB that the process holds apart from mapped files, from the kernel.
    fn held(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(status).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("RssAnon:"))
            .unwrap();
        let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024.0
    }
}

/// MiB that two slots of `each` tokens take, by the model's own header.
fn forecast(llama: &Llama, each: u64, kind: &str) -> f64 {
    let file = std::fs::File::open(&llama.model).unwrap();
    let geometry = vramp::memory::gguf::read(file, None).unwrap();
    let mut deployment = Deployment::new(Kind::LlamaCpp);
    deployment.requests = Some(2);
    deployment.kv = kind.parse().unwrap();
    let found = vramp::memory::estimate(&geometry, &deployment, each).unwrap();
    found.kv_llamacpp_bytes.unwrap() as f64 / f64::from(1 << 20)
}

#[test]
fn a_real_server_takes_what_was_forecast() {
    let Some(llama) = Llama::find("a_real_server_takes_what_was_forecast") else {
        return;
    };
    for kind in ["f16", "q8_0"] {
        let forecast = |each| forecast(&llama, each, kind);
        let (small, large) = (
            Server::start(&llama, 8192, kind),
            Server::start(&llama, 16_384, kind),
        );
        let (before, after) = (forecast(4096), forecast(8192));
        // The log has two decimals.
        assert!(
            (small.cache() - before).abs() < 0.01,
            "{} {before}",
            small.cache()
        );
        assert!(
            (large.cache() - after).abs() < 0.01,
            "{} {after}",
            large.cache()
        );
        let grown = large.held() - small.held();
        let change = after - before;
        assert!(
            (grown / change - 1.0).abs() < 0.02,
            "{kind}: {grown} MiB, forecast {change} MiB"
        );
    }
}

/// A cockpit on a running server, as attaching and the log of the start make it.
async fn cockpit(server: &Server, each: u64) -> Model {
    let endpoint = Endpoint {
        url: format!("http://127.0.0.1:{}", server.port),
        model: None,
        key: None,
        kind: Some(Kind::LlamaCpp),
    };
    let engine = vramp::engine::detect(&endpoint).await.unwrap();
    let launch = Launch {
        argv: server.argv.clone(),
        env: Vec::new(),
        cwd: None,
        slots: 2,
    };
    let facts = engine.facts().await.unwrap();
    // By its launch, and by what the server alone says of itself.
    let tenant = vramp::discover::tenant(&Local, None, &endpoint.url).await;
    let mut served = Served {
        launch: None,
        facts: &facts,
        pids: &tenant.unwrap().pids,
        own: false,
    };
    let told = of_server(&Local, &served).await.unwrap();
    served.launch = Some(&launch);
    let geometry = of_server(&Local, &served).await;
    assert_eq!(geometry.as_ref(), Ok(&told));
    let mut log = Reader::new(Some(Kind::LlamaCpp));
    for line in server.said().lines() {
        log.read(line);
    }
    let now = Now {
        mono_ms: 0,
        unix_ms: 0,
    };
    let (who, settings) = (Who::default(), Settings::default());
    let mut model = Model::new(now, who, settings, None, Restored::default());
    model.rig.facts = Some(facts);
    model.rig.connection = Connection::Up { since: now };
    model.rig.config = Some(Config {
        context: each,
        launch,
    });
    model.rig.geometry = Some(geometry.map(Box::new));
    assert_eq!(model.served(), Some(each));
    let config = model.rig.config.clone();
    let tried = model.tried_mut(each);
    tried.config = config;
    tried.measured = Some(Measured::of_start(&log.diagnose(&Known::default())));
    model
}

#[tokio::test]
async fn the_cockpit_forecasts_what_doubling_the_context_takes() {
    let Some(llama) = Llama::find("the_cockpit_forecasts_what_doubling_the_context_takes") else {
        return;
    };
    let (small, large) = (
        Server::start(&llama, 8192, "f16"),
        Server::start(&llama, 16_384, "f16"),
    );
    let model = cockpit(&small, 4096).await;
    let forecast = vramp::app::forecast::of(&model, 8192, None)
        .unwrap()
        .unwrap();
    let change = forecast.change.unwrap().bytes as f64 / f64::from(1 << 20);
    let logged = large.cache() - small.cache();
    let held = large.held() - small.held();
    println!("MiB more: forecast {change}, by the logs {logged}, by the kernel {held}");
    assert!(
        (logged / small.cache() - 1.0).abs() < 0.02,
        "the cache doubles"
    );
    assert!((change / logged - 1.0).abs() < 0.02, "{change} {logged}");
    assert!((change / held - 1.0).abs() < 0.02, "{change} {held}");
    let calibration = forecast.calibration.expect("the log says tokens and bytes");
    assert!(
        calibration.difference().abs() < 0.02,
        "{}",
        calibration.words()
    );
}
