//! The trial: an override file that is added last to the project's files, or an edited copy in the place of one of them. Compose finds
//! neither by itself.

use super::Settings;
use super::project::Project;
use super::sources::{self, Sources};
use super::tool::Tool;
use crate::launch::{self, Number};
use crate::service::ServiceError;
use crate::units::thousands;
use std::path::{Path, PathBuf};

/// How the name of an override begins; the service follows.
const OVER: &str = "vramp-trial.";
/// How the name of a copy begins; the service and `~` follow (which no service has in its name), then the name of its original.
const COPY: &str = "vramp-instead.";

/// Where an override lies: in the project's folder, where compose can read whatever it can read.
pub fn place(project: &Project, settings: &Settings) -> PathBuf {
    let name = format!("{OVER}{}.yaml", settings.service);
    project.directory.join(name)
}

/// Where the copy of a file lies: beside it, so that paths in it mean the same.
pub fn instead_of(path: &Path, service: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{COPY}{service}~{name}"))
}

/// The file that a copy stands for; `None` if it is none.
pub fn original(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (_, name) = name.strip_prefix(COPY)?.split_once('~')?;
    Some(path.with_file_name(name))
}

/// A file of a project that may have been started with a trial, as it is without one.
pub fn without(path: &Path, service: &str) -> Option<PathBuf> {
    let over = format!("{OVER}{service}.yaml");
    if path.file_name().is_some_and(|name| name == over.as_str()) {
        return None;
    }
    Some(original(path).unwrap_or_else(|| path.to_path_buf()))
}

/// Everywhere a trial may lie.
fn places(project: &Project, settings: &Settings) -> Vec<PathBuf> {
    let env = project.dot_env();
    let copies = project.files.iter().chain([&env]);
    let mut all = vec![place(project, settings)];
    all.extend(copies.map(|file| instead_of(file, &settings.service)));
    all
}

/// The project with the trial that lies there, if one does.
pub async fn present(
    tool: &Tool,
    settings: &Settings,
    project: &Project,
) -> Result<Option<Project>, ServiceError> {
    for path in places(project, settings) {
        if tool.host.stat(&path).await?.is_some() {
            return Ok(Some(project.with(&path)));
        }
    }
    Ok(None)
}

/// Removes every trial.
pub async fn remove(
    tool: &Tool,
    settings: &Settings,
    project: &Project,
) -> Result<(), ServiceError> {
    for path in places(project, settings) {
        tool.host.remove(&path).await?;
    }
    Ok(())
}

/// An override that changes nothing.
pub fn nothing(settings: &Settings) -> Vec<u8> {
    format!("services:\n  \"{}\": {{}}\n", settings.service).into_bytes()
}

/// An override that gives the service `context`.
pub fn text(sources: &Sources, settings: &Settings, context: u64) -> Result<Vec<u8>, ServiceError> {
    let comment = format!(
        "Written by vramp: a trial of {} tokens a request. Without this file the project brings its production value.",
        thousands(context)
    );
    launch::compose_override(
        &sources.resolved,
        &settings.service,
        settings.engine,
        Number::PerRequest(context),
        &comment,
    )
    .map_err(|why| failed(settings, context, why.to_string()))
}

/// Proves that the project with its trial starts the server with `context`, by compose's own word.
pub async fn prove(
    tool: &Tool,
    settings: &Settings,
    tried: &Project,
    context: u64,
) -> Result<(), ServiceError> {
    let resolved = sources::resolve(tool, settings, tried).await?;
    let brings = sources::started(settings, &resolved)?.context;
    if brings == context {
        return Ok(());
    }
    let what = format!(
        "with it compose would start the server with {}",
        thousands(brings)
    );
    Err(failed(settings, context, what))
}

fn failed(settings: &Settings, context: u64, what: String) -> ServiceError {
    ServiceError::Failed {
        tried: format!(
            "plan a trial of {} for {}",
            thousands(context),
            settings.service
        ),
        what,
        advice: "Write the number in digits into the service's command or environment".to_string(),
    }
}
