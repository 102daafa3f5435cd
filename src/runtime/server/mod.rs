//! The actor that finds the server and goes on watching it.

mod lock;
mod machine;

pub use lock::LockCell;

use crate::app::msg::{Attached, Msg};
use crate::app::rig::ServiceView;
use crate::engine::{self, Endpoint, Engine, EngineError, Facts, Load};
use crate::host::Host;
use crate::profile::{Launch, Profile};
use crate::ramp;
use crate::service::{Port, Service, Status};
use lock::LockKeeper;
use machine::Machine;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

/// Facts are read again after so many looks, in case somebody else restarted the server.
const FACTS_EVERY: u32 = 30;
/// A busy server may be slow to answer: it counts as lost after so many looks without an answer.
const LOST_AFTER: u32 = 3;

/// What the actor may be asked.
#[derive(Debug)]
pub enum Ask {
    /// Find the server anew.
    Attach,
    Smoke,
    /// A restart has the server: look away.
    Pause,
    /// The restart is over: look again.
    Watch,
}

/// What the actor needs to know of the service.
#[derive(Clone)]
pub struct Place {
    /// Where the service runs, and what stands beside it lies.
    pub host: Arc<dyn Host>,
    pub service: Option<Arc<dyn Service>>,
    pub state_dir: PathBuf,
    pub who: String,
    pub lock: LockCell,
}

/// The hand on the actor.
pub struct Server {
    asks: Sender<Ask>,
    /// A second has begun: time for a look.
    beat: watch::Sender<()>,
    /// The newest load, for the benchmark.
    pub load: watch::Receiver<Load>,
}

impl Server {
    /// Starts the actor on the present runtime.
    pub fn start(profile: &Profile, place: Place, say: Sender<Msg>) -> Self {
        let (asks, asked) = channel(16);
        let (load_out, load) = watch::channel(Load::default());
        let (beat, beats) = watch::channel(());
        let actor = Actor {
            lock: LockKeeper::default(),
            machine: Machine::new(place.clone(), profile.endpoint.url.clone(), say.clone()),
            endpoint: profile.endpoint.clone(),
            place,
            say,
            load: load_out,
            engine: None,
            misses: 0,
            looks: 0,
            handed_over: false,
            log_from: None,
            found: false,
        };
        tokio::spawn(actor.go(asked, beats));
        Server { asks, beat, load }
    }

    /// The server is looked at once, if it is watched.
    pub fn beat(&self) {
        self.beat.send_replace(());
    }

    /// Asks for something; a full queue means that the same is asked already.
    pub fn ask(&self, ask: Ask) {
        if self.asks.try_send(ask).is_err() {
            tracing::warn!("the server actor is behind");
        }
    }
}

struct Actor {
    endpoint: Endpoint,
    place: Place,
    say: Sender<Msg>,
    load: watch::Sender<Load>,
    engine: Option<Arc<dyn Engine>>,
    misses: u32,
    looks: u32,
    /// A restart has proven the server, and it was not seen since.
    handed_over: bool,
    /// How far the log was read.
    log_from: Option<u64>,
    lock: LockKeeper,
    machine: Machine,
    /// The server was looked for: from then on its machine is looked at, also while it restarts.
    found: bool,
}

impl Actor {
    async fn go(mut self, mut asked: Receiver<Ask>, mut beats: watch::Receiver<()>) {
        let mut watching = false;
        loop {
            tokio::select! {
                ask = asked.recv() => match ask {
                    None => return,
                    Some(Ask::Pause) => watching = false,
                    Some(Ask::Watch) => {
                        self.again().await;
                        if let Some(view) = self.view().await {
                            self.tell(Msg::Service(view)).await;
                        }
                        self.machine.look(None);
                        watching = true;
                        self.look().await;
                    }
                    Some(Ask::Smoke) => self.smoke().await,
                    Some(Ask::Attach) => {
                        let served = self.attach().await;
                        self.machine.look(served);
                        self.found = true;
                        watching = true;
                    }
                },
                Ok(()) = beats.changed(), if self.found => {
                    self.machine.beat();
                    if watching {
                        self.look().await;
                    }
                    // A server that is slow to answer gets some rest between two looks.
                    beats.borrow_and_update();
                }
            }
        }
    }

    async fn tell(&self, msg: Msg) {
        // The runtime is gone only when the program ends.
        let _ = self.say.send(msg).await;
    }

    /// Finds the server and what stands behind it; gives what it serves and by which launch.
    async fn attach(&mut self) -> Option<(Facts, Option<Launch>)> {
        self.misses = 0;
        self.looks = 0;
        self.lock.hold(&self.place, &self.say).await;
        let host = Arc::clone(&self.place.host);
        match ramp::find(host.as_ref(), &self.place.state_dir).await {
            Ok(Some(intent)) if self.place.lock.get().is_some() => {
                self.tell(Msg::Found(Box::new(intent))).await
            }
            Ok(_) => {}
            Err(error) => self.tell(Msg::RampFailed(error.to_string())).await,
        }
        let status = match &self.place.service {
            None => None,
            Some(service) => match service.status().await {
                Ok(status) => Some(status),
                Err(error) => {
                    self.tell(Msg::StoreFailed(error.to_string())).await;
                    None
                }
            },
        };
        let (view, notes) = self.standing().await.unzip();
        let running = match &status {
            Some(Status::Running { id, config, .. }) => Some((id.pid, config.clone())),
            _ => None,
        };
        match (self.find().await, running) {
            (Ok(mut facts), running) => {
                facts.notes.splice(0..0, notes.unwrap_or_default());
                let mut config = None;
                if let Some((pid, recorded)) = running {
                    match self.port().await {
                        Some(Port::Other(what)) => facts.notes.insert(
                            0,
                            format!("not vramp's own server (pid {pid}, which runs too): {what} answers here"),
                        ),
                        _ => config = recorded,
                    }
                }
                let last_good = ramp::load_last_good(host.as_ref(), &self.place.state_dir)
                    .await
                    .ok()
                    .flatten();
                self.start_log().await;
                let launch = config.as_ref().map(|config| config.launch.clone());
                let standing = view.as_ref().and_then(|view| view.launch.clone());
                let served = (facts.clone(), launch.or(standing));
                let attached = Attached {
                    facts,
                    service: view,
                    config,
                    last_good,
                };
                self.tell(Msg::Attached(Box::new(attached))).await;
                return Some(served);
            }
            (Err(error), Some((pid, config))) => {
                self.start_log().await;
                self.tell(Msg::Silent {
                    service: view,
                    pid,
                    config,
                    error,
                })
                .await;
            }
            (Err(error @ EngineError::Refused { .. }), None) if status.is_some() => {
                self.tell(Msg::Absent {
                    service: view,
                    error,
                    exit: None,
                })
                .await;
            }
            (Err(error), None) => self.tell(Msg::Unreachable(error)).await,
        }
        None
    }

    /// What the server was started with, or else would be.
    async fn launch(&self) -> Option<Launch> {
        let service = self.place.service.as_ref()?;
        if let Ok(Status::Running {
            config: Some(config),
            ..
        }) = service.status().await
        {
            return Some(config.launch);
        }
        service
            .standing()
            .await
            .ok()
            .map(|standing| standing.launch)
    }

    async fn port(&self) -> Option<Port> {
        self.place.service.as_ref()?.port().await.ok()
    }

    /// Another process serves now, or the same one again.
    async fn again(&mut self) {
        self.engine = None;
        self.handed_over = true;
        self.misses = 0;
        self.looks = 0;
        self.load.send_replace(Load::default());
        if let Some(service) = &self.place.service {
            // The restart has shown its lines already.
            self.log_from = service.log_end().await.ok();
        }
    }

    /// The service as the screen shows it. What it does not say now is said as a fault.
    async fn view(&self) -> Option<ServiceView> {
        self.standing().await.map(|(view, _)| view)
    }

    /// The same with what else the operator should know.
    async fn standing(&self) -> Option<(ServiceView, Vec<String>)> {
        let service = self.place.service.as_ref()?;
        let standing = match service.standing().await {
            Ok(standing) => standing,
            Err(error) => {
                self.tell(Msg::StoreFailed(error.to_string())).await;
                return None;
            }
        };
        let no_deadline = service.may_arm().await.err();
        let view = ServiceView {
            name: service.name(),
            trial_note: standing.trial_note,
            log: service.log_name(),
            launch: Some(standing.launch),
            production: standing.production,
            deadline_unix_ms: standing.deadline_unix_ms,
            no_deadline: no_deadline.map(|error| error.to_string()),
            launch_fixed: standing.launch_fixed,
        };
        Some((view, standing.notes))
    }

    async fn find(&mut self) -> Result<Facts, EngineError> {
        let engine: Arc<dyn Engine> = Arc::from(engine::detect(&self.endpoint).await?);
        let facts = engine.facts().await?;
        self.engine = Some(engine);
        Ok(facts)
    }

    async fn start_log(&mut self) {
        if let Some(service) = &self.place.service
            && self.log_from.is_none()
        {
            self.log_from = service.log_past().await.ok();
        }
    }

    /// One look at the server: load always, facts now and then or when it was away.
    async fn look(&mut self) {
        self.read_log().await;
        let Some(engine) = self.engine.clone() else {
            match self.find().await {
                Ok(facts) => {
                    self.handed_over = false;
                    self.seen_anew(facts).await;
                }
                Err(error @ EngineError::Refused { .. }) if self.handed_over => {
                    if let Some(exit) = self.ended().await {
                        self.absent(error, exit).await;
                    }
                }
                // Nobody there is known already; what else answers is news.
                Err(EngineError::Refused { .. }) => {}
                Err(error) => self.tell(Msg::Unreachable(error)).await,
            }
            return;
        };
        match engine.load().await {
            Ok(load) => {
                let was_away = std::mem::take(&mut self.misses) >= LOST_AFTER;
                self.looks += 1;
                if was_away || self.looks.is_multiple_of(FACTS_EVERY) {
                    match engine.facts().await {
                        Ok(facts) if was_away => self.seen_anew(facts).await,
                        Ok(facts) => self.tell(Msg::Facts(Box::new(facts))).await,
                        Err(error) => {
                            // It is lost, and seen anew as soon as it says what it serves.
                            self.misses = LOST_AFTER;
                            self.tell(Msg::Unreachable(error)).await;
                        }
                    }
                }
                // Latest wins: nobody needs an old load.
                self.load.send_replace(load);
            }
            Err(error) => {
                self.misses += 1;
                let gone = matches!(error, EngineError::Refused { .. });
                if gone && let Some(exit) = self.ended().await {
                    self.absent(error, exit).await;
                    return;
                }
                if gone || self.misses >= LOST_AFTER {
                    self.misses = LOST_AFTER;
                    self.tell(Msg::Unreachable(error)).await;
                }
            }
        }
    }

    /// The server is there again, or another one: with another model and other processes, perhaps.
    async fn seen_anew(&mut self, facts: Facts) {
        let launch = self.launch().await;
        self.tell(Msg::Facts(Box::new(facts.clone()))).await;
        self.machine.look(Some((facts, launch)));
    }

    /// The server has ended.
    async fn absent(&mut self, error: EngineError, exit: String) {
        self.engine = None;
        self.misses = 0;
        self.handed_over = false;
        let service = self.view().await;
        self.tell(Msg::Absent {
            service,
            error,
            exit: Some(exit),
        })
        .await;
    }

    /// How the server that vramp started has ended, in words; `None` while it runs or where there is none.
    async fn ended(&self) -> Option<String> {
        let service = self.place.service.as_ref()?;
        match service.status().await {
            Ok(Status::Stopped { exit }) => {
                let result = service.how_it_ended().await;
                Some(ramp::ending_words(exit, result.as_deref()))
            }
            _ => None,
        }
    }

    async fn read_log(&mut self) {
        let (Some(service), Some(from)) = (&self.place.service, self.log_from) else {
            return;
        };
        if let Ok((lines, to)) = service.log_since(from).await {
            self.log_from = Some(to);
            if !lines.is_empty() {
                self.tell(Msg::Log(lines)).await;
            }
        }
    }

    /// Asks beside the watching: a slow answer must not blind us.
    async fn smoke(&mut self) {
        if self.engine.is_none() {
            // It serves, as far as the operator knows, and was not looked at yet.
            match self.find().await {
                Ok(facts) => self.seen_anew(facts).await,
                Err(error) => return self.tell(Msg::Smoke(Err(error))).await,
            }
        }
        let Some(engine) = self.engine.clone() else {
            return;
        };
        let say = self.say.clone();
        tokio::spawn(async move {
            let smoke = ramp::smoke_question();
            let answer = engine.ask(&smoke.question, smoke.max_tokens).await;
            let _ = say.send(Msg::Smoke(answer)).await;
        });
    }
}
