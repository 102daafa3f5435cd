//! Start to first frame, and the cost of a cockpit at rest; where `nvtop` is installed, its cost on the same stand-in in the same minute.

use crate::support::http::{free_port, json};
use crate::support::place::Place;
use crate::support::term::Term;
use crate::support::{secs, until};
use std::fmt::{Display, Formatter, Write};
use std::path::Path;
use std::time::Instant;

const CARDS: u32 = 8;
const STARTS: usize = 15;
const REST_S: u64 = 60;

/// NVML's stand-in, built into `folder`.
fn stand_in(folder: &Path) -> String {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml-stub/build");
    let done = std::process::Command::new(build)
        .arg(folder)
        .status()
        .unwrap();
    assert!(done.success(), "the NVML stand-in needs a C compiler");
    folder
        .join("libnvidia-ml.so.1")
        .to_string_lossy()
        .into_owned()
}

/// Eight cards whose figures differ at every second, as real ones do.
fn state(second: u32) -> String {
    let mut text = format!("count = {CARDS}\n");
    for card in 0..CARDS {
        let step = (second * 7 + card * 13) % 40;
        let _ = writeln!(
            text,
            "gpu{card}.name = NVIDIA RTX A6000\ngpu{card}.mem.total = 48G\ngpu{card}.mem.used = {}M\ngpu{card}.util = {}\n\
             gpu{card}.temp = {}\ngpu{card}.power = {}\ngpu{card}.power.limit = 300000",
            41_000 + step * 8,
            50 + step,
            60 + step / 5,
            250_000 + step * 700,
        );
    }
    text
}

fn write_state(path: &Path, second: u32) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, state(second)).unwrap();
    std::fs::rename(beside, path).unwrap();
}

fn cockpit(place: &Place, port: u16, library: &str, state: &str) -> Term {
    place.terminal_with(
        env!("CARGO_BIN_EXE_vramp"),
        &["attach", &format!("http://127.0.0.1:{port}")],
        &[("VRAMP_NVML_LIB", library), ("NVML_STUB_STATE", state)],
        120,
        36,
    )
}

/// What a program in a terminal has used since it began, or between two moments.
struct Spent {
    cpu_s: f64,
    wakeups: u64,
    resident_mib: f64,
}

impl Spent {
    fn of(term: &Term) -> Spent {
        let folder = format!("/proc/{}", term.process().pid);
        let figure = |text: &str, name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        };
        let (mut cpu_ns, mut wakeups) = (0, 0);
        for thread in std::fs::read_dir(format!("{folder}/task"))
            .unwrap()
            .flatten()
        {
            let read =
                |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            cpu_ns += figure(&read("schedstat"), "").unwrap_or(0);
            wakeups += figure(&read("status"), "voluntary_ctxt_switches:").unwrap_or(0);
        }
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        Spent {
            cpu_s: cpu_ns as f64 / 1e9,
            wakeups,
            resident_mib: figure(&status, "VmRSS:").unwrap() as f64 / 1024.0,
        }
    }

    fn since(&self, before: &Spent) -> Spent {
        Spent {
            cpu_s: self.cpu_s - before.cpu_s,
            wakeups: self.wakeups - before.wakeups,
            resident_mib: self.resident_mib,
        }
    }
}

impl Display for Spent {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let seconds = REST_S as f64;
        write!(
            f,
            "{:.3} CPU s a minute, {:.1} MiB resident, {:.1} wakeups a second",
            self.cpu_s * 60.0 / seconds,
            self.resident_mib,
            self.wakeups as f64 / seconds,
        )
    }
}

/// nvtop on the same cards, where it is installed.
fn nvtop(place: &Place, library: &str, state: &str) -> Option<Term> {
    let found = std::process::Command::new("nvtop")
        .arg("--version")
        .output();
    found.is_ok_and(|output| output.status.success()).then(|| {
        let folder = Path::new(library).parent().unwrap().to_string_lossy();
        let more = [
            ("LD_LIBRARY_PATH", folder.as_ref()),
            ("NVML_STUB_STATE", state),
        ];
        let term = place.terminal_with("nvtop", &[], &more, 120, 36);
        term.wait_for("A6000", secs(20));
        term
    })
}

#[test]
#[ignore = "takes two minutes; tests/measure/idle.sh runs it"]
fn start_and_rest() {
    let place = Place::new();
    let library = stand_in(&place.path().join("nvml"));
    let state_file = place.path().join("cards.state");
    write_state(&state_file, 0);
    let state_name = state_file.to_string_lossy().into_owned();
    let port = free_port();
    let mut server = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args([
            "sim",
            "--context-length",
            "32768",
            "--start-ms",
            "200",
            "--port",
            &port.to_string(),
        ])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the idle server", secs(20), || json(port, "/v1/models"));

    let mut starts: Vec<f64> = (0..STARTS)
        .map(|_| {
            let start = Instant::now();
            let term = cockpit(&place, port, &library, &state_name);
            term.wait_for("1 Tasks", secs(10));
            let ms = start.elapsed().as_secs_f64() * 1000.0;
            drop(term);
            ms
        })
        .collect();
    starts.sort_by(f64::total_cmp);

    let term = cockpit(&place, port, &library, &state_name);
    term.wait_for("attached", secs(20));
    term.wait_for("RTX A6000", secs(20));
    let nvtop = nvtop(&place, &library, &state_name);
    let mut second = 0;
    let mut pass = |seconds: u64| {
        for _ in 0..seconds {
            second += 1;
            write_state(&state_file, second);
            std::thread::sleep(secs(1));
        }
    };
    pass(5);
    let before = Spent::of(&term);
    let nvtop_before = nvtop.as_ref().map(Spent::of);
    let written = term.raw().len();
    pass(REST_S);
    let rest = Spent::of(&term).since(&before);
    let nvtop_rest = nvtop
        .as_ref()
        .zip(nvtop_before)
        .map(|(term, before)| Spent::of(term).since(&before));
    let written = (term.raw().len() - written) as f64 / REST_S as f64 / 1024.0;
    println!("{}", term.screen());
    println!(
        "start to first frame: median {:.0} ms, slowest of {STARTS} {:.0} ms",
        starts[STARTS / 2],
        starts[STARTS - 1]
    );
    println!("at rest, {CARDS} cards at 1 Hz, 120x36: {rest}, {written:.1} KiB/s written");
    match nvtop_rest {
        Some(rest) => println!("nvtop beside it: {rest}"),
        None => println!("nvtop is not installed: nothing to compare with"),
    }
    // The server was started for this alone.
    let _ = server.kill();
    let _ = server.wait();
}
