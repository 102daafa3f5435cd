//! The restart: what is asked for, what it will cost, what the operator said.

use super::super::dialog::{Dialog, Recovery, RestartDialog};
use super::super::diff;
use super::super::effect::Effect;
use super::super::forecast;
use super::super::model::{Activity, Model, RestartView, Tone};
use super::super::task::TaskKind;
use super::begin;
use crate::confirm::{Confirmed, Pending};
use crate::ramp::{self, Drain, Intent, Known, Purpose, RestartPlan, WayOut};
use crate::service::Config;
use crate::units::thousands;

/// The context that a first start brings.
pub fn start_context(model: &Model) -> Option<u64> {
    ramp::start_context(model.production(), &model.config.ladder)
}

/// The plan of a restart, with all its ways out. `None` where vramp cannot start this server.
pub fn plan(model: &Model, purpose: Purpose, context: u64) -> Option<RestartPlan> {
    let launch = match purpose {
        Purpose::Change => model.next_launch()?,
        Purpose::Start | Purpose::RollBack => model.launch()?.clone(),
    };
    let known = Known {
        running: model.rig.config.clone(),
        last_good: model.rig.last_good.clone(),
        production: model.production(),
    };
    let deadline = model.profile.as_ref()?.confirm_within_s;
    let to = Config { context, launch };
    Some(RestartPlan::new(purpose, to, known, deadline))
}

/// Asks for a restart at `context`, or says why it cannot be.
pub fn ask(model: &mut Model, purpose: Purpose, context: u64, task: Option<u64>) {
    if let Some(why) = &model.settings.read_only {
        let why = why.clone();
        model.say(
            Tone::Warn,
            format!("{why}: nothing can be restarted from here"),
        );
        return;
    }
    if let Some(running) = &model.running {
        let text = format!("a {} runs; x stops it", running.activity.words());
        model.say(Tone::Warn, text);
        return;
    }
    if model.rig.service.is_none() {
        model.say(
            Tone::Warn,
            "this server is only attached: put how it is run into a profile ([profile.NAME.process]) and vramp can restart it",
        );
        return;
    }
    if model.rig.up() && model.rig.config.is_none() {
        model.say(
            Tone::Warn,
            "vramp did not start this server and does not stop it. Stop it yourself, then Enter on the first task starts it here",
        );
        return;
    }
    if let Some(error) = &model.config.error
        && purpose == Purpose::Change
    {
        let text = format!("the launch text has a fault: {error}");
        model.say(Tone::Bad, text);
        return;
    }
    let purpose = if model.rig.config.is_none() {
        Purpose::Start
    } else {
        purpose
    };
    let Some(plan) = plan(model, purpose, context) else {
        return;
    };
    if plan.from.as_ref() == Some(&plan.to) && model.rig.up() {
        let text = format!(
            "the server already runs with a context of {}",
            thousands(context)
        );
        model.say(Tone::Plain, text);
        return;
    }
    let dialog = RestartDialog {
        forecast: forecast::lines(model, context, Some(&plan.to.launch)),
        warnings: forecast::warnings(model, &plan),
        diff: diff::launches(plan.from.as_ref(), &plan.to),
        pending: Pending::new(plan),
        task,
        drain: None,
    };
    model.dialogs.push(Dialog::Restart(Box::new(dialog)));
}

/// The operator waits for other people's requests to end.
pub fn drain(model: &mut Model) {
    let now = model.now;
    if let Some(Dialog::Restart(dialog)) = model.dialogs.last_mut() {
        dialog.drain.get_or_insert(Drain::new(now));
    }
    watch_drain(model);
}

/// Looks whether others still use the server.
pub fn watch_drain(model: &mut Model) {
    let (now, foreign) = (model.now, model.foreign());
    if let Some(Dialog::Restart(dialog)) = model.dialogs.last_mut()
        && let Some(drain) = &mut dialog.drain
    {
        drain.seen(now, foreign);
    }
}

/// The operator said yes.
pub fn confirmed(
    model: &mut Model,
    confirmed: Confirmed<RestartPlan>,
    task: Option<u64>,
) -> Vec<Effect> {
    let plan = confirmed.action().clone();
    let task = task.or_else(|| task_for(model, &plan));
    take_over(model, &plan, task);
    vec![Effect::Restart(confirmed)]
}

fn task_for(model: &Model, plan: &RestartPlan) -> Option<u64> {
    let wanted = match plan.purpose {
        Purpose::Start => TaskKind::Attach,
        _ => TaskKind::Raise {
            to: plan.to.context,
        },
    };
    model.tasks.find(|t| t.kind == wanted).map(|t| t.id)
}

/// A restart begins.
pub fn take_over(model: &mut Model, plan: &RestartPlan, task: Option<u64>) {
    forecast::remember(model, &plan.to);
    begin(model, Activity::Restart, task);
    model.restart = Some(RestartView::new(plan, model.now));
    model.rig.deadline_s = plan.deadline_s;
    model.question_waits = false;
    model.question_after = false;
}

/// An unfinished restart was found.
pub fn found(model: &mut Model, intent: Intent) {
    model.say(
        Tone::Warn,
        format!(
            "an unfinished restart was found, at the step \"{}\"",
            intent.step.words()
        ),
    );
    model.rig.unfinished = true;
    let recovery = Recovery {
        go_on: Pending::new((intent.clone(), WayOut::GoOn)),
        roll_back: Pending::new((intent, WayOut::RollBack)),
    };
    model.dialogs.retain(|d| !matches!(d, Dialog::Recovery(_)));
    model.dialogs.push(Dialog::Recovery(Box::new(recovery)));
}

/// The operator chose a way out of an unfinished restart.
pub fn recover(model: &mut Model, confirmed: Confirmed<(Intent, WayOut)>) -> Vec<Effect> {
    let plan = confirmed.action().0.plan.clone();
    let task = task_for(model, &plan);
    let interrupted =
        confirmed.action().1 == WayOut::RollBack && confirmed.action().0.failure.is_none();
    take_over(model, &plan, task);
    if let Some(view) = &mut model.restart {
        view.interrupted = interrupted;
    }
    vec![Effect::Recover(confirmed)]
}
