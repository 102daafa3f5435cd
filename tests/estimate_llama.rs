//! The forecast beside a real llama-server: its log and the kernel's count.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "support/llama.rs"]
mod llama;

use llama::Llama;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vramp::engine::Kind;
use vramp::memory::Deployment;

/// A real llama-server, and its log.
struct Server {
    child: Child,
    log: tempfile::NamedTempFile,
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
        let child = Command::new(&llama.server)
            .arg("--model")
            .arg(&llama.model)
            .args([
                "--ctx-size",
                &total.to_string(),
                "--parallel",
                "2",
                "-lv",
                "4",
                "--no-warmup",
            ])
            .args([
                "-ctk",
                kind,
                "-ctv",
                kind,
                "-fa",
                "on",
                "--threads",
                "1",
                "--poll",
                "0",
            ])
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(log.reopen().unwrap())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let server = Server { child, log };
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
