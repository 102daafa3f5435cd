//! Which of the listeners are inference servers: by their command, and by their answer.

use super::{Home, Listener, Seen};
use crate::engine::{self, Endpoint, EngineError, Facts, Kind};
use crate::launch::{self, Dialect, Server};
use std::time::Duration;

/// How long a listener may take to say what it is.
const ANSWER: Duration = Duration::from_secs(5);

/// Ports that inference servers use unless they are told otherwise. What listens there is asked even if its command tells nothing.
const USUAL: [u16; 12] = [
    1234, 5000, 5001, 7860, 8000, 8001, 8008, 8080, 8081, 9997, 11434, 30000,
];

/// Something that serves a model, or says that it will.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub url: String,
    /// What its command says; `None` where that may not be read or tells nothing.
    pub server: Option<Server>,
    /// The command as the system has it.
    pub argv: Vec<String>,
    pub pid: Option<u32>,
    pub home: Home,
    /// What it says of itself, or why it says nothing.
    pub answer: Result<Facts, EngineError>,
}

impl Candidate {
    /// The engine: as it answers, else as its command says.
    pub fn engine(&self) -> Option<Kind> {
        let told = self.answer.as_ref().ok().map(|facts| facts.kind);
        told.or(match self.server.as_ref()?.engine? {
            Dialect::Sglang => Some(Kind::Sglang),
            Dialect::Vllm => Some(Kind::Vllm),
            Dialect::LlamaCpp => Some(Kind::LlamaCpp),
            Dialect::TensorRtLlm | Dialect::LmDeploy => Some(Kind::OpenAi),
        })
    }

    /// The context per request that it serves with: as its command says, else as it answers.
    pub fn context(&self) -> Option<u64> {
        let written = self.server.as_ref().and_then(Server::per_request);
        written.or_else(|| {
            let context = &self.answer.as_ref().ok()?.context;
            context
                .configured
                .known()
                .or(context.effective.known())
                .copied()
        })
    }
}

/// The inference servers among what listens. Each is asked at the address that `reach` gives for its own.
pub async fn candidates(seen: &Seen, reach: impl Fn(&str) -> String) -> Vec<Candidate> {
    let mut found = Vec::new();
    for listener in &seen.listeners {
        let (server, argv) = command(listener);
        let asked = server.is_some()
            || listener.process.is_none()
            || USUAL.contains(&listener.address.port());
        if !asked {
            continue;
        }
        let url = listener.url();
        let answer = ask(&reach(&url)).await;
        let speaks = matches!(
            answer,
            Ok(_) | Err(EngineError::Denied { .. } | EngineError::Loading)
        );
        // A command that starts a server may listen on ports of its workers too: those do not answer as one.
        let port = listener.address.port().to_string();
        let own = argv
            .iter()
            .any(|word| word.rsplit('=').next() == Some(port.as_str()));
        if speaks || (server.is_some() && (own || !listens_elsewhere(seen, listener))) {
            found.push(Candidate {
                url,
                server,
                argv,
                pid: listener.process.as_ref().map(|process| process.pid),
                home: listener.home.clone(),
                answer,
            });
        }
    }
    found
}

/// Whether the same process listens on another port too.
fn listens_elsewhere(seen: &Seen, listener: &Listener) -> bool {
    let pid = |one: &Listener| one.process.as_ref().map(|process| process.pid);
    seen.listeners
        .iter()
        .any(|other| other.address != listener.address && pid(other) == pid(listener))
}

/// The command that starts a server: the listener's own, or that of the nearest parent that is one.
fn command(listener: &Listener) -> (Option<Server>, Vec<String>) {
    let commands = listener
        .process
        .iter()
        .flat_map(|process| &process.commands);
    for argv in commands.clone() {
        if let Some(server) = launch::find_in_argv(argv, &[], None) {
            return (Some(server), argv.clone());
        }
    }
    (
        None,
        commands.into_iter().next().cloned().unwrap_or_default(),
    )
}

async fn ask(url: &str) -> Result<Facts, EngineError> {
    let endpoint = Endpoint {
        url: url.to_string(),
        model: None,
        key: None,
        kind: None,
    };
    let facts = async {
        let engine = engine::detect(&endpoint).await?;
        engine.facts().await
    };
    let late = EngineError::Timeout {
        url: url.to_string(),
        after_s: ANSWER.as_secs(),
    };
    tokio::time::timeout(ANSWER, facts)
        .await
        .unwrap_or(Err(late))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Process;

    fn listener(commands: &[&[&str]]) -> Listener {
        Listener {
            address: "127.0.0.1:9".parse().unwrap(),
            process: Some(Process {
                pid: 1,
                commands: commands
                    .iter()
                    .map(|argv| argv.iter().map(|word| word.to_string()).collect())
                    .collect(),
            }),
            home: Home::Loose,
        }
    }

    #[test]
    fn a_worker_that_renamed_itself_is_known_by_its_parent() {
        let parent: &[&str] = &[
            "/usr/bin/python3",
            "/opt/bin/vllm",
            "serve",
            "m",
            "--max-model-len",
            "8192",
        ];
        let (server, argv) = command(&listener(&[&["VLLM::APIServer"], parent]));
        assert_eq!(server.unwrap().per_request(), Some(8192));
        assert_eq!(argv[1], "/opt/bin/vllm");
    }

    #[test]
    fn a_server_without_the_argument_is_one_too() {
        let (server, _) = command(&listener(&[&[
            "python",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "x",
        ]]));
        assert_eq!(server.unwrap().engine, Some(Dialect::Sglang));
        assert!(command(&listener(&[&["nginx", "-c", "4096"]])).0.is_none());
    }
}
