//! Files of a host that can only run commands: another machine, or this one with the rights of somebody else.
//!
//! The programs are those of POSIX and of every Linux (coreutils or busybox). The scripts are fixed; paths are their arguments, and
//! contents come by standard input.

use super::{FileStat, Host, HostError, Output, Streamed, failed};
use crate::units;
use std::path::{Path, PathBuf};

/// `readlink -f` first, so that a link stays one and its target is written; `mktemp` makes the temporary file for its owner alone. The
/// number of bytes is checked before the rename: a connection that is cut off ends the input early.
const WRITE: &str = r#"set -eu; export LC_ALL=C
target=$(readlink -f -- "$1"); if [ -d "$target" ]; then echo "it is a folder" >&2; exit 1; fi
dir=$(dirname -- "$target"); temporary=$(mktemp -- "$dir/.${target##*/}.XXXXXX")
trap 'rm -f -- "$temporary"' EXIT; trap 'exit 1' HUP INT TERM PIPE
cat >"$temporary"; [ "$(wc -c <"$temporary")" -eq "$2" ] || { echo "the text arrived cut off" >&2; exit 1; }
if [ -e "$target" ]; then
owner=$(stat -c %u:%g -- "$target"); [ "$owner" = "$(stat -c %u:%g -- "$temporary")" ] || chown -- "$owner" "$temporary"
chmod -- "$(stat -c %a -- "$target")" "$temporary"
else chmod -- "$(printf %o $((0666 & ~$(umask))))" "$temporary"; fi
sync -- "$temporary"; mv -fT -- "$temporary" "$target"; trap - EXIT; sync -- "$dir""#;

const BACKUP: &str = r#"set -eu; export LC_ALL=C; base=$1.vramp-$(date -u +%Y%m%d-%H%M%S); copy=$base; n=0
umask 077; until (set -C; : >"$copy") 2>/dev/null; do n=$((n + 1)); [ "$n" -lt 100 ] || { echo "no copy can be made there" >&2; exit 1; }; copy=$base-$n; done
cp -p -- "$1" "$copy" || { rm -f -- "$copy"; exit 1; }
sync -- "$copy"; printf %s "$copy""#;

const REMOVE: &str = r#"set -eu; export LC_ALL=C; if [ -e "$1" ] || [ -L "$1" ]; then rm -- "$1"; sync -- "$(dirname -- "$1")"; fi"#;

/// The shell becomes the sleep that keeps the lock's file open. Who takes the lock writes himself into it.
const LOCK: &str = r#"export LC_ALL=C; command -v flock >/dev/null || { echo "flock (util-linux) is not installed there" >&2; exit 1; }
exec 9>>"$1" || exit 1; flock -n 9 || { head -c 300 -- "$1"; exit 75; }
printf '%s\n' "$2" >"$1" || exit 1; echo "held $$"; exec sleep 2147483647"#;

/// Ends a holder of the lock that is known to be our own of an earlier connection.
pub const UNLOCK: &str =
    r#"[ "$(readlink -- "/proc/$2/fd/9")" = "$(readlink -f -- "$1")" ] && kill "$2""#;

pub async fn read(host: &dyn Host, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    let tried = || format!("read {} on {}", path.display(), host.name());
    let output = host.run(&english(&["cat", "--", text(path)?])).await?;
    match output.code {
        Some(0) => Ok(Some(output.stdout)),
        _ if is_absent(&output) => Ok(None),
        _ => Err(failed(tried(), said(&output))),
    }
}

pub async fn write(host: &dyn Host, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let size = bytes.len().to_string();
    let argv = script(WRITE, &[text(path)?, &size]);
    done(host, "write", path, host.run_with(&argv, bytes).await?)
}

pub async fn remove(host: &dyn Host, path: &Path) -> Result<(), HostError> {
    let argv = script(REMOVE, &[text(path)?]);
    done(host, "remove", path, host.run(&argv).await?)
}

pub async fn stat(host: &dyn Host, path: &Path) -> Result<Option<FileStat>, HostError> {
    let tried = || format!("look at {} on {}", path.display(), host.name());
    let argv = english(&["stat", "-L", "-c", "%f %u %g %s %Y", "--", text(path)?]);
    let output = host.run(&argv).await?;
    match output.code {
        Some(0) => {
            let line = String::from_utf8_lossy(&output.stdout);
            parse_stat(&line)
                .map(Some)
                .ok_or_else(|| failed(tried(), format!("stat says {:?}", units::clean(&line))))
        }
        _ if is_absent(&output) => Ok(None),
        _ => Err(failed(tried(), said(&output))),
    }
}

pub async fn backup(host: &dyn Host, path: &Path) -> Result<PathBuf, HostError> {
    let output = host.run(&script(BACKUP, &[text(path)?])).await?;
    let copy = PathBuf::from(String::from_utf8_lossy(&output.stdout).into_owned());
    done(host, "back up", path, output)?;
    Ok(copy)
}

pub async fn make_dir(host: &dyn Host, path: &Path) -> Result<(), HostError> {
    let argv = script(
        "umask 077; LC_ALL=C exec mkdir -p -- \"$1\"",
        &[text(path)?],
    );
    done(host, "make the folder", path, host.run(&argv).await?)
}

pub async fn boot_id(host: &dyn Host) -> Result<String, HostError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let bytes = read(host, path).await?.unwrap_or_default();
    let id = String::from_utf8_lossy(&bytes).trim().to_string();
    if id.is_empty() {
        return Err(failed(
            format!("read {} on {}", path.display(), host.name()),
            "it is not there; vramp works on Linux alone",
        ));
    }
    Ok(id)
}

/// A lock that a process there holds.
pub struct Holding {
    pub pid: u32,
    pub lines: super::Lines,
}

/// Takes the lock, or gives what its holder wrote.
pub async fn lock(
    host: &dyn Host,
    path: &Path,
    who: &str,
) -> Result<Result<Holding, String>, HostError> {
    let fail = |what: &str| failed(format!("lock {} on {}", path.display(), host.name()), what);
    let mut lines = host.stream(&script(LOCK, &[text(path)?, who])).await?;
    let mut holder = String::new();
    loop {
        match lines.next().await {
            Some(Streamed::Line(line)) => {
                if let Some(pid) = line.strip_prefix("held ").and_then(|pid| pid.parse().ok()) {
                    return Ok(Ok(Holding { pid, lines }));
                }
                holder.push_str(&units::clean(&line));
            }
            Some(Streamed::Ended(ended)) if ended.code == Some(75) => return Ok(Err(holder)),
            Some(Streamed::Ended(ended)) => return Err(fail(last_line(&ended.stderr))),
            Some(Streamed::Failed(error)) => return Err(error),
            None => return Err(fail("the command ended without a word")),
        }
    }
}

/// A fixed shell script with its arguments.
pub fn script(text: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", text, "vramp"]
        .iter()
        .chain(arguments)
        .map(|word| word.to_string())
        .collect()
}

/// A command whose messages are to be understood.
fn english(argv: &[&str]) -> Vec<String> {
    ["env", "LC_ALL=C"]
        .iter()
        .chain(argv)
        .map(|word| word.to_string())
        .collect()
}

fn text(path: &Path) -> Result<&str, HostError> {
    path.to_str()
        .ok_or_else(|| failed(format!("name {}", path.display()), "it is not UTF-8"))
}

fn is_absent(output: &Output) -> bool {
    output.stdout.is_empty()
        && String::from_utf8_lossy(&output.stderr).contains("No such file or directory")
}

fn done(host: &dyn Host, verb: &str, path: &Path, output: Output) -> Result<(), HostError> {
    if output.code == Some(0) {
        return Ok(());
    }
    let tried = format!("{verb} {} on {}", path.display(), host.name());
    Err(failed(tried, said(&output)))
}

/// What a failed command said last.
fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    match (last_line(&stderr), output.code) {
        ("", Some(code)) => format!("the command ended with exit code {code}"),
        ("", None) => "a signal ended the command".to_string(),
        (line, _) => units::clean(line),
    }
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// `81a4 0 0 1234 1772000000`: mode with the kind of file in hexadecimal, owner, group, bytes, time.
fn parse_stat(line: &str) -> Option<FileStat> {
    let mut fields = line.split_whitespace();
    let mode = u32::from_str_radix(fields.next()?, 16).ok()?;
    Some(FileStat {
        is_dir: mode & 0o170_000 == 0o040_000,
        mode: mode & 0o7777,
        uid: fields.next()?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
        size: fields.next()?.parse().ok()?,
        modified_unix_s: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
