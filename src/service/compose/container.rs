//! The containers of a service, as the engine's `inspect` shows them.

use super::tool::Tool;
use crate::service::ServiceError;
use crate::service::inspect::{Inspected, inspected};
use std::path::PathBuf;

/// One container of a compose project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub project: String,
    pub service: String,
    /// The project's folder, files and environment file, as compose was called when it made the container. Relative to the folder.
    pub directory: PathBuf,
    pub files: Vec<PathBuf>,
    pub env_file: Option<PathBuf>,
    /// What compose made of the service's configuration.
    pub hash: Option<String>,
    pub running: bool,
    /// It has ended, and its restart policy brings it up again.
    pub restarting: bool,
    /// Its first process, on the host; 0 where none runs.
    pub pid: u32,
    pub exit: i32,
    /// The kernel killed it for want of memory.
    pub out_of_memory: bool,
    /// Why the engine could not start it.
    pub error: String,
    /// A time, in the engine's words; another one at each start.
    pub started_at: String,
    /// How often the restart policy started it.
    pub restarts: u64,
    /// `no`, `always`, `unless-stopped`, `on-failure`.
    pub policy: String,
    /// Entry point and arguments.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Ports of the host that lead to it.
    pub ports: Vec<u16>,
    pub network: String,
    /// Seconds that a stop may take before the kill.
    pub stop_timeout: u64,
}

impl Container {
    pub fn runs(&self) -> bool {
        self.running && !self.restarting
    }

    /// Whether the engine brings it up again after a reboot.
    pub fn comes_back(&self) -> bool {
        matches!(self.policy.as_str(), "always" | "unless-stopped")
    }

    /// Its exit code as a process has it: negative for a signal.
    pub fn ended(&self) -> i32 {
        exit(self.exit)
    }
}

/// Engines give 128 and the signal's number for a process that a signal ended.
pub fn exit(code: i32) -> i32 {
    match code {
        129..=192 => 128 - code,
        code => code,
    }
}

/// The containers with these labels, stopped ones too; those that were started for one command alone are left out.
pub async fn list(tool: &Tool, labels: &[(&str, &str)]) -> Result<Vec<Container>, ServiceError> {
    let filters: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("label=com.docker.compose.{name}={value}"))
        .collect();
    let mut ps = vec!["ps", "--all", "--quiet", "--no-trunc"];
    for filter in &filters {
        ps.extend(["--filter", filter.as_str()]);
    }
    let ids = tool.ask(&ps).await?;
    let ids = String::from_utf8_lossy(&ids).into_owned();
    let ids: Vec<&str> = ids.split_whitespace().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut inspect = vec!["inspect", "--type", "container"];
    inspect.extend(&ids);
    let json = match tool.ask(&inspect).await {
        Ok(json) => json,
        // One that went between the two questions is asked for no more.
        Err(ServiceError::Failed { what, .. }) if what.contains("o such") => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    parse(&json).map_err(|error| ServiceError::Failed {
        tried: format!("look at the containers {}", ids.join(", ")),
        what: format!("what the engine says cannot be understood: {error}"),
        advice: "Is it docker 20.10 or podman 4, or a later one?".to_string(),
    })
}

fn parse(json: &[u8]) -> Result<Vec<Container>, serde_json::Error> {
    let for_one_command = |one: &Inspected| {
        one.compose("oneoff")
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    };
    Ok(inspected(json)?
        .into_iter()
        .filter(|one| !for_one_command(one))
        .map(container)
        .collect())
}

fn container(one: Inspected) -> Container {
    let text = |name: &str| one.compose(name).cloned().unwrap_or_default();
    let directory = PathBuf::from(text("project.working_dir"));
    let placed = |file: &str| directory.join(file.trim());
    let env = one.config.env.iter().flatten();
    Container {
        id: one.id.clone(),
        name: one.plain_name().to_string(),
        project: text("project"),
        service: text("service"),
        files: text("project.config_files")
            .split(',')
            .filter(|file| !file.trim().is_empty())
            .map(placed)
            .collect(),
        env_file: one
            .compose("project.environment_file")
            .filter(|file| !file.trim().is_empty() && !file.contains(','))
            .map(|file| placed(file)),
        hash: one.compose("config-hash").cloned(),
        running: one.state.running,
        restarting: one.state.restarting,
        pid: one.state.pid,
        exit: one.state.exit_code,
        out_of_memory: one.state.oom_killed,
        error: crate::units::clean(&one.state.error),
        started_at: one.state.started_at.clone(),
        restarts: one.restart_count,
        policy: match one.host_config.restart_policy.name.as_str() {
            "" => "no".to_string(),
            name => name.to_string(),
        },
        argv: one.argv(),
        env: env
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        ports: one.ports(),
        directory,
        network: one.host_config.network_mode.clone(),
        // The engine's own default.
        stop_timeout: one.config.stop_timeout.unwrap_or(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_tells_its_state_and_its_project() {
        let json = r#"[{"Id":"ab","Name":"/p_llm_1","Path":"vllm","Args":["serve"],"RestartCount":2,
            "State":{"Status":"restarting","Running":true,"Restarting":true,"OOMKilled":true,"Pid":0,"ExitCode":137,"Error":"","StartedAt":"2026-11-30T22:26:48.7Z"},
            "Config":{"Env":["A=b=c","B"],"StopTimeout":45,"Labels":{"com.docker.compose.project":"p","com.docker.compose.service":"llm","com.docker.compose.oneoff":"False",
            "com.docker.compose.project.config_files":"docker-compose.yml,/etc/more.yml","com.docker.compose.project.working_dir":"/srv/p","com.docker.compose.config-hash":"ff"}},
            "HostConfig":{"NetworkMode":"host","RestartPolicy":{"Name":"always","MaximumRetryCount":0}},
            "NetworkSettings":{"Ports":{"8000/tcp":[{"HostIp":"0.0.0.0","HostPort":"18000"}],"9000/tcp":null}}},
            {"Id":"cd","State":{},"Config":{"Labels":{"com.docker.compose.oneoff":"True"}}}]"#;
        let all = parse(json.as_bytes()).unwrap();
        assert_eq!(all.len(), 1);
        let one = &all[0];
        assert_eq!(
            one.files,
            [
                PathBuf::from("/srv/p/docker-compose.yml"),
                PathBuf::from("/etc/more.yml")
            ]
        );
        assert!(!one.runs() && one.comes_back() && one.out_of_memory);
        assert_eq!((one.ended(), one.restarts, one.stop_timeout), (-9, 2, 45));
        assert_eq!(one.env, [("A".to_string(), "b=c".to_string())]);
        assert_eq!(one.ports, [18000]);
        assert_eq!((exit(1), exit(139), exit(255)), (1, -11, 255));
    }
}
