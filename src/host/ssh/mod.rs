//! Another machine, through the OpenSSH of the system: configuration, agent, keys and jump hosts are the operator's own.
//!
//! All commands go over one connection, see [`master`]. It is made when it is first needed and again when it was lost, after pauses that
//! grow. A command that was under way then is reported as lost; it is never repeated by itself, because nobody knows how far it came.

mod address;
mod master;
mod words;

pub use address::Address;

use self::master::Master;
use super::quote::quote;
use super::{
    Ended, FileStat, Host, HostError, Lines, Locked, Output, Streamed, Unlock, child, failed,
    files, tried,
};
use async_trait::async_trait;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Commands at once: sshd takes ten sessions on a connection unless told otherwise, and some of them stream.
const AT_ONCE: usize = 5;
/// Between two attempts to connect: first and longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A client that ends without the word of the other side is given so long to tell a lost connection from a refusal.
const SETTLE: Duration = Duration::from_millis(300);

/// Names the command's beginning on standard output (a login shell may print before it) and its end on standard error: without that
/// word nothing is known of how it ended.
const RUN: &str = r#"printf '%s\n' "$0"; command -v "$1" >/dev/null 2>&1 || { printf '\n%s absent\n' "$0" >&2; exit 127; }; "$@"; c=$?; printf '\n%s %s\n' "$0" "$c" >&2"#;

/// The same for one that is followed. Its standard input is ours to hold open: when that ends, because we let go of it or because the
/// connection is lost, so does the command.
const FOLLOW: &str = r#"printf '%s\n' "$0"; command -v "$1" >/dev/null 2>&1 || { printf '\n%s absent\n' "$0" >&2; exit 127; }; exec 3<&0; "$@" </dev/null 3<&- & p=$!; { read x; kill "$p"; } <&3 3<&- >/dev/null 2>&1 & w=$!; exec 3<&-; wait "$p"; c=$?; kill "$w" 2>/dev/null; printf '\n%s %s\n' "$0" "$c" >&2"#;

/// A machine that is reached by ssh.
#[derive(Debug, Clone)]
pub struct Ssh {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: Address,
    config: Option<PathBuf>,
    link: tokio::sync::Mutex<Link>,
    slots: Semaphore,
    /// Locks that we took, by the process that holds them there.
    locks: Mutex<HashMap<PathBuf, u32>>,
}

#[derive(Debug)]
enum Link {
    Up(Arc<Master>),
    Down {
        what: String,
        tries: u32,
        next: Instant,
    },
}

impl Ssh {
    /// A host. Nothing is connected before it is first used. `config`: another file than `~/.ssh/config`.
    pub fn new(address: Address, config: Option<PathBuf>) -> Ssh {
        Ssh {
            inner: Arc::new(Inner {
                address,
                config,
                link: tokio::sync::Mutex::new(Link::Down {
                    what: String::new(),
                    tries: 0,
                    next: Instant::now(),
                }),
                slots: Semaphore::new(AT_ONCE),
                locks: Mutex::new(HashMap::new()),
            }),
        }
    }

    /// The connection, made anew where there is none and the time for another attempt has come.
    async fn master(&self) -> Result<Arc<Master>, HostError> {
        let mut link = self.inner.link.lock().await;
        if let Link::Up(master) = &*link {
            if master.alive() {
                return Ok(Arc::clone(master));
            }
            *link = Link::Down {
                what: master.why(&self.inner.address),
                tries: 0,
                next: Instant::now(),
            };
        }
        let tries = match &*link {
            Link::Down { tries, next, what } if *next > Instant::now() => {
                let wait = next.duration_since(Instant::now()).as_secs() + 1;
                let times = if *tries == 1 { "" } else { "s" };
                return Err(self.lost(format!(
                    "{what} ({tries} attempt{times}, the next in {wait} s)"
                )));
            }
            Link::Down { tries, .. } => *tries,
            Link::Up(_) => 0,
        };
        let (address, config) = (self.inner.address.clone(), self.inner.config.clone());
        let connect = move || Master::connect(&address, config.as_deref());
        let connected = tokio::task::spawn_blocking(connect).await;
        match connected.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(master) => {
                let master = Arc::new(master);
                *link = Link::Up(Arc::clone(&master));
                Ok(master)
            }
            Err(what) => {
                let pause = PAUSE.0.saturating_mul(1 << tries.min(6)).min(PAUSE.1);
                *link = Link::Down {
                    what: what.clone(),
                    tries: tries.saturating_add(1),
                    next: Instant::now() + pause,
                };
                Err(self.lost(what))
            }
        }
    }

    fn lost(&self, what: String) -> HostError {
        HostError::Lost {
            host: self.name(),
            what,
        }
    }

    /// A client of the connection that runs `script` over `argv`. It can do nothing without the connection: it knows no address.
    fn client(
        &self,
        master: &Master,
        script: &str,
        mark: &str,
        argv: &[String],
    ) -> Result<Command, HostError> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(failed(tried(argv), "the command is empty"));
        }
        let remote: Vec<String> = ["exec", "sh", "-c", script, mark]
            .iter()
            .map(|word| word.to_string())
            .chain(argv.iter().cloned())
            .collect();
        let line = quote(&remote).map_err(|what| failed(tried(argv), what))?;
        let mut command = Command::new("ssh");
        command
            .args(["-F", "none", "-T", "-S"])
            .arg(&master.socket)
            .args(["-o", "ControlMaster=no", "-o", "ProxyCommand=false"])
            .args(["-o", "BatchMode=yes", "--", "vramp.invalid"])
            .arg(line)
            .process_group(0);
        Ok(command)
    }

    /// What it means that a client ended without the word of the other side.
    async fn without_word(&self, master: &Master, argv: &[String], said: &str) -> HostError {
        let begun = Instant::now();
        while master.alive() && begun.elapsed() < SETTLE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if !master.alive() {
            return self.lost(format!("it broke off; {}", master.why(&self.inner.address)));
        }
        let said = crate::units::clean(said.trim());
        failed(
            format!("{} on {}", tried(argv), self.name()),
            match said.as_str() {
                "" => "its shell ended without running the command".to_string(),
                said => format!("its shell did not run the command: {said}"),
            },
        )
    }
}

/// What the other side said of the end.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Exit(Option<i32>),
    Absent,
}

/// Takes the last word off standard error; `None` if there is none.
fn word(mark: &str, stderr: &mut Vec<u8>) -> Option<Word> {
    let start = format!("\n{mark} ");
    let at = memchr::memmem::rfind(stderr, start.as_bytes())?;
    let tail = String::from_utf8_lossy(stderr.get(at + start.len()..)?)
        .trim()
        .to_string();
    stderr.truncate(at);
    match tail.as_str() {
        "absent" => Some(Word::Absent),
        // A shell counts signals from 128 on; the last real one is 64.
        code => code
            .parse()
            .ok()
            .map(|code: i32| Word::Exit((!(129..=192).contains(&code)).then_some(code))),
    }
}

fn mark() -> String {
    format!("vramp-{:016x}", fastrand::u64(..))
}

#[async_trait]
impl Host for Ssh {
    fn name(&self) -> String {
        self.inner.address.to_string()
    }

    fn is_local(&self) -> bool {
        false
    }

    async fn run_with(&self, argv: &[String], input: &[u8]) -> Result<Output, HostError> {
        let on = || format!("{} on {}", tried(argv), self.name());
        let _slot = self.inner.slots.acquire().await;
        let master = self.master().await?;
        let mark = mark();
        let command = self.client(&master, RUN, &mark, argv)?;
        let mut output = child::run(command, input)
            .await
            .map_err(|error| failed(on(), error))?;
        match word(&mark, &mut output.stderr) {
            Some(Word::Exit(code)) => output.code = code,
            Some(Word::Absent) => {
                let program = argv.first().map_or("", String::as_str);
                return Err(failed(on(), format!("there is no program {program:?}")));
            }
            None => {
                let said = [output.stderr, output.stdout].concat();
                let said = String::from_utf8_lossy(&said).into_owned();
                return Err(self.without_word(&master, argv, &said).await);
            }
        }
        let start = format!("{mark}\n");
        if let Some(at) = memchr::memmem::find(&output.stdout, start.as_bytes()) {
            output.stdout.drain(..at + start.len());
        }
        Ok(output)
    }

    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError> {
        let master = self.master().await?;
        let mark = mark();
        let command = self.client(&master, FOLLOW, &mark, argv)?;
        let (this, words) = (self.clone(), argv.to_vec());
        let end = mark.clone();
        let meaning = move |_: ExitStatus, mut stderr: Vec<u8>| {
            let on = || format!("{} on {}", tried(&words), this.name());
            let word = word(&end, &mut stderr);
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            match word {
                Some(Word::Exit(code)) => Ok(Ended { code, stderr }),
                Some(Word::Absent) => {
                    let program = words.first().map_or("", String::as_str);
                    Err(failed(on(), format!("there is no program {program:?}")))
                }
                None => Err(this.lost("it broke off".to_string())),
            }
        };
        child::follow(command, true, Some(mark), Box::new(meaning))
            .map_err(|error| failed(tried(argv), error))
    }

    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
        files::read(self, path).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        files::write(self, path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), HostError> {
        files::remove(self, path).await
    }

    async fn stat(&self, path: &Path) -> Result<Option<FileStat>, HostError> {
        files::stat(self, path).await
    }

    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError> {
        files::backup(self, path).await
    }

    async fn make_dir(&self, path: &Path) -> Result<(), HostError> {
        files::make_dir(self, path).await
    }

    async fn lock(&self, path: &Path, who: &str) -> Result<Locked, HostError> {
        // A connection that died without a word leaves its holder there for a while: it is ours to end.
        let old = self.locks().get(path).copied();
        if let Some(old) = old {
            let path = path.to_string_lossy();
            let argv = files::script(files::UNLOCK, &[&path, &old.to_string()]);
            self.run(&argv).await?;
        }
        match files::lock(self, path, who).await? {
            Err(holder) => Ok(Locked::Held(holder)),
            Ok(holding) => {
                self.locks().insert(path.to_path_buf(), holding.pid);
                Ok(Locked::Ours(Box::new(Held::new(holding.lines))))
            }
        }
    }

    async fn boot_id(&self) -> Result<String, HostError> {
        files::boot_id(self).await
    }
}

impl Ssh {
    fn locks(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, u32>> {
        self.inner
            .locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that a process on the other side holds for as long as it is followed.
#[derive(Debug)]
struct Held {
    held: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Held {
    fn new(mut lines: Lines) -> Held {
        let held = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&held);
        let task = tokio::spawn(async move {
            while let Some(Streamed::Line(_)) = lines.next().await {}
            flag.store(false, Ordering::Release);
        });
        Held { held, task }
    }
}

impl Unlock for Held {
    fn held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_taken_off_and_understood() {
        let taken = |text: &str| {
            let mut stderr = text.as_bytes().to_vec();
            let word = word("m", &mut stderr);
            (word, String::from_utf8(stderr).unwrap())
        };
        let exit = |code| Some(Word::Exit(code));
        assert_eq!(taken("\nm 0\n"), (exit(Some(0)), String::new()));
        assert_eq!(taken("oh\n\nm 3\n"), (exit(Some(3)), "oh\n".to_string()));
        assert_eq!(taken("\nm 255\n"), (exit(Some(255)), String::new()));
        assert_eq!(taken("\nm 137\n"), (exit(None), String::new()));
        assert_eq!(taken("\nm absent\n"), (Some(Word::Absent), String::new()));
        assert_eq!(
            taken("Connection closed"),
            (None, "Connection closed".to_string())
        );
    }
}
