//! The terminal is given back, whatever ends the program, and stays usable at every size.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use std::time::{Duration, Instant};
use support::http::free_port;
use support::place::Place;
use support::secs;
use support::term::{Term, key};

/// Written once on the way in and once on the way out.
const LEAVE: &str = "\x1b[?1049l";

/// A cockpit that looks for a server where none is.
fn cockpit(place: &Place, columns: u16, rows: u16) -> Term {
    let url = format!("http://127.0.0.1:{}", free_port());
    let term = place.cockpit(&["attach", &url], columns, rows);
    term.wait_for("connection refused", secs(20));
    term
}

#[test]
fn quit_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let mut term = cockpit(&place, 120, 36);
    term.keys("q");
    assert_eq!(term.wait_exit(secs(10)).exit_code(), 0);
    term.assert_restored();
    assert_eq!(term.written(LEAVE), 1);
}

#[test]
fn ctrl_c_leaves_too() {
    let place = Place::new();
    let mut term = cockpit(&place, 120, 36);
    term.keys(key::CTRL_C);
    term.wait_exit(secs(10));
    term.assert_restored();
    assert_eq!(term.written(LEAVE), 1);
}

#[test]
fn signals_that_end_it_leave_the_terminal_as_it_was() {
    for (signal, number) in [
        (Signal::TERM, 15),
        (Signal::HUP, 1),
        (Signal::INT, 2),
        (Signal::QUIT, 3),
    ] {
        let place = Place::new();
        let mut term = cockpit(&place, 120, 36);
        term.signal(signal);
        let status = term.wait_exit(secs(10));
        assert_eq!(status.exit_code(), 128 + number, "{signal:?}");
        term.assert_restored();
        assert_eq!(term.written(LEAVE), 1, "{signal:?}");
    }
}

/// Not a test of its own: the next one runs it in a terminal.
#[test]
#[ignore = "run by a_panic_leaves_the_terminal_first"]
fn panics_in_a_session() {
    vramp::runtime::terminal::install_panic_hook();
    let draw = || {
        let mut session = vramp::runtime::terminal::Session::enter(true).unwrap();
        session.draw(|_| ()).unwrap();
        panic!("the reason of the panic");
    };
    let thread = std::thread::Builder::new().name(vramp::runtime::terminal::UI_THREAD.into());
    assert!(thread.spawn(draw).unwrap().join().is_err());
}

#[test]
fn a_panic_leaves_the_terminal_first() {
    let place = Place::new();
    let me = std::env::current_exe().unwrap();
    let arguments = [
        "--ignored",
        "--exact",
        "panics_in_a_session",
        "--nocapture",
        "--test-threads=1",
    ];
    let mut term = place.terminal(me.to_str().unwrap(), &arguments, 120, 36);
    term.wait_exit(secs(20));
    term.assert_restored();
    assert_eq!(term.written(LEAVE), 1);
    let raw = String::from_utf8_lossy(&term.raw()).into_owned();
    let (_, after) = raw.split_once(LEAVE).expect("it left");
    assert!(after.contains("the reason of the panic"), "{after}");
    // In raw mode the report would run down the screen like stairs.
    assert!(
        term.screen()
            .lines()
            .any(|line| line.starts_with("the reason") || line.starts_with("thread"))
    );
}

#[test]
fn a_vanished_terminal_ends_it_and_costs_nothing() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    // The shell is the session's leader and takes the hang-up for itself, as some wrappers do: none reaches the cockpit.
    let script = format!(
        "trap '' HUP; {} attach {url}; :",
        env!("CARGO_BIN_EXE_vramp")
    );
    let mut term = place.terminal("sh", &["-c", &script], 120, 36);
    term.wait_for("connection refused", secs(20));
    let cockpit = place
        .servers("attach")
        .into_iter()
        .find(|p| p.arguments[0] != "sh")
        .unwrap();
    term.hang_up();
    let gone = Instant::now();
    let before = cockpit.cpu_seconds();
    support::until("the end of the cockpit", secs(5), || {
        assert!(cockpit.cpu_seconds() - before < 1.0, "it spins");
        (!cockpit.lives()).then_some(())
    });
    assert!(gone.elapsed() < secs(5));
}

#[test]
fn ctrl_z_stops_and_fg_brings_everything_back() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let mut term = place.terminal_with("sh", &["-i"], &[("PS1", "prompt> ")], 120, 36);
    term.wait_for("prompt>", secs(10));
    for _ in 0..2 {
        // Twice: a second stop is where it often breaks.
        let start = if place.servers("attach").is_empty() {
            format!("{} attach {url}\r", env!("CARGO_BIN_EXE_vramp"))
        } else {
            "fg\r".to_string()
        };
        term.keys(&start);
        term.wait_for("1 Tasks", secs(20));
        term.settle(Duration::from_millis(300));
        term.keys(key::CTRL_Z);
        term.wait_until("the shell's prompt", secs(10), |s| {
            s.trim_end().ends_with("prompt>")
        });
        term.look(|screen| {
            assert!(!screen.alternate_screen());
            assert!(!screen.hide_cursor());
            assert!(!screen.bracketed_paste());
        });
        term.keys("echo sum $((40+2))\r");
        term.wait_for("sum 42", secs(10));
    }
    term.keys("fg\r");
    term.wait_for("1 Tasks", secs(10));
    term.keys("q");
    term.wait_until("the shell's prompt", secs(10), |s| {
        s.trim_end().ends_with("prompt>")
    });
    term.keys("exit\r");
    term.wait_exit(secs(10));
    term.assert_restored();
}

#[test]
fn every_size_is_drawn_and_a_small_one_says_what_it_needs() {
    let place = Place::new();
    let mut term = cockpit(&place, 160, 48);
    // Smaller and back before a frame: the terminal has forgotten what the program drew.
    term.resize(100, 20);
    term.resize(160, 48);
    term.wait_for("4 Config", secs(5));
    term.wait_for("q quit", secs(5));
    for (columns, rows) in [
        (80, 24),
        (120, 36),
        (60, 15),
        (200, 60),
        (1, 1),
        (59, 14),
        (300, 5),
        (5, 100),
        (80, 24),
    ] {
        term.resize(columns, rows);
        term.settle(Duration::from_millis(200));
        assert!(
            term.ended().is_none(),
            "{columns}x{rows} ended it\n{}",
            term.screen()
        );
    }
    term.resize(80, 24);
    term.wait_for("1 Tasks", secs(5));
    term.resize(50, 12);
    term.wait_for("60 x 15", secs(5));
    term.resize(120, 36);
    term.wait_for("1 Tasks", secs(5));
    term.keys("q");
    assert_eq!(term.wait_exit(secs(10)).exit_code(), 0);
    term.assert_restored();
}

#[test]
fn nothing_is_written_at_rest() {
    let place = Place::new();
    let term = cockpit(&place, 120, 36);
    // Messages and clocks may still move; then it is quiet but for what changes once a second.
    std::thread::sleep(secs(3));
    let (bytes, cpu) = (term.raw().len(), term.process().cpu_seconds());
    std::thread::sleep(secs(5));
    let written = term.raw().len() - bytes;
    assert!(written < 5 * 2048, "{written} bytes in 5 s of rest");
    assert!(
        term.process().cpu_seconds() - cpu < 0.25,
        "it does not rest"
    );
}

#[test]
fn without_a_terminal_it_names_the_command_that_needs_none() {
    let place = Place::new();
    for arguments in [&[][..], &["demo"], &["attach", "http://127.0.0.1:1"]] {
        let output = place.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("terminal"), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(output.stdout.is_empty());
    }
}
