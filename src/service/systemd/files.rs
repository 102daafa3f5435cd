//! The files of a unit: what its server is started with, and what another context would change in them.

use super::manager::{Folders, Manager, Shown};
use crate::launch::{self, Dialect, Edit, Form, Launches, NamedText, Number, Server, Texts};
use crate::service::ServiceError;
use crate::service::started::Started;
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
        Started::of(&self.server()?, self.engine)
            .map_err(|(what, advice)| failed(&self.unit, what, advice))
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
