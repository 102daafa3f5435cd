//! A real sshd on the loopback, for one test. It ends with the test.

use super::systemd::Systemd;
use super::until;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vramp::host::{Address, Ssh};

pub struct Sshd {
    folder: tempfile::TempDir,
    child: Child,
}

impl Sshd {
    /// `None` where sshd is missing and cannot be installed, which is said; under CI that is a failure.
    pub fn start() -> Option<Sshd> {
        Sshd::start_by(&[])
    }

    /// The same where the manager is the machine's own.
    pub fn start_in(systemd: &Systemd) -> Option<Sshd> {
        Sshd::start_by(&systemd.inside())
    }

    /// `inside` is a command that runs a command.
    fn start_by(inside: &[PathBuf]) -> Option<Sshd> {
        let folder = tempfile::Builder::new()
            .prefix("vramp-sshd-")
            .tempdir()
            .unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services/sshd.sh");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        // Also a test that is killed takes its sshd along.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .args(inside)
            .arg(script)
            .arg(folder.path())
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let up = until("sshd is up", Duration::from_secs(240), || {
            match child.try_wait().unwrap() {
                Some(status) if status.code() == Some(3) => Some(false),
                Some(status) => panic!(
                    "{status}: {}",
                    std::fs::read_to_string(folder.path().join("log")).unwrap()
                ),
                None => TcpStream::connect(("127.0.0.1", port)).ok().map(|_| true),
            }
        });
        if !up {
            eprintln!("LEFT OUT: tests with sshd: it is missing and cannot be installed");
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "nothing may be left out under CI"
            );
            return None;
        }
        Some(Sshd { folder, child })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("config")
    }

    /// One of the hosts of the configuration: `vramp-test`, `vramp-unknown`, …
    pub fn host(&self, name: &str) -> Ssh {
        let address: Address = format!("ssh:{name}").parse().unwrap();
        Ssh::new(address, Some(self.config()))
    }

    /// A stand-in for a program of the remote.
    pub fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path().join("bin").join(name);
        let new = self.path().join("new-program");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// From the next session on, this runs in place of what is asked for, which stands in `$SSH_ORIGINAL_COMMAND`.
    pub fn force(&self, command: &str) {
        self.program("forced", &format!("#!/bin/sh\n{command}\n"));
        let key = std::fs::read_to_string(self.path().join("id.pub")).unwrap();
        let forced = self.path().join("bin/forced");
        let line = format!("command=\"{}\" {key}", forced.display());
        std::fs::write(self.path().join("authorized_keys"), line).unwrap();
    }

    /// The processes that serve the connections there are now.
    fn connections(&self) -> Vec<String> {
        let pid = self.child.id();
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .unwrap()
            .split_whitespace()
            .map(str::to_string)
            .collect()
    }

    /// Cuts every connection, as a cable that is pulled out.
    pub fn cut(&self) {
        let connections = self.connections();
        assert!(!connections.is_empty(), "there is nothing to cut");
        kill("KILL", &connections);
    }

    /// Takes no connections, or takes them again. Those that stand go on.
    pub fn accept(&self, accept: bool) {
        let signal = if accept { "CONT" } else { "STOP" };
        kill(signal, &[self.child.id().to_string()]);
    }
}

/// One that has ended by itself meanwhile is no failure.
fn kill(signal: &str, pids: &[String]) {
    let status = Command::new("kill")
        .arg("-s")
        .arg(signal)
        .args(pids)
        .status();
    status.unwrap();
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let connections = self.connections();
        if !connections.is_empty() {
            kill("TERM", &connections);
        }
        // Stopped or not, it ends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
