//! The description of a model on a host: its `config.json`, or the header of its GGUF file.

use super::{arguments, surroundings};
use crate::engine::{Facts, Kind};
use crate::host::Host;
use crate::launch;
use crate::memory::{self, Geometry, MemoryError, launched};
use crate::profile::Launch;
use crate::units::clean;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes of a GGUF file on another host that are fetched first, and when the header is longer.
const HEADERS: [u64; 2] = [8 << 20, 64 << 20];
/// Where the hub's cache lies in a home.
const CACHE: &str = ".cache/huggingface/hub";
/// Processes of a server through whose eyes its model is looked for.
const PROCESSES: usize = 4;

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

/// A server that runs, as far as its model can be told from it.
pub struct Served<'a> {
    /// What it was started with.
    pub launch: Option<&'a Launch>,
    pub facts: &'a Facts,
    pub pids: &'a [u32],
    /// The processes are a service's own. Else they are who listens at its address, which may be a tunnel or a proxy.
    pub own: bool,
}

/// The model of a server: what its launch names or it says itself, as one of its own processes sees it, which may be in a container; else
/// what its launch names, read on the host.
///
/// # Errors
/// As [`read`], and that nothing names one.
pub async fn of_server(host: &dyn Host, served: &Served<'_>) -> Result<Geometry, String> {
    let named = match served.launch {
        Some(launch) => launched::model(served.facts.kind, &launch.argv, &launch.env),
        None => None,
    };
    let told = served.facts.model_file.clone();
    let names: Vec<String> = named.iter().cloned().chain(told).collect();
    if let Some(found) = through_processes(host, served, &names).await {
        return found;
    }
    match (served.launch, named) {
        (None, _) => Err(
            "how the server is launched is not known, and none of its processes can be looked into from here, so its model is not found".into(),
        ),
        (_, None) => Err("the launch names no model file".into()),
        (Some(launch), Some(named)) => read_named(host, launch, &named).await,
    }
}

/// The model that a launch names, as the host sees it: a path, or a name of the Hugging Face hub that was fetched there.
///
/// # Errors
/// As [`read`].
pub async fn read_named(host: &dyn Host, launch: &Launch, named: &str) -> Result<Geometry, String> {
    let home = launch.env.iter().rev().find(|(name, _)| name == "HOME");
    let seen = Seen {
        root: None,
        directory: launch.cwd.as_deref(),
        home: home.map(|(_, home)| Path::new(home)),
        env: &launch.env,
    };
    match seen.place(host, named).await? {
        Some(path) => Ok(read(host, &path).await?.0),
        None => Err(format!(
            "the launch names the model {}, which is not found on {}",
            clean(named),
            host.name()
        )),
    }
}

/// The first of `names` that a process of the server can see; `None` where none can, or no process is known.
async fn through_processes(
    host: &dyn Host,
    served: &Served<'_>,
    names: &[String],
) -> Option<Result<Geometry, String>> {
    if names.is_empty() {
        return None;
    }
    let pids = served.pids.iter().take(PROCESSES);
    if !served.own && !any_serves(host, pids.clone()).await {
        return None;
    }
    for pid in pids {
        let around = surroundings(host, *pid).await.ok()?;
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let seen = Seen {
            root: Some(&root),
            directory: around.directory.as_deref(),
            home: around.home.as_deref(),
            env: &around.env,
        };
        for name in names {
            // What it may not see of another user's process is as if it were not there.
            if let Ok(Some(path)) = seen.place(host, name).await {
                return Some(read(host, &path).await.map(|(geometry, _)| geometry));
            }
        }
    }
    None
}

/// Whether one of the processes was started as an inference server: a tunnel or a proxy that listens in its place sees other files.
async fn any_serves(host: &dyn Host, pids: impl Iterator<Item = &u32>) -> bool {
    for pid in pids {
        let command = host.read(Path::new(&format!("/proc/{pid}/cmdline"))).await;
        if let Ok(Some(command)) = command
            && launch::find_in_argv(&arguments(&command), &[], None).is_some()
        {
            return true;
        }
    }
    false
}

/// Where somebody looks from.
struct Seen<'a> {
    /// The root folder of who looks, where it is another than the host's.
    root: Option<&'a Path>,
    directory: Option<&'a Path>,
    home: Option<&'a Path>,
    /// May say where the hub's cache lies.
    env: &'a [(String, String)],
}

impl Seen<'_> {
    /// The file or folder of a name.
    async fn place(&self, host: &dyn Host, named: &str) -> Result<Option<PathBuf>, String> {
        let path = Path::new(named);
        let placed = match self.directory {
            Some(directory) if path.is_relative() => directory.join(path),
            _ => path.to_path_buf(),
        };
        let placed = self.under_root(placed);
        let there = host.stat(&placed).await.map_err(|e| e.to_string())?;
        if there.is_some() {
            return Ok(Some(placed));
        }
        let is_name =
            path.is_relative() && !named.starts_with('.') && named.matches('/').count() == 1;
        if is_name {
            return self.snapshot(host, named).await;
        }
        Ok(None)
    }

    fn under_root(&self, path: PathBuf) -> PathBuf {
        match (self.root, path.strip_prefix("/")) {
            (Some(root), Ok(inside)) => root.join(inside),
            _ => path,
        }
    }

    /// The folder of a model in the hub's cache.
    async fn snapshot(&self, host: &dyn Host, named: &str) -> Result<Option<PathBuf>, String> {
        let variable = |name: &str| {
            let found = self.env.iter().rev().find(|(n, _)| n == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let own = variable("HF_HUB_CACHE")
            .or_else(|| Some(variable("HF_HOME")?.join("hub")))
            .or_else(|| Some(self.home?.join(CACHE)));
        let hub = match (own, self.root) {
            (Some(hub), _) => hub,
            (None, Some(_)) => return Ok(None),
            (None, None) => {
                let output = host
                    .run(&["printenv".to_string(), "HOME".to_string()])
                    .await
                    .map_err(|error| error.to_string())?;
                let home = String::from_utf8_lossy(&output.stdout).into_owned();
                Path::new(home.trim_end_matches('\n')).join(CACHE)
            }
        };
        let folder = self.under_root(hub.join(format!("models--{}", named.replace('/', "--"))));
        let main = host
            .read(&folder.join("refs/main"))
            .await
            .map_err(|error| error.to_string())?;
        Ok(main.map(|main| {
            let revision = String::from_utf8_lossy(&main).trim().to_string();
            folder.join("snapshots").join(revision)
        }))
    }
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
        // A file system that hangs must not hold up anything else.
        let file = path.to_path_buf();
        let opened = tokio::task::spawn_blocking(move || std::fs::File::open(file)).await;
        let file = opened
            .map_err(|error| unreadable(error.to_string()))?
            .map_err(|error| unreadable(error.to_string()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Context, Health};
    use crate::host::Local;
    use crate::reading::Reading;

    /// Who listens is this test, as a tunnel would be, and a file of that name is here, as one of another machine's may be.
    #[tokio::test]
    async fn the_files_of_a_tunnel_are_not_the_servers() {
        let none = Reading::unsupported;
        let facts = Facts {
            kind: Kind::Vllm,
            version: Reading::unsupported(),
            model: Reading::unsupported(),
            model_file: Some(
                concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/tests/fixtures/kv/configs/qwen3.6-27b.json"
                )
                .into(),
            ),
            health: Health::Up,
            context: Context {
                configured: none(),
                effective: none(),
                model_limit: none(),
                pool_tokens: none(),
                slots: none(),
                per_slot: none(),
            },
            simulated: false,
            notes: Vec::new(),
        };
        let served = Served {
            launch: None,
            facts: &facts,
            pids: &[std::process::id()],
            own: false,
        };
        let found = of_server(&Local, &served).await;
        let why = found.expect_err("nothing of it is the server's");
        assert!(why.contains("not known"), "{why}");
        let own = Served {
            own: true,
            ..served
        };
        let found = of_server(&Local, &own).await;
        assert!(found.is_ok(), "{found:?}");
    }
}
