//! What the GPU pane says of a server that runs: its share of the cards, its machine, and the history under the cursor.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/nvml.rs"]
mod nvml;
mod support;

use nvml::{Driver, shipped};
use std::time::Duration;
use support::place::Place;
use support::server::Server;
use support::sshd::Sshd;
use support::term::key;
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

#[test]
fn the_server_s_share_its_machine_and_the_cursor() {
    let place = Place::new();
    let term = place.cockpit(&["demo", "--quick"], 160, 48);
    term.wait_for("32,768 answered its first token", secs(60));
    term.keys("2");
    // The process that holds the cards is found as the service's own.
    term.wait_until("the server's share", secs(20), |screen| {
        screen
            .lines()
            .any(|line| line.contains("server") && line.contains("others   0."))
    });
    term.wait_until("its machine", secs(30), |screen| {
        screen
            .lines()
            .any(|line| line.contains("CPU") && line.contains("RAM") && resident(line))
    });
    term.wait_for("lowest", secs(10));
    term.keys("i");
    term.wait_for("its processes hold memory there", secs(10));
    term.keys(key::ESC);
    term.wait_gone("its processes hold memory there", secs(10));
    term.keys("h");
    term.wait_for(" 32,768  ▌0 ", secs(10));
    // Back, second by second, into the start.
    until("the start under the cursor", secs(60), || {
        term.keys("h");
        term.settle(Duration::from_millis(30));
        term.screen().contains("starting 32,768").then_some(())
    });
    term.keys(key::ESC);
    term.wait_gone("starting 32,768", secs(10));
}

/// Whether the line says what the server holds of the machine's memory: the simulated one holds some MiB.
fn resident(line: &str) -> bool {
    line.split_once(" MiB RSS")
        .and_then(|(before, _)| before.rsplit_once("server "))
        .is_some_and(|(_, mib)| mib.trim().parse::<f64>().is_ok_and(|mib| mib >= 1.0))
}

/// The simulated rig as a plain server.
fn serve(place: &Place) -> Server {
    let arguments = |port: &str| {
        ["sim", "--start-ms", "1", "--port", port]
            .map(String::from)
            .to_vec()
    };
    Server::start(place, VRAMP.as_ref(), arguments, "/health", secs(20))
}

#[test]
fn a_driver_tells_what_the_server_holds_and_what_is_wrong() {
    let place = Place::new();
    let server = serve(&place);
    // The first card is held back by its power cap there.
    let state = |more: &str| {
        format!(
            "{}gpu0.mem.used = 40G\ngpu1.mem.used = 40G\ngpu0.procs = {}:30G:C, 1:9G:C\ngpu1.procs = 1:39G:C\n{more}\n",
            shipped("two-h100.state"),
            server.pid()
        )
    };
    let Some(driver) = Driver::new(&state(""), &[]) else {
        return;
    };
    let library = driver.library();
    let url = format!("http://127.0.0.1:{}", server.port);
    let more = [("VRAMP_NVML_LIB", library.to_str().unwrap())];
    let term = place.terminal_with(VRAMP, &["attach", &url], &more, 160, 48);
    term.wait_for("attached: ", secs(40));
    term.keys("2");
    // Without a service the server is who listens there.
    term.wait_for("server  30.0  others  10.0", secs(20));
    term.wait_for("server   0.0  others  40.0", secs(20));
    term.wait_for("POWER-CAP", secs(20));
    term.keys("i");
    term.wait_for("cards 0; its processes hold memory there", secs(10));
    term.keys(key::ESC);
    driver.set(&state("gpu1.xid = 79\ngpu1.error = GPU_IS_LOST"));
    term.wait_until("the lost card", secs(20), |screen| {
        screen
            .lines()
            .any(|line| line.contains("LOST 00:") && line.contains("last: 40.0 GiB used"))
    });
}

#[test]
fn the_machine_of_a_server_elsewhere_is_read_there() {
    let Some(sshd) = Sshd::start() else {
        return;
    };
    let place = Place::new();
    let server = serve(&place);
    place.profile(&format!(
        "[profile.far]\nurl = \"http://127.0.0.1:{}\"\nhost = \"ssh:vramp-test\"\nssh_config = {:?}\n",
        server.port,
        sshd.config(),
    ));
    let term = place.cockpit(&[], 160, 48);
    term.wait_for("attached: ", secs(40));
    term.keys("2");
    term.wait_until("its machine", secs(60), |screen| {
        screen
            .lines()
            .any(|line| line.contains("CPU") && resident(line) && line.contains("disk"))
    });
}
