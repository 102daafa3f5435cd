use super::*;
use crate::service::procfs;
use crate::service::record::{self, Record};
use std::io::Write;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

struct Bench {
    dir: TempDir,
    url: String,
}

impl Bench {
    fn new() -> Bench {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        Bench {
            dir: tempfile::tempdir().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// A cockpit's own view of the service, as after its start.
    fn service(&self, grace_ms: u64) -> Process {
        Process::new(Settings {
            launch: script("").launch,
            state_dir: self.state(),
            log: None,
            url: self.url.clone(),
            stop_grace: Duration::from_millis(grace_ms),
            production: None,
            profile: None,
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failed test leaves no server behind.
        let _ = self.service(0).inner.stop();
    }
}

fn script(text: &str) -> Config {
    Config {
        context: 4096,
        launch: Launch {
            argv: ["sh", "-c", text].map(str::to_string).to_vec(),
            env: vec![("CTX".to_string(), "{context}".to_string())],
            cwd: None,
            slots: 1,
        },
    }
}

async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    for _ in 0..500 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not happen within 10 s")
}

async fn log_has(service: &Process, word: &str) {
    let mut at = 0;
    for _ in 0..500 {
        let (lines, next) = service.log_since(at).await.unwrap();
        if lines.iter().any(|line| line.contains(word)) {
            return;
        }
        at = next;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the log never had {word:?}")
}

async fn exit_of(service: &Process) -> Option<i32> {
    until(|| async {
        match service.status().await.unwrap() {
            Status::Stopped { exit } => Some(exit),
            Status::Running { .. } => None,
        }
    })
    .await
}

/// A program in C, built.
fn built(bench: &Bench, text: &str) -> String {
    let program = bench.dir.path().join("program");
    let source = program.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.arg("-pthread").arg(&source).arg("-o").arg(&program);
    assert!(cc.status().unwrap().success());
    program.to_string_lossy().into_owned()
}

#[tokio::test]
async fn how_it_ended_is_known_though_its_threads_end_one_by_one() {
    let bench = Bench::new();
    let program = built(
        &bench,
        "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         static void *last(void *none) { usleep(500000); exit(7); return none; }\n\
         int main(void) { pthread_t other; pthread_create(&other, 0, last, 0); pthread_exit(0); }\n",
    );
    let service = bench.service(2000);
    let mut config = script("");
    config.launch.argv = vec![program];
    service.start(&config).await.unwrap();
    assert_eq!(exit_of(&service).await, Some(7));
}

/// Listens, and when it is asked to end its first thread ends at once and the other half a second later.
const SLOW_SERVER: &str = r#"
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int asked;
static void *last(void *none) {
    while (!asked) usleep(1000);
    usleep(500000);
    exit(0);
    return none;
}
int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sigset_t term;
    pthread_t other;
    int one, port = socket(AF_INET, SOCK_STREAM, 0);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, 0);
    if (bind(port, (struct sockaddr *)&at, sizeof at) || listen(port, 1)) return 3;
    pthread_create(&other, 0, last, 0);
    sigwait(&term, &one);
    asked = 1;
    pthread_exit(0);
}
"#;

#[tokio::test]
async fn a_server_whose_first_thread_has_ended_still_holds_its_port() {
    let bench = Bench::new();
    let service = bench.service(5000);
    let port = bench.url.rsplit(':').next().unwrap().to_string();
    let mut config = script("");
    config.launch.argv = vec![built(&bench, SLOW_SERVER), port];
    let id = service.start(&config).await.unwrap();
    until(|| async { (service.port().await.unwrap() == Port::Ours).then_some(()) }).await;
    let stopping = service.stop();
    let watching = async {
        until(|| async { (procfs::stat(id.pid)?.state == 'Z').then_some(()) }).await;
        assert!(procfs::stat(id.pid).unwrap().alive());
        assert_eq!(service.pids().await.unwrap(), [id.pid]);
        assert_eq!(service.port().await.unwrap(), Port::Ours);
    };
    let (stopped, ()) = tokio::join!(stopping, watching);
    stopped.unwrap();
    assert_eq!(service.port().await.unwrap(), Port::Nobody);
    assert_eq!(
        service.status().await.unwrap(),
        Status::Stopped { exit: Some(0) }
    );
}

#[tokio::test]
async fn it_runs_in_its_own_session_and_is_adopted_by_the_next_cockpit() {
    let bench = Bench::new();
    let service = bench.service(2000);
    assert_eq!(service.name(), "process sh");
    assert_eq!(
        service.status().await.unwrap(),
        Status::Stopped { exit: None }
    );

    let config = script("echo context $CTX; read line; echo stdin ended; exec sleep 60");
    let id = service.start(&config).await.unwrap();
    log_has(&service, "stdin ended").await;
    let (lines, _) = service.log_since(0).await.unwrap();
    assert!(
        lines[0].contains("start of process sh") && lines[0].contains("4,096"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "context 4096");
    let stat = procfs::stat(id.pid).unwrap();
    assert_eq!(stat.session, id.pid);
    assert!(
        service
            .start(&config)
            .await
            .unwrap_err()
            .to_string()
            .contains("still run")
    );

    let next = bench.service(2000);
    let Status::Running {
        id: adopted,
        config: with,
        ..
    } = next.status().await.unwrap()
    else {
        panic!("not adopted")
    };
    assert_eq!((adopted, with), (id.clone(), Some(config)));
    assert_eq!(next.pids().await.unwrap(), [id.pid]);

    next.stop().await.unwrap();
    assert!(procfs::stat(id.pid).is_none(), "not even a zombie is left");
    assert_eq!(
        next.status().await.unwrap(),
        Status::Stopped { exit: Some(-15) }
    );
    assert!(!record::path(&bench.state()).exists());
}

#[tokio::test]
async fn the_end_and_its_code_are_seen() {
    let bench = Bench::new();
    let service = bench.service(2000);
    service
        .start(&script("printf 'no line end'; exit 3"))
        .await
        .unwrap();
    assert_eq!(exit_of(&service).await, Some(3));
    log_has(&service, "no line end").await;
    service.start(&script("kill -SEGV $$")).await.unwrap();
    assert_eq!(exit_of(&service).await, Some(-11));
    // A cockpit that did not see it end does not know how.
    assert_eq!(
        bench.service(0).status().await.unwrap(),
        Status::Stopped { exit: None }
    );
}

#[tokio::test]
async fn children_and_those_that_ignore_the_gentle_way_are_gone_after_a_stop() {
    let bench = Bench::new();
    let service = bench.service(300);
    let text = "trap '' TERM; sleep 61 & setsid sleep 62 & echo up; wait; sleep 63";
    service.start(&script(text)).await.unwrap();
    log_has(&service, "up").await;
    let pids =
        until(|| async { Some(service.pids().await.unwrap()).filter(|all| all.len() == 3) }).await;
    service.stop().await.unwrap();
    for pid in pids {
        assert!(
            procfs::stat(pid).is_none_or(|stat| !stat.alive()),
            "{pid} lives"
        );
    }
}

#[tokio::test]
async fn what_outlives_a_crashed_leader_is_found_and_stopped() {
    let bench = Bench::new();
    let service = bench.service(2000);
    // The child wipes its environment, as programs do that set their own title.
    let text = "env -i sleep 64 & echo up; kill -KILL $$";
    service.start(&script(text)).await.unwrap();
    assert_eq!(exit_of(&service).await, Some(-9));
    let left = until(|| async { service.pids().await.unwrap().first().copied() }).await;
    let error = service
        .start(&script("true"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains(&format!("pid {left}")), "{error}");
    service.stop().await.unwrap();
    assert!(procfs::stat(left).is_none_or(|stat| !stat.alive()));
}

fn rewrite(state: &Path, change: impl FnOnce(&mut Record)) {
    let mut record = Record::read(state).unwrap().unwrap();
    change(&mut record);
    record.write(state).unwrap();
}

#[tokio::test]
async fn a_number_given_anew_is_not_ours() {
    let bench = Bench::new();
    let service = bench.service(0);
    service.start(&script("exit 0")).await.unwrap();
    exit_of(&service).await;
    // Start times have ticks of 10 ms; a number is given anew only after all others were.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut stranger = Command::new("sleep").arg("65").spawn().unwrap();
    let pid = stranger.id();
    rewrite(&bench.state(), |record| {
        record.process.as_mut().unwrap().pid = pid
    });

    assert!(matches!(
        service.status().await.unwrap(),
        Status::Stopped { .. }
    ));
    assert!(service.pids().await.unwrap().is_empty());
    service.stop().await.unwrap();
    assert!(
        stranger.try_wait().unwrap().is_none(),
        "a stranger was stopped"
    );
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn a_process_of_another_boot_is_not_ours() {
    let bench = Bench::new();
    let service = bench.service(2000);
    let id = service.start(&script("exec sleep 66")).await.unwrap();
    let kept = std::fs::read(record::path(&bench.state())).unwrap();
    rewrite(&bench.state(), |record| {
        record.boot_id = "another".to_string()
    });
    assert_eq!(
        service.status().await.unwrap(),
        Status::Stopped { exit: None }
    );
    service.stop().await.unwrap();
    assert!(
        procfs::stat(id.pid).unwrap().alive(),
        "stopped without proof"
    );
    std::fs::write(record::path(&bench.state()), kept).unwrap();
    service.stop().await.unwrap();
}

#[tokio::test]
async fn a_start_that_nobody_lived_to_record_is_found_by_its_mark() {
    let bench = Bench::new();
    let service = bench.service(2000);
    let id = service
        .start(&script("sleep 67 & exec sleep 68"))
        .await
        .unwrap();
    rewrite(&bench.state(), |record| record.process = None);
    let Status::Running { id: found, .. } = bench.service(0).status().await.unwrap() else {
        panic!("an orphan")
    };
    assert_eq!(found, id);
    assert_eq!(
        Record::read(&bench.state()).unwrap().unwrap().process,
        Some(id)
    );
    service.stop().await.unwrap();
}

#[tokio::test]
async fn a_stranger_on_the_port_is_named_and_left_alone() {
    let bench = Bench::new();
    let service = bench.service(2000);
    assert_eq!(service.port().await.unwrap(), Port::Nobody);
    let listener = TcpListener::bind(bench.url.trim_start_matches("http://")).unwrap();
    let error = service.start(&script("exec sleep 69")).await.unwrap_err();
    let ServiceError::Stranger { what } = &error else {
        panic!("{error}")
    };
    assert!(
        what.contains(&format!("pid {}", std::process::id())),
        "{what}"
    );
    assert!(
        !record::path(&bench.state()).exists(),
        "nothing was started"
    );
    drop(listener);
    service.start(&script("exec sleep 69")).await.unwrap();
    service.stop().await.unwrap();
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_shown_and_kept() {
    let bench = Bench::new();
    std::fs::create_dir(bench.state()).unwrap();
    for text in ["{\"version\": 99}", "no JSON"] {
        std::fs::write(record::path(&bench.state()), text).unwrap();
        let service = bench.service(0);
        let error = service.status().await.unwrap_err().to_string();
        assert!(error.contains("process.json"), "{error}");
        assert!(service.start(&script("true")).await.is_err());
        assert!(service.stop().await.is_err());
        let kept = std::fs::read_to_string(record::path(&bench.state())).unwrap();
        assert_eq!(kept, text);
    }
}

/// Not a test but a cockpit: starts a server when it is told to, and is killed by [`cockpit_killed`].
#[test]
fn small_cockpit() {
    let Ok(dir) = std::env::var("SMALL_COCKPIT") else {
        return;
    };
    let service = Process::new(Settings {
        launch: script("").launch,
        state_dir: PathBuf::from(dir),
        log: None,
        url: "http://127.0.0.1:9".to_string(),
        stop_grace: Duration::ZERO,
        production: None,
        profile: None,
    });
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    service.inner.start(script("exec sleep 70")).unwrap();
    println!("started");
    std::thread::sleep(Duration::from_secs(60));
}

/// A cockpit in a process of its own that starts a server and is killed after `delay`; `None`: once the start has returned.
fn cockpit_killed(state: &Path, delay: Option<Duration>) {
    let mut cockpit: Child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "service::process::tests::small_cockpit",
            "--nocapture",
        ])
        .env("SMALL_COCKPIT", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(cockpit.stdout.take().unwrap()).lines();
    let mut wait_for = |word: &str| while !said.next().unwrap().unwrap().contains(word) {};
    wait_for("ready");
    cockpit.stdin.take().unwrap().write_all(b"go\n").unwrap();
    match delay {
        Some(delay) => std::thread::sleep(delay),
        None => wait_for("started"),
    }
    cockpit.kill().unwrap();
    cockpit.wait().unwrap();
}

#[tokio::test]
async fn the_server_outlives_a_cockpit_that_is_killed() {
    let bench = Bench::new();
    cockpit_killed(&bench.state(), None);
    let service = bench.service(2000);
    let Status::Running { id, .. } = service.status().await.unwrap() else {
        panic!("not adopted")
    };
    assert!(procfs::stat(id.pid).unwrap().alive());
    service.stop().await.unwrap();
    // It was not our child: how it ended is not known.
    assert_eq!(
        service.status().await.unwrap(),
        Status::Stopped { exit: None }
    );
}

#[tokio::test]
async fn a_cockpit_killed_at_any_moment_of_a_start_leaves_no_orphan() {
    for round in 0..20_u64 {
        let bench = Bench::new();
        cockpit_killed(&bench.state(), Some(Duration::from_micros(round * 700)));
        // The kernel may still be at the start of the new program.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let entry = format!("SMALL_COCKPIT={}", bench.state().display());
        let children = || {
            procfs::all()
                .into_iter()
                .filter(|one| one.alive() && procfs::has_entry(one.pid, &entry))
        };
        let service = bench.service(2000);
        let known = service.pids().await.unwrap();
        let running: Vec<u32> = children().map(|one| one.pid).collect();
        assert_eq!(known, running, "round {round}");
        service.stop().await.unwrap();
        assert_eq!(children().count(), 0, "round {round}");
    }
}
