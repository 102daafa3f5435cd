//! Which project: its folder, its effective list of files, its name.

use super::container::Container;
use super::tool::Tool;
use super::{Settings, trial};
use crate::launch;
use crate::service::ServiceError;
use std::path::{Path, PathBuf};

/// The file names that compose looks for by itself, the first that is there.
const NAMES: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];
/// And what it then lays over it.
const OVER: [&str; 4] = [
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// A compose project as it would be started now, without any trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub name: String,
    pub directory: PathBuf,
    /// In the order in which they are merged, by their full paths.
    pub files: Vec<PathBuf>,
    /// Another file than `.env` for the variables of the files.
    pub env_file: Option<PathBuf>,
}

impl Project {
    /// Where the variables of the files come from.
    pub fn dot_env(&self) -> PathBuf {
        match &self.env_file {
            Some(file) => file.clone(),
            None => self.directory.join(".env"),
        }
    }

    /// The project with a trial: a copy takes the place of what it is a copy of, any other file is added last.
    pub fn with(&self, trial: &Path) -> Project {
        let mut tried = self.clone();
        match trial::original(trial) {
            Some(original) if original == self.dot_env() => {
                tried.env_file = Some(trial.to_path_buf());
            }
            Some(original) => {
                for file in tried.files.iter_mut().filter(|file| **file == original) {
                    *file = trial.to_path_buf();
                }
            }
            None => tried.files.push(trial.to_path_buf()),
        }
        tried
    }

    /// From the profile, else from the labels of the service's container, else as compose finds it by itself.
    pub async fn find(
        tool: &Tool,
        settings: &Settings,
        container: Option<&Container>,
    ) -> Result<Project, ServiceError> {
        let directory = settings
            .directory
            .clone()
            .or_else(|| container.map(|one| one.directory.clone()))
            .filter(|folder| !folder.as_os_str().is_empty())
            .ok_or_else(|| {
                failed(
                    settings,
                    "no container of it is there whose labels could name the project's folder",
                    "Put directory = \"/the/folder\" into the service of the profile, or bring the service up by hand once",
                )
            })?;
        let directory = tool.host.absolute(&directory).await?;
        let env_file = container
            .and_then(|one| trial::without(one.env_file.as_ref()?, &settings.service))
            .filter(|file| *file != directory.join(".env"));
        let mut project = Project {
            name: String::new(),
            files: Vec::new(),
            env_file,
            directory,
        };
        let variables = variables(tool, &project).await?;
        project.files = files(tool, settings, container, &project, &variables).await?;
        project.name = match (&settings.project, container) {
            (Some(name), _) => name.clone(),
            (None, Some(container)) => container.project.clone(),
            (None, None) => name(tool, &project, &variables).await?,
        };
        Ok(project)
    }
}

/// `COMPOSE_…` settings: of the environment in which commands run there, else of the project's `.env`.
async fn variables(
    tool: &Tool,
    project: &Project,
) -> Result<Vec<(&'static str, String)>, ServiceError> {
    let names = [
        "COMPOSE_FILE",
        "COMPOSE_PATH_SEPARATOR",
        "COMPOSE_PROJECT_NAME",
    ];
    let file = tool.host.read(&project.dot_env()).await?;
    let text = String::from_utf8_lossy(&file.unwrap_or_default()).into_owned();
    let mut found = Vec::new();
    for name in names {
        let asked = ["printenv".to_string(), name.to_string()];
        let own = tool.host.run(&asked).await?;
        let own = String::from_utf8_lossy(&own.stdout).trim_end().to_string();
        let written = || {
            let mut lines = text.lines().rev().map(str::trim);
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(value.trim().trim_matches(['"', '\'']).to_string())
        };
        let value = Some(own).filter(|own| !own.is_empty()).or_else(written);
        found.extend(value.map(|value| (name, value)));
    }
    Ok(found)
}

fn get<'a>(variables: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
    let mut found = variables.iter().filter(|(known, _)| *known == name);
    found.next().map(|(_, value)| value.as_str())
}

async fn files(
    tool: &Tool,
    settings: &Settings,
    container: Option<&Container>,
    project: &Project,
    variables: &[(&'static str, String)],
) -> Result<Vec<PathBuf>, ServiceError> {
    if !settings.files.is_empty() {
        let placed = settings.files.iter().map(|f| project.directory.join(f));
        return Ok(placed.collect());
    }
    let labelled: Vec<PathBuf> = container
        .map(|one| one.files.clone())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|file| trial::without(&file, &settings.service))
        .collect();
    if !labelled.is_empty() {
        return Ok(labelled);
    }
    if let Some(list) = get(variables, "COMPOSE_FILE") {
        let separator = get(variables, "COMPOSE_PATH_SEPARATOR").unwrap_or(":");
        let names = list.split(separator).filter(|name| !name.is_empty());
        return Ok(names.map(|name| project.directory.join(name)).collect());
    }
    let mut found = Vec::new();
    for names in [NAMES, OVER] {
        let mut there = Vec::new();
        for name in names {
            let path = project.directory.join(name);
            if tool.host.stat(&path).await?.is_some() {
                there.push(path);
            }
        }
        if let [first, second, ..] = there.as_slice() {
            return Err(failed(
                settings,
                format!(
                    "{} and {} are both there, and which counts depends on the version of compose",
                    first.display(),
                    second.display()
                ),
                "Name the project's files in the profile: files = [\"compose.yaml\"]",
            ));
        }
        found.extend(there);
    }
    if found.is_empty() {
        return Err(failed(
            settings,
            format!(
                "there is no compose file in {}",
                project.directory.display()
            ),
            "Correct directory in the profile, or name the files: files = [\"FILE\"]",
        ));
    }
    Ok(found)
}

/// The name that compose gives by itself.
async fn name(
    tool: &Tool,
    project: &Project,
    variables: &[(&'static str, String)],
) -> Result<String, ServiceError> {
    if let Some(name) = get(variables, "COMPOSE_PROJECT_NAME") {
        return Ok(name.to_string());
    }
    for file in project.files.iter().rev() {
        let bytes = tool.host.read(file).await?.unwrap_or_default();
        if let Some(name) = launch::compose_name(&bytes) {
            return Ok(name);
        }
    }
    Ok(of_folder(&project.directory))
}

/// The folder's name in lower case, without what a project's name may not have.
fn of_folder(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
        .collect::<String>()
        .trim_start_matches(['-', '_'])
        .to_string()
}

pub fn failed(settings: &Settings, what: impl ToString, advice: &str) -> ServiceError {
    ServiceError::Failed {
        tried: format!("find the compose project of {}", settings.service),
        what: what.to_string(),
        advice: advice.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_added_last_or_takes_the_place_of_its_file() {
        let project = Project {
            name: "p".to_string(),
            directory: PathBuf::from("/s"),
            files: vec![PathBuf::from("/s/a.yml"), PathBuf::from("/s/b.yml")],
            env_file: None,
        };
        let with = |path: &str| project.with(Path::new(path));
        assert_eq!(
            with("/s/vramp-trial.llm.yaml").files[2],
            PathBuf::from("/s/vramp-trial.llm.yaml")
        );
        let copy = trial::instead_of(Path::new("/s/a.yml"), "l.m");
        let tried = project.with(&copy);
        assert_eq!((tried.files.len(), &tried.files[0]), (2, &copy));
        let env = trial::instead_of(Path::new("/s/.env"), "llm");
        assert_eq!(project.with(&env).env_file, Some(env.clone()));
        let back = |path: &Path, service: &str| trial::without(path, service);
        assert_eq!(back(&copy, "l.m"), Some(PathBuf::from("/s/a.yml")));
        assert_eq!(back(&env, "llm"), Some(PathBuf::from("/s/.env")));
        assert_eq!(back(Path::new("/s/vramp-trial.llm.yaml"), "llm"), None);
        let other = PathBuf::from("/s/other.yml");
        assert_eq!(back(&other, "llm"), Some(other.clone()));
    }

    #[test]
    fn a_project_is_named_after_its_folder() {
        assert_eq!(of_folder(Path::new("/srv/My LLM.v2")), "myllmv2");
        assert_eq!(of_folder(Path::new("/srv/_x-1")), "x-1");
    }
}
