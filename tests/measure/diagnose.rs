//! How long `vramp diagnose` takes over a log of 200 MB, in bounded memory.

use crate::support::place::Place;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const BYTES: usize = 200 << 20;
/// CPU seconds that are allowed: a few, on a slow machine.
const LIMIT_S: f64 = 10.0;
/// Address space that the program gets, KiB: less than the log.
const SPACE: u32 = 128 << 10;

/// CPU seconds of all children that ended.
fn of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Fields 16 and 17 of proc_pid_stat(5), in ticks, of which Linux shows 100 a second to programs.
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(13) + ticks(14)) / 100.0
}

#[test]
#[ignore = "a measurement: diagnose.sh runs it"]
fn a_log_of_200_mb_is_read() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/startup");
    let path = place.path().join("whole.log");
    for log in [
        "llama-server/start-ok-8192-p4-with-traffic.log",
        "llama-server/ctx-100M.log",
        "sglang/start-ok-8192-traffic-and-sigterm.log",
        "vllm/start-ok-8192-and-sigterm.log",
    ] {
        let part = std::fs::read(folder.join(log)).unwrap();
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        for _ in 0..BYTES.div_ceil(part.len()) {
            file.write_all(&part).unwrap();
        }
        file.flush().unwrap();
        let (before, begun) = (of_children(), Instant::now());
        let read = format!("ulimit -v {SPACE}; exec \"$0\" diagnose \"$1\" --json");
        let output = place
            .command("sh")
            .args(["-c", &read, env!("CARGO_BIN_EXE_vramp")])
            .arg(&path)
            .output()
            .unwrap();
        let cpu = of_children() - before;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let took = begun.elapsed().as_secs_f64();
        println!("{log}: {cpu:.1} s of CPU, {took:.1} s in all");
        assert!(cpu < LIMIT_S, "{log}: {cpu} s");
    }
}
