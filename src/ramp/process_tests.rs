//! A restart of a real process with a real port: this very test program, started again as a small server.

use super::tests_rig::{Rig, confirmed};
use super::*;
use crate::engine::{Context, Engine, Health, Kind, Load, Probe};
use crate::gpu::Snapshot;
use crate::profile::Launch;
use crate::reading::Reading;
use crate::service::{Process, Service, Settings, Status};
use async_trait::async_trait;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Not a test but the server: it says its context to whoever connects, caps it at 9000, and cannot start above 20,000.
#[test]
fn small_server() {
    let (Ok(context), Ok(address)) = (
        std::env::var("SMALL_SERVER_CONTEXT"),
        std::env::var("SMALL_SERVER_ADDRESS"),
    ) else {
        return;
    };
    let context: u64 = context.parse().unwrap();
    if context > 20_000 {
        println!("RuntimeError: no memory for {context} tokens");
        std::process::exit(1);
    }
    let listener = TcpListener::bind(address).unwrap();
    for stream in listener.incoming() {
        let _ = stream
            .unwrap()
            .write_all(context.min(9000).to_string().as_bytes());
    }
}

/// The client's side.
#[derive(Clone)]
struct Small(String);

impl Small {
    fn context(&self) -> Result<u64, EngineError> {
        let url = self.0.clone();
        let refused = |_| EngineError::Refused { url: url.clone() };
        let mut text = String::new();
        TcpStream::connect(&self.0)
            .and_then(|mut stream| stream.read_to_string(&mut text))
            .map_err(refused)?;
        text.parse().map_err(|_| EngineError::Loading)
    }
}

#[async_trait]
impl Detect for Small {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError> {
        self.context().map(|_| Box::new(self.clone()) as _)
    }
}

#[async_trait]
impl Engine for Small {
    fn kind(&self) -> Kind {
        Kind::LlamaCpp
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        Ok(Facts {
            kind: Kind::LlamaCpp,
            version: Reading::default(),
            model: Reading::default(),
            model_file: None,
            health: Health::Up,
            context: Context {
                effective: Reading::Value(self.context()?),
                ..Context::default()
            },
            simulated: false,
            notes: vec![],
        })
    }

    async fn load(&self) -> Result<Load, EngineError> {
        Ok(Load::default())
    }

    async fn probe(&self) -> Result<Probe, EngineError> {
        self.context().map(|context| Probe {
            text: context.to_string(),
            output_tokens: 1,
            finish_reason: None,
            ms: 1,
        })
    }

    async fn ask(&self, _question: &str, _max_tokens: u32) -> Result<Probe, EngineError> {
        self.probe().await
    }

    fn expected_context(&self, asked: u64, _slots: u64) -> u64 {
        asked
    }
}

/// The service and all that a restart of it needs, as a new cockpit makes them.
struct Cockpit {
    process: Process,
    deps: Deps,
}

async fn cockpit(rig: &Rig, address: &str) -> Cockpit {
    let process = Process::new(Settings {
        launch: config(0, address).launch,
        state_dir: rig.dir(),
        log: None,
        url: format!("http://{address}"),
        stop_grace: Duration::from_secs(2),
        production: None,
        profile: None,
    });
    let (_, gpus) = watch::channel(Snapshot {
        fault: Some("no driver".to_string()),
        ..Snapshot::default()
    });
    let deps = Deps {
        gpus,
        service: Arc::new(process.clone()),
        detect: Arc::new(Small(address.to_string())),
        reader: Some(Arc::new(Small(address.to_string()))),
        ..rig.deps().await
    };
    Cockpit { process, deps }
}

fn config(context: u64, address: &str) -> Config {
    let program = std::env::current_exe().unwrap();
    Config {
        context,
        launch: Launch {
            argv: vec![
                program.to_string_lossy().into_owned(),
                "--exact".to_string(),
                "ramp::process_tests::small_server".to_string(),
                "--nocapture".to_string(),
            ],
            env: vec![
                ("SMALL_SERVER_CONTEXT".to_string(), "{context}".to_string()),
                ("SMALL_SERVER_ADDRESS".to_string(), address.to_string()),
            ],
            cwd: None,
            slots: 1,
        },
    }
}

async fn restarted(cockpit: &Cockpit, plan: RestartPlan) -> Outcome {
    let (sender, _receiver) = mpsc::channel(1000);
    let (_keep, cancel) = watch::channel(false);
    run(confirmed(plan), &cockpit.deps, sender, cancel).await
}

async fn pid(cockpit: &Cockpit) -> u32 {
    match cockpit.process.status().await.unwrap() {
        Status::Running { id, .. } => id.pid,
        stopped => panic!("{stopped:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_process_is_raised_fails_comes_back_and_survives_its_cockpit() {
    let rig = Rig::idle();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let address = port.to_string();
    let config = |context| config(context, &address);
    let first = cockpit(&rig, &address).await;
    let start = RestartPlan {
        purpose: Purpose::Start,
        from: None,
        to: config(4000),
        on_failure: None,
        production: None,
        deadline_s: None,
    };
    let outcome = restarted(&first, start).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    let at_4000 = pid(&first).await;

    let change = |from: u64, to: u64| RestartPlan {
        purpose: Purpose::Change,
        from: Some(config(from)),
        to: config(to),
        on_failure: Some(Target {
            kind: TargetKind::Previous,
            config: config(from),
        }),
        production: None,
        deadline_s: None,
    };
    let outcome = restarted(&first, change(4000, 8000)).await;
    assert!(matches!(outcome, Outcome::Ready { .. }), "{outcome:?}");
    let at_8000 = pid(&first).await;
    assert_ne!(at_4000, at_8000);
    drop(first);

    let next = cockpit(&rig, &address).await;
    assert_eq!(pid(&next).await, at_8000, "not adopted");
    let outcome = restarted(&next, change(8000, 30_000)).await;
    let Outcome::RolledBack { failure, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        failure.cause.contains("no memory for 30000 tokens"),
        "{failure:?}"
    );
    assert_eq!(Small(address.clone()).context(), Ok(8000));

    // Capped in silence: never a trial at the asked value.
    let outcome = restarted(&next, change(8000, 10_000)).await;
    let Outcome::RolledBack { failure, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failure.suggests, Some(9000));
    assert_eq!(Small(address.clone()).context(), Ok(8000));
    next.process.stop().await.unwrap();
    assert!(Small(address.clone()).context().is_err());
}
