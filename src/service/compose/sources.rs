//! What a project's files start: as compose itself resolves them, and where the number is written in them.

use super::project::Project;
use super::tool::{ASKS, Tool};
use super::{Settings, project};
use crate::launch::{self, Edit, Form, NamedText, Number, Texts};
use crate::service::ServiceError;
use crate::service::started::Started;
use crate::units::thousands;
use std::path::PathBuf;

/// Environment files are named by the compose files alone, so few rounds find them all.
const ROUNDS: usize = 3;

/// A project's files, read now.
#[derive(Debug, Clone)]
pub struct Sources {
    pub project: Project,
    texts: Texts,
    /// What compose makes of them.
    pub resolved: Vec<u8>,
    pub started: Started,
}

impl Sources {
    /// Reads the files, and lets compose resolve them.
    ///
    /// # Errors
    /// Compose does not accept them, they give the service no context in digits, or compose reads another one than we do.
    pub async fn read(
        tool: &Tool,
        settings: &Settings,
        project: Project,
    ) -> Result<Sources, ServiceError> {
        let resolved = resolve(tool, settings, &project).await?;
        let started = started(settings, &resolved)?;
        let texts = texts(tool, settings, &project).await?;
        Ok(Sources {
            project,
            texts,
            resolved,
            started,
        })
    }

    /// The change of the one number in the file where it is written.
    ///
    /// # Errors
    /// It is not written there in digits that could be changed, or compose takes it from elsewhere.
    pub fn edit(&self, settings: &Settings, context: u64) -> Result<Edit, ServiceError> {
        let service = Some(settings.service.as_str());
        let refuse = |what: String, advice: &str| ServiceError::Failed {
            tried: format!(
                "find where the context length of {} is written",
                settings.service
            ),
            what,
            advice: advice.to_string(),
        };
        let number = Number::PerRequest(context);
        let edit = launch::set(&self.texts, settings.engine, service, number).map_err(|why| {
            refuse(
                why.to_string(),
                "Write the number in digits into the compose file or its .env",
            )
        })?;
        match edit.server.per_request() {
            Some(written) if written == self.started.context => Ok(edit),
            written => Err(refuse(
                format!(
                    "{} has {}, and compose makes {} of it: a variable of the shell, or a file that the project includes, wins",
                    edit.file,
                    written.map_or("no number".to_string(), thousands),
                    thousands(self.started.context)
                ),
                "Write the number into the compose file or its .env alone",
            )),
        }
    }

    /// The file of an edit, by its full path.
    pub fn path(&self, edit: &Edit) -> PathBuf {
        placed(&self.project, &edit.file)
    }

    /// Remarks on the number: who else takes it.
    pub fn notes(&self, settings: &Settings) -> Vec<String> {
        let launches = launch::find(&self.texts, settings.engine);
        let server = launches.choose(Some(settings.service.as_str()));
        server.map_or_else(|_| Vec::new(), |server| server.notes.clone())
    }
}

/// The project as compose resolves it. Refuses files that compose does not accept.
pub async fn resolve(
    tool: &Tool,
    settings: &Settings,
    project: &Project,
) -> Result<Vec<u8>, ServiceError> {
    let whole = tool.compose(project, &["config"], ASKS).await?;
    let there = |resolved: &[u8]| launch::compose_services(resolved).contains(&settings.service);
    if there(&whole) {
        return Ok(whole);
    }
    // A service of a profile that is not active is shown when it is named.
    let named = ["config", settings.service.as_str()];
    match tool.compose(project, &named, ASKS).await {
        Ok(one) if there(&one) => Ok(one),
        _ => Err(project::failed(
            settings,
            format!(
                "the project {} has no such service; it has {}",
                project.name,
                launch::compose_services(&whole).join(", ")
            ),
            "Correct service in the profile",
        )),
    }
}

/// What the resolved project starts.
pub fn started(settings: &Settings, resolved: &[u8]) -> Result<Started, ServiceError> {
    let failed = |what: String, advice: &str| ServiceError::Failed {
        tried: format!("read how {} starts its server", settings.service),
        what,
        advice: advice.to_string(),
    };
    let texts = launch::resolved_texts(resolved);
    let launches = launch::find(&texts, settings.engine);
    let server = launches
        .choose(Some(settings.service.as_str()))
        .map_err(|why| {
            failed(
                why.to_string(),
                "Its command must start one server: sglang, vllm or llama-server (name the engine in the profile if it is hidden)",
            )
        })?;
    Started::of(server, settings.engine).map_err(|(what, advice)| failed(what, advice))
}

/// The files of the project with those that they refer to.
async fn texts(tool: &Tool, settings: &Settings, project: &Project) -> Result<Texts, ServiceError> {
    let mut main = Vec::new();
    for path in &project.files {
        let bytes = tool.host.read(path).await?.ok_or_else(|| {
            project::failed(
                settings,
                format!("{} is not there", path.display()),
                "Name the project's files in the profile: files = [\"FILE\"]",
            )
        })?;
        main.push(NamedText {
            name: path.to_string_lossy().into_owned(),
            bytes,
        });
    }
    let mut texts = Texts {
        form: Form::Compose,
        main,
        beside: Vec::new(),
        unit: None,
    };
    for _ in 0..ROUNDS {
        let known = texts.beside.len();
        for wanted in launch::find(&texts, settings.engine).wanted {
            let path = placed(project, &wanted.path);
            if let Some(bytes) = tool.host.read(&path).await? {
                let name = wanted.path;
                texts.beside.push(NamedText { name, bytes });
            }
        }
        if texts.beside.len() == known {
            break;
        }
    }
    Ok(texts)
}

/// A file as the compose files name it.
fn placed(project: &Project, name: &str) -> PathBuf {
    if name == ".env" {
        project.dot_env()
    } else {
        project.directory.join(name)
    }
}
