//! The cards, host and server that the session works on.

use crate::clock::Now;
use crate::engine::{EngineError, Facts, Load};
use crate::gpu::{self, By, Card, Held, Owned, Snapshot, Tenant};
use crate::host::vitals::Vitals;
use crate::memory::Geometry;
use crate::profile::{Launch, Profile, ServiceSpec};
use crate::reading::Reading;
use crate::service::Config;

/// How we stand with the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Connection {
    /// No attempt yet.
    None,
    Trying,
    /// Its pages answered at the last look.
    Up {
        since: Now,
    },
    /// They do not; since when, and what happened.
    Down {
        since: Now,
        error: EngineError,
    },
    /// Our restart has it down on purpose.
    Restarting,
}

/// The way the server is run, as the screen names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceView {
    pub name: String,
    /// Whether a trial ends with a reboot, in words.
    pub trial_note: String,
    /// Where its output goes.
    pub log: Option<String>,
    /// What is started, with a place for the context; `None` until the service was asked.
    pub launch: Option<Launch>,
    /// What a reboot brings, as the service says it, per request.
    pub production: Option<u64>,
    /// When the production value comes back by itself unless the trial is kept, unix milliseconds.
    pub deadline_unix_ms: Option<i64>,
    /// Why no trial of it can have a deadline.
    pub no_deadline: Option<String>,
    /// Why the launch cannot be edited here.
    pub launch_fixed: Option<String>,
}

impl ServiceView {
    /// What the profile alone says.
    fn of(profile: &Profile) -> Option<Self> {
        let (name, log, launch) = match &profile.service {
            ServiceSpec::None => return None,
            ServiceSpec::Process { launch, log, .. } => {
                let program = launch.argv.first().map_or("?", |a| file_name(a));
                let log = log.as_ref().map(|p| p.display().to_string());
                (format!("process {program}"), log, Some(launch.clone()))
            }
            ServiceSpec::Systemd { unit, .. } => (unit.clone(), None, None),
            ServiceSpec::Compose(compose) => (format!("compose {}", compose.service), None, None),
            ServiceSpec::Command(commands) => {
                let program = commands.restart.first().map_or("?", |a| file_name(a));
                (format!("command {program}"), None, None)
            }
        };
        Some(ServiceView {
            name,
            trial_note: String::new(),
            log,
            launch,
            production: None,
            deadline_unix_ms: None,
            no_deadline: None,
            launch_fixed: None,
        })
    }
}

/// What the running server has shown since it was started or first seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SinceStart {
    /// The largest share of the KV pool that was in use, 0..1.
    pub kv_peak: Option<f64>,
    /// The lowest free memory on any of its cards: card and bytes.
    pub lowest: Option<(u32, u64)>,
    /// The KV pool as its log tells it.
    pub pool: Option<PoolSize>,
}

/// How much memory the KV pool takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSize {
    /// On each card.
    Card(u64),
    /// Over all cards.
    Whole(u64),
}

/// Everything that is known of the rig.
#[derive(Debug, Clone, PartialEq)]
pub struct Rig {
    pub url: Option<String>,
    pub connection: Connection,
    pub facts: Option<Facts>,
    pub load: Load,
    /// How the server's machine is doing.
    pub host: Reading<Vitals>,
    /// The model that is served, as its file describes it, or why that is not known; `None` until it was looked for.
    pub geometry: Option<Result<Box<Geometry>, String>>,
    pub gpus: Snapshot,
    /// The server's processes, where they are known.
    pub tenant: Option<Tenant>,
    /// Its cards, as the newest readings tell; while it is down those that it had.
    pub owned: Owned,
    /// `None`: vramp cannot restart this server.
    pub service: Option<ServiceView>,
    /// What the running server was started with, where vramp did it.
    pub config: Option<Config>,
    /// The deadline that the running trial was given here, in seconds.
    pub deadline_s: Option<u64>,
    /// Another one is being set.
    pub deadline_asked: bool,
    /// The deadline of a trial has passed since then, and the production value is on its way back.
    pub coming_back: Option<Now>,
    /// Nothing runs, and vramp could start it.
    pub startable: bool,
    /// A start by itself was tried: it is not tried again without the operator.
    pub auto_started: bool,
    /// The running launch is one that the operator edited here: keeping writes it too.
    pub edited_launch: bool,
    /// An unfinished restart lies on disk.
    pub unfinished: bool,
    /// When the running server was started or first seen.
    pub serving_since: Option<Now>,
    pub since_start: SinceStart,
    /// Passed the smoke test and then served for a minute.
    pub last_good: Option<Config>,
    /// When the smoke test of the running server passed.
    pub smoke_passed: Option<Now>,
}

impl Rig {
    pub fn new(profile: Option<&Profile>) -> Self {
        Rig {
            url: profile.map(|p| p.endpoint.url.clone()),
            connection: Connection::None,
            facts: None,
            load: Load::default(),
            host: Reading::default(),
            geometry: None,
            gpus: Snapshot::default(),
            tenant: None,
            owned: gpu::owned(
                &Snapshot::default(),
                &Tenant::default(),
                profile.map_or(&[], |p| p.cards.as_slice()),
            ),
            service: profile.and_then(ServiceView::of),
            config: None,
            deadline_s: None,
            deadline_asked: false,
            coming_back: None,
            startable: false,
            auto_started: false,
            edited_launch: false,
            unfinished: false,
            serving_since: None,
            since_start: SinceStart::default(),
            last_good: None,
            smoke_passed: None,
        }
    }

    /// Who holds the used memory of a card; `None` where it cannot be told.
    pub fn held(&self, card: &Card) -> Option<Held> {
        // While a server starts its processes are not known yet.
        let starts = matches!(self.connection, Connection::Restarting);
        match self.owned.by {
            By::Memory if !starts => self.tenant.as_ref()?.held(card),
            _ => None,
        }
    }

    /// Another server serves from now on, or the same one is seen for the first time.
    pub fn serves_anew(&mut self, now: Now) {
        self.serving_since = Some(now);
        self.since_start = SinceStart::default();
        // Its processes are looked for anew: those of another server say nothing of its cards.
        self.tenant = None;
    }

    pub fn up(&self) -> bool {
        matches!(self.connection, Connection::Up { .. })
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
