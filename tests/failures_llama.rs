//! Starts of a real llama-server that fail in the ways in which real ones do: each ends in the last good value, proven.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::http::{free_port, json};
use support::llama::Llama;
use support::place::Place;
use support::secs;
use support::term::Term;

/// A launch that is the real server at 2,048 and does what `instead` says, in the words of a shell, at any other context. `$0` and
/// `$@` are the server and its arguments.
fn cockpit(llama: &Llama, place: &Place, port: u16, instead: &str) -> Term {
    let script =
        format!("case \" $* \" in *' --ctx-size 2048 '*) exec \"$0\" \"$@\";; esac; {instead}");
    let profile = llama.profile(port, 2048, &[]);
    let profile = profile
        .replace(
            "argv = [",
            &format!("argv = [\"/bin/sh\", \"-c\", {script:?}, "),
        )
        .replace("stop_grace = 10", "stop_grace = 3\nstuck_after = 30");
    place.profile(&profile);
    let term = place.cockpit(&["--quick"], 160, 48);
    term.wait_for("2,048 answered its first token", secs(120));
    term
}

/// Raises to 4,096, which fails with `words`, and the server is back at 2,048.
fn fails(test: &str, instead: &str, words: &[&str]) {
    let _alone = support::alone();
    let Some(llama) = Llama::find(test) else {
        return;
    };
    let (place, port) = (Place::new(), free_port());
    let mut term = cockpit(&llama, &place, port, instead);
    term.set_context("4K");
    term.restart_at("4,096", secs(10));
    term.wait_for("4,096 failed, 2,048 (", secs(150));
    let screen = term.screen();
    for part in words
        .iter()
        .chain(&["is back in service, proven with a token"])
    {
        assert!(screen.contains(part), "{test}: {part}\n{screen}");
    }
    let page = json(port, "/props").unwrap();
    let served = page.pointer("/default_generation_settings/n_ctx");
    assert_eq!(served.and_then(serde_json::Value::as_u64), Some(2048));
    assert_eq!(place.servers("--ctx-size").len(), 1);
    assert_eq!(term.leave().exit_code(), 0);
}

#[test]
fn a_port_that_is_taken() {
    // The port of the profile is free; the server is told another, which is not.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    fails(
        "a taken port",
        &format!("exec \"$0\" \"$@\" --port {port}"),
        &["the port is taken"],
    );
}

#[test]
fn a_wrong_argument() {
    fails(
        "a wrong argument",
        "exec \"$0\" \"$@\" --no-such-argument",
        &["an argument is wrong", "--no-such-argument"],
    );
}

#[test]
fn a_model_that_is_missing() {
    fails(
        "a missing model",
        "exec \"$0\" \"$@\" --model /nowhere/model.gguf",
        &["the model is missing", "/nowhere/model.gguf"],
    );
}

#[test]
fn a_server_that_never_answers() {
    fails("a sleep", "exec sleep 1000", &["no progress"]);
}

#[test]
fn a_server_that_ignores_the_request_to_end() {
    fails(
        "a process that ignores SIGTERM",
        "trap '' TERM; while :; do sleep 1; done",
        &["no progress"],
    );
}

#[test]
fn a_limit_on_its_memory() {
    fails(
        "a limit on its memory",
        "ulimit -v 1200000; exec \"$0\" \"$@\" --ctx-size 65536",
        &["out of host memory"],
    );
}

/// A control group that may take so many bytes; it goes with this.
struct Limited(std::path::PathBuf);

impl Limited {
    /// `None` after saying that `test` is left out: this machine lets nobody here make one.
    fn to(bytes: u64, test: &str) -> Option<Limited> {
        let root = std::path::Path::new("/sys/fs/cgroup");
        let name = format!("vramp-test-{}", std::process::id());
        let old = root.join("memory");
        let (group, limits) = if old.is_dir() {
            let limits = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
            (old.join(name), limits)
        } else {
            (root.join(name), ["memory.max", "memory.swap.max"])
        };
        let made = std::fs::create_dir(&group).is_ok();
        let limited = Limited(group);
        let set = |at: usize, bytes: u64| {
            std::fs::write(limited.0.join(limits[at]), bytes.to_string()).is_ok()
        };
        if made && set(0, bytes) {
            // The swap is counted with it in the old form and apart in the new one; not every machine has any.
            set(1, if old.is_dir() { bytes } else { 0 });
            return Some(limited);
        }
        println!("left out: {test}: no control group with a limit can be made here");
        None
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn killed_by_the_kernel_at_the_limit_of_its_control_group() {
    let test = "killed for memory";
    let Some(limited) = Limited::to(180 << 20, test) else {
        return;
    };
    let group = limited.0.display();
    fails(
        test,
        &format!("echo $$ >{group}/cgroup.procs; exec \"$0\" \"$@\" --ctx-size 65536"),
        &["out of host memory", "memory limit of its control group"],
    );
}
