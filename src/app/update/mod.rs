//! What a message does to the state, and what it asks for. Total and deterministic: time arrives with the message.

mod actions;
mod bench;
mod cards;
mod config;
mod deadline;
mod dialogs;
mod lists;
mod outcome;
mod pool;
mod question;
mod restart;
mod runs;
mod server;
mod tasks;

#[cfg(test)]
mod tests;

pub use deadline::offered as deadline_offered;
pub use dialogs::matching;
pub use tasks::possible_act;

use super::effect::{Effect, Save};
use super::model::{Activity, Message, Model, Running, Tone};
use super::msg::Msg;
use super::rig::Connection;
use super::task::TaskState;
use crate::clock::Now;
use crate::gpu;

/// What is younger than this belongs to what begins now.
const JUST_MS: u64 = 5_000;
/// Memory samples that are stored together.
const MEMORY_BATCH: usize = 10;

/// Applies one message at one moment.
pub fn update(model: &mut Model, now: Now, msg: Msg) -> Vec<Effect> {
    model.now = now;
    let effects = apply(model, msg);
    cards::bring_up(model);
    effects
}

fn apply(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Started => {
            if model.profile.is_some() {
                return tasks::attach(model);
            }
        }
        Msg::Do(action) => return actions::perform(model, action),
        Msg::Edited(edit) => dialogs::edited(model, edit),
        Msg::Focus(pane) => model.focus = pane,
        Msg::Select(pane, line) => lists::select(model, pane, line),
        Msg::Scroll(pane, by) => lists::scroll(model, pane, by),
        Msg::Tick => {
            forget_news(model);
            return server::tick(model);
        }
        Msg::Drawn => {
            if let Some(dialog) = model.dialogs.last_mut() {
                dialog.shown(model.now);
            }
        }
        Msg::Gpus(snapshot) => return gpus(model, snapshot),
        Msg::Host(vitals) => model.rig.host = vitals,
        Msg::Tenant(tenant) => {
            model.rig.tenant = Some(tenant);
            take_owned(model);
        }
        Msg::Load(load) => {
            if let Some(used) = load.kv_use.fresh().filter(|_| model.rig.up()) {
                let peak = &mut model.rig.since_start.kv_peak;
                *peak = Some(peak.map_or(*used, |most| most.max(*used)));
            }
            model.rig.load = load;
        }
        Msg::Attached(attached) => return server::attached(model, *attached),
        Msg::Absent {
            service,
            error,
            exit,
        } => return server::absent(model, service, error, exit),
        Msg::Silent {
            service,
            pid,
            config,
            error,
        } => return server::silent(model, service, pid, config, error),
        Msg::Unreachable(error) => return server::unreachable(model, error),
        Msg::Service(service) => server::take_service(model, Some(service)),
        Msg::Facts(facts) => return server::facts(model, *facts),
        Msg::Geometry(found) => model.rig.geometry = Some(found),
        Msg::Locked(holder) => {
            // Two cockpits must not write one session.
            let text = format!("read-only: {holder} works on this service; nothing is kept here");
            model.say(Tone::Warn, text.clone());
            model.settings.read_only = Some(text);
            return vec![Effect::KeepNothing];
        }
        Msg::Smoke(result) => return server::smoke(model, result),
        Msg::Bench(event) => return bench::event(model, event),
        Msg::BenchFailed(why) => return bench::failed(model, why),
        Msg::Check(event) => return bench::check(model, event),
        Msg::Ramp(event) => return outcome::event(model, event),
        Msg::RampFailed(why) => return outcome::refused(model, why),
        Msg::Found(intent) => restart::found(model, *intent),
        Msg::Deadline(result) => return deadline::set(model, result),
        Msg::Kept(result) => return question::kept(model, result),
        Msg::ReportWritten(result) => return tasks::reported(model, result),
        Msg::Runs(result) => runs::listed(model, result),
        Msg::Compared(result) => runs::compared(model, result),
        Msg::StoreFailed(why) => {
            model.say(Tone::Bad, why.clone());
            model.store_fault = Some(why);
        }
        Msg::Copied(text) => model.say(Tone::Plain, text),
        Msg::Log(lines) => {
            log(model, lines);
            return pool::note(model).into_iter().collect();
        }
        Msg::Terminate => model.quit = true,
    }
    Vec::new()
}

fn gpus(model: &mut Model, snapshot: gpu::Snapshot) -> Vec<Effect> {
    // A source that hangs says nothing of the present: that is a gap, now.
    let read = snapshot
        .cards
        .iter()
        .any(|card| card.memory.fresh().is_some());
    let at = if read { snapshot.at } else { model.now };
    let second = at.unix_ms.div_euclid(1000);
    let taken = model.history.push(second, &snapshot);
    if taken && !snapshot.cards.is_empty() {
        let used = snapshot
            .cards
            .iter()
            .map(|card| card.memory.fresh().map(|m| (m.used / 1_048_576) as u32));
        model.unsaved.push((second, used.collect()));
    }
    model.rig.gpus = snapshot;
    take_owned(model);
    note_tightest(model);
    if model.unsaved.len() >= MEMORY_BATCH {
        return vec![Effect::Save(Save::Memory(std::mem::take(
            &mut model.unsaved,
        )))];
    }
    Vec::new()
}

/// Which cards belong to the server. While it is down they are those that it had.
fn take_owned(model: &mut Model) {
    let loads = matches!(model.rig.connection, Connection::Restarting);
    let Some(tenant) = model.rig.tenant.as_ref().filter(|_| !loads) else {
        return;
    };
    let mut tenant = tenant.clone();
    if let Some(launch) = model.launch() {
        // What may not be read of the process stands in its launch too; what was read comes first.
        tenant.env.extend(launch.env.iter().cloned());
    }
    let profile = model.profile.as_ref().map_or(&[][..], |p| &p.cards);
    let owned = gpu::owned(&model.rig.gpus, &tenant, profile);
    if model.rig.up() || owned.by == gpu::By::Memory {
        model.rig.owned = owned;
    }
}

/// Keeps the lowest free memory of the tightest card while a context serves.
fn note_tightest(model: &mut Model) {
    // While its processes are not looked for, its cards are not known either.
    let known = model.rig.up() && model.rig.tenant.is_some();
    let Some(context) = model.served().filter(|_| known) else {
        return;
    };
    if model
        .rig
        .serving_since
        .is_some_and(|since| model.rig.gpus.at < since)
    {
        // Read before it served: a server that loads holds less than one that works.
        return;
    }
    let cards = model.cards().to_vec();
    let tightest = model
        .rig
        .gpus
        .tightest(&cards)
        .map(|(card, free)| (card.index, free));
    if let Some((index, free)) = tightest {
        let lowest = &mut model.rig.since_start.lowest;
        if lowest.is_none_or(|(_, least)| free < least) {
            *lowest = Some((index, free));
        }
        let tried = model.tried_mut(context);
        if tried.tightest.is_none_or(|(_, lowest)| free < lowest) {
            tried.tightest = Some((index, free));
        }
    }
}

fn log(model: &mut Model, lines: Vec<String>) {
    for line in lines {
        if model.log.len() == super::model::LOG_LINES {
            model.log.pop_front();
        }
        model.log.push_back(line);
    }
}

/// What was said is not news for ever: milliseconds after which it leaves the screen. What went wrong stays until it is put away or
/// something new begins.
fn news_ms(tone: Tone) -> Option<u64> {
    match tone {
        Tone::Plain | Tone::Good => Some(60_000),
        Tone::Warn => Some(120_000),
        Tone::Bad => None,
    }
}

/// Takes what is no longer news off the screen.
fn forget_news(model: &mut Model) {
    let old = |m: &Message| news_ms(m.tone).is_some_and(|ms| model.now.since(m.at) >= ms);
    if model.message.as_ref().is_some_and(old) {
        model.message = None;
    }
}

/// Marks an activity and its task as begun. What was said of an earlier one makes room; what has just been said stays.
fn begin(model: &mut Model, activity: Activity, task: Option<u64>) {
    let earlier = |m: &Message| model.now.since(m.at) >= JUST_MS;
    if model.message.as_ref().is_some_and(earlier) {
        model.message = None;
    }
    model.running = Some(Running {
        activity,
        task,
        since: model.now,
        stopping: false,
    });
    let since_unix_ms = model.now.unix_ms;
    if let Some(task) = task.and_then(|id| model.tasks.get_mut(id)) {
        task.state = TaskState::Running {
            since_unix_ms,
            share: None,
            left_ms: None,
        };
        task.note = None;
    }
}

/// How an activity ended for its task.
enum End {
    Done(Option<String>),
    Failed(String),
    /// It can be run again; what is to be said.
    Open(Option<String>),
}

/// Ends the present activity: the task takes its result, the selection goes on, the list is stored.
fn end(model: &mut Model, end: End) -> Effect {
    if let Some(running) = model.running.take() {
        let took_ms = model.now.since(running.since);
        if let Some(id) = running.task {
            let over = matches!(end, End::Done(_));
            if let Some(task) = model.tasks.get_mut(id) {
                match end {
                    End::Done(note) => {
                        task.state = TaskState::Done { took_ms };
                        task.note = note;
                    }
                    End::Failed(why) => task.state = TaskState::Failed { took_ms, why },
                    End::Open(note) => {
                        task.state = TaskState::Pending;
                        task.note = note;
                    }
                }
            }
            if over {
                model.tasks.advance(id);
            }
        }
    }
    save_tasks(model)
}

fn save_tasks(model: &Model) -> Effect {
    Effect::Save(Save::Tasks(model.tasks.list.clone()))
}

/// Keeps what the server says of itself.
fn save_rig(model: &Model) -> Option<Effect> {
    let facts = Box::new(model.rig.facts.clone()?);
    Some(Effect::Save(Save::Rig {
        facts,
        cards: model.rig.gpus.cards.clone(),
    }))
}

/// Records a moment on the time axis.
fn mark(
    model: &mut Model,
    kind: super::history::MarkKind,
    context: Option<u64>,
    text: Option<String>,
) -> Effect {
    let mark = super::history::Mark {
        unix_ms: model.now.unix_ms,
        kind,
        context,
        text,
    };
    model.marks.push(mark.clone());
    Effect::Save(Save::Mark(mark))
}

pub(super) fn save_tried(model: &mut Model, context: u64) -> Effect {
    let tried = model.tried_mut(context).clone();
    Effect::Save(Save::Tried(Box::new(tried)))
}

/// Blocks and frees what the served context decides.
fn reassess(model: &mut Model) {
    let Some(profile) = &model.profile else {
        return;
    };
    let plan = if model.settings.quick {
        profile.long_context.quicker()
    } else {
        profile.long_context.clone()
    };
    let steps = model.config.steps(None);
    let served = model.served();
    model.tasks.reassess(served, plan.output, &steps);
    model.bench.blocked = match served {
        None => Vec::new(),
        Some(served) => plan
            .cells()
            .into_iter()
            .filter(|cell| cell.needs() > served)
            .map(|cell| super::bench::BlockedCell {
                cell,
                needs: cell.needs(),
                raise_to: steps.iter().copied().find(|s| *s >= cell.needs()),
            })
            .collect(),
    };
}
