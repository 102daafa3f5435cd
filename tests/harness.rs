//! The terminal of the tests, tested on programs that everybody knows.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use support::place::Place;
use support::secs;
use support::term::key;

#[test]
fn it_types_and_reads() {
    let place = Place::new();
    let mut term = place.terminal("cat", &[], 40, 10);
    term.keys("hello\r");
    term.wait_until("the echo and the line", secs(10), |s| {
        s.matches("hello").count() == 2
    });
    term.keys("\x04");
    assert!(term.wait_exit(secs(10)).success());
    term.assert_restored();
}

#[test]
fn the_home_is_its_own_and_its_processes_are_found_and_ended() {
    let place = Place::new();
    let term = place.terminal(
        "sh",
        &["-c", "echo $XDG_DATA_HOME; sleep 1000 & echo on; wait"],
        120,
        10,
    );
    term.wait_for("on", secs(10));
    assert!(term.screen().contains(place.path().to_str().unwrap()));
    let sleeper = place.servers("sleep").remove(0);
    assert!(sleeper.lives());
    drop(term);
    drop(place);
    support::until("the end of sleep", secs(5), || {
        (!sleeper.lives()).then_some(())
    });
}

#[test]
fn a_terminal_left_broken_is_seen() {
    let place = Place::new();
    let broken = "printf '\\033[?1049h\\033[?25l\\033[?1004h'; stty -echo";
    let mut term = place.terminal("sh", &["-c", broken], 40, 10);
    term.wait_exit(secs(10));
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| term.assert_restored()));
    assert!(seen.is_err());
}

#[test]
fn size_signals_and_hang_up_arrive() {
    let place = Place::new();
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut term = place.terminal("sh", &["-c", script], 40, 10);
    term.wait_for("ready", secs(10));
    term.resize(50, 12);
    term.wait_for("12 50", secs(10));
    term.hang_up();
    assert_eq!(term.wait_exit(secs(10)).signal(), Some("Hangup"));

    let mut term = place.terminal("cat", &[], 40, 10);
    term.keys("x\r");
    term.wait_for("x\nx", secs(10));
    term.signal(Signal::TERM);
    assert_eq!(term.wait_exit(secs(10)).signal(), Some("Terminated"));
}

#[test]
fn questions_to_the_terminal_are_answered() {
    let place = Place::new();
    let script = "stty raw -echo; printf 'ab\\033[6n'; head -c 6 | od -An -c; stty sane";
    let mut term = place.terminal("sh", &["-c", script], 40, 10);
    term.wait_for("1   ;   3   R", secs(10));
    term.wait_exit(secs(10));
    assert_eq!(key::ESC.len(), 1);
}
