//! The store on a thread of its own. What it cannot keep, it says.

use crate::app::effect::Save;
use crate::app::history::{Mark, MarkKind, Sample};
use crate::app::model::{Restored, Who};
use crate::app::msg::Msg;
use crate::app::question::Decided;
use crate::bench::plan::Plan;
use crate::clock::unix_ms;
use crate::engine::Kind;
use crate::gpu::Card;
use crate::profile::Profile;
use crate::report;
use crate::store::{
    Decision, Ending, Event, EventKind, MemorySample, NewRun, NewSession, SessionRow, Store,
    StoreError,
};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::mpsc::Sender;

/// Orders that may wait; the disk is slower than the core only when something is wrong.
const QUEUE: usize = 4_096;
const MIB: u64 = 1_048_576;

/// What the store is asked to do.
enum Order {
    Save(Save),
    Run(Box<RunFacts>),
    /// Write the report of the session; the production value as the profile has it.
    Report(Option<u64>),
}

/// A run as the store wants to know it.
#[derive(Debug, Clone)]
pub struct RunFacts {
    pub plan: Plan,
    pub url: String,
    pub kind: Kind,
    pub version: Option<String>,
    pub model: String,
    pub context: Option<u64>,
    pub seed: u64,
    pub simulated: bool,
}

/// The hand on the store's thread. Dropping it writes what is queued and closes the database.
pub struct Keeper {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// What an earlier run of the session left, read before the screen opens.
///
/// # Errors
/// The database cannot be read.
pub fn restore(store: &Store, row: &SessionRow) -> Result<Restored, StoreError> {
    let points = store
        .session_points(row.id)?
        .into_iter()
        .map(|stored| stored.point)
        .collect();
    let marks = store
        .events(row.id)?
        .into_iter()
        .filter_map(|event| {
            Some(Mark {
                unix_ms: event.at_unix_ms,
                kind: mark_kind(event.kind)?,
                context: event.context,
                text: some(event.text),
            })
        })
        .collect();
    let decisions = store
        .session_decisions(row.id)?
        .into_iter()
        .map(decided_of)
        .collect();
    Ok(Restored {
        session: Some(row.id),
        tasks: row.tasks.clone(),
        next_task: row.next_task,
        points,
        tried: store.configs(row.id)?,
        marks,
        memory: memory(store, row.id)?,
        decisions,
    })
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The last hour of memory, one column a second at most.
fn memory(store: &Store, session: i64) -> Result<Vec<Sample>, StoreError> {
    let Some((first, last)) = store.memory_span(session)? else {
        return Ok(Vec::new());
    };
    let from = first.max(last - 3_600_000);
    let mut by_second: std::collections::BTreeMap<i64, Vec<Option<u32>>> =
        std::collections::BTreeMap::new();
    for band in store.memory(session, from, last, 3_600)? {
        let row = by_second
            .entry(band.at_unix_ms.div_euclid(1000))
            .or_default();
        let card = band.card as usize;
        if row.len() <= card {
            row.resize(card + 1, None);
        }
        if let Some(slot) = row.get_mut(card) {
            *slot = u32::try_from(band.max / MIB).ok();
        }
    }
    Ok(by_second.into_iter().collect())
}

/// Begins a session for a profile.
///
/// # Errors
/// The database cannot be written.
pub fn begin_session(
    store: &mut Store,
    profile: &Profile,
    who: &Who,
    simulated: bool,
) -> Result<i64, StoreError> {
    store.new_session(&NewSession {
        profile: &profile.name,
        url: &profile.endpoint.url,
        user: &who.user,
        host: &who.host,
        started_unix_ms: unix_ms(),
        simulated,
    })
}

impl Keeper {
    /// Starts the thread. What fails there arrives as a message.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        store: Store,
        session: i64,
        reports: PathBuf,
        say: Sender<Msg>,
    ) -> std::io::Result<Self> {
        let (orders, queue) = sync_channel(QUEUE);
        let work = Work {
            store,
            session,
            run: None,
            totals: Vec::new(),
            reports,
        };
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || work.go(&queue, &say))?;
        Ok(Keeper {
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    /// Keeps something. `Err`: the store is gone or far behind, in words.
    pub fn save(&self, save: Save) -> Result<(), String> {
        self.order(Order::Save(save))
    }

    /// A run begins.
    pub fn begin_run(&self, facts: RunFacts) -> Result<(), String> {
        self.order(Order::Run(Box::new(facts)))
    }

    /// Writes the report once everything before it is kept; where it lies arrives as a message.
    pub fn report(&self, production: Option<u64>) -> Result<(), String> {
        self.order(Order::Report(production))
    }

    fn order(&self, order: Order) -> Result<(), String> {
        let Some(orders) = &self.orders else {
            return Ok(());
        };
        orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => {
                "the disk is too slow: something could not be stored".to_string()
            }
            TrySendError::Disconnected(_) => {
                "the store has stopped: nothing more is kept. See the log".to_string()
            }
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is on the log already.
            let _ = thread.join();
        }
    }
}

struct Work {
    store: Store,
    session: i64,
    run: Option<i64>,
    /// Total memory of the cards, bytes by index: the history is kept with it.
    totals: Vec<u64>,
    reports: PathBuf,
}

impl Work {
    fn go(mut self, queue: &Receiver<Order>, say: &Sender<Msg>) {
        let mut failing = false;
        while let Ok(order) = queue.recv() {
            match self.carry_out(order, say) {
                Ok(()) => failing = false,
                Err(error) => {
                    tracing::error!("store: {error}");
                    if !failing {
                        let _ = say.try_send(Msg::StoreFailed(error.to_string()));
                    }
                    failing = true;
                }
            }
        }
    }

    fn carry_out(&mut self, order: Order, say: &Sender<Msg>) -> Result<(), StoreError> {
        match order {
            Order::Save(save) => self.save(save),
            Order::Run(facts) => {
                let new = NewRun {
                    session: Some(self.session),
                    plan: &facts.plan,
                    url: &facts.url,
                    engine: facts.kind,
                    engine_version: facts.version.as_deref(),
                    model: &facts.model,
                    context: facts.context,
                    seed: facts.seed,
                    simulated: facts.simulated,
                    started_unix_ms: unix_ms(),
                    name: None,
                    benchmark: None,
                };
                self.run = Some(self.store.begin_run(&new)?);
                Ok(())
            }
            Order::Report(production) => {
                let written = self
                    .report(production)
                    .map(|path| path.display().to_string());
                let _ = say.blocking_send(Msg::ReportWritten(written));
                Ok(())
            }
        }
    }

    fn save(&mut self, save: Save) -> Result<(), StoreError> {
        match save {
            Save::Tasks(tasks) => self.store.save_tasks(self.session, &tasks),
            Save::Mark(mark) => self.store.add_event(self.session, &event_of(&mark)),
            Save::Tried(tried) => self.store.record_config(self.session, &tried),
            Save::Point(point) => match self.run {
                Some(run) => self.store.add_point(run, &point).map(drop),
                None => Ok(()),
            },
            Save::RunEnded { stopped } => match self.run.take() {
                Some(run) => self.store.end_run(
                    run,
                    if stopped {
                        Ending::Stopped
                    } else {
                        Ending::Finished
                    },
                    unix_ms(),
                ),
                None => Ok(()),
            },
            Save::Decision(decided) => self
                .store
                .add_decision(&decision(&decided, self.session))
                .map(drop),
            Save::Memory(samples) => self.store.add_memory(self.session, &self.samples(samples)),
            Save::Rig { facts, cards } => {
                self.totals = totals(&cards);
                self.store.save_facts(self.session, &facts)?;
                self.store.save_cards(self.session, &cards)
            }
            Save::Event { text } => {
                let event = Event {
                    at_unix_ms: unix_ms(),
                    kind: EventKind::Note,
                    text,
                    context: None,
                };
                self.store.add_event(self.session, &event)
            }
        }
    }

    fn report(&self, production: Option<u64>) -> Result<PathBuf, String> {
        write_report(&self.store, self.session, production, &self.reports)
    }

    fn samples(&self, samples: Vec<Sample>) -> Vec<MemorySample> {
        let mut out = Vec::new();
        for (second, used) in samples {
            for (card, used) in used.into_iter().enumerate() {
                if let (Some(used), Ok(index)) = (used, u32::try_from(card)) {
                    out.push(MemorySample {
                        at_unix_ms: second * 1000,
                        card: index,
                        used: u64::from(used) * MIB,
                        total: self.totals.get(card).copied().unwrap_or(0),
                    });
                }
            }
        }
        out
    }
}

/// Writes the report of a session into `folder`, and beside it the same as a page with charts; gives its path.
///
/// # Errors
/// What was tried and what happened, in words.
pub fn write_report(
    store: &Store,
    session: i64,
    production: Option<u64>,
    folder: &Path,
) -> Result<PathBuf, String> {
    let input = report::gather(store, session, production, unix_ms())
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("there is no session {session}"))?;
    let path = report::path(folder, &input);
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let page = path.with_extension("html");
    let name = page.file_name().map(|name| name.to_string_lossy());
    let markdown = format!(
        "{}\n[The same with charts]({})\n",
        report::markdown(&input),
        name.unwrap_or_default()
    );
    crate::host::write_atomic(&page, report::html(&input).as_bytes())
        .and_then(|()| crate::host::write_atomic(&path, markdown.as_bytes()))
        .map_err(|error| error.to_string())?;
    Ok(path)
}

fn totals(cards: &[Card]) -> Vec<u64> {
    cards
        .iter()
        .map(|card| card.memory.known().map_or(0, |m| m.total))
        .collect()
}

fn event_of(mark: &Mark) -> Event {
    Event {
        at_unix_ms: mark.unix_ms,
        kind: match mark.kind {
            MarkKind::Stop => EventKind::Stop,
            MarkKind::Start => EventKind::Start,
            MarkKind::Phase => EventKind::Phase,
            MarkKind::Ready => EventKind::Ready,
            MarkKind::Lost => EventKind::Lost,
            MarkKind::Back => EventKind::Back,
            MarkKind::Failed => EventKind::Failed,
            MarkKind::Bench => EventKind::Bench,
            MarkKind::Decision => EventKind::Decision,
            MarkKind::Own => EventKind::Mark,
        },
        text: mark.text.clone().unwrap_or_default(),
        context: mark.context,
    }
}

fn mark_kind(kind: EventKind) -> Option<MarkKind> {
    match kind {
        EventKind::Stop => Some(MarkKind::Stop),
        EventKind::Start => Some(MarkKind::Start),
        EventKind::Phase => Some(MarkKind::Phase),
        EventKind::Ready => Some(MarkKind::Ready),
        EventKind::Lost => Some(MarkKind::Lost),
        EventKind::Back => Some(MarkKind::Back),
        EventKind::Failed => Some(MarkKind::Failed),
        EventKind::Bench => Some(MarkKind::Bench),
        EventKind::Decision => Some(MarkKind::Decision),
        EventKind::Mark => Some(MarkKind::Own),
        EventKind::RolledBack | EventKind::Note => None,
    }
}

/// A decision as the store keeps it.
pub fn decision(decided: &Decided, session: i64) -> Decision {
    Decision {
        session: Some(session),
        at_unix_ms: decided.unix_ms,
        user: decided.who.user.clone(),
        host: decided.who.host.clone(),
        profile: decided.profile.clone(),
        value: decided.value,
        previous: decided.previous,
        engine: decided.engine.as_deref().and_then(|name| name.parse().ok()),
        engine_version: decided.version.clone(),
        model: decided.model.clone(),
        simulated: decided.simulated,
        evidence: serde_json::to_value(&decided.evidence).unwrap_or_default(),
    }
}

fn decided_of(decision: Decision) -> Decided {
    Decided {
        unix_ms: decision.at_unix_ms,
        who: Who {
            user: decision.user,
            host: decision.host,
        },
        profile: decision.profile,
        value: decision.value,
        previous: decision.previous,
        engine: decision.engine.map(|kind| kind.name().to_string()),
        version: decision.engine_version,
        model: decision.model,
        simulated: decision.simulated,
        evidence: serde_json::from_value(decision.evidence).unwrap_or_default(),
    }
}
