//! The service manager of a host, by its commands: what it says of a unit, what it is told to do, and the files it reads.

use crate::host::{Host, HostError, Output};
use crate::service::ServiceError;
use crate::units;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long one command may take: the manager answers at once, unless the bus hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked of a unit.
const PROPERTIES: &str = "Id,LoadState,ActiveState,SubState,FragmentPath,DropInPaths,MainPID,ControlGroup,InvocationID,NRestarts,\
Result,ExecMainCode,ExecMainStatus,RequiredBy,BoundBy,ConsistsOf,TimeoutStopUSec,Job";

/// Writes a file whole as another user, with mode and owner of the one that is there. The number of bytes is checked before the rename: a
/// connection that is cut off ends the input early.
const PUT: &str = r#"set -e
p=$(readlink -f -- "$1")
t=$(mktemp -- "$p.XXXXXX")
trap 'rm -f -- "$t"' EXIT
cat >"$t"
[ "$(wc -c <"$t")" -eq "$2" ] || { echo "the text arrived cut off" >&2; exit 1; }
if [ -e "$p" ]; then chmod --reference="$p" -- "$t"; chown --reference="$p" -- "$t"; else chmod 644 -- "$t"; fi
sync -- "$t"
mv -fT -- "$t" "$p"
sync -- "$(dirname -- "$p")"
"#;

/// The manager that has a unit.
#[derive(Clone)]
pub struct Manager {
    pub host: Arc<dyn Host>,
    pub unit: String,
    pub user: bool,
    pub sudo: bool,
}

/// The folders in which units lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Gone with a reboot.
    pub runtime: PathBuf,
    /// The administrator's, or the user's own.
    pub lasting: PathBuf,
    /// Of those that the manager reads, the ones whose files may be edited in place.
    pub editable: Vec<PathBuf>,
}

/// What the manager says of one unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown(BTreeMap<String, String>);

impl Shown {
    pub fn parse(text: &str) -> Shown {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Shown(
            pairs
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name)
            .split_whitespace()
            .map(str::to_string)
            .collect()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// Its main process; `None` where there is none.
    pub fn main_pid(&self) -> Option<u32> {
        u32::try_from(self.number("MainPID"))
            .ok()
            .filter(|pid| *pid != 0)
    }

    /// Whether it neither runs nor is on its way.
    pub fn at_rest(&self) -> bool {
        matches!(self.get("ActiveState"), "inactive" | "failed")
    }

    /// The manager's word for the last end.
    pub fn result(&self) -> Option<String> {
        let word = self.get("Result");
        (!word.is_empty()).then(|| word.to_string())
    }

    /// How its main process ended: its exit code, negative for a signal.
    pub fn exit(&self) -> Option<i32> {
        let status = i32::try_from(self.number("ExecMainStatus")).ok()?;
        match self.number("ExecMainCode") {
            1 => Some(status),
            2 | 3 => Some(-status),
            _ => None,
        }
    }
}

impl Manager {
    /// A command line of `systemctl`.
    fn systemctl(&self, arguments: &[&str]) -> Vec<String> {
        let scope: &[&str] = if self.user { &["--user"] } else { &[] };
        ["systemctl", "--no-pager", "--no-ask-password"]
            .iter()
            .chain(scope)
            .chain(arguments)
            .map(|word| word.to_string())
            .collect()
    }

    /// The same with the right to change things.
    pub fn rights(&self, argv: Vec<String>) -> Vec<String> {
        let sudo: &[&str] = if self.sudo { &["sudo", "-n"] } else { &[] };
        sudo.iter()
            .map(|word| word.to_string())
            .chain(argv)
            .collect()
    }

    async fn carry_out(&self, argv: &[String], input: &[u8]) -> Result<Output, ServiceError> {
        match tokio::time::timeout(PATIENCE, self.host.run_with(argv, input)).await {
            Ok(output) => Ok(output?),
            Err(_) => Err(ServiceError::Host(HostError::Failed {
                tried: format!("run {}", argv.join(" ")),
                what: format!("it did not end within {} s", PATIENCE.as_secs()),
            })),
        }
    }

    /// Runs a command that must succeed, and gives what it printed.
    pub async fn run(&self, argv: Vec<String>, input: &[u8]) -> Result<Vec<u8>, ServiceError> {
        let output = self.carry_out(&argv, input).await?;
        if output.code == Some(0) {
            return Ok(output.stdout);
        }
        let what = units::clean(String::from_utf8_lossy(&output.stderr).trim());
        let shown: Vec<&str> = argv.iter().map(|word| first_line(word)).collect();
        Err(ServiceError::Failed {
            tried: shown.join(" "),
            advice: self.advice(&what).to_string(),
            what: if what.is_empty() {
                format!("it ended with exit code {:?}", output.code)
            } else {
                what
            },
        })
    }

    fn advice(&self, what: &str) -> &'static str {
        if what.contains("a password is required") || what.contains("is not in the sudoers") {
            "sudo must work without a password here (NOPASSWD), or run vramp as root"
        } else if what.contains("nteractive authentication") || what.contains("Access denied") {
            "Run vramp as root, or put sudo = true into the service of the profile"
        } else if what.contains("Failed to connect to bus") || what.contains("$XDG_RUNTIME_DIR") {
            "Is the manager running for this user? loginctl enable-linger keeps it"
        } else {
            "See: systemctl status"
        }
    }

    /// Asks the manager something.
    pub async fn ask(&self, arguments: &[&str]) -> Result<String, ServiceError> {
        let bytes = self.run(self.systemctl(arguments), b"").await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Tells the manager to do something.
    pub async fn order(&self, arguments: &[&str]) -> Result<(), ServiceError> {
        let argv = self.rights(self.systemctl(arguments));
        self.run(argv, b"").await.map(drop)
    }

    /// Files were written: the manager is to read them.
    pub async fn reload(&self) -> Result<(), ServiceError> {
        self.order(&["daemon-reload"]).await
    }

    /// What it says of the unit.
    ///
    /// # Errors
    /// There is no such unit, or it cannot be loaded.
    pub async fn show(&self) -> Result<Shown, ServiceError> {
        let shown = self.show_any(&self.unit).await?;
        let (what, advice) = match shown.get("LoadState") {
            "loaded" => return Ok(shown),
            "not-found" => (
                "there is no such unit".to_string(),
                if self.user {
                    "Correct unit in the profile; systemctl --user list-unit-files shows what there is"
                } else {
                    "Correct unit in the profile (user = true for a unit of the user's own manager); systemctl list-unit-files shows what there is"
                },
            ),
            "masked" => ("the unit is masked".to_string(), "Unmask it first"),
            state => (
                format!("the manager could not load it ({state})"),
                "See: systemctl status",
            ),
        };
        Err(ServiceError::Failed {
            tried: format!("look at {}", self.unit),
            what,
            advice: advice.to_string(),
        })
    }

    /// What it says of any unit, loaded or not.
    pub async fn show_any(&self, unit: &str) -> Result<Shown, ServiceError> {
        let properties = format!("--property={PROPERTIES}");
        let text = self.ask(&["show", &properties, "--", unit]).await?;
        Ok(Shown::parse(&text))
    }

    /// Where its units lie.
    pub async fn folders(&self) -> Result<Folders, ServiceError> {
        let text = self.ask(&["show", "--property=UnitPath"]).await?;
        let path = Shown::parse(&text).list("UnitPath");
        Folders::of(&path, self.user).ok_or_else(|| ServiceError::Failed {
            tried: "find the folders of the manager's units".to_string(),
            what: format!("it names {}", path.join(", ")),
            advice: "Is this a systemd of version 240 or later?".to_string(),
        })
    }

    /// Reads a file, with the rights to do so where that is needed.
    pub async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ServiceError> {
        match self.host.read(path).await {
            Err(HostError::Failed { .. }) if self.sudo => {
                let argv = words(&["cat", "--", &path.to_string_lossy()]);
                self.run(self.rights(argv), b"").await.map(Some)
            }
            read => Ok(read?),
        }
    }

    /// Writes a file whole, and the folder that it is in.
    pub async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), ServiceError> {
        if let Some(folder) = path.parent() {
            let argv = words(&[
                "mkdir",
                "-p",
                "--mode=0755",
                "--",
                &folder.to_string_lossy(),
            ]);
            self.run(self.rights(argv), b"").await?;
        }
        if !self.sudo {
            return Ok(self.host.write(path, bytes).await?);
        }
        let length = bytes.len().to_string();
        let argv = words(&["sh", "-c", PUT, "sh", &path.to_string_lossy(), &length]);
        self.run(self.rights(argv), bytes).await.map(drop)
    }

    /// Copies a file beside itself and gives the name of the copy.
    pub async fn backup(&self, path: &Path) -> Result<PathBuf, ServiceError> {
        if !self.sudo {
            return Ok(self.host.backup(path).await?);
        }
        let to = PathBuf::from(format!(
            "{}.vramp-{}",
            path.display(),
            crate::clock::unix_ms()
        ));
        let argv = words(&[
            "cp",
            "--preserve=all",
            "--no-clobber",
            "--",
            &path.to_string_lossy(),
            &to.to_string_lossy(),
        ]);
        self.run(self.rights(argv), b"").await?;
        Ok(to)
    }

    /// Removes a file; one that is not there is no error.
    pub async fn remove(&self, path: &Path) -> Result<(), ServiceError> {
        if !self.sudo {
            return Ok(self.host.remove(path).await?);
        }
        let argv = words(&["rm", "-f", "--", &path.to_string_lossy()]);
        self.run(self.rights(argv), b"").await.map(drop)
    }

    /// Checks that a file could be written there, without writing it.
    pub async fn may_write(&self, path: &Path) -> Result<(), ServiceError> {
        if self.sudo {
            // That sudo works is seen by the reload.
            return Ok(());
        }
        for folder in path.ancestors() {
            let name = folder.to_string_lossy();
            if self
                .carry_out(&words(&["test", "-e", &name]), b"")
                .await?
                .code
                != Some(0)
            {
                continue;
            }
            if self
                .carry_out(&words(&["test", "-w", &name]), b"")
                .await?
                .code
                == Some(0)
            {
                return Ok(());
            }
            return Err(ServiceError::Failed {
                tried: format!("see whether {} can be written", path.display()),
                what: format!("{name} is not writable for this user"),
                advice: "Run vramp as root, or put sudo = true into the service of the profile"
                    .to_string(),
            });
        }
        Ok(())
    }

    /// Starts a timer that outlives everything of this program: `argv` is run after so many seconds.
    pub async fn arm(&self, name: &str, seconds: u64, argv: &[&str]) -> Result<(), ServiceError> {
        // A service of this name that failed before is kept by the manager, and stands in the way of another.
        let failed = format!("{name}.service");
        let _ = self.order(&["reset-failed", "--", &failed]).await;
        let scope: &[&str] = if self.user { &["--user"] } else { &[] };
        let unit = format!("--unit={name}");
        let after = format!("--on-active={seconds}s");
        let line = ["systemd-run", "--quiet", "--no-ask-password"]
            .iter()
            .chain(scope)
            .chain(&[
                unit.as_str(),
                after.as_str(),
                "--timer-property=AccuracySec=1s",
                "--property=Type=exec",
                "--",
            ])
            .chain(argv)
            .map(|word| word.to_string())
            .collect();
        self.run(self.rights(line), b"").await.map(drop)
    }
}

impl Folders {
    fn of(path: &[String], user: bool) -> Option<Folders> {
        let end = if user {
            "/systemd/user"
        } else {
            "/systemd/system"
        };
        let own: Vec<&String> = path
            .iter()
            .filter(|folder| folder.ends_with(end) && !folder.starts_with("/usr/"))
            .collect();
        // The manager's order is that of precedence: what is lasting comes first, and of a user what is the user's own.
        let share = |folder: &&&String| folder.contains("/share/") || folder.starts_with("/lib/");
        let own: Vec<&String> = own.iter().filter(|f| !share(f)).copied().collect();
        let transient = path.iter().find_map(|f| f.strip_suffix("/transient"))?;
        let runtime = format!("{transient}{}", if user { "/user" } else { "/system" });
        let lasting = own
            .iter()
            .find(|folder| **folder != &runtime && !folder.starts_with("/run/"))?;
        Some(Folders {
            lasting: PathBuf::from(lasting),
            editable: own
                .iter()
                .filter(|f| !f.starts_with("/run/") || **f == &runtime)
                .map(PathBuf::from)
                .collect(),
            runtime: PathBuf::from(runtime),
        })
    }
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn first_line(word: &str) -> &str {
    word.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(path: &str, user: bool) -> Option<(String, String, usize)> {
        let path: Vec<String> = path.split(' ').map(str::to_string).collect();
        Folders::of(&path, user).map(|f| {
            (
                f.runtime.display().to_string(),
                f.lasting.display().to_string(),
                f.editable.len(),
            )
        })
    }

    #[test]
    fn the_folders_are_those_of_the_managers_path() {
        let system = "/etc/systemd/system.control /run/systemd/system.control /run/systemd/transient \
/run/systemd/generator.early /etc/systemd/system /etc/systemd/system.attached /run/systemd/system /run/systemd/system.attached \
/run/systemd/generator /usr/local/lib/systemd/system /lib/systemd/system /usr/lib/systemd/system /run/systemd/generator.late";
        let system_folders = (
            "/run/systemd/system".into(),
            "/etc/systemd/system".into(),
            2,
        );
        assert_eq!(folders(system, false), Some(system_folders));
        let user = "/home/a/.config/systemd/user.control /run/user/7/systemd/user.control /run/user/7/systemd/transient \
/run/user/7/systemd/generator.early /home/a/.config/systemd/user /etc/xdg/systemd/user /etc/systemd/user /run/user/7/systemd/user \
/run/systemd/user /run/user/7/systemd/generator /home/a/.local/share/systemd/user /usr/share/systemd/user /usr/lib/systemd/user";
        let user_folders = (
            "/run/user/7/systemd/user".into(),
            "/home/a/.config/systemd/user".into(),
            4,
        );
        assert_eq!(folders(user, true), Some(user_folders));
        assert_eq!(folders("/usr/lib/systemd/system", false), None);
    }

    #[test]
    fn what_the_manager_says_is_read_by_name() {
        let shown = Shown::parse(
            "MainPID=0\nActiveState=failed\nExecMainCode=2\nExecMainStatus=9\nDropInPaths=/a.conf /b.conf\nUnitPath=a=b\n",
        );
        assert_eq!((shown.main_pid(), shown.exit()), (None, Some(-9)));
        assert!(shown.at_rest());
        assert_eq!(shown.list("DropInPaths"), ["/a.conf", "/b.conf"]);
        assert_eq!(shown.get("UnitPath"), "a=b");
        assert_eq!(shown.get("Nothing"), "");
    }
}
