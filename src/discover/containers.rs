//! Containers that run on a host, with the ports that they publish.

use super::Process;
use crate::host::Host;
use crate::service::{Inspected, inspected};
use crate::units;

/// The programs that are asked, in this order. `podman` answers like `docker`.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The program that runs it: `docker`, `podman`.
    pub engine: &'static str,
    pub id: String,
    pub name: String,
    pub image: String,
    /// Its first process, on the host.
    pub pid: u32,
    /// The command with its entry point.
    pub argv: Vec<String>,
    /// Ports of the host that lead to it.
    pub ports: Vec<u16>,
    /// The compose service that it belongs to.
    pub compose: Option<Compose>,
}

/// A service of a compose project, as the labels of its container name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compose {
    pub project: String,
    pub service: String,
    pub directory: String,
    /// In their order.
    pub files: Vec<String>,
    /// Of the compose that made it.
    pub version: Option<String>,
}

impl Container {
    pub(super) fn process(&self) -> Process {
        Process {
            pid: self.pid,
            commands: vec![self.argv.clone()],
        }
    }
}

/// The running containers of every engine that answers. One that is there and refuses is noted.
pub async fn all(host: &dyn Host, notes: &mut Vec<String>) -> Vec<Container> {
    let mut found: Vec<Container> = Vec::new();
    for engine in ENGINES {
        match ask(host, engine).await {
            Ok(more) => {
                for container in more {
                    // podman may stand in for docker under its name.
                    if !found.iter().any(|known| known.id == container.id) {
                        found.push(container);
                    }
                }
            }
            Err(Some(why)) => notes.push(format!("{engine} does not list its containers: {why}")),
            Err(None) => {}
        }
    }
    found
}

/// `Err(None)`: there is no such program.
async fn ask(host: &dyn Host, engine: &'static str) -> Result<Vec<Container>, Option<String>> {
    let list = [engine, "ps", "--quiet", "--no-trunc"].map(str::to_string);
    // Where the program cannot be run at all there is nothing to tell.
    let output = host.run(&list).await.map_err(|_| None)?;
    if output.code == Some(127) {
        return Err(None);
    }
    let first_line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        units::clean(text.trim().lines().next().unwrap_or("it says nothing"))
    };
    if output.code != Some(0) {
        return Err(Some(first_line(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ids: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut inspect = vec![engine.to_string(), "inspect".to_string()];
    inspect.extend(ids);
    let output = host
        .run(&inspect)
        .await
        .map_err(|error| Some(error.to_string()))?;
    parse(engine, &output.stdout).map_err(Some)
}

fn parse(engine: &'static str, json: &[u8]) -> Result<Vec<Container>, String> {
    let all =
        inspected(json).map_err(|error| format!("what it says cannot be understood: {error}"))?;
    Ok(all.iter().map(|one| container(engine, one)).collect())
}

fn container(engine: &'static str, one: &Inspected) -> Container {
    let compose = match (one.compose("project"), one.compose("service")) {
        (Some(project), Some(service)) => Some(Compose {
            project: units::clean(project),
            service: units::clean(service),
            directory: one
                .compose("project.working_dir")
                .cloned()
                .unwrap_or_default(),
            files: one
                .compose("project.config_files")
                .map(|files| files.split(',').map(str::to_string).collect())
                .unwrap_or_default(),
            version: one.compose("version").cloned(),
        }),
        _ => None,
    };
    Container {
        engine,
        id: one.id.clone(),
        name: units::clean(one.plain_name()),
        image: units::clean(&one.config.image),
        pid: one.state.pid,
        argv: one.argv().iter().map(|word| units::clean(word)).collect(),
        ports: one.ports(),
        compose,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_tells_its_command_ports_and_compose_service() {
        let json = r#"[{"Id":"ab12","Name":"/llm-vllm-1","Path":"vllm","Args":["serve","--max-model-len","8192"],
            "State":{"Pid":4242},"Config":{"Image":"vllm/vllm-openai:v0.32.0","Labels":{
            "com.docker.compose.project":"llm","com.docker.compose.service":"vllm",
            "com.docker.compose.project.working_dir":"/srv/llm",
            "com.docker.compose.project.config_files":"/srv/llm/a.yaml,/srv/llm/b.yaml"}},
            "NetworkSettings":{"Ports":{"8000/tcp":[{"HostIp":"0.0.0.0","HostPort":"18000"},{"HostIp":"::","HostPort":"18000"}],
            "9000/tcp":null,"53/udp":[{"HostPort":"53"}]}}},
            {"Id":"cd34","Name":"/host","Path":"llama-server","Args":null,"State":{"Pid":1},"Config":{"Image":"x","Labels":null},
            "NetworkSettings":{"Ports":null}}]"#;
        let all = parse("docker", json.as_bytes()).unwrap();
        let first = &all[0];
        assert_eq!(first.name, "llm-vllm-1");
        assert_eq!(first.argv, ["vllm", "serve", "--max-model-len", "8192"]);
        assert_eq!(first.ports, [18000]);
        let compose = first.compose.as_ref().unwrap();
        assert_eq!(compose.service, "vllm");
        assert_eq!(compose.files, ["/srv/llm/a.yaml", "/srv/llm/b.yaml"]);
        assert!(all[1].ports.is_empty() && all[1].compose.is_none());
        assert!(parse("docker", b"Cannot connect").is_err());
    }
}
