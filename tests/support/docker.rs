//! A container engine of one test's own, with compose.

use super::place::Place;
use super::term::Term;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/services/docker.sh");

/// A running engine; it ends with this, and its containers with it.
pub struct Docker {
    state: tempfile::TempDir,
}

impl Docker {
    /// Starts it, or says that `test` is left out: it needs root. Under `CI=true` nothing may be left out.
    pub fn up(test: &str) -> Option<Self> {
        let why = if rustix::process::geteuid().is_root() {
            // Sockets lie in it, whose paths are short.
            let state = tempfile::Builder::new()
                .prefix("vdk-")
                .tempdir_in("/tmp")
                .unwrap();
            let docker = Docker { state };
            if docker.script("up").status().unwrap().success() {
                return Some(docker);
            }
            "the container engine does not come up"
        } else {
            "a container engine for tests needs root"
        };
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{test}: {why}"
        );
        println!("left out: {test}: {why}");
        None
    }

    fn script(&self, what: &str) -> Command {
        let mut command = Command::new(SCRIPT);
        command.arg(what).arg(self.state.path());
        command.stdin(Stdio::null());
        command
    }

    /// The variable by which every client finds it.
    pub fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.state.path().display())
    }

    fn run(&self, folder: &Path, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        command.env("DOCKER_HOST", self.address());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// A command of `docker` to its end, and what it printed.
    pub fn docker(&self, arguments: &[&str]) -> String {
        let output = self.run(Path::new("/"), "docker", arguments);
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// A command of `docker-compose` in the project's folder. It must end well.
    pub fn compose(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = self.run(folder, "docker-compose", arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// The container of a service.
    pub fn container(&self, service: &str) -> String {
        let filter = format!("label=com.docker.compose.service={service}");
        self.docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter])
    }

    /// A property of a service's container.
    pub fn property(&self, service: &str, template: &str) -> String {
        let id = self.container(service);
        self.docker(&["inspect", "--format", template, &id])
    }

    /// The built program in a terminal where this engine is the machine's own.
    pub fn cockpit(&self, place: &Place, arguments: &[&str]) -> Term {
        let more = [("DOCKER_HOST", self.address())];
        let more: Vec<(&str, &str)> = more.iter().map(|(n, v)| (*n, v.as_str())).collect();
        place.terminal_with(env!("CARGO_BIN_EXE_vramp"), arguments, &more, 160, 48)
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Its folder goes after it.
        let _ = self.script("down").status();
    }
}
