//! The files of a unit: what its server is started with, and what another context would change in them.

use super::manager::{Folders, Manager, Shown};
use crate::launch::{
    self, Dialect, Edit, Form, GivenAs, Launches, Meaning, NamedText, Number, Server, Texts,
};
use crate::profile::Launch;
use crate::service::ServiceError;
use crate::store;
use crate::units::thousands;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Environment files may name others only through the unit, so few rounds find them all.
const ROUNDS: usize = 3;

/// The unit with its drop-ins and environment files, as they lie on disk.
#[derive(Debug, Clone)]
pub struct Files {
    unit: String,
    texts: Texts,
    engine: Option<Dialect>,
}

/// What a server of the unit is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub context: u64,
    /// With a place for the context.
    pub launch: Launch,
    /// The words of the command, variables filled in.
    pub argv: Vec<String>,
    /// The variable of the environment that carries the context, if one does.
    pub variable: Option<String>,
}

/// How a context is given to a unit without touching the file in which it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// The whole command again, as the unit file would repeat it.
    Command(Vec<u8>),
    /// One more environment file: a later one wins.
    Variable(String),
}

impl Files {
    /// Reads the files of `paths` (the unit, then its drop-ins in the manager's order) and those that they refer to.
    pub async fn read(
        manager: &Manager,
        unit: &str,
        paths: &[PathBuf],
        engine: Option<Dialect>,
    ) -> Result<Files, ServiceError> {
        let mut main = Vec::new();
        for path in paths {
            let bytes = manager.read(path).await?.ok_or_else(|| {
                failed(
                    unit,
                    format!("{} is gone, and the manager still names it", path.display()),
                    "See whether somebody changes the unit now, then try again",
                )
            })?;
            main.push(named(path, bytes));
        }
        let mut files = Files {
            unit: unit.to_string(),
            texts: Texts {
                form: Form::Unit,
                main,
                beside: Vec::new(),
                unit: Some(unit.to_string()),
            },
            engine,
        };
        for _ in 0..ROUNDS {
            let known = files.texts.beside.len();
            for wanted in files.launches().wanted {
                let path = PathBuf::from(&wanted.path);
                // A number inside a script is out of reach of a drop-in, so that there could be no trial of it.
                if wanted.script || !path.is_absolute() {
                    continue;
                }
                match manager.read(&path).await? {
                    Some(bytes) => files.texts.beside.push(named(&path, bytes)),
                    None if wanted.optional => {}
                    None => {
                        return Err(failed(
                            unit,
                            format!("its environment file {} is not there", path.display()),
                            "Make it, or the unit cannot start",
                        ));
                    }
                }
            }
            if files.texts.beside.len() == known {
                break;
            }
        }
        Ok(files)
    }

    fn launches(&self) -> Launches {
        launch::find(&self.texts, self.engine)
    }

    fn server(&self) -> Result<Server, ServiceError> {
        self.launches().choose(None).cloned().map_err(|why| {
            failed(
                &self.unit,
                why,
                "The command of the unit must start one server: sglang, vllm or llama-server (name the engine in the profile if it is hidden)",
            )
        })
    }

    /// What a start by these files brings.
    ///
    /// # Errors
    /// They start no known server, or do not give it its context in digits.
    pub fn started(&self) -> Result<Started, ServiceError> {
        let server = self.server()?;
        let Some(found) = server.in_force() else {
            return Err(failed(
                &self.unit,
                "neither its command nor its environment gives the server a context length",
                "Add the engine's argument with the length that it serves now, and reload; then vramp can change it",
            ));
        };
        let Some(context) = found.per_request else {
            let why = found.fixed.clone().unwrap_or_else(|| {
                format!("how much of {} one request has cannot be read", found.text)
            });
            return Err(failed(
                &self.unit,
                why,
                "Write the context length in digits",
            ));
        };
        let variable = match &found.given_as {
            GivenAs::Variable(name) => Some(name.clone()),
            GivenAs::Argument(_) => found.variable.clone(),
        };
        let template = template(&server, self.engine, found.text.as_str());
        Ok(Started {
            context,
            launch: template,
            argv: server.argv.clone(),
            variable,
        })
    }

    /// The change of the one number, in the file where it is written.
    pub fn edit(&self, context: u64) -> Result<Edit, ServiceError> {
        launch::set(&self.texts, self.engine, None, Number::PerRequest(context)).map_err(|why| {
            failed(
                &self.unit,
                format!("{} cannot be written: {why}", thousands(context)),
                "Change the unit so that the number stands there in digits",
            )
        })
    }

    /// The same change as something that lies over the files. `number` is what the argument or variable then has.
    pub fn override_with(&self, edit: &Edit) -> Result<Override, ServiceError> {
        if let Some(variable) = self.started().ok().and_then(|started| started.variable) {
            return Ok(Override::Variable(format!("{variable}={}\n", edit.number)));
        }
        let mut main = self.texts.main.clone();
        if let Some(text) = main.iter_mut().find(|text| text.name == edit.file) {
            text.bytes.clone_from(&edit.bytes);
        }
        let commands = launch::exec_start(&main);
        let mut out = b"ExecStart=\n".to_vec();
        for command in &commands {
            out.extend(b"ExecStart=");
            out.extend(command);
            out.push(b'\n');
        }
        if commands.is_empty() || commands.iter().any(|command| command.contains(&b'\n')) {
            return Err(failed(
                &self.unit,
                "its command cannot be repeated in a drop-in",
                "Write it on one line, or with continued lines",
            ));
        }
        Ok(Override::Command(out))
    }

    /// Whether the file of an edit may be changed in place: it is the administrator's, not of a package or a generator, and belongs to this
    /// unit alone, not to all instances of a template.
    pub fn editable(&self, edit: &Edit, folders: &Folders) -> bool {
        let path = Path::new(&edit.file);
        let of_unit = self.texts.main.iter().any(|text| text.name == edit.file);
        if !of_unit {
            return !["/usr", "/lib", "/run"]
                .iter()
                .any(|root| path.starts_with(root));
        }
        let parent = path.parent();
        let folder = if path.file_name() == Some(OsStr::new(&self.unit)) {
            parent
        } else {
            let own = format!("{}.d", self.unit);
            parent
                .filter(|folder| folder.file_name() == Some(OsStr::new(&own)))
                .and_then(Path::parent)
        };
        folder.is_some_and(|folder| folders.editable.iter().any(|own| own == folder))
    }

    /// What a start would bring once `edit` is written.
    pub fn after(&self, edit: &Edit) -> Result<Started, ServiceError> {
        let mut changed = self.clone();
        let texts = changed.texts.main.iter_mut();
        if let Some(text) = texts
            .chain(&mut changed.texts.beside)
            .find(|text| text.name == edit.file)
        {
            text.bytes.clone_from(&edit.bytes);
        }
        changed.started()
    }
}

/// The paths of a unit's files in the manager's order.
pub fn paths(shown: &Shown) -> Vec<PathBuf> {
    let fragment = Some(shown.get("FragmentPath")).filter(|path| !path.is_empty());
    fragment
        .map(PathBuf::from)
        .into_iter()
        .chain(shown.list("DropInPaths").into_iter().map(PathBuf::from))
        .collect()
}

/// The server's words with a place where the number stands. Of the environment only the variable that carries the number is shown:
/// the rest may hold secrets.
fn template(server: &Server, engine: Option<Dialect>, number: &str) -> Launch {
    let (slots, place) = match server.meaning {
        Meaning::Total { slots } => (slots, "{context_total}"),
        _ => (1, "{context}"),
    };
    let mut argv = server.argv.clone();
    let mut env = Vec::new();
    let again = launch::find_in_argv(&server.argv, &server.env, server.engine.or(engine));
    if let Some(found) = again.as_ref().and_then(Server::in_force) {
        match &found.given_as {
            GivenAs::Variable(name) => env.push((name.clone(), place.to_string())),
            GivenAs::Argument(flag) => fill(&mut argv, flag, number, place),
        }
    }
    store::without_secrets(&Launch {
        argv,
        env,
        cwd: None,
        slots,
    })
}

/// Puts `place` where the last argument `flag` has its number.
fn fill(argv: &mut [String], flag: &str, number: &str, place: &str) {
    let joined = format!("{flag}={number}");
    let at = (0..argv.len()).rev().find(|at| {
        let word = argv.get(*at).map(String::as_str);
        let before = at.checked_sub(1).and_then(|before| argv.get(before));
        word == Some(&joined) || (word == Some(number) && before.is_some_and(|word| word == flag))
    });
    if let Some(word) = at.and_then(|at| argv.get_mut(at)) {
        *word = match word.strip_prefix(&format!("{flag}=")) {
            Some(_) => format!("{flag}={place}"),
            None => place.to_string(),
        };
    }
}

fn named(path: &Path, bytes: Vec<u8>) -> NamedText {
    NamedText {
        name: path.to_string_lossy().into_owned(),
        bytes,
    }
}

pub fn failed(unit: &str, what: impl ToString, advice: &str) -> ServiceError {
    ServiceError::Failed {
        tried: format!("read how {unit} starts its server"),
        what: what.to_string(),
        advice: advice.to_string(),
    }
}
