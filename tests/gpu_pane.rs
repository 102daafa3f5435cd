//! What the GPU pane says of a server that runs: its share of the cards, its machine, and the history under the cursor.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

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
            .any(|line| line.contains("CPU") && line.contains("RAM") && line.contains("GiB RSS"))
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

#[test]
fn the_machine_of_a_server_elsewhere_is_read_there() {
    let Some(sshd) = Sshd::start() else {
        return;
    };
    let place = Place::new();
    let arguments = |port: &str| {
        ["sim", "--start-ms", "1", "--port", port]
            .map(String::from)
            .to_vec()
    };
    let server = Server::start(&place, VRAMP.as_ref(), arguments, "/health", secs(20));
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
            .any(|line| line.contains("CPU") && line.contains("GiB RSS") && line.contains("disk"))
    });
}
