//! A real inference server of a test: started, waited for, and gone with everything it started when the test ends.

use super::place::Place;
use super::{http, until};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

pub struct Server {
    pub port: u16,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `program` in `place` and waits until `ready` answers 200. `arguments` are told the port.
    pub fn start(
        place: &Place,
        program: &Path,
        arguments: impl Fn(&str) -> Vec<String>,
        ready: &str,
        patience: Duration,
    ) -> Server {
        let port = http::free_port();
        let log = place.path().join(format!("server-{port}.log"));
        let out = File::create(&log).unwrap();
        let child = place
            .command(&program.to_string_lossy())
            .args(arguments(&port.to_string()))
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            // Workers of the server are in its group and go with it.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut server = Server { port, child, log };
        until("the server is ready", patience, || {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!(
                    "{} ended with {status}:\n{}",
                    program.display(),
                    server.log()
                );
            }
            http::get(port, ready).filter(|(status, _)| *status == 200)
        });
        server
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
