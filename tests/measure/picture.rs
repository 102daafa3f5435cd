//! The picture of the README: the real screen of the demo.

use crate::support::place::Place;
use crate::support::secs;
use crate::support::term::key;
use crate::svg;
use std::path::Path;
use std::time::Duration;

#[test]
#[ignore = "takes three minutes and writes assets/cockpit.svg; tests/measure/picture.sh runs it"]
fn picture() {
    let place = Place::new();
    // The screen shows the program's path: a short one, not that of somebody's build folder.
    let program = place.path().join("vramp");
    std::fs::copy(env!("CARGO_BIN_EXE_vramp"), &program).unwrap();
    let term = place.terminal(program.to_str().unwrap(), &["demo", "--quick"], 160, 48);
    term.wait_for("32,768 answered its first token", secs(60));
    term.run_task("Smoke");
    term.wait_for("the model answers", secs(30));
    term.run_task("Throughput");
    term.wait_for("throughput measured", secs(300));
    term.run_task("Long context 1K");
    term.wait_for("long-context measured", secs(120));
    term.run_task("Long context 60K");
    term.restart_at("65,536", secs(10));
    term.answer("The server is running at 65,536", key::ESC, secs(90));
    term.wait_for("the question waits", secs(5));
    term.run_task("Long context 60K");
    // In the middle of its answer: live figures, and the restart on the memory chart.
    std::thread::sleep(Duration::from_millis(9500));
    let picture = term.look(svg::of);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/cockpit.svg");
    std::fs::write(&path, picture).unwrap();
    println!("wrote {}", path.display());
}
