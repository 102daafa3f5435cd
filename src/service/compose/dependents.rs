//! Services of the project that depend on the server's: recorded before its stop, brought back after the proof.
//!
//! A stop of the server's container leaves them running, but one that gives up on a lost server falls, and one that shares the network of
//! the old container has none after the new one is made.

use super::Settings;
use super::container::{self, Container};
use super::project::Project;
use super::tool::{BRINGS_UP, Tool};
use crate::service::ServiceError;
use std::path::{Path, PathBuf};

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("dependents.json")
}

async fn recorded(tool: &Tool, settings: &Settings) -> Result<Vec<String>, ServiceError> {
    let path = path(&settings.state_dir);
    let Some(bytes) = tool.host.read(&path).await? else {
        return Ok(Vec::new());
    };
    serde_json::from_slice(&bytes).map_err(|error| ServiceError::Failed {
        tried: format!("read {}", path.display()),
        what: error.to_string(),
        advice: "Start the services that depend on the server by hand, then remove the file"
            .to_string(),
    })
}

async fn of_project(tool: &Tool, project: &str) -> Result<Vec<Container>, ServiceError> {
    container::list(tool, &[("project", project)]).await
}

/// Puts the services that run now and depend on the server's on record, beside those of before. `dependents`: all that depend on it.
pub async fn record(
    tool: &Tool,
    settings: &Settings,
    project: &str,
    dependents: &[String],
) -> Result<(), ServiceError> {
    if dependents.is_empty() {
        return Ok(());
    }
    let mut services = recorded(tool, settings).await?;
    for one in of_project(tool, project).await? {
        let depends = dependents.contains(&one.service);
        if one.running && depends && !services.contains(&one.service) {
            services.push(one.service);
        }
    }
    if services.is_empty() {
        return Ok(());
    }
    let bytes = serde_json::to_vec(&services).unwrap_or_default();
    tool.host.make_dir(&settings.state_dir).await?;
    Ok(tool.host.write(&path(&settings.state_dir), &bytes).await?)
}

/// Starts what fell, or lost its network, and says so.
pub async fn bring_back(
    tool: &Tool,
    settings: &Settings,
    project: &Project,
) -> Result<Vec<String>, ServiceError> {
    let services = recorded(tool, settings).await?;
    if services.is_empty() {
        return Ok(Vec::new());
    }
    let all = of_project(tool, &project.name).await?;
    let stands = |service: &String| {
        let mut own = all.iter().filter(|one| one.service == *service);
        own.any(|one| one.running && !shares_what_is_gone(one, &all))
    };
    let fallen: Vec<&str> = services
        .iter()
        .filter(|service| !stands(service))
        .map(String::as_str)
        .collect();
    if !fallen.is_empty() {
        let mut up = vec!["up", "-d", "--no-deps", "--no-build"];
        up.extend(&fallen);
        tool.compose(project, &up, BRINGS_UP).await?;
    }
    tool.host.remove(&path(&settings.state_dir)).await?;
    if fallen.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "started again with the server: {}",
        fallen.join(", ")
    )])
}

/// Whether a container has the network of another one of the project that was made anew.
fn shares_what_is_gone(one: &Container, all: &[Container]) -> bool {
    one.network
        .strip_prefix("container:")
        .is_some_and(|of| !all.iter().any(|other| other.id == of && other.running))
}
