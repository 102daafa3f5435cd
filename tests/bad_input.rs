//! Bad input: each says what was tried, what happened and what to do, and loses nothing.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::http::{always, answering, free_port};
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
    term.wait_for("Esc close", secs(5));
    term.keys(key::ESC);
    term.wait_gone("Esc close", secs(5));
    assert_eq!(term.leave().exit_code(), 0);
    term.assert_restored();
}

/// Waits for the end with `code`: it said `words` and did not take the screen for it.
fn refuses(mut term: Term, code: u32, words: &[&str]) {
    assert_eq!(
        term.wait_exit(secs(10)).exit_code(),
        code,
        "{}",
        term.screen()
    );
    term.assert_restored();
    assert_eq!(
        term.written("\x1b[?1049h"),
        0,
        "it took the screen for nothing"
    );
    // Long lines go on in the next row.
    let said = term.screen().replace('\n', "");
    for word in words {
        assert!(said.contains(word), "{word:?} in {said:?}");
    }
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
    refuses(
        place.cockpit(&["attach", "http://"], 100, 30),
        2,
        &["\"http://\"", "http://127.0.0.1:30000"],
    );
}

#[test]
fn a_profile_with_a_typo() {
    let place = Place::new();
    let file = place.profile("[profile.x]\nurl = 'http://127.0.0.1:1'\nprodction = 5\n");
    let there = format!("{}:3:1", file.display());
    refuses(
        place.cockpit(&[], 100, 30),
        2,
        &[&there, "did you mean \"production\"", "^^^"],
    );
}

#[test]
fn an_unknown_profile_and_a_missing_file() {
    let place = Place::new();
    place.profile("[profile.qwen]\nurl = 'http://127.0.0.1:1'\n");
    refuses(
        place.cockpit(&["--profile", "qwne"], 100, 30),
        2,
        &["did you mean \"qwen\""],
    );
    let missing = ["--config", "/no/such/file.toml"];
    refuses(
        place.cockpit(&missing, 100, 30),
        2,
        &["/no/such/file.toml", "vramp init"],
    );
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
    drop(vramp::store::Store::open(&file).unwrap());
    let database = rusqlite::Connection::open(&file).unwrap();
    database.pragma_update(None, "user_version", 9999).unwrap();
    drop(database);
    let before = std::fs::read(&file).unwrap();
    refuses(attach(&place, free_port()), 1, &["newer", "vramp.db"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn directories_that_cannot_be_written() {
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere; a file in the place of the directory stops root too.
        let place = Place::new();
        std::fs::write(place.data(), "in the way").unwrap();
        refuses(
            attach(&place, free_port()),
            1,
            &["cannot be made", "XDG_DATA_HOME"],
        );
        assert_eq!(std::fs::read_to_string(place.data()).unwrap(), "in the way");
        return;
    }
    let place = Place::new();
    let data = place.path().join("data");
    let mut mode = std::fs::metadata(&data).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o500);
    std::fs::set_permissions(&data, mode).unwrap();
    refuses(
        attach(&place, free_port()),
        1,
        &["cannot be made", "XDG_DATA_HOME"],
    );
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
    term.run_task("Smoke");
    says(term, &["smoke test:", "lambda"]);
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
    term.wait_for("Enter starts it at 32,768", secs(20));
    term.keys(key::ENTER);
    term.wait_for("32,768", secs(10));
    std::thread::sleep(std::time::Duration::from_millis(600));
    term.keys("y");
    term.wait_for("no progress", secs(30));
    support::until("the end of the server", secs(10), || {
        place.servers("--never-ready").is_empty().then_some(())
    });
    says(term, &["no progress", "Enter start the server"]);
}

/// A plain server that streams sixty-four words and never says how many tokens they are.
fn uncounted(path: &str) -> String {
    if path == "/v1/models" {
        let body = r#"{"object":"list","data":[{"id":"mute","object":"model"}]}"#;
        return format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
    }
    if path != "/v1/chat/completions" && path != "/v1/completions" {
        return "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into();
    }
    let words = [
        "north", "river", "seven", "window", "paper", "sing", "under", "cold",
    ];
    let events: String = (0..64)
        .map(|n| {
            let word = words[n * n % words.len()];
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}{n} \"}}}}]}}\n\n")
        })
        .collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"length\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

#[test]
fn a_server_that_counts_no_tokens_is_measured_with_a_stated_doubt() {
    let place = Place::new();
    place.profile(&format!(
        "[profile.mute]\nurl = 'http://127.0.0.1:{}'\n[profile.mute.long_context]\ninputs = [200]\noutput = 64\n",
        answering(uncounted)
    ));
    let term = place.cockpit(&["--quick"], 160, 48);
    term.wait_for("● up", secs(20));
    term.run_task("Long context 200");
    term.wait_for("long-context measured", secs(60));
    says(term, &["suspect", "~"]);
}
