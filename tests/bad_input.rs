//! Bad input: each says what was tried, what happened and what to do, and loses nothing.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::http::{always, free_port};
use support::place::Place;
use support::secs;
use support::term::{Term, key};

fn attach(place: &Place, port: u16) -> Term {
    place.cockpit(&["attach", &format!("http://127.0.0.1:{port}")], 160, 48)
}

/// Waits for `words`, then checks that the cockpit still answers keys and leaves in order.
fn says(mut term: Term, words: &[&str]) {
    for word in words {
        term.wait_for(word, secs(30));
    }
    term.keys("?");
    term.wait_for("quit", secs(5));
    term.keys(key::ESC);
    term.wait_gone("Help", secs(5));
    term.keys("q");
    assert_eq!(term.wait_exit(secs(10)).exit_code(), 0);
    term.assert_restored();
}

#[test]
fn an_unknown_host() {
    let place = Place::new();
    let term = place.cockpit(&["attach", "http://no-such-host.invalid:8000"], 160, 48);
    says(term, &["no-such-host.invalid"]);
}

#[test]
fn a_wrong_port() {
    let place = Place::new();
    says(
        attach(&place, free_port()),
        &["connection refused", "is the port right"],
    );
}

#[test]
fn html_instead_of_json() {
    let port = always(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 35\r\n\r\n<html><body>It works!</body></html>",
    );
    let place = Place::new();
    says(attach(&place, port), &["not as an inference server"]);
}

#[test]
fn a_401_names_the_entries_for_the_key() {
    let port = always(
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 45\r\n\r\n\
         {\"error\":{\"message\":\"Invalid API key given\"}}",
    );
    let place = Place::new();
    says(attach(&place, port), &["401", "key_env"]);
}

#[test]
fn a_url_that_is_none() {
    let place = Place::new();
    let output = place.run(&["attach", "http://"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("http://127.0.0.1"), "{said}");
}

#[test]
fn a_profile_with_a_typo() {
    let place = Place::new();
    let file = place.profile("[profile.x]\nurl = 'http://127.0.0.1:1'\nprodction = 5\n");
    let output = place.run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in [
        &format!("{}:3:1", file.display()),
        "did you mean \"production\"",
        "^^^",
    ] {
        assert!(said.contains(word), "{word} in {said}");
    }
    let mut term = place.cockpit(&[], 100, 30);
    assert_eq!(term.wait_exit(secs(10)).exit_code(), 2);
    term.assert_restored();
    assert_eq!(
        term.written("\x1b[?1049h"),
        0,
        "it took the screen for nothing"
    );
}

#[test]
fn an_unknown_profile_and_a_missing_file() {
    let place = Place::new();
    place.profile("[profile.qwen]\nurl = 'http://127.0.0.1:1'\n");
    for (arguments, words) in [
        (&["--profile", "qwne"][..], "did you mean \"qwen\""),
        (&["--config", "/no/such/file.toml"], "/no/such/file.toml"),
    ] {
        let output = place.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn no_profile_at_all_says_what_to_do() {
    let place = Place::new();
    says(place.cockpit(&[], 120, 36), &["vramp demo", "vramp attach"]);
}

#[test]
fn a_database_from_a_newer_version_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir_all(place.data()).unwrap();
    let file = place.data().join("vramp.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute_batch("CREATE TABLE future (x); PRAGMA user_version = 9999")
        .unwrap();
    drop(database);
    let before = std::fs::read(&file).unwrap();
    says(attach(&place, free_port()), &["newer"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn directories_that_cannot_be_written() {
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere; a file in the place of the directory stops root too.
        let place = Place::new();
        std::fs::write(place.data(), "in the way").unwrap();
        says(attach(&place, free_port()), &["cannot be made"]);
        assert_eq!(std::fs::read_to_string(place.data()).unwrap(), "in the way");
        return;
    }
    let place = Place::new();
    let data = place.path().join("data");
    let mut mode = std::fs::metadata(&data).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o500);
    std::fs::set_permissions(&data, mode).unwrap();
    says(attach(&place, free_port()), &["cannot be made"]);
}

/// A simulated server that serves `port`, started by the test itself; it ends with the place.
fn sim(place: &Place, port: u16, more: &[&str]) {
    let log = std::fs::File::create(place.path().join("sim.log")).unwrap();
    let child = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args([
            "sim",
            "--context-length",
            "32768",
            "--port",
            &port.to_string(),
            "--start-ms",
            "200",
        ])
        .args(more)
        .stdin(std::process::Stdio::null())
        .stdout(log)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child);
}

#[test]
fn a_model_that_repeats_itself_fails_the_smoke_test() {
    let place = Place::new();
    let port = free_port();
    sim(&place, port, &["--loop"]);
    support::until("the server", secs(20), || {
        support::http::json(port, "/server_info")
    });
    let term = attach(&place, port);
    term.wait_for("attached", secs(20));
    term.keys(key::ENTER);
    says(term, &["smoke test:", "repeat"]);
}

#[test]
fn a_server_that_never_becomes_ready_is_given_up_and_said_so() {
    let place = Place::new();
    let port = free_port();
    place.profile(&format!(
        r#"[profile.slow]
url = "http://127.0.0.1:{port}"
production = 32768
[profile.slow.process]
argv = [{exe:?}, "sim", "--context-length", "{{context}}", "--port", "{port}", "--never-ready"]
stuck_after = 4
"#,
        exe = env!("CARGO_BIN_EXE_vramp")
    ));
    let term = place.cockpit(&[], 160, 48);
    term.wait_for("Enter on the first task starts it", secs(20));
    term.keys(key::ENTER);
    term.wait_for("32,768", secs(10));
    std::thread::sleep(std::time::Duration::from_millis(600));
    term.keys("y");
    says(term, &["failed"]);
    support::until("the end of the server", secs(10), || {
        place.servers("--never-ready").is_empty().then_some(())
    });
}
