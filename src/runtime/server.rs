//! The actor that finds the server and goes on watching it.

use crate::app::msg::{Attached, Msg};
use crate::app::rig::ServiceView;
use crate::discover::{self, model};
use crate::engine::{self, Endpoint, Engine, EngineError, Facts, Kind, Load};
use crate::host::{Host, vitals};
use crate::profile::{Launch, Profile};
use crate::ramp::{self, Lock, RampError};
use crate::reading::Reading;
use crate::service::{Port, Service, Status};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, watch};

/// The server's machine is looked at every so many seconds.
const HOST_EVERY: u32 = 5;
/// Facts are read again after so many looks, in case somebody else restarted the server.
const FACTS_EVERY: u32 = 30;
/// A busy server may be slow to answer: it counts as lost after so many looks without an answer.
const LOST_AFTER: u32 = 3;
/// How often the lock on another host is looked after.
const KEEPS_LOCK: Duration = Duration::from_secs(5);

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

/// The lock of the service, once it is ours. It is held as long as this cockpit lives: a second one is read-only.
pub type LockCell = Arc<OnceLock<Arc<Lock>>>;

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
            endpoint: profile.endpoint.clone(),
            place,
            say,
            load: load_out,
            engine: None,
            misses: 0,
            looks: 0,
            handed_over: false,
            log_from: None,
            keeps_lock: false,
            found: false,
            host: Arc::default(),
            beats: 0,
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
    /// The lock of another host is looked after.
    keeps_lock: bool,
    /// The server was looked for: from then on its machine is looked at, also while it restarts.
    found: bool,
    /// Taken by the look at the machine that goes on.
    host: Arc<Mutex<HostWatch>>,
    /// Seconds since the server was looked for.
    beats: u32,
}

/// How the machine is looked at, and the server's processes on it.
#[derive(Default)]
struct HostWatch {
    watch: vitals::Watch,
    pids: Vec<u32>,
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
                        self.look_for_processes();
                        watching = true;
                        self.look().await;
                    }
                    Some(Ask::Smoke) => self.smoke().await,
                    Some(Ask::Attach) => {
                        self.attach().await;
                        self.look_for_processes();
                        self.found = true;
                        watching = true;
                    }
                },
                Ok(()) = beats.changed(), if self.found => {
                    self.look_at_host();
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

    async fn attach(&mut self) {
        self.misses = 0;
        self.looks = 0;
        self.hold_lock().await;
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
                self.describe(facts.kind, launch.or(standing));
                let attached = Attached {
                    facts,
                    service: view,
                    config,
                    last_good,
                };
                self.tell(Msg::Attached(Box::new(attached))).await;
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

    /// Reads the file of the model that the launch names, beside the watching: a disk, or a line to another host, may be slow.
    fn describe(&self, kind: Kind, launch: Option<Launch>) {
        let (host, say) = (Arc::clone(&self.place.host), self.say.clone());
        tokio::spawn(async move {
            let found = model::of_launch(host.as_ref(), kind, launch.as_ref()).await;
            let _ = say.send(Msg::Geometry(found.map(Box::new))).await;
        });
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

    /// One cockpit works on a service: it alone restarts the server and writes the session.
    async fn hold_lock(&mut self) {
        if self.place.lock.get().is_some() {
            return;
        }
        match lock(&self.place).await {
            Ok(()) => {}
            Err(RampError::Locked { holder }) => self.tell(Msg::Locked(holder)).await,
            Err(error) => self.tell(Msg::RampFailed(error.to_string())).await,
        }
        if !self.place.host.is_local() && !self.keeps_lock {
            self.keeps_lock = true;
            tokio::spawn(keep_lock(self.place.clone(), self.say.clone()));
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
                    let launch = self.launch().await;
                    self.describe(facts.kind, launch);
                    self.tell(Msg::Facts(Box::new(facts))).await;
                    self.look_for_processes();
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
                if was_away {
                    self.look_for_processes();
                }
                if was_away || self.looks.is_multiple_of(FACTS_EVERY) {
                    match engine.facts().await {
                        Ok(facts) => self.tell(Msg::Facts(Box::new(facts))).await,
                        Err(error) => self.tell(Msg::Unreachable(error)).await,
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

    /// Which processes serve now, so that the cards can tell what the server holds. Beside the watching: container engines are slow.
    fn look_for_processes(&self) {
        let (place, say) = (self.place.clone(), self.say.clone());
        let host = Arc::clone(&self.host);
        let url = self.endpoint.url.clone();
        tokio::spawn(async move {
            match discover::tenant(place.host.as_ref(), place.service.as_deref(), &url).await {
                Ok(tenant) => {
                    host.lock().await.pids.clone_from(&tenant.pids);
                    let _ = say.send(Msg::Tenant(tenant)).await;
                }
                Err(error) => tracing::warn!("the server's processes are not known: {error}"),
            }
        });
    }

    /// How the server's machine is doing, now and then. Beside the watching: another machine may be slow; no look begins before the last
    /// one has ended.
    fn look_at_host(&mut self) {
        self.beats = self.beats.wrapping_add(1);
        if self.beats % HOST_EVERY != 1 {
            return;
        }
        let (place, say) = (self.place.clone(), self.say.clone());
        if place.service.is_none() && !discover::is_on(place.host.as_ref(), &self.endpoint.url) {
            return;
        }
        let Ok(mut host) = Arc::clone(&self.host).try_lock_owned() else {
            return;
        };
        tokio::spawn(async move {
            let HostWatch { watch, pids } = &mut *host;
            let seen = match watch.look(place.host.as_ref(), pids).await {
                Ok(vitals) => Reading::Value(vitals),
                Err(error) => Reading::failed(error.to_string()),
            };
            let _ = say.send(Msg::Host(seen)).await;
        });
    }

    /// Asks beside the watching: a slow answer must not blind us.
    async fn smoke(&mut self) {
        if self.engine.is_none() {
            // It serves, as far as the operator knows, and was not looked at yet.
            match self.find().await {
                Ok(facts) => self.tell(Msg::Facts(Box::new(facts))).await,
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

async fn lock(place: &Place) -> Result<(), RampError> {
    let lock = Lock::take(&place.host, &place.state_dir, &place.who).await?;
    // Nobody else sets it.
    let _ = place.lock.set(Arc::new(lock));
    Ok(())
}

/// The lock on another host ends with the connection: it is taken again when that is back, unless somebody else was first.
async fn keep_lock(place: Place, say: Sender<Msg>) {
    let mut told = None;
    while !say.is_closed() {
        tokio::time::sleep(KEEPS_LOCK).await;
        let kept = match place.lock.get() {
            Some(lock) => lock.ensure().await,
            // Who was read-only from the start stays it.
            None if told.is_some() => return,
            None => lock(&place).await,
        };
        if let Err(RampError::Locked { holder }) = kept
            && told.as_ref() != Some(&holder)
        {
            told = Some(holder.clone());
            let _ = say.send(Msg::Locked(holder)).await;
        }
    }
}
