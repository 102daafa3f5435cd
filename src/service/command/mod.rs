//! The service `command`: the operator's own commands, for everything else that runs servers (`pct exec`, kubectl, slurm, a script).
//!
//! Commands are argument vectors, run on the service's host; `{context}` becomes the context length per request and `{context_total}` that
//! times the slots. An exit code other than 0 is a failure, whose last line is shown.
//!
//! | command | what it does and prints |
//! |---|---|
//! | `show` | prints what a reboot brings: `production 32768` (or the number alone) |
//! | `status` | exit code 0: it runs, 3 (or 1, 2): it does not; else it cannot be told. May print `context N` (what it was started with), `pid N` (its processes on the host), `id TEXT` (another one at each start), and of a server that does not run `exit N` (0 or -15: it was asked to end; without it, an end in the first minute of a trial counts as a crash) |
//! | `trial` | the next start brings `{context}`, a reboot does not, if that can be done |
//! | `restart` | starts it, stopped or not, and ends once it is on its way |
//! | `stop` | ends once it has stopped |
//! | `confirm` | `{context}` is what a reboot brings, without another restart |
//! | `discard` | takes the trial back, without a restart; without it, `trial` with the production value |
//! | `logs` | goes on printing the log, from a little back |

mod answer;
mod logs;

use self::answer::Answer;
use self::logs::Logs;
use super::{Config, ProcessId, Service, ServiceError, Standing, Status, template};
use crate::host::{Host, Output};
use crate::profile::Launch;
use crate::units::{clean, thousands};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// How long a question (`show`, `status`) may take.
const ASKS: Duration = Duration::from_secs(30);
/// How long a server that was just started may take to be seen to run.
const APPEARS: Duration = Duration::from_secs(30);
/// How long one that was stopped may still be seen to run.
const GOES: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
const ADVICE: &str = "Run it by hand on its host and see, or correct the command in the profile";

/// The operator's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    pub show: Vec<String>,
    pub status: Vec<String>,
    pub trial: Vec<String>,
    pub restart: Vec<String>,
    pub stop: Vec<String>,
    pub confirm: Vec<String>,
    pub discard: Option<Vec<String>>,
    pub logs: Option<Vec<String>>,
    /// Request slots over which the engine divides its total; 1 where it does not.
    pub slots: u64,
    /// How long `trial`, `restart`, `stop`, `confirm` and `discard` may take.
    pub limit: Duration,
}

/// A server that the operator's own commands run.
#[derive(Clone)]
pub struct Command {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    host: Arc<dyn Host>,
    commands: Commands,
    logs: Mutex<Logs>,
    /// An action goes on when nobody waits for it any more: the next one waits for its end.
    acting: Mutex<()>,
}

impl Command {
    /// A service on `host`. Runs nothing.
    pub fn new(host: Arc<dyn Host>, commands: Commands) -> Command {
        let program = commands.restart.first().map(|program| {
            let last = program.rsplit('/').next();
            clean(last.unwrap_or(program))
        });
        Command {
            inner: Arc::new(Inner {
                name: format!("command {}", program.unwrap_or_default()),
                host,
                commands,
                logs: Mutex::default(),
                acting: Mutex::new(()),
            }),
        }
    }

    async fn to_its_end<T: Send + 'static, F>(
        &self,
        action: impl FnOnce(Arc<Inner>) -> F + Send + 'static,
    ) -> Result<T, ServiceError>
    where
        F: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let task = tokio::spawn(async move {
            let held = Arc::clone(&inner);
            let _alone = held.acting.lock().await;
            action(inner).await
        });
        let name = &self.inner.name;
        task.await
            .unwrap_or_else(|error| Err(failed(&format!("look after {name}"), error.to_string())))
    }
}

impl Inner {
    /// Runs a command that must end well.
    async fn act(&self, what: &str, argv: &[String]) -> Result<(), ServiceError> {
        let output = self.run(what, argv, self.commands.limit).await?;
        match output.code {
            Some(0) => Ok(()),
            _ => Err(failed(&self.tried(what, argv), ended(&output))),
        }
    }

    async fn run(
        &self,
        what: &str,
        argv: &[String],
        limit: Duration,
    ) -> Result<Output, ServiceError> {
        match timeout(limit, self.host.run(argv)).await {
            Ok(output) => Ok(output?),
            Err(_) => Err(failed(
                &self.tried(what, argv),
                format!(
                    "it did not end within {} s, and may still be at work",
                    limit.as_secs()
                ),
            )),
        }
    }

    fn tried(&self, what: &str, argv: &[String]) -> String {
        let line = clean(&argv.join(" "));
        let short: String = line.chars().take(120).collect();
        format!("run the {what} command ({short}) on {}", self.host.name())
    }

    fn launch(&self) -> Launch {
        Launch {
            argv: self.commands.trial.clone(),
            env: Vec::new(),
            cwd: None,
            slots: self.commands.slots,
        }
    }

    /// A command with its numbers filled in.
    fn fill(&self, what: &str, argv: &[String], context: u64) -> Result<Vec<String>, ServiceError> {
        let launch = Launch {
            argv: argv.to_vec(),
            ..self.launch()
        };
        template::render(&Config { context, launch })
            .map(|rendered| rendered.argv)
            .map_err(|why| failed(&format!("fill in the {what} command"), why))
    }

    async fn production(&self) -> Result<u64, ServiceError> {
        let argv = &self.commands.show;
        let output = self.run("show", argv, ASKS).await?;
        let fail = |why: String| failed(&self.tried("show", argv), why);
        if output.code != Some(0) {
            return Err(fail(ended(&output)));
        }
        let answer = Answer::parse(&String::from_utf8_lossy(&output.stdout), "production");
        match answer.number("production").map_err(fail)? {
            Some(0) => Err(fail("it prints the production value 0".to_string())),
            Some(production) => Ok(production),
            None => Err(fail(
                "it prints no production value; it must print the context length that a reboot brings, as a line: production 32768"
                    .to_string(),
            )),
        }
    }

    async fn ask(&self) -> Result<(bool, Answer), ServiceError> {
        let argv = &self.commands.status;
        let output = self.run("status", argv, ASKS).await?;
        let runs = match output.code {
            Some(0) => true,
            Some(1..=3) => false,
            _ => {
                let why = format!(
                    "{}; 0 means that the server runs, 3 that it does not, and this cannot be told apart",
                    ended(&output)
                );
                return Err(failed(&self.tried("status", argv), why));
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        Ok((runs, Answer::parse(&text, "context")))
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        let (runs, answer) = self.ask().await?;
        if !runs {
            let exit = answer.get("exit").and_then(|code| code.parse().ok());
            return Ok(Status::Stopped { exit });
        }
        let tried = || self.tried("status", &self.commands.status);
        let context = answer
            .number("context")
            .map_err(|why| failed(&tried(), why))?;
        Ok(Status::Running {
            id: self.identify(&answer).await?,
            config: context.map(|context| Config {
                context,
                launch: self.launch(),
            }),
            started_unix_ms: 0,
        })
    }

    /// As far as the answer tells one start from another.
    async fn identify(&self, answer: &Answer) -> Result<ProcessId, ServiceError> {
        let words = [answer.get("id"), answer.get("started")];
        let text: Vec<&str> = words.into_iter().flatten().collect();
        // FNV-1a: stable over versions.
        let start_ticks = text
            .join(" ")
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        Ok(ProcessId {
            pid: answer.numbers("pid").first().copied().unwrap_or(0),
            start_ticks,
            boot_id: self.host.boot_id().await?,
        })
    }

    /// Everything that could be found wrong only after the stop.
    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        if config.launch != self.launch() {
            return Err(ServiceError::Failed {
                tried: format!("check the launch of {}", self.name),
                what: "the commands are those of the profile, and this one is another".to_string(),
                advice: "Edit the commands in the profile; here only the context can change"
                    .to_string(),
            });
        }
        let commands = &self.commands;
        self.fill("trial", &commands.trial, config.context)?;
        self.fill("confirm", &commands.confirm, config.context)?;
        let all = [
            &commands.trial,
            &commands.restart,
            &commands.stop,
            &commands.confirm,
        ];
        for argv in all
            .into_iter()
            .chain(&commands.discard)
            .chain(&commands.logs)
        {
            let program = argv.first().map(String::as_str).unwrap_or_default();
            let look = [
                "sh",
                "-c",
                "command -v -- \"$1\" >/dev/null",
                "vramp",
                program,
            ];
            let look: Vec<String> = look.iter().map(|word| word.to_string()).collect();
            let found = self.run("look-up", &look, ASKS).await?;
            if found.code != Some(0) {
                let tried = format!("check the commands of {}", self.name);
                let what = format!("there is no program {program:?} on {}", self.host.name());
                return Err(failed(&tried, what));
            }
        }
        self.ask().await?;
        self.production().await.map(drop)
    }

    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let production = self.production().await?;
        match &self.commands.discard {
            Some(discard) if config.context == production => self.act("discard", discard).await?,
            _ => {
                let trial = self.fill("trial", &self.commands.trial, config.context)?;
                self.act("trial", &trial).await?;
            }
        }
        self.act("restart", &self.commands.restart).await?;
        let mut waited = Duration::ZERO;
        loop {
            if let (true, answer) = self.ask().await? {
                return self.identify(&answer).await;
            }
            if waited >= APPEARS {
                return Err(failed(
                    &self.tried("restart", &self.commands.restart),
                    format!(
                        "it ended well, and {} s later the status command says that nothing runs",
                        APPEARS.as_secs()
                    ),
                ));
            }
            sleep(LOOK).await;
            waited += LOOK;
        }
    }

    async fn stop(&self) -> Result<(), ServiceError> {
        if !self.ask().await?.0 {
            return Ok(());
        }
        self.act("stop", &self.commands.stop).await?;
        let mut waited = Duration::ZERO;
        while self.ask().await?.0 {
            if waited >= GOES {
                return Err(failed(
                    &self.tried("stop", &self.commands.stop),
                    format!(
                        "it ended well, and {} s later the status command says that the server runs",
                        GOES.as_secs()
                    ),
                ));
            }
            sleep(LOOK).await;
            waited += LOOK;
        }
        Ok(())
    }

    async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let argv = self.fill("confirm", &self.commands.confirm, config.context)?;
        self.act("confirm", &argv).await?;
        let production = self.production().await?;
        if production != config.context {
            return Err(failed(
                &self.tried("confirm", &argv),
                format!(
                    "it ended well, and the show command still prints {} instead of {}",
                    thousands(production),
                    thousands(config.context)
                ),
            ));
        }
        Ok(format!(
            "the confirm command has run; the show command prints {}",
            thousands(production)
        ))
    }

    async fn discard(&self) -> Result<(), ServiceError> {
        if let Some(discard) = &self.commands.discard {
            return self.act("discard", discard).await;
        }
        let production = self.production().await?;
        let trial = self.fill("trial", &self.commands.trial, production)?;
        self.act("trial", &trial).await
    }
}

#[async_trait]
impl Service for Command {
    fn name(&self) -> String {
        self.inner.name.clone()
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        self.inner.status().await
    }

    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        self.inner.validate(config).await
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        let production = self.inner.production().await?;
        let mut notes = Vec::new();
        if let (true, answer) = self.inner.ask().await?
            && answer.get("id").is_none()
            && answer.get("pid").is_none()
        {
            notes.push("its status command names no process (pid) and no start (id): a server that crashes and is started again by somebody else is not noticed".to_string());
        }
        Ok(Standing {
            launch: self.inner.launch(),
            production: Some(production),
            trial_note: format!(
                "whether a trial ends with a reboot is up to the trial command; the show command prints the production value {}",
                thousands(production)
            ),
            deadline_unix_ms: None,
            launch_fixed: Some(
                "the commands that run this server are in the profile; change them there"
                    .to_string(),
            ),
            notes,
        })
    }

    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let config = config.clone();
        self.to_its_end(|inner| async move { inner.start(&config).await })
            .await
    }

    async fn stop(&self) -> Result<(), ServiceError> {
        self.to_its_end(|inner| async move { inner.stop().await })
            .await
    }

    async fn discard_trial(&self) -> Result<(), ServiceError> {
        self.to_its_end(|inner| async move { inner.discard().await })
            .await
    }

    async fn confirm(&self, config: &Config) -> Result<String, ServiceError> {
        let config = config.clone();
        self.to_its_end(|inner| async move { inner.confirm(&config).await })
            .await
    }

    fn log_name(&self) -> Option<String> {
        let logs = self.inner.commands.logs.as_ref()?;
        Some(clean(&logs.join(" ")))
    }

    async fn log_end(&self) -> Result<u64, ServiceError> {
        let Some(argv) = &self.inner.commands.logs else {
            return Ok(0);
        };
        let mut logs = self.inner.logs.lock().await;
        logs.look(self.inner.host.as_ref(), argv).await?;
        Ok(logs.end())
    }

    async fn log_past(&self) -> Result<u64, ServiceError> {
        self.log_end().await.map(|_| 0)
    }

    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        let Some(argv) = &self.inner.commands.logs else {
            return Ok((Vec::new(), from));
        };
        let mut logs = self.inner.logs.lock().await;
        logs.look(self.inner.host.as_ref(), argv).await?;
        Ok(logs.since(from))
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        let (runs, answer) = self.inner.ask().await?;
        Ok(if runs {
            answer.numbers("pid")
        } else {
            Vec::new()
        })
    }
}

/// How a command ended, with its last words.
fn ended(output: &Output) -> String {
    let text = [output.stdout.as_slice(), b"\n", output.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    let last = text
        .lines()
        .rev()
        .map(clean)
        .find(|line| !line.trim().is_empty());
    let how = match output.code {
        Some(code) => format!("it ended with exit code {code}"),
        None => "a signal ended it".to_string(),
    };
    match last {
        Some(last) => format!("{how}: {}", last.trim()),
        None => how,
    }
}

fn failed(tried: &str, what: String) -> ServiceError {
    ServiceError::Failed {
        tried: tried.to_string(),
        what,
        advice: ADVICE.to_string(),
    }
}

#[cfg(test)]
mod tests;
