use super::*;
use crate::host::Local;
use std::path::Path;

/// A server of a script's own: its number in files, its process a `sleep`.
const CTL: &str = r##"#!/bin/sh
cd "$(dirname "$0")" || exit 9
runs() { [ -f pid ] && kill -0 "$(cat pid)" 2>/dev/null; }
echo "$*" >>calls
case $1 in
show) echo "# what a reboot brings"; echo "production $(cat production)";;
status) runs || { [ ! -f exit ] || echo "exit $(cat exit)"; exit 3; }; echo "pid $(cat pid)"; echo "id $(cat starts)"; echo "context $(cat running)";;
trial) echo "$2" >trial;;
discard) rm -f trial;;
restart) [ ! -f broken ] || { echo "no such image" >&2; exit 4; }
  ctx=$(cat trial 2>/dev/null || cat production); echo "$ctx" >running; echo x >>starts-list; wc -l <starts-list >starts
  setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! >pid; echo "starting with $ctx" >>log;;
stop) kill "$(cat pid)"; while runs; do sleep 0.05; done; rm pid;;
confirm) [ -f forgetful ] || echo "$2" >production; rm -f trial;;
logs) exec tail -n 100 -F log;;
esac
"##;

struct Rig {
    dir: tempfile::TempDir,
}

impl Rig {
    fn new() -> Rig {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let ctl = dir.path().join("ctl");
        std::fs::write(&ctl, CTL).unwrap();
        std::fs::set_permissions(&ctl, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.path().join("production"), "4096\n").unwrap();
        std::fs::write(dir.path().join("log"), "").unwrap();
        Rig { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn commands(&self) -> Commands {
        let ctl = self.path().join("ctl").to_string_lossy().into_owned();
        let argv = |words: &[&str]| {
            let words = words.iter().map(|word| word.to_string());
            [ctl.clone()].into_iter().chain(words).collect::<Vec<_>>()
        };
        Commands {
            show: argv(&["show"]),
            status: argv(&["status"]),
            trial: argv(&["trial", "{context}"]),
            restart: argv(&["restart"]),
            stop: argv(&["stop"]),
            confirm: argv(&["confirm", "{context}"]),
            discard: Some(argv(&["discard"])),
            logs: Some(argv(&["logs"])),
            slots: 1,
            limit: Duration::from_secs(20),
        }
    }

    fn service(&self, commands: Commands) -> Command {
        Command::new(Arc::new(Local), commands)
    }

    fn read(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path().join(name));
        text.unwrap_or_default().trim().to_string()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Ok(pid) = self.read("pid").parse::<i32>()
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

async fn config(service: &Command, context: u64) -> Config {
    Config {
        context,
        launch: service.standing().await.unwrap().launch,
    }
}

async fn running(service: &Command) -> Option<(ProcessId, Option<u64>)> {
    match service.status().await.unwrap() {
        Status::Running { id, config, .. } => Some((id, config.map(|config| config.context))),
        Status::Stopped { .. } => None,
    }
}

#[tokio::test]
async fn how_a_server_ended_is_told_where_the_status_command_knows_it() {
    let rig = Rig::new();
    let service = rig.service(rig.commands());
    let ended = async || match service.status().await.unwrap() {
        Status::Stopped { exit } => exit,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended().await, None);
    for code in [0, -15, 137] {
        std::fs::write(rig.path().join("exit"), code.to_string()).unwrap();
        assert_eq!(ended().await, Some(code));
    }
}

#[tokio::test]
async fn a_trial_is_started_confirmed_and_taken_back_by_the_operators_commands() {
    let rig = Rig::new();
    let service = rig.service(rig.commands());
    assert_eq!(service.name(), "command ctl");
    assert_eq!(running(&service).await, None);
    let old = config(&service, 4096).await;
    let first = service.start(&old).await.unwrap();
    assert_eq!(running(&service).await, Some((first.clone(), Some(4096))));
    assert_eq!(service.pids().await.unwrap(), [first.pid]);
    assert_eq!(service.standing().await.unwrap().notes, [""; 0]);

    let new = config(&service, 8192).await;
    service.validate(&new).await.unwrap();
    assert_eq!(
        running(&service).await.map(|(id, _)| id),
        Some(first.clone())
    );
    let from = service.log_end().await.unwrap();
    service.stop().await.unwrap();
    assert_eq!(running(&service).await, None);
    service.stop().await.unwrap();
    let second = service.start(&new).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(running(&service).await, Some((second, Some(8192))));
    assert_eq!(service.standing().await.unwrap().production, Some(4096));
    let mut lines = Vec::new();
    for _ in 0..100 {
        lines = service.log_since(from).await.unwrap().0;
        if !lines.is_empty() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(lines, ["starting with 8192"]);

    service.discard_trial().await.unwrap();
    assert_eq!(rig.read("trial"), "");
    let words = service.confirm(&new).await.unwrap();
    assert!(words.contains("8,192"), "{words}");
    assert_eq!(rig.read("production"), "8192");
    assert_eq!(rig.read("starts"), "2");
}

#[tokio::test]
async fn without_a_discard_the_trial_command_gets_the_production_value() {
    let rig = Rig::new();
    let service = rig.service(Commands {
        discard: None,
        ..rig.commands()
    });
    service.discard_trial().await.unwrap();
    assert_eq!(rig.read("trial"), "4096");
}

#[tokio::test]
async fn what_is_wrong_is_said_before_anything_is_stopped() {
    let rig = Rig::new();
    let sh = |script: &str| ["sh", "-c", script].map(str::to_string).to_vec();
    let base = rig.commands();
    for (commands, words) in [
        (
            Commands {
                show: sh("echo nothing"),
                ..base.clone()
            },
            "production 32768",
        ),
        (
            Commands {
                show: sh("echo production 32K"),
                ..base.clone()
            },
            "\"32K\"",
        ),
        (
            Commands {
                show: sh("echo gone >&2; exit 2"),
                ..base.clone()
            },
            "exit code 2: gone",
        ),
        (
            Commands {
                status: sh("exit 4"),
                ..base.clone()
            },
            "exit code 4",
        ),
        (
            Commands {
                status: sh("kill -9 $$"),
                ..base.clone()
            },
            "a signal",
        ),
        (
            Commands {
                stop: vec!["no-such-program".into()],
                ..base.clone()
            },
            "no-such-program",
        ),
        (
            Commands {
                confirm: vec!["no-such".into(), "{context}".into()],
                ..base.clone()
            },
            "\"no-such\"",
        ),
        (
            Commands {
                confirm: sh("echo {contxt}"),
                ..base.clone()
            },
            "{contxt}",
        ),
    ] {
        let launch = Launch {
            argv: commands.trial.clone(),
            env: vec![],
            cwd: None,
            slots: 1,
        };
        let service = rig.service(commands);
        let error = service
            .validate(&Config {
                context: 8192,
                launch,
            })
            .await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let service = rig.service(base.clone());
    let mut edited = config(&service, 8192).await;
    edited.launch.argv.push("--more".to_string());
    let error = service.validate(&edited).await.unwrap_err().to_string();
    assert!(error.contains("in the profile"), "{error}");
    for word in ["stop", "restart", "trial", "confirm", "discard"] {
        assert!(!rig.read("calls").contains(word), "{word} was run");
    }
}

#[tokio::test]
async fn commands_that_fail_hang_or_lie_are_failures_with_their_words() {
    let rig = Rig::new();
    let sh = |script: &str| ["sh", "-c", script].map(str::to_string).to_vec();
    let service = rig.service(rig.commands());
    let old = config(&service, 4096).await;
    std::fs::write(rig.path().join("broken"), "").unwrap();
    let error = service.start(&old).await.unwrap_err().to_string();
    assert!(error.contains("exit code 4: no such image"), "{error}");
    std::fs::remove_file(rig.path().join("broken")).unwrap();
    service.start(&old).await.unwrap();

    std::fs::write(rig.path().join("forgetful"), "").unwrap();
    let error = service.confirm(&config(&service, 8192).await).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("still prints 4,096 instead of 8,192"),
        "{error}"
    );

    let hangs = rig.service(Commands {
        stop: sh("sleep 60"),
        limit: Duration::from_millis(300),
        ..rig.commands()
    });
    let error = hangs.stop().await.unwrap_err().to_string();
    assert!(error.contains("did not end within"), "{error}");
    assert!(running(&service).await.is_some());
}
