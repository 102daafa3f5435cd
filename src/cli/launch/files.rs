//! The files of a launch: FILE, what is merged over it, what it refers to.

use super::{Failure, TextArgs};
use crate::launch::{Form, NamedText, Texts, Wanted};
use crate::units::clean;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A text of more is no launch.
const LARGEST: u64 = 4 << 20;

/// The texts, and where each of them really is.
pub(super) struct Files {
    pub texts: Texts,
    paths: HashMap<String, PathBuf>,
    /// Names that were looked for and are not there.
    tried: Vec<String>,
    /// What was taken for what.
    pub notes: Vec<String>,
}

impl Files {
    pub fn read(args: &TextArgs) -> Result<Self, Failure> {
        let name = args.file.display().to_string();
        let bytes = match name.as_str() {
            "-" => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .take(LARGEST)
                    .read_to_end(&mut bytes)
                    .map_err(|error| failed(&args.file, error))?;
                bytes
            }
            _ => contents(&args.file)?,
        };
        let form = args
            .form
            .map_or_else(|| Form::guess(&name, &bytes), Form::from);
        let mut files = Files {
            texts: Texts {
                form,
                main: Vec::new(),
                beside: Vec::new(),
                unit: args
                    .file
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .filter(|_| form == Form::Unit),
            },
            paths: HashMap::new(),
            tried: Vec::new(),
            notes: Vec::new(),
        };
        files.push(args.file.clone(), bytes);
        let more = match form {
            Form::Unit => drop_ins(&args.file),
            Form::Compose => override_of(&args.file).into_iter().collect(),
            _ => Vec::new(),
        };
        for path in more.iter().chain(&args.over) {
            let bytes = contents(path)?;
            files.push(path.clone(), bytes);
        }
        Ok(files)
    }

    fn push(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let name = path.display().to_string();
        self.paths.insert(name.clone(), path);
        self.texts.main.push(NamedText { name, bytes });
    }

    /// Reads what is wanted and there; whether there was something new.
    pub fn add(&mut self, wanted: &[Wanted], args: &TextArgs) -> Result<bool, Failure> {
        let mut new = false;
        for one in wanted {
            if self.tried.contains(&one.path) {
                continue;
            }
            self.tried.push(one.path.clone());
            let mut path = place(&one.path, args);
            if !path.is_file() {
                let Some(copy) = copy_beside(&args.file, self.texts.form) else {
                    continue;
                };
                self.notes.push(format!(
                    "{} is not here; {} beside it is taken for it",
                    one.path,
                    copy.display()
                ));
                path = copy;
            }
            let bytes = match contents(&path) {
                Ok(bytes) => bytes,
                // It may be a program, which is no text of ours.
                Err(_) if one.optional => continue,
                Err(failure) => return Err(failure),
            };
            self.paths.insert(one.path.clone(), path);
            self.texts.beside.push(NamedText {
                name: one.path.clone(),
                bytes,
            });
            new = true;
        }
        Ok(new)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.paths
            .get(name)
            .cloned()
            .unwrap_or_else(|| PathBuf::from(name))
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        self.texts
            .main
            .iter()
            .chain(&self.texts.beside)
            .find(|text| text.name == name)
            .map_or(&[], |text| &text.bytes)
    }
}

/// Where a file is that the text names.
fn place(name: &str, args: &TextArgs) -> PathBuf {
    if let Some((_, file)) = args.map.iter().find(|(path, _)| path == name) {
        return file.clone();
    }
    let path = Path::new(name);
    match (path.strip_prefix("/"), &args.root) {
        (Ok(relative), Some(root)) => root.join(relative),
        (Ok(_), None) => path.to_path_buf(),
        // What is relative is so to the text's own folder.
        (Err(_), _) => match args.file.parent() {
            Some(folder) => folder.join(path),
            None => path.to_path_buf(),
        },
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = std::fs::File::open(path).map_err(|error| failed(path, error))?;
    let about = file.metadata().map_err(|error| failed(path, error))?;
    if about.is_dir() {
        return Err(failed(path, "it is a folder"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(path, "it is too large for a launch"));
    }
    Ok(bytes)
}

fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!(
        "cannot read {}: {why}",
        clean(&path.display().to_string())
    ))
}

/// The drop-ins beside a unit, by name.
fn drop_ins(unit: &Path) -> Vec<PathBuf> {
    let Some(name) = unit.file_name() else {
        return Vec::new();
    };
    let folder = unit.with_file_name(format!("{}.d", name.to_string_lossy()));
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    found.retain(|path| path.extension().is_some_and(|end| end == "conf") && path.is_file());
    found.sort();
    found
}

/// The one environment file beside a copy of a unit that has its name up to the first dot (`llm.service`, `llm.default.env`). A unit
/// that is installed refers to the real files, and nothing else is taken for them.
fn copy_beside(unit: &Path, form: Form) -> Option<PathBuf> {
    let whole = std::fs::canonicalize(unit).ok()?;
    let installed = ["/etc", "/run", "/usr", "/lib"]
        .iter()
        .any(|folder| whole.starts_with(folder));
    if form != Form::Unit || installed {
        return None;
    }
    let name = unit.file_name()?.to_str()?;
    let stem = format!("{}.", name.split('.').next()?);
    let folder = whole.parent()?;
    let mut found = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&stem) && name.ends_with(".env"));
    let one = found.next().filter(|_| found.next().is_none())?;
    Some(unit.with_file_name(one))
}

/// The file that compose merges over one of its own names by itself.
fn override_of(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let (stem, extension) = name.rsplit_once('.')?;
    if !["compose", "docker-compose"].contains(&stem) {
        return None;
    }
    ["yaml", "yml", extension]
        .into_iter()
        .map(|extension| file.with_file_name(format!("{stem}.override.{extension}")))
        .find(|path| path.is_file())
}
