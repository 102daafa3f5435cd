//! `vramp init`: finds the servers that run here and writes a profile for each.

use super::{Common, Failure};
use crate::clock;
use crate::discover::{self, Candidate, Home, Surroundings};
use crate::engine::normalise_url;
use crate::host::{Address, Host, HostError, Local};
use crate::profile::HostSpec;
use crate::profile::{self, Discovered, found_text, summary};
use std::path::{Path, PathBuf};

/// Find the servers that run here and write a commented profile for each
///
/// Looks at what listens, at its processes, units and containers, and asks each server what it is; with --host on another machine.
/// Nothing is changed but the profile file, and one that is there stays as it is.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Write a profile for the server at this address alone
    #[arg(long)]
    url: Option<String>,
    /// Look on another machine, by ssh: ssh:USER@HOST or ssh:USER@HOST:PORT
    #[arg(long, value_name = "HOST")]
    host: Option<Address>,
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
    let place = HostSpec::at(args.host.clone());
    let found = runtime.block_on(find(&place, url.as_deref()))?;
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
async fn find(place: &HostSpec, url: Option<&str>) -> Result<Vec<Discovered>, Failure> {
    let host = place.open();
    let host = host.as_ref();
    let seen = discover::look(host).await.map_err(Failure::new)?;
    for note in &seen.notes {
        eprintln!("note: {note}");
    }
    let name = match place {
        HostSpec::Ssh { address, .. } => Some(name_of(address).await),
        HostSpec::Local => None,
    };
    let reach = |url: &str| match &name {
        Some(name) => reached_from_here(url, name),
        None => url.to_string(),
    };
    let mut candidates = discover::candidates(&seen, reach).await;
    for one in &mut candidates {
        one.url = reach(&one.url);
    }
    if let Some(url) = url {
        candidates.retain(|one| same_place(&one.url, url));
        for one in &mut candidates {
            one.url = url.to_string();
        }
        if candidates.is_empty() {
            eprintln!(
                "nothing that runs on {} serves at {url}; the profile only names the address",
                host.name()
            );
        }
    } else if candidates.is_empty() {
        eprintln!(
            "no inference server was found running on {}; the example is written instead. Is the server on another machine? Name it: vramp init --host ssh:USER@HOST, or --url URL",
            host.name()
        );
    }
    let uid = uid(host).await.map_err(Failure::new)?;
    let mut found = Vec::new();
    for candidate in candidates {
        eprintln!("found {}", summary(&candidate));
        if name.is_some()
            && let Err(error) = &candidate.answer
        {
            eprintln!(
                "note: {error}. A server that listens on the loopback address of its host alone is not reached from here: let it listen on another, or carry the port over (ssh -L) and correct url"
            );
        }
        let surroundings = surroundings(host, &candidate).await?;
        found.push(Discovered {
            candidate,
            surroundings,
            host: match place {
                HostSpec::Local => None,
                HostSpec::Ssh { address, .. } => Some(format!("ssh:{address}")),
            },
            uid,
        });
    }
    Ok(found)
}

/// The number of whoever runs commands there.
async fn uid(host: &dyn Host) -> Result<Option<u32>, HostError> {
    let argv = ["id", "-u"].map(str::to_string);
    let output = host.run(&argv).await?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// The name that ssh connects to: one of its configuration may stand for another.
async fn name_of(address: &Address) -> String {
    let argv = ["ssh", "-G", "--", &address.host].map(str::to_string);
    let said = Local.run(&argv).await;
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    hostname(&said.unwrap_or_default()).unwrap_or_else(|| address.host.clone())
}

/// What `ssh -G` says of the name.
fn hostname(text: &str) -> Option<String> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("hostname ").map(str::to_string))
}

/// The address of a server on the host `name` as this machine reaches it: a loopback address there means the host itself.
fn reached_from_here(url: &str, name: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return url.to_string();
    };
    let loopback = match parsed.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        _ => false,
    };
    if !loopback || parsed.set_host(Some(name)).is_err() {
        return url.to_string();
    }
    parsed.to_string().trim_end_matches('/').to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_address_of_another_host_is_that_host() {
        let reach = |url| reached_from_here(url, "gpu1");
        assert_eq!(reach("http://127.0.0.1:8080"), "http://gpu1:8080");
        assert_eq!(reach("http://[::1]:8080"), "http://gpu1:8080");
        assert_eq!(reach("http://10.0.0.7:8080"), "http://10.0.0.7:8080");
        let said = "host gpu1\nuser ada\nhostname 10.0.0.7\nport 22\n";
        assert_eq!(hostname(said).as_deref(), Some("10.0.0.7"));
        assert_eq!(hostname(""), None);
    }
}
