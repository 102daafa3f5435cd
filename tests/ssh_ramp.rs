//! A restart on another host by the operator's commands, with the connection cut in the middle: it waits and goes on.

// The helpers stop a test as the tests themselves do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use async_trait::async_trait;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::sshd::Sshd;
use tokio::sync::{mpsc, watch};
use vramp::clock::Clock;
use vramp::confirm::Pending;
use vramp::engine::{self, Endpoint, Engine, EngineError};
use vramp::gpu::Snapshot;
use vramp::host::Host;
use vramp::ramp::{
    self, Deps, Detect, Event, Limits, Lock, Outcome, Purpose, RestartPlan, Step, Target,
    TargetKind,
};
use vramp::service::command::Commands;
use vramp::service::{Command, Config};

/// Runs the simulated server as the operator's script would run a real one.
const CTL: &str = r#"#!/bin/sh
cd STATE || exit 9
runs() { [ -f pid ] && kill -0 "$(cat pid)" 2>/dev/null; }
echo "$1" >>calls
case $1 in
show) cat production;;
status) runs || exit 3; echo "pid $(cat pid)"; echo "context $(cat running)";;
trial) echo "$2" >trial;;
restart) cat trial >running
  setsid VRAMP sim --context-length "$(cat trial)" --port PORT --start-ms 3000 </dev/null >>log 2>&1 & echo $! >pid;;
stop) kill "$(cat pid)"; while runs; do sleep 0.1; done; rm -f pid;;
confirm) [ ! -e slow ] || sleep 3; echo "$2" >production;;
logs) exec tail -n 100 -F log;;
esac
"#;

struct Finder(Endpoint);

#[async_trait]
impl Detect for Finder {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError> {
        engine::detect(&self.0).await
    }
}

struct Rig {
    sshd: Sshd,
    port: u16,
}

impl Rig {
    fn new() -> Option<Rig> {
        let sshd = Sshd::start()?;
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let rig = Rig { sshd, port };
        std::fs::create_dir(rig.state()).unwrap();
        std::fs::write(rig.state().join("production"), "4096\n").unwrap();
        std::fs::write(rig.state().join("log"), "").unwrap();
        let ctl = CTL
            .replace("STATE", rig.state().to_str().unwrap())
            .replace("VRAMP", env!("CARGO_BIN_EXE_vramp"))
            .replace("PORT", &port.to_string());
        rig.sshd.program("ctl", &ctl);
        Some(rig)
    }

    fn state(&self) -> PathBuf {
        self.sshd.path().join("server")
    }

    fn calls(&self, word: &str) -> usize {
        let calls = std::fs::read_to_string(self.state().join("calls")).unwrap();
        calls.lines().filter(|line| *line == word).count()
    }

    async fn deps(&self, host: &Arc<dyn Host>) -> Deps {
        let argv = |words: &[&str]| {
            words
                .iter()
                .map(|word| word.to_string())
                .collect::<Vec<_>>()
        };
        let commands = Commands {
            show: argv(&["ctl", "show"]),
            status: argv(&["ctl", "status"]),
            trial: argv(&["ctl", "trial", "{context}"]),
            restart: argv(&["ctl", "restart"]),
            stop: argv(&["ctl", "stop"]),
            confirm: argv(&["ctl", "confirm", "{context}"]),
            discard: None,
            logs: Some(argv(&["ctl", "logs"])),
            slots: 1,
            limit: Duration::from_secs(60),
        };
        let dir = self.sshd.path().join("beside");
        Deps {
            host: Arc::clone(host),
            service: Arc::new(Command::new(Arc::clone(host), commands)),
            detect: Arc::new(Finder(Endpoint {
                url: format!("http://127.0.0.1:{}", self.port),
                model: None,
                key: None,
                kind: None,
            })),
            reader: None,
            gpus: watch::channel(Snapshot {
                fault: Some("no cards here".to_string()),
                ..Snapshot::default()
            })
            .1,
            cards: vec![],
            limits: Limits {
                stuck_after: Duration::from_secs(60),
                release_after: Duration::from_secs(10),
                stop_grace: Duration::from_secs(10),
            },
            answers: None,
            smoke: None,
            lock: Arc::new(Lock::take(host, &dir, "ada@laptop").await.unwrap()),
            dir,
            by: "ada@laptop".to_string(),
            simulated: true,
            clock: Clock::default(),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.state().join("pid"))
            && let Some(pid) = pid
                .trim()
                .parse()
                .ok()
                .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_while_a_value_is_kept_says_the_truth() {
    let Some(rig) = Rig::new() else { return };
    let host: Arc<dyn Host> = Arc::new(rig.sshd.host("vramp-test"));
    let deps = rig.deps(&host).await;
    let launch = deps.service.standing().await.unwrap().launch;
    let kept = || std::fs::read_to_string(rig.state().join("production")).unwrap();
    let config = |context| Config {
        context,
        launch: launch.clone(),
    };
    // The command takes its time, and the connection is cut in it.
    std::fs::write(rig.state().join("slow"), "").unwrap();
    let (first, second) = (config(8192), config(16_384));
    let (said, ()) = tokio::join!(
        ramp::keep(host.as_ref(), deps.service.as_ref(), &first),
        async {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            rig.sshd.accept(false);
            rig.sshd.cut();
            tokio::time::sleep(Duration::from_secs(2)).await;
            rig.sshd.accept(true);
        }
    );
    let said = said.unwrap();
    assert!(said.contains("the connection was lost meanwhile"), "{said}");
    assert_eq!(kept(), "8192\n");

    let (said, ()) = tokio::join!(
        ramp::keep(host.as_ref(), deps.service.as_ref(), &second),
        async {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            rig.sshd.accept(false);
            rig.sshd.cut();
        }
    );
    rig.sshd.accept(true);
    let said = said.unwrap_err();
    assert!(said.starts_with("may be kept or not: "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_at_any_step_delays_a_restart_and_no_more() {
    let Some(rig) = Rig::new() else { return };
    let host: Arc<dyn Host> = Arc::new(rig.sshd.host("vramp-test"));
    let deps = rig.deps(&host).await;
    let launch = deps.service.standing().await.unwrap().launch;
    let config = |context| Config {
        context,
        launch: launch.clone(),
    };
    deps.service.start(&config(4096)).await.unwrap();
    let found = Finder(Endpoint {
        url: format!("http://127.0.0.1:{}", rig.port),
        model: None,
        key: None,
        kind: None,
    });
    let begun = std::time::Instant::now();
    while found.detect().await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut from = 4096;
    for (to, at) in [
        (8192, Step::Stop),
        (16_384, Step::Start),
        (32_768, Step::Watch),
    ] {
        let plan = RestartPlan {
            purpose: Purpose::Change,
            from: Some(config(from)),
            to: config(to),
            on_failure: Some(Target {
                kind: TargetKind::LastGood,
                config: config(from),
            }),
            production: Some(4096),
            deadline_s: None,
        };
        let plan = Pending::new(plan).by_number(1, 1).unwrap();
        let (sender, mut receiver) = mpsc::channel(1000);
        let (_keep, cancel) = watch::channel(false);
        let cut = async {
            let (mut notes, mut whole) = (Vec::new(), true);
            while let Some(event) = receiver.recv().await {
                match event {
                    Event::Step { step, .. } if step == at && whole => {
                        // The step is taken again afterwards, and is then let be.
                        whole = false;
                        rig.sshd.accept(false);
                        rig.sshd.cut();
                        tokio::time::sleep(Duration::from_secs(2)).await;
                        rig.sshd.accept(true);
                    }
                    Event::Log(line) if line.starts_with("vramp: ") => notes.push(line),
                    Event::Ended(_) => break,
                    _ => {}
                }
            }
            notes
        };
        let (outcome, notes) = tokio::join!(ramp::run(plan, &deps, sender, cancel), cut);
        let Outcome::Ready { facts, .. } = &outcome else {
            panic!("cut at {at:?}: {outcome:?}\n{notes:?}");
        };
        assert_eq!(facts.context.effective.known(), Some(&to));
        assert!(!deps.dir.join("intent.json").exists());
        from = to;
    }
    assert_eq!(rig.calls("confirm"), 0);
    deps.lock.ensure().await.unwrap();
    let error = Lock::take(
        &(Arc::new(vramp::host::Local) as Arc<dyn Host>),
        &deps.dir,
        "bob@desk",
    )
    .await;
    assert!(error.unwrap_err().to_string().contains("ada@laptop"));
    deps.service.stop().await.unwrap();
}
