//! `vramp init`: finds the servers that run here and writes a profile for each.

use super::{Common, Failure};
use crate::clock;
use crate::discover::{self, Candidate, Home, Surroundings};
use crate::engine::normalise_url;
use crate::host::{Host, Local};
use crate::profile::{self, Discovered, found_text, summary};
use std::path::{Path, PathBuf};

/// Find the servers that run here and write a commented profile for each
///
/// Looks at what listens, at its processes, units and containers, and asks each server what it is. Nothing is changed but the
/// profile file, and one that is there stays as it is.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Write a profile for the server at this address alone
    #[arg(long)]
    url: Option<String>,
    /// Print the profiles instead of writing the file
    #[arg(long)]
    stdout: bool,
}

/// Looks, says what was found, and writes.
pub fn init(common: &Common, args: &InitArgs) -> Result<i32, Failure> {
    let path = common
        .config
        .clone()
        .or_else(profile::default_path)
        .ok_or_else(|| {
            Failure::new("cannot find your configuration directory; name the file with --config")
        })?;
    let url = args
        .url
        .as_deref()
        .map(normalise_url)
        .transpose()
        .map_err(Failure::wrong_use)?;
    if !args.stdout && path.exists() {
        return Err(Failure::new(format!(
            "{} exists and stays as it is; edit it, name another with --config, or see what would be written with --stdout",
            path.display()
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let found = runtime.block_on(find(&Local, url.as_deref()))?;
    let when = clock::date_time(clock::unix_ms());
    let text = match (found.is_empty(), &url) {
        (false, _) => found_text(&found, &when),
        (true, Some(url)) => profile::example_for(url).map_err(Failure::wrong_use)?,
        (true, None) => profile::EXAMPLE.to_string(),
    };
    if args.stdout {
        print!("{text}");
        return Ok(0);
    }
    write(&path, &text)?;
    println!("wrote {}", path.display());
    match found.is_empty() {
        true => println!("Edit it (the comments say how), then start: vramp"),
        false => println!("Look it over, then start: vramp"),
    }
    Ok(0)
}

/// The servers, each told on standard error; with `url` only the one at that address.
async fn find(host: &dyn Host, url: Option<&str>) -> Result<Vec<Discovered>, Failure> {
    let seen = discover::look(host).await.map_err(Failure::new)?;
    for note in &seen.notes {
        eprintln!("note: {note}");
    }
    let mut candidates = discover::candidates(&seen, str::to_string).await;
    if let Some(url) = url {
        candidates.retain(|one| same_place(&one.url, url));
        for one in &mut candidates {
            one.url = url.to_string();
        }
        if candidates.is_empty() {
            eprintln!("nothing that runs here serves at {url}; the profile only names the address");
        }
    } else if candidates.is_empty() {
        eprintln!(
            "no inference server was found running here; the example is written instead. Is the server on another machine? Name it: vramp init --url URL"
        );
    }
    let uid = Some(rustix::process::getuid().as_raw());
    let mut found = Vec::new();
    for candidate in candidates {
        eprintln!("found {}", summary(&candidate));
        let surroundings = surroundings(host, &candidate).await?;
        found.push(Discovered {
            candidate,
            surroundings,
            host: None,
            uid,
        });
    }
    Ok(found)
}

/// Only a process that nothing manages has to be started again as it was.
async fn surroundings(host: &dyn Host, one: &Candidate) -> Result<Surroundings, Failure> {
    match (&one.home, one.pid) {
        (Home::Loose, Some(pid)) => discover::surroundings(host, pid)
            .await
            .map_err(Failure::new),
        _ => Ok(Surroundings::default()),
    }
}

/// Whether two addresses of this machine mean one port: a name and a number of it are not told apart.
fn same_place(found: &str, asked: &str) -> bool {
    let port = |text: &str| {
        let url = url::Url::parse(text).ok()?;
        Some((url.port_or_known_default()?, url.host_str()?.to_string()))
    };
    let (Some((found, _)), Some((asked, host))) = (port(found), port(asked)) else {
        return false;
    };
    let here = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    found == asked && here.contains(&host.as_str())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder: Option<PathBuf> = path.parent().map(Path::to_path_buf);
    if let Some(folder) = folder {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    }
    crate::host::write_atomic(path, text.as_bytes()).map_err(Failure::new)
}
