//! One connection: an `ssh` of the system that all commands share (its control master).
//!
//! It runs `cat` on the other side, reading from us. When this program ends, however that happens, `cat` has nothing more to read,
//! and the connection ends by itself; nothing is left behind on either side.

use super::{Address, words};
use crate::host::quote::quote;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a connection may take, with jump hosts and slow name servers.
const CONNECTS_IN: Duration = Duration::from_secs(30);
/// A connection without a sign of life for this many times this many seconds is lost.
const ALIVE: (u32, u32) = (3, 5);
/// Bytes of what ssh complains of that are kept.
const COMPLAINTS: usize = 8 << 10;
/// How long the last words of an ssh that has ended may take.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The path of a unix socket ends at 107 bytes, and ssh puts 17 more behind the name while it makes one.
const LONGEST: usize = 90;

/// An open connection. Dropping it ends it.
#[derive(Debug)]
pub struct Master {
    pub socket: PathBuf,
    shared: Arc<Shared>,
    /// What keeps `cat` reading.
    stdin: Option<ChildStdin>,
}

#[derive(Debug)]
struct Shared {
    child: Mutex<Child>,
    alive: AtomicBool,
    complaints: Mutex<String>,
    /// Nothing more is complained of.
    silent: AtomicBool,
}

impl Master {
    /// Connects and waits until the other side has answered. Blocks.
    ///
    /// # Errors
    /// Why not, and what to do, in words.
    pub fn connect(address: &Address, config: Option<&Path>) -> Result<Master, String> {
        let socket = socket()?;
        let hello = format!("vramp-{:016x}", fastrand::u64(..));
        let script = "printf '%s\\n' \"$0\"; exec cat >/dev/null";
        let remote = ["exec", "sh", "-c", script, &hello].map(str::to_string);
        let mut command = Command::new("ssh");
        if let Some(config) = config {
            command.arg("-F").arg(config);
        }
        command.arg("-M").arg("-S").arg(&socket).arg("-T");
        for option in [
            // Nobody is there to be asked.
            "BatchMode=yes".to_string(),
            "ControlPersist=no".to_string(),
            format!("ServerAliveCountMax={}", ALIVE.0),
            format!("ServerAliveInterval={}", ALIVE.1),
            "ConnectTimeout=15".to_string(),
            // What a person's session of that name may have, and this one must not.
            "ClearAllForwardings=yes".to_string(),
            "RemoteCommand=none".to_string(),
            "PermitLocalCommand=no".to_string(),
            "ForkAfterAuthentication=no".to_string(),
            "StdinNull=no".to_string(),
            "LogLevel=ERROR".to_string(),
        ] {
            command.arg("-o").arg(option);
        }
        if let Some(port) = address.port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = &address.user {
            command.arg("-l").arg(user);
        }
        command
            .arg("--")
            .arg(&address.host)
            .arg(quote(&remote)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the terminal is not for the connection.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                "ssh is not installed here. Install it (openssh-client)".to_string()
            }
            _ => format!("ssh cannot be started here: {error}"),
        })?;
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let shared = Arc::new(Shared {
            child: Mutex::new(child),
            alive: AtomicBool::new(true),
            complaints: Mutex::new(String::new()),
            silent: AtomicBool::new(false),
        });
        let master = Master {
            socket,
            shared: Arc::clone(&shared),
            stdin,
        };
        let (said, heard) = sync_channel(1);
        let complaints = Arc::clone(&shared);
        thread("ssh-errors", move || complaints.listen(stderr))?;
        thread("ssh", move || shared.watch(stdout, &hello, &said))?;
        match heard.recv_timeout(CONNECTS_IN) {
            Ok(()) => Ok(master),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "it did not answer within {} s",
                CONNECTS_IN.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => Err(master.why(address)),
        }
    }

    /// Whether the connection stands, as far as is known.
    pub fn alive(&self) -> bool {
        self.shared.alive.load(Ordering::Acquire)
    }

    /// Why it stands no more, in words.
    pub fn why(&self, address: &Address) -> String {
        words::explain(&lock(&self.shared.complaints), address)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // One that has ended already cannot be killed, and need not be.
        let _ = lock(&self.shared.child).kill();
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Shared {
    /// Until the connection ends: says once that the other side has answered.
    fn watch(&self, stdout: Option<impl Read>, hello: &str, said: &SyncSender<()>) {
        let mut lines = stdout.map(BufReader::new);
        let mut line = Vec::new();
        while let Some(lines) = &mut lines
            && lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0)
        {
            if line.trim_ascii_end() == hello.as_bytes() {
                let _ = said.try_send(());
            }
            line.clear();
        }
        // Its last words may come a moment later on the other stream.
        let ended = Instant::now();
        while !self.silent.load(Ordering::Acquire) && ended.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.alive.store(false, Ordering::Release);
        // It must be waited for, and never while the lock is held: who drops the connection wants to kill it.
        while lock(&self.child)
            .try_wait()
            .is_ok_and(|ended| ended.is_none())
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn listen(&self, stderr: Option<impl Read>) {
        let mut buffer = [0; 1024];
        let mut stderr = stderr;
        while let Some(stderr) = &mut stderr
            && let Ok(n @ 1..) = stderr.read(&mut buffer)
        {
            let mut kept = lock(&self.complaints);
            if kept.len() < COMPLAINTS {
                kept.push_str(&String::from_utf8_lossy(
                    buffer.get(..n).unwrap_or_default(),
                ));
            }
        }
        self.silent.store(true, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    std::thread::Builder::new()
        .name(name.to_string())
        .spawn(work)
        .map(drop)
        .map_err(|error| format!("a thread cannot be started here: {error}"))
}

/// A name for a control socket that no other connection has, in a folder that is ours alone: who can reach the socket can act as us.
fn socket() -> Result<PathBuf, String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|dir| dir.is_absolute() && dir.is_dir());
    let name = format!(
        "ssh-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let folders = [
        runtime.map(|dir| dir.join("vramp")),
        Some(std::env::temp_dir().join(format!("vramp-{uid}"))),
        Some(PathBuf::from(format!("/tmp/vramp-{uid}"))),
    ];
    let mut why = "no folder for the control socket of ssh".to_string();
    for folder in folders.into_iter().flatten() {
        let path = folder.join(&name);
        if path.as_os_str().len() > LONGEST {
            continue;
        }
        match private(&folder, uid) {
            Ok(()) => return Ok(path),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn private(folder: &Path, uid: u32) -> Result<(), String> {
    let refuse = |what: String| Err(format!("the folder {} {what}", folder.display()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(folder);
    if let Err(error) = made
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return refuse(format!("cannot be made: {error}"));
    }
    match std::fs::symlink_metadata(folder) {
        Ok(meta) if !meta.is_dir() => refuse("is no folder".to_string()),
        Ok(meta) if meta.uid() != uid || meta.mode() & 0o077 != 0 => {
            refuse("is not yours alone; remove it".to_string())
        }
        Ok(_) => Ok(()),
        Err(error) => refuse(format!("cannot be looked at: {error}")),
    }
}
