//! An unfinished restart that was found at the start: what it was, how far it came, both ways out.

use super::super::pen::Pen;
use super::sheet::Sheet;
use super::text_width;
use crate::app::dialog::Recovery;
use crate::app::model::Model;
use crate::app::rig::Connection;
use crate::clock::date_time;
use crate::keymap::{Action, Context};
use crate::ramp::Leg;
use crate::theme::Role;
use crate::units::thousands;
use ratatui::layout::Rect;

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, recovery: &Recovery) {
    let (intent, _) = recovery.go_on.action();
    let plan = &intent.plan;
    let width = text_width(area);
    let to = thousands(plan.to.context);
    let mut sheet = Sheet::new(pen, "Unfinished restart");
    let question = match intent.leg {
        Leg::Forward => {
            format!("A restart at {to} tokens did not come to its end. Go on with it, or go back?")
        }
        Leg::Back => {
            format!("A restart at {to} tokens failed, and the way back did not come to its end.")
        }
    };
    sheet.text(pen, Role::Strong, "", &question, width);
    sheet.space(pen);
    let mut change = pen.words();
    if let Some(from) = &plan.from {
        change = change
            .text(thousands(from.context))
            .dim(format!(" {} ", pen.glyphs().arrow));
    }
    sheet.line(change.strong(to.clone()).dim(" tokens a request"));
    sheet.line(
        pen.words()
            .dim("it was at: ")
            .text(intent.step.words())
            .dim(if intent.leg == Leg::Back {
                ", on the way back"
            } else {
                ""
            }),
    );
    sheet.line(
        pen.words()
            .dim("begun ")
            .text(date_time(intent.since_unix_ms))
            .dim(" by ")
            .text(intent.by.clone()),
    );
    if let Some(failure) = &intent.failure {
        sheet.text(pen, Role::Bad, "it failed: ", failure, width);
    }
    sheet.line(pen.words().dim("now: ").text(now(model)));
    if intent.leg == Leg::Forward {
        // On the way back there is one way only.
        let go_on = format!("go on to {to}");
        sheet.key(pen, Context::Recovery, Action::GoOn, &go_on);
    }
    let back = match &plan.on_failure {
        Some(target) => format!(
            "bring back {} ({})",
            thousands(target.config.context),
            target.kind.words()
        ),
        None => "give it up: there is nothing to go back to".to_string(),
    };
    sheet.key(pen, Context::Recovery, Action::BringBack, &back);
    sheet.key(pen, Context::Recovery, Action::Back, "leave it for now");
    sheet.draw(pen, area);
}

/// What became of the server meanwhile.
fn now(model: &Model) -> String {
    match (&model.rig.connection, model.served()) {
        (Connection::Up { .. }, Some(served)) => {
            format!("the server answers, at {} tokens", thousands(served))
        }
        (Connection::Up { .. }, None) => "the server answers".to_string(),
        (Connection::None | Connection::Trying, _) => "looking for the server".to_string(),
        _ if model.rig.config.is_some() => "its process runs and does not answer".to_string(),
        _ => "no server answers".to_string(),
    }
}
