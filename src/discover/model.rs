//! The description of a model on a host: its `config.json`, or the header of its GGUF file.

use crate::engine::Kind;
use crate::host::Host;
use crate::memory::{self, Geometry, MemoryError, launched};
use crate::profile::Launch;
use crate::units::clean;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes of a GGUF file on another host that are fetched first, and when the header is longer.
const HEADERS: [u64; 2] = [8 << 20, 64 << 20];

/// What can be read and searched, here or fetched from elsewhere.
trait Bytes: Read + Seek + Send {}
impl<T: Read + Seek + Send> Bytes for T {}

/// Reads the model at `path`, a file or its folder. Gives the engine that the form of the file speaks for as well.
///
/// # Errors
/// What was read, what is wrong with it, what to do; one sentence.
pub async fn read(host: &dyn Host, path: &Path) -> Result<(Geometry, Kind), String> {
    let path = in_folder(host, path).await?;
    let name = name(&path);
    let mut last = Err(String::new());
    for most in HEADERS {
        let (bytes, whole) = open(host, &path, most).await?;
        let name = name.clone();
        let parsed = tokio::task::spawn_blocking(move || parse(bytes, name.as_deref()))
            .await
            .map_err(|error| error.to_string())?;
        last = parsed.map_err(|why| format!("{}: {why}", shown(&path)));
        if last.is_ok() || whole {
            break;
        }
    }
    last
}

/// The model that `launch` names, as its file on the host describes it.
///
/// # Errors
/// As [`read`], and that nothing names one.
pub async fn of_launch(
    host: &dyn Host,
    kind: Kind,
    launch: Option<&Launch>,
) -> Result<Geometry, String> {
    let Some(launch) = launch else {
        return Err(
            "how the server is launched is not known, and so neither where its model lies".into(),
        );
    };
    let Some(named) = launched::model(kind, &launch.argv, &launch.env) else {
        return Err("the launch names no model file".into());
    };
    read_named(host, &named, launch.cwd.as_deref(), &launch.env).await
}

/// The model that a launch names, with `env` as its environment: a path, or a name of the Hugging Face hub that was fetched there.
///
/// # Errors
/// As [`read`].
pub async fn read_named(
    host: &dyn Host,
    named: &str,
    cwd: Option<&Path>,
    env: &[(String, String)],
) -> Result<Geometry, String> {
    let path = Path::new(named);
    let placed = match cwd {
        Some(cwd) if path.is_relative() => cwd.join(path),
        _ => path.to_path_buf(),
    };
    let there = host.stat(&placed).await.map_err(|e| e.to_string())?;
    if there.is_some() {
        return Ok(read(host, &placed).await?.0);
    }
    let is_name = path.is_relative() && !named.starts_with('.') && named.matches('/').count() == 1;
    if is_name && let Some(snapshot) = snapshot(host, named, env).await? {
        return Ok(read(host, &snapshot).await?.0);
    }
    Err(format!(
        "the launch names the model {}, which is not found on {}",
        clean(named),
        host.name()
    ))
}

/// The folder of a model in the hub's cache.
async fn snapshot(
    host: &dyn Host,
    named: &str,
    env: &[(String, String)],
) -> Result<Option<PathBuf>, String> {
    let variable = |name: &str| env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v);
    let hub = match (variable("HF_HUB_CACHE"), variable("HF_HOME")) {
        (Some(hub), _) => PathBuf::from(hub),
        (None, Some(home)) => Path::new(home).join("hub"),
        (None, None) => {
            let output = host
                .run(&["printenv".to_string(), "HOME".to_string()])
                .await
                .map_err(|error| error.to_string())?;
            let home = String::from_utf8_lossy(&output.stdout).into_owned();
            Path::new(home.trim_end_matches('\n')).join(".cache/huggingface/hub")
        }
    };
    let folder = hub.join(format!("models--{}", named.replace('/', "--")));
    let main = host
        .read(&folder.join("refs/main"))
        .await
        .map_err(|error| error.to_string())?;
    Ok(main.map(|main| {
        let revision = String::from_utf8_lossy(&main).trim().to_string();
        folder.join("snapshots").join(revision)
    }))
}

/// The file, or the first `most` bytes of it from another host; and whether that is all of it.
async fn open(host: &dyn Host, path: &Path, most: u64) -> Result<(Box<dyn Bytes>, bool), String> {
    let unreadable = |why: String| {
        format!(
            "cannot read {}: {why}; give the path of a config.json, of its folder, or of a GGUF file (nothing is downloaded)",
            shown(path)
        )
    };
    if host.is_local() {
        let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
        return Ok((Box::new(file), true));
    }
    let argv = ["head", "-c", &most.to_string(), "--"].map(String::from);
    let argv = [argv.as_slice(), &[path.display().to_string()]].concat();
    let output = host
        .run(&argv)
        .await
        .map_err(|error| unreadable(error.to_string()))?;
    if output.code != Some(0) {
        let why = clean(String::from_utf8_lossy(&output.stderr).trim());
        return Err(unreadable(why));
    }
    let whole = (output.stdout.len() as u64) < most;
    Ok((Box::new(Cursor::new(output.stdout)), whole))
}

fn parse(mut from: Box<dyn Bytes>, name: Option<&str>) -> Result<(Geometry, Kind), String> {
    let unreadable = |error: std::io::Error| format!("cannot read it: {error}");
    let mut magic = Vec::new();
    Read::by_ref(&mut from)
        .take(4)
        .read_to_end(&mut magic)
        .map_err(unreadable)?;
    let words = |error: MemoryError| error.to_string();
    if magic == memory::gguf::MAGIC {
        let geometry = memory::gguf::read(from, name).map_err(words)?;
        return Ok((geometry, Kind::LlamaCpp));
    }
    let geometry =
        memory::config::parse(&text(magic.as_slice().chain(from))?, name).map_err(words)?;
    Ok((geometry, Kind::OpenAi))
}

/// The text of a configuration, in bounds.
///
/// # Errors
/// It cannot be read, is too large, or is no text.
pub fn text(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(memory::config::MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read it: {error}"))?;
    if bytes.len() as u64 > memory::config::MOST_BYTES {
        return Err("it is neither a GGUF file nor a config.json: too large for one".into());
    }
    String::from_utf8(bytes)
        .map_err(|_| "it is neither a GGUF file nor a config.json: it is not text".into())
}

/// The file that a folder's model is described in.
async fn in_folder(host: &dyn Host, path: &Path) -> Result<PathBuf, String> {
    let stat = |path: PathBuf| async move { host.stat(&path).await.map_err(|e| e.to_string()) };
    if !stat(path.to_path_buf()).await?.is_some_and(|s| s.is_dir) {
        return Ok(path.to_path_buf());
    }
    let config = path.join("config.json");
    if stat(config.clone()).await?.is_some_and(|s| !s.is_dir) {
        return Ok(config);
    }
    let argv = ["ls", "-1", "--"].map(String::from);
    let argv = [argv.as_slice(), &[path.display().to_string()]].concat();
    let listed = host.run(&argv).await.map_err(|error| error.to_string())?;
    if listed.code != Some(0) {
        let why = clean(String::from_utf8_lossy(&listed.stderr).trim());
        return Err(format!("cannot read {}: {why}", shown(path)));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut found: Vec<PathBuf> = listed
        .lines()
        // Of a split file the first part has the header; a projector beside the model is none.
        .filter(|name| {
            let name = name.to_ascii_lowercase();
            let part = name.contains("-of-") && !name.contains("-00001-of-");
            name.ends_with(".gguf") && !part && !name.contains("mmproj")
        })
        .map(|name| path.join(name))
        .collect();
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(format!(
            "{} has neither config.json nor a GGUF file",
            shown(path)
        )),
        (Some(_), others) => Err(format!(
            "{} has {} GGUF files; name one of them",
            shown(path),
            others + 1
        )),
    }
}

/// What the model is called: its file, or its folder where the file is `config.json`.
fn name(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let stem = stem.strip_suffix(".config").unwrap_or(&stem).to_string();
    if stem != "config" {
        return Some(stem);
    }
    let full = std::path::absolute(path).ok()?;
    let folder = full.parent()?.file_name()?;
    Some(folder.to_string_lossy().into_owned())
}

fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}
