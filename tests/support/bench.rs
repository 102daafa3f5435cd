//! `vramp bench` and `vramp runs` in a home of their own, against one server.

use super::place::Place;
use super::{http, secs, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Output, Stdio};

/// The real program, and the port of the server that it measures.
pub struct Bench {
    pub place: Place,
    pub port: u16,
}

impl Bench {
    fn command(&self, more: &[&str]) -> std::process::Command {
        let mut command = self.place.command(env!("CARGO_BIN_EXE_vramp"));
        command
            .args(["bench", "--url", &format!("http://127.0.0.1:{}", self.port)])
            .args(more)
            .stdin(Stdio::null());
        command
    }

    /// Measures to the end.
    pub fn bench(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// Measures to the end; the exit code and the one document on standard output.
    pub fn json(&self, more: &[&str]) -> (Option<i32>, Value) {
        let output = self.bench(&[more, &["--json"]].concat());
        let json = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)));
        (output.status.code(), json)
    }

    /// Begins to measure.
    pub fn start(&self, more: &[&str]) -> Child {
        self.command(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What `vramp runs` prints.
    pub fn runs(&self, arguments: &[&str]) -> String {
        let output = self.place.run(&[&["runs"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    }
}

/// A simulated server that is ready, and a home to measure it from.
pub struct Rig {
    pub bench: Bench,
    server: Child,
}

impl std::ops::Deref for Rig {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.bench
    }
}

impl Rig {
    pub fn new(options: &[&str]) -> Self {
        let place = Place::new();
        let port = http::free_port();
        let server = place
            .command(env!("CARGO_BIN_EXE_vramp"))
            .args(["sim", "--start-ms", "1", "--port", &port.to_string()])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the server is ready", secs(20), || {
            http::get(port, "/ready").filter(|(status, _)| *status == 200)
        });
        Rig {
            bench: Bench { place, port },
            server,
        }
    }

    /// What the server knows that it sent.
    pub fn stats(&self) -> Value {
        http::json(self.port, "/stats").unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}
