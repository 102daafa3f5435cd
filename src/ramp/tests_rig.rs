//! A rig in memory: a service, a server and a card that do what a test tells them.

use super::*;
use crate::clock::{Clock, Now};
use crate::confirm::{Confirmed, Pending};
use crate::engine::{Context, Engine, Health, Kind, Load, Probe};
use crate::gpu::{Card, CardState, GpuProcess, Memory, Snapshot};
use crate::host::Local;
use crate::profile::Launch;
use crate::reading::Reading;
use crate::service::{Deadline, Port, ProcessId, Service, ServiceError, Standing, Status};
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

const GIB: u64 = 1 << 30;

/// What a start comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// It serves this many tokens.
    Serves(u64),
    /// It says these lines and ends.
    Ends(i32, &'static str),
    /// It says these lines and never answers.
    Hangs(&'static str),
    /// It answers with a loop.
    Loops,
}

#[derive(Debug)]
pub struct World {
    pub running: Option<(ProcessId, Config)>,
    exit: Option<i32>,
    pids: u32,
    pub log: String,
    /// Every start and stop, with the step that stood on disk.
    pub calls: Vec<String>,
    /// What was asked of the trial and its deadline.
    pub trials: Vec<String>,
    pub production: Option<u64>,
    pub no_deadline: Option<String>,
    /// The deadline that stands, Unix milliseconds.
    pub stands: Option<i64>,
    /// Once a deadline is armed, nothing can be written beside the service any more.
    pub breaks_disk: bool,
    /// By context; others serve what is asked.
    pub starts: Vec<(u64, Start)>,
    /// The card holds on after a stop for so long.
    pub holds: Duration,
    pub freed_after: Option<std::time::Instant>,
    /// Processes that hold the card after a stop for as long as they live, and whether the driver lists them.
    pub holders: Vec<u32>,
    pub lists: bool,
    /// Processes of the service besides the server.
    pub workers: Vec<u32>,
    pub port: Port,
    pub refuses: Option<u64>,
    pub deaf: bool,
    /// What the service's manager says of the last end.
    pub result: Option<String>,
}

impl World {
    fn start_of(&self, context: u64) -> Start {
        let told = self.starts.iter().find(|(of, _)| *of == context);
        told.map_or(Start::Serves(context), |(_, start)| start.clone())
    }

    pub fn card_holds(&self) -> bool {
        self.server_holds() || self.living_holders().next().is_some()
    }

    fn living_holders(&self) -> impl Iterator<Item = &u32> {
        let stopped = self.running.is_none();
        self.holders
            .iter()
            .filter(move |pid| stopped && lives(**pid))
    }

    fn server_holds(&self) -> bool {
        self.running.is_some()
            || self
                .freed_after
                .is_some_and(|at| std::time::Instant::now() < at)
    }

    pub fn end(&mut self, exit: Option<i32>) {
        if self.running.take().is_some() {
            self.exit = exit;
            self.freed_after = std::time::Instant::now().checked_add(self.holds);
        }
    }

    pub fn served(&self) -> Option<u64> {
        let (_, config) = self.running.as_ref()?;
        match self.start_of(config.context) {
            _ if self.deaf => None,
            Start::Serves(tokens) => Some(tokens),
            Start::Loops => Some(config.context),
            Start::Ends(..) | Start::Hangs(_) => None,
        }
    }
}

/// Whether a process runs; one that has ended and waits to be noticed holds nothing.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    crate::service::stats(&stat).iter().any(|stat| stat.alive())
}

#[derive(Clone)]
pub struct Rig {
    pub world: Arc<Mutex<World>>,
    dir: Arc<TempDir>,
}

pub fn config(context: u64) -> Config {
    Config {
        context,
        launch: Launch {
            argv: vec!["serve".to_string()],
            env: vec![],
            cwd: None,
            slots: 1,
        },
    }
}

pub fn change(from: u64, to: u64) -> RestartPlan {
    RestartPlan {
        purpose: Purpose::Change,
        from: Some(config(from)),
        to: config(to),
        on_failure: Some(Target {
            kind: TargetKind::LastGood,
            config: config(from),
        }),
        production: Some(from),
        deadline_s: None,
    }
}

pub fn confirmed<T: std::fmt::Debug>(action: T) -> Confirmed<T> {
    Pending::new(action).by_number(1, 1).unwrap()
}

impl Rig {
    /// A rig on which `context` is served.
    pub fn serving(context: u64) -> Rig {
        let rig = Rig::idle();
        let id = rig.new_id();
        rig.world.lock().unwrap().running = Some((id, config(context)));
        rig
    }

    pub fn idle() -> Rig {
        let world = World {
            running: None,
            exit: None,
            // No process of this machine can have these numbers.
            pids: 5_000_000,
            log: String::new(),
            calls: vec![],
            trials: vec![],
            production: None,
            no_deadline: None,
            stands: None,
            breaks_disk: false,
            starts: vec![],
            holds: Duration::from_millis(20),
            freed_after: None,
            holders: vec![],
            lists: true,
            workers: vec![],
            port: Port::Ours,
            refuses: None,
            deaf: false,
            result: None,
        };
        Rig {
            world: Arc::new(Mutex::new(world)),
            dir: Arc::new(tempfile::tempdir().unwrap()),
        }
    }

    fn new_id(&self) -> ProcessId {
        let mut world = self.world.lock().unwrap();
        world.pids += 1;
        ProcessId {
            pid: world.pids,
            start_ticks: 1,
            boot_id: "boot".to_string(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_path_buf()
    }

    pub async fn deps(&self) -> Deps {
        let clock = Clock::default();
        Deps {
            host: Arc::new(Local),
            service: Arc::new(self.clone()),
            detect: Arc::new(self.clone()),
            reader: None,
            gpus: self.gpus(clock),
            cards: vec![],
            limits: Limits {
                stuck_after: Duration::from_secs(3),
                release_after: Duration::from_secs(2),
                stop_grace: Duration::from_millis(500),
            },
            answers: None,
            smoke: Some(Smoke {
                question: "What is 2 + 2?".to_string(),
                max_tokens: 16,
                judge: |text, _| match text {
                    "lambda lambda" => Err("it repeats itself".to_string()),
                    _ => Ok(()),
                },
            }),
            lock: Arc::new(
                Lock::take(
                    &(Arc::new(Local) as Arc<dyn crate::host::Host>),
                    &self.dir(),
                    "test@rig",
                )
                .await
                .unwrap(),
            ),
            dir: self.dir(),
            by: "test@rig".to_string(),
            simulated: false,
            clock,
        }
    }

    /// A card that is read often.
    fn gpus(&self, clock: Clock) -> watch::Receiver<Snapshot> {
        let (sender, receiver) = watch::channel(self.snapshot(clock.now()));
        let rig = self.clone();
        tokio::spawn(async move {
            while sender.send(rig.snapshot(clock.now())).is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        receiver
    }

    fn snapshot(&self, at: Now) -> Snapshot {
        let world = self.world.lock().unwrap();
        let own = if world.server_holds() { 40 * GIB } else { 0 };
        let held = own + 2 * GIB * world.living_holders().count() as u64;
        let process = |(id, _): &(ProcessId, Config)| GpuProcess {
            pid: id.pid,
            name: Some("serve".to_string()),
            used: Reading::Value(40 * GIB),
        };
        let holder = |pid: &u32| GpuProcess {
            pid: *pid,
            name: Some("worker".to_string()),
            used: Reading::Value(2 * GIB),
        };
        let mut listed: Vec<GpuProcess> = world.running.iter().map(process).collect();
        if world.lists {
            listed.extend(world.living_holders().map(holder));
        }
        Snapshot {
            at,
            cards: vec![Card {
                index: 0,
                uuid: String::new(),
                name: "RTX A6000".to_string(),
                state: CardState::Ok,
                memory: Reading::Value(Memory {
                    total: 48 * GIB,
                    used: GIB + held,
                    free: 47 * GIB - held,
                    reserved: 0,
                }),
                busy_pct: Reading::default(),
                temp_c: Reading::default(),
                power_mw: Reading::default(),
                power_limit_mw: Reading::default(),
                processes: Reading::Value(listed),
                detail: crate::gpu::Detail::default(),
            }],
            source: "test".to_string(),
            fault: None,
            simulated: true,
        }
    }

    fn step_on_disk(&self) -> String {
        let text = std::fs::read_to_string(self.dir().join("intent.json")).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        json["step"].as_str().unwrap_or("none").to_string()
    }
}

#[async_trait]
impl Service for Rig {
    fn name(&self) -> String {
        "process serve".to_string()
    }

    async fn status(&self) -> Result<Status, ServiceError> {
        let world = self.world.lock().unwrap();
        Ok(match &world.running {
            Some((id, config)) => Status::Running {
                id: id.clone(),
                config: Some(config.clone()),
                started_unix_ms: 0,
            },
            None => Status::Stopped { exit: world.exit },
        })
    }

    async fn how_it_ended(&self) -> Option<String> {
        self.world.lock().unwrap().result.clone()
    }

    async fn validate(&self, config: &Config) -> Result<(), ServiceError> {
        if self.world.lock().unwrap().refuses == Some(config.context) {
            return Err(ServiceError::Stranger {
                what: "nginx (pid 7) listens on 127.0.0.1:30000".to_string(),
            });
        }
        Ok(())
    }

    async fn start(&self, config: &Config) -> Result<ProcessId, ServiceError> {
        let id = self.new_id();
        let step = self.step_on_disk();
        {
            let mut world = self.world.lock().unwrap();
            assert!(world.running.is_none(), "two servers");
            assert!(!world.card_holds(), "a start on an occupied card");
            world
                .calls
                .push(format!("start {} @{step}", config.context));
            world.running = Some((id.clone(), config.clone()));
            match world.start_of(config.context) {
                Start::Ends(exit, lines) => {
                    world.log.push_str(lines);
                    world.end(Some(exit));
                }
                Start::Hangs(lines) => world.log.push_str(lines),
                Start::Serves(_) | Start::Loops => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(id)
    }

    async fn stop(&self) -> Result<(), ServiceError> {
        let step = self.step_on_disk();
        {
            let mut world = self.world.lock().unwrap();
            world.calls.push(format!("stop @{step}"));
            world.end(Some(0));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    async fn log_end(&self) -> Result<u64, ServiceError> {
        Ok(self.world.lock().unwrap().log.len() as u64)
    }

    async fn log_since(&self, from: u64) -> Result<(Vec<String>, u64), ServiceError> {
        let world = self.world.lock().unwrap();
        let rest = &world.log[usize::try_from(from).unwrap()..];
        Ok((
            rest.lines().map(str::to_string).collect(),
            world.log.len() as u64,
        ))
    }

    async fn pids(&self) -> Result<Vec<u32>, ServiceError> {
        let world = self.world.lock().unwrap();
        let mut pids: Vec<u32> = world.running.iter().map(|(id, _)| id.pid).collect();
        pids.extend(&world.workers);
        Ok(pids)
    }

    async fn port(&self) -> Result<Port, ServiceError> {
        Ok(self.world.lock().unwrap().port.clone())
    }

    fn log_name(&self) -> Option<String> {
        None
    }

    async fn standing(&self) -> Result<Standing, ServiceError> {
        let world = self.world.lock().unwrap();
        Ok(Standing {
            launch: config(0).launch,
            production: world.production,
            trial_note: String::new(),
            deadline_unix_ms: world.stands,
            launch_fixed: None,
            notes: vec![],
        })
    }

    async fn discard_trial(&self) -> Result<(), ServiceError> {
        self.world
            .lock()
            .unwrap()
            .trials
            .push("discard".to_string());
        Ok(())
    }

    async fn settle(&self) -> Result<Vec<String>, ServiceError> {
        self.world.lock().unwrap().trials.push("settle".to_string());
        Ok(vec![])
    }

    async fn arm(&self, deadline: &Deadline) -> Result<(), ServiceError> {
        let after = deadline.after.as_secs();
        let mut world = self.world.lock().unwrap();
        if let Some(why) = &world.no_deadline {
            return Err(ServiceError::Stranger { what: why.clone() });
        }
        world.trials.push(format!("arm {after}"));
        if std::mem::take(&mut world.breaks_disk) {
            std::fs::remove_dir_all(self.dir()).unwrap();
            std::fs::write(self.dir(), "no folder").unwrap();
        }
        Ok(())
    }

    async fn disarm(&self) -> Result<(), ServiceError> {
        self.world.lock().unwrap().trials.push("disarm".to_string());
        Ok(())
    }

    async fn confirm(&self, _config: &Config) -> Result<String, ServiceError> {
        Ok(String::new())
    }
}

#[async_trait]
impl Detect for Rig {
    async fn detect(&self) -> Result<Box<dyn Engine>, EngineError> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if self.world.lock().unwrap().served().is_some() {
            return Ok(Box::new(self.clone()));
        }
        Err(EngineError::Refused {
            url: "http://127.0.0.1:30000".to_string(),
        })
    }
}

#[async_trait]
impl Engine for Rig {
    fn kind(&self) -> Kind {
        Kind::Vllm
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        let served = self.world.lock().unwrap().served();
        Ok(Facts {
            kind: Kind::Vllm,
            version: Reading::default(),
            model: Reading::default(),
            model_file: None,
            health: Health::Up,
            context: Context {
                configured: served.into(),
                effective: served.into(),
                ..Context::default()
            },
            simulated: false,
            notes: vec![],
        })
    }

    async fn load(&self) -> Result<Load, EngineError> {
        Ok(Load::default())
    }

    async fn probe(&self) -> Result<Probe, EngineError> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let world = self.world.lock().unwrap();
        let loops = world
            .running
            .as_ref()
            .is_some_and(|(_, config)| world.start_of(config.context) == Start::Loops);
        Ok(Probe {
            text: if loops { "lambda lambda" } else { "4" }.to_string(),
            output_tokens: 1,
            finish_reason: None,
            ms: 5,
        })
    }

    async fn ask(&self, _question: &str, _max_tokens: u32) -> Result<Probe, EngineError> {
        self.probe().await
    }

    fn expected_context(&self, asked: u64, _slots: u64) -> u64 {
        asked
    }
}
