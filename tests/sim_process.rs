//! The simulated rig as a process of its own: start, end, faults, cards.

#![allow(clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vramp::clock::Clock;
use vramp::engine::start::{Known, Outcome, Reader};
use vramp::engine::{Kind, Phase};
use vramp::gpu::Source;
use vramp::gpu::sim::SimSource;

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port")
        .port()
}

struct Server {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Server {
    fn start(options: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramp"))
            .arg("sim")
            .args(options.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let out = BufReader::new(child.stdout.take().expect("output"));
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Server {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    fn wait_for(&mut self, words: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            let found = line.contains(words);
            self.seen.push(line);
            if found {
                return;
            }
        }
        panic!("never said {words:?}: {:#?}", self.seen);
    }

    fn exit_code(&mut self, within: Duration) -> Option<i32> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("status") {
                self.seen.extend(self.lines.iter());
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("still running: {:#?}", self.seen);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("sent");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn used(source: &mut SimSource) -> f64 {
    let snapshot = source.read(Clock::default().now());
    let (_, free) = snapshot.tightest(&[]).expect("a card");
    48.0 - free as f64 / vramp::units::GIB
}

#[test]
fn a_start_shows_its_phases_and_an_end_frees_the_cards() {
    let dir = tempfile::tempdir().expect("dir");
    let mut source = SimSource::new(dir.path());
    assert!(used(&mut source) < 0.5);
    let port = free_port();
    let mut server = Server::start(&format!(
        "--port {port} --start-ms 1200 --context-length 64K --hold-cards-ms 500 --rig {}",
        dir.path().display()
    ));
    server.wait_for("Load weight end");
    assert!(
        (27.0..30.0).contains(&used(&mut source)),
        "{}",
        used(&mut source)
    );
    server.wait_for("Uvicorn running on");
    let loading = page(port, "/health");
    assert!(loading.starts_with("HTTP/1.1 503"), "{loading}");
    server.wait_for("fired up and ready to roll");
    assert!(
        (41.0..42.0).contains(&used(&mut source)),
        "{}",
        used(&mut source)
    );
    let snapshot = source.read(Clock::default().now());
    let holders = snapshot.cards[0].processes.fresh().expect("known").clone();
    assert_eq!(holders[0].pid, server.child.id());
    // The engine's own reader understands the log.
    let mut reader = Reader::new(Some(Kind::Sglang));
    let changes = server
        .seen
        .iter()
        .filter_map(|line| reader.read(line).phase);
    let (phases, progress): (Vec<Phase>, Vec<_>) = changes.unzip();
    assert!(
        phases.is_sorted() && phases.last() == Some(&Phase::Listening),
        "{phases:?}"
    );
    assert!(progress.iter().any(|progress| progress.percent == Some(50)));
    assert!(
        progress
            .iter()
            .any(|progress| progress.parts == Some((6, 12)))
    );
    let found = reader.diagnose(&Known::default());
    assert_eq!(found.outcome, Outcome::Ready, "{found:?}");
    assert_eq!(found.facts.kv_pool_tokens, Some(159_744));
    assert_eq!(found.facts.effective_context_per_request, Some(65_536));
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.exit_code(Duration::from_secs(2)), Some(0));
    assert!(used(&mut source) > 35.0, "held for a while");
    std::thread::sleep(Duration::from_millis(2300));
    assert!(used(&mut source) < 0.5);
}

/// One GET with the bare hands.
fn page(port: u16, path: &str) -> String {
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected");
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("read");
    answer
}

#[test]
fn failing_starts_end_with_one_and_their_words() {
    for (options, words) in [
        (
            "--context-length 128K --oom-above 64K",
            "torch.OutOfMemoryError: CUDA out of memory",
        ),
        (
            "--context-length 512K",
            "(524288) is greater than the derived context_length (262144)",
        ),
    ] {
        let mut server = Server::start(&format!("--port {} --start-ms 100 {options}", free_port()));
        assert_eq!(
            server.exit_code(Duration::from_secs(10)),
            Some(1),
            "{options}"
        );
        assert!(
            server.seen.iter().any(|line| line.contains(words)),
            "{:#?}",
            server.seen
        );
        assert!(
            !server
                .seen
                .iter()
                .any(|line| line.contains("ready to roll"))
        );
    }
}

#[test]
fn a_taken_port_and_occupied_cards_end_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = taken.local_addr().expect("address").port();
    let mut server = Server::start(&format!("--port {port} --start-ms 50"));
    assert_eq!(server.exit_code(Duration::from_secs(10)), Some(1));
    assert!(
        server
            .seen
            .iter()
            .any(|line| line.contains("error while attempting to bind on address"))
    );
    let dir = tempfile::tempdir().expect("dir");
    let rig = dir.path().display();
    let mut first = Server::start(&format!("--port {} --start-ms 50 --rig {rig}", free_port()));
    first.wait_for("ready to roll");
    let mut second = Server::start(&format!("--port {} --start-ms 50 --rig {rig}", free_port()));
    assert_eq!(
        second.exit_code(Duration::from_secs(10)),
        Some(1),
        "the cards are not free"
    );
    assert!(
        second
            .seen
            .iter()
            .any(|line| line.contains("CUDA out of memory"))
    );
}

#[test]
fn faults_come_when_asked_for() {
    let mut crash = Server::start(&format!(
        "--port {} --start-ms 50 --fail-after-ready-ms 100",
        free_port()
    ));
    crash.wait_for("ready to roll");
    assert_eq!(crash.exit_code(Duration::from_secs(10)), Some(1));

    let port = free_port();
    let mut mute = Server::start(&format!(
        "--port {port} --start-ms 50 --never-ready --ignore-sigterm"
    ));
    mute.wait_for("Uvicorn running on");
    std::thread::sleep(Duration::from_millis(300));
    assert!(page(port, "/health").starts_with("HTTP/1.1 503"));
    mute.signal(rustix::process::Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        page(port, "/ready").starts_with("HTTP/1.1 503"),
        "it ignores the signal"
    );
    mute.signal(rustix::process::Signal::KILL);
    assert_eq!(mute.exit_code(Duration::from_secs(5)), None);
}
