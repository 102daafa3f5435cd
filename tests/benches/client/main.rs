//! What the load client costs and how true its figures are, beside a bare yardstick and a server of known schedule, all on the same
//! machine in the same minutes. `cargo bench --bench client` prints ratios; a single pass is good to about 20 %, so the medians of
//! several interleaved passes count.
//!
//! `cargo bench --bench client -- --passes 6 [--busy N]` (`--busy`: so many threads that only burn CPU); `-- long` for a run of a
//! million requests. `tests/measure/bench_speed.sh` does all of it.

// A measurement that cannot go on may say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod client;
mod program;
mod server;
mod yardstick;

use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Output tokens of each request, one event each.
pub const TOKENS: u64 = 100;
pub const TTFT_MS: f64 = 50.0;
pub const ITL_MS: f64 = 10.0;

/// What a client reports of itself; times in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub events: u64,
    pub ttft_mean: f64,
    pub ttft_p99: f64,
    pub gap_p99: f64,
    /// CPU seconds of the whole process so far.
    pub cpu_s: f64,
    /// The most memory it had, MiB.
    pub peak_mib: f64,
}

/// What the server did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Truth {
    pub events: u64,
    pub ttft_mean: f64,
    pub ttft_p99: f64,
    pub gap_p99: f64,
    pub most_open: u64,
    /// Events a second from the first to the last.
    pub events_s: f64,
}

/// The share of sorted values that lies at or under the result.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// CPU seconds of this process, and the most memory it had in MiB.
pub fn own_cost() -> (f64, f64) {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: f64 = peak
        .and_then(|l| l.split_whitespace().next())
        .unwrap()
        .parse()
        .unwrap();
    (cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9, kib / 1024.0)
}

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let number = |at: usize| -> u64 { args[at].parse().unwrap() };
    match args.first().map(String::as_str) {
        Some("serve") => server::serve(args[1].parse().unwrap()),
        Some("yardstick") => print(&yardstick::run(number(1) as u16, number(2), number(3))),
        Some("vramp") => {
            let spread = args.get(4).and_then(|us| us.parse().ok());
            print(&client::run(number(1) as u16, number(2), number(3), spread));
        }
        Some("burn") => burn(),
        Some("long") => program::long(&args),
        _ => compare(&args),
    }
}

fn print(report: &Report) {
    println!("{}", serde_json::to_string(report).unwrap());
}

fn burn() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// A thread that burns CPU at the priority of ordinary work, whatever this process has.
fn burner() -> Child {
    let own_nice = rustix::process::getpriority_process(None).unwrap();
    let burning = Command::new("nice")
        .args(["-n", &(-own_nice).to_string()])
        .arg(std::env::current_exe().unwrap())
        .arg("burn")
        .spawn();
    burning.unwrap()
}

fn own(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args).stdout(Stdio::piped());
    command
}

fn last_line(child: &mut Child) -> String {
    let out = BufReader::new(child.stdout.take().unwrap());
    out.lines().map_while(Result::ok).last().unwrap_or_default()
}

/// A server in a process of its own.
struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    port: String,
}

impl Server {
    /// `ttft_ms`: from a request to its first token.
    fn start(ttft_ms: f64) -> Server {
        let mut process = own(&["serve", &ttft_ms.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        out.read_line(&mut port).unwrap();
        let port = port.trim().to_string();
        Server { process, out, port }
    }

    /// It tells its truth when nobody needs it any more.
    fn end(mut self) -> Truth {
        drop(self.process.stdin.take());
        let mut truth = String::new();
        self.out.read_line(&mut truth).unwrap();
        self.process.wait().unwrap();
        serde_json::from_str(&truth).unwrap()
    }
}

/// One client against a fresh server.
fn once(tool: &str, concurrency: u64, rounds: u64) -> (Report, Truth) {
    against(Server::start(TTFT_MS), tool, concurrency, rounds)
}

fn against(server: Server, tool: &str, concurrency: u64, rounds: u64) -> (Report, Truth) {
    let requests = (concurrency * rounds).to_string();
    let mut client = own(&[tool, &server.port, &concurrency.to_string(), &requests])
        .spawn()
        .unwrap();
    let report = last_line(&mut client);
    assert!(client.wait().unwrap().success(), "{tool} failed");
    (serde_json::from_str(&report).unwrap(), server.end())
}

const TOOLS: [&str; 2] = ["yardstick", "vramp"];

/// Figures of one tool over all passes.
#[derive(Default)]
struct Column {
    cpu_us: Vec<f64>,
    ttft_100: Vec<f64>,
    ttft_512: Vec<f64>,
    gap_512: Vec<f64>,
    events: Vec<f64>,
    memory: Vec<f64>,
    start: Vec<f64>,
}

fn compare(args: &[String]) {
    let option = |name: &str| {
        let at = args.iter().position(|a| a == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let passes = option("--passes").unwrap_or(3);
    let mut burners: Vec<Child> = (0..option("--busy").unwrap_or(0))
        .map(|_| burner())
        .collect();
    let mut columns = [Column::default(), Column::default()];
    for pass in 1..=passes {
        for (tool, column) in TOOLS.iter().zip(&mut columns) {
            let (short, _) = once(tool, 100, 3);
            let (long, truth) = once(tool, 100, 10);
            let events = (long.events - short.events) as f64;
            column
                .cpu_us
                .push((long.cpu_s - short.cpu_s) / events * 1e6);
            column.ttft_100.push(long.ttft_mean - truth.ttft_mean);
            column
                .start
                .push(short.cpu_s - column.cpu_us.last().unwrap() * short.events as f64 / 1e6);
            let (many, truth) = once(tool, 512, 3);
            column.ttft_512.push(many.ttft_mean - truth.ttft_mean);
            column.gap_512.push(many.gap_p99 / truth.gap_p99);
            column.events.push(truth.events_s);
            column.memory.push(many.peak_mib);
            println!(
                "pass {pass} {tool:9} {:5.2} us CPU an event, TTFT error {:+.2} ms at 100 and {:+.2} at 512, gap p99 {:.2} x, {:.0} MiB, {} open, {:.0} events/s",
                column.cpu_us.last().unwrap(),
                column.ttft_100.last().unwrap(),
                column.ttft_512.last().unwrap(),
                column.gap_512.last().unwrap(),
                many.peak_mib,
                truth.most_open,
                truth.events_s,
            );
        }
    }
    for burner in &mut burners {
        let _ = burner.kill();
        let _ = burner.wait();
    }
    let [yardstick, vramp] = &mut columns;
    let mut ratios: Vec<f64> = vramp
        .cpu_us
        .iter()
        .zip(&yardstick.cpu_us)
        .map(|(a, b)| a / b)
        .collect();
    let mid = |values: &mut Vec<f64>| quantile(values, 0.5);
    println!("medians of {passes} passes           yardstick     vramp");
    println!(
        "CPU an event at 100, us          {:9.2} {:9.2}   ratio {:.2}",
        mid(&mut yardstick.cpu_us),
        mid(&mut vramp.cpu_us),
        mid(&mut ratios)
    );
    println!(
        "TTFT reported - sent at 100, ms  {:+9.2} {:+9.2}",
        mid(&mut yardstick.ttft_100),
        mid(&mut vramp.ttft_100)
    );
    println!(
        "TTFT reported - sent at 512, ms  {:+9.2} {:+9.2}",
        mid(&mut yardstick.ttft_512),
        mid(&mut vramp.ttft_512)
    );
    println!(
        "gap p99 reported / sent at 512   {:9.2} {:9.2}",
        mid(&mut yardstick.gap_512),
        mid(&mut vramp.gap_512)
    );
    println!(
        "events a second at 512           {:9.0} {:9.0}",
        mid(&mut yardstick.events),
        mid(&mut vramp.events)
    );
    println!(
        "peak memory at 512, MiB          {:9.1} {:9.1}",
        mid(&mut yardstick.memory),
        mid(&mut vramp.memory)
    );
    println!(
        "CPU to start, s                  {:9.3} {:9.3}",
        mid(&mut yardstick.start),
        mid(&mut vramp.start)
    );
    if option("--busy").is_none() {
        // So late that all are asked for before the first token of any.
        let (many, truth) = against(Server::start(5000.0), "vramp", 4000, 1);
        println!(
            "4,000 streams: {} open at once, {:.0} MiB",
            truth.most_open, many.peak_mib
        );
        println!(
            "`vramp bench` of one request: {:.3} CPU s",
            program::one_request()
        );
    }
}
