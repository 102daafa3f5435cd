//! The whole program as a user starts it, rather than its load client alone.

use crate::Server;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Requests of a long run, where nothing else is asked for.
const LONG: u64 = 1_000_000;
const STARTS: u32 = 10;
/// Of the CPU times in `/proc`, on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// `vramp bench` in a home of its own.
fn bench(home: &PathBuf, port: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramp"));
    command
        .args(["bench", "--url", &format!("http://127.0.0.1:{port}")])
        .args(["--model", "m", "--input", "32", "--json", "-"])
        .args(more)
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_STATE_HOME", home.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// CPU seconds of ended children so far.
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum();
    ticks / TICKS_A_SECOND
}

/// CPU seconds of a benchmark of one request, its start and its record included.
pub fn one_request() -> f64 {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_path_buf();
    let server = Server::start(1.0);
    let before = children_cpu_s();
    for _ in 0..STARTS {
        let more = ["--output", "1", "--requests", "1", "--concurrency", "1"];
        let status = bench(&home, &server.port, &more).status().unwrap();
        assert!(status.success(), "{status}");
    }
    let used = children_cpu_s() - before;
    server.end();
    used / f64::from(STARTS)
}

/// A run of very many short requests: what memory it takes as it goes on, and whether its records are on disk.
pub fn long(args: &[String]) {
    let requests = args.get(1).map_or(LONG, |n| n.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_path_buf();
    let server = Server::start(1.0);
    let count = requests.to_string();
    let began = Instant::now();
    let mut run = bench(
        &home,
        &server.port,
        &[
            "--output",
            "1",
            "--requests",
            &count,
            "--concurrency",
            "64",
            "--save",
            "long",
        ],
    )
    .spawn()
    .unwrap();
    let mut memory = Vec::new();
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        memory.extend(resident_mib(&run));
        std::thread::sleep(Duration::from_millis(500));
    };
    let seconds = began.elapsed().as_secs_f64();
    let truth = server.end();
    let store = vramp::store::Store::open(&home.join("data/vramp/vramp.db")).unwrap();
    let kept = store.requests(1).unwrap().len();
    let at = |share: f64| memory[((memory.len() - 1) as f64 * share) as usize];
    println!(
        "{requests} requests in {seconds:.0} s ({status}): {:.1} MiB after a tenth of the time, {:.1} after half, {:.1} at the end; {kept} on record, {} open at once",
        at(0.1),
        at(0.5),
        at(1.0),
        truth.most_open,
    );
}

fn resident_mib(process: &Child) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}
