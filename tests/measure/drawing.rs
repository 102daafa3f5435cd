//! What the drawing cockpit adds to a measurement: the same plan without a screen and in the cockpit, each against a fresh server of
//! exact schedule that knows what it sent.

use crate::support::http::{free_port, json};
use crate::support::place::{Place, Process};
use crate::support::{secs, until};
use std::process::{Child, Stdio};
use vramp::store::Store;

const PASSES: usize = 6;
/// 300 requests, three for each that is kept in flight.
const PLAN: &str = "inputs = [32]\noutput = 500\nconcurrency = [100]\n";
const REQUESTS: usize = 300;

/// CPU of the whole program for each event, in microseconds, and mean TTFT reported less sent, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Figures {
    cpu_us: f64,
    ttft_ms: f64,
}

/// A server that is ready, in a home whose profile has the plan.
fn rig() -> (Place, Child, u16) {
    let (place, port) = (Place::new(), free_port());
    place.profile(&format!(
        "[profile.raw]\nurl = \"http://127.0.0.1:{port}\"\n\n[profile.raw.throughput]\n{PLAN}"
    ));
    let server = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args([
            "sim",
            "--start-ms",
            "1",
            "--ttft-ms",
            "50",
            "--itl-ms",
            "10",
        ])
        .args(["--port", &port.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the server", secs(20), || json(port, "/v1/models"));
    (place, server, port)
}

/// From what the run left on record and what the server says it sent; the server is not needed any more then.
fn figures(place: &Place, mut server: Child, port: u16, cpu_s: f64) -> Figures {
    let store = Store::open(&place.data().join("vramp.db")).unwrap();
    // The record may come a moment after the words on the screen.
    let point = until("the point on record", secs(20), || {
        let run = store.runs(1).unwrap().pop()?;
        Some(store.run_points(run.id).unwrap().pop()?.point)
    });
    assert_eq!(point.ok as usize, REQUESTS, "{:?}", point.reasons);
    let truth = json(port, &format!("/stats?requests={REQUESTS}")).unwrap();
    let _ = server.kill();
    let _ = server.wait();
    let sent: Vec<f64> = truth["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let at = |name: &str| one[name].as_u64().unwrap();
            (at("first_token_ns") - at("received_ns")) as f64 / 1e6
        })
        .collect();
    assert_eq!(sent.len(), REQUESTS);
    Figures {
        cpu_us: cpu_s * 1e6 / truth["events"].as_f64().unwrap(),
        ttft_ms: point.ttft_ms.mean.unwrap() - sent.iter().sum::<f64>() / sent.len() as f64,
    }
}

fn headless() -> Figures {
    let (place, server, port) = rig();
    let mut run = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["bench", "throughput", "--save", "plain"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = until("the run", secs(5), || Process::of(run.id()));
    // One that has ended and is not waited for yet still tells its CPU time.
    until("the run's end", secs(180), || {
        (!process.lives()).then_some(())
    });
    let cpu_s = process.cpu_seconds();
    run.wait().unwrap();
    figures(&place, server, port, cpu_s)
}

fn drawn() -> Figures {
    let (place, server, port) = rig();
    let term = place.cockpit(&[], 160, 48);
    term.wait_for("attached", secs(30));
    let before = term.process().cpu_seconds();
    term.run_task("Throughput");
    term.wait_for("throughput measured", secs(180));
    let cpu_s = term.process().cpu_seconds() - before;
    figures(&place, server, port, cpu_s)
}

fn median(of: impl Fn(&Figures) -> f64, all: &[Figures]) -> f64 {
    let mut values: Vec<f64> = all.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "takes five minutes; tests/measure/drawing.sh runs it"]
fn what_drawing_adds() {
    let (mut plain, mut with_screen) = (Vec::new(), Vec::new());
    for pass in 1..=PASSES {
        plain.push(headless());
        with_screen.push(drawn());
        println!("pass {pass}: {:?} {:?}", plain.last(), with_screen.last());
    }
    let (cpu, ttft) = (|f: &Figures| f.cpu_us, |f: &Figures| f.ttft_ms);
    println!(
        "100 streams, medians of {PASSES} interleaved passes: CPU for each event {:.2} us without a screen, {:.2} drawn ({:.2} x); TTFT \
         reported - sent {:+.2} ms and {:+.2}",
        median(cpu, &plain),
        median(cpu, &with_screen),
        median(cpu, &with_screen) / median(cpu, &plain),
        median(ttft, &plain),
        median(ttft, &with_screen),
    );
}
