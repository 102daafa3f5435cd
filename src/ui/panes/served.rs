//! What the server makes of the memory: its pool and what bounds a request; while a restart runs, how far it is.

use super::super::pen::{Pen, row};
use super::super::words::Words;
use crate::app::model::{Activity, Model};
use crate::ramp::Leg;
use crate::theme::Role;
use crate::units::{gib, mm_ss, thousands};
use ratatui::layout::Rect;

/// Rows under the chart.
pub const ROWS: u16 = 3;

/// What the pool holds, what bounds a request, and what the context does to memory here; while a restart runs, how far it is.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    if area.is_empty() {
        return;
    }
    let restarts = model
        .running
        .as_ref()
        .is_some_and(|r| r.activity == Activity::Restart);
    if !restarts && !model.rig.up() {
        // What the pool held is history.
        return;
    }
    let lines = if restarts {
        restart_lines(pen, model)
    } else {
        served_lines(pen, model)
    };
    for (y, words) in (0u16..).zip(lines) {
        pen.put(row(area, y), words);
    }
}

fn restart_lines<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Words<'t>> {
    let Some(restart) = &model.restart else {
        return Vec::new();
    };
    let mut line = pen
        .words()
        .role(Role::Accent, format!("{} ", pen.glyphs().running));
    if restart.leg == Leg::Back {
        line = line
            .role(
                Role::Bad,
                format!("{} failed", thousands(restart.asked.context)),
            )
            .dim(", going back to ");
    } else if let Some(from) = restart.from {
        line = line
            .text(thousands(from))
            .dim(format!(" {} ", pen.glyphs().arrow));
    }
    line = line
        .strong(thousands(restart.to))
        .gap(2)
        .role(Role::Accent, restart.step.words());
    if let Some(phase) = restart.phase {
        line = line
            .dim(format!(" {} ", pen.glyphs().between))
            .text(phase.words());
    }
    if let Some(percent) = restart.percent {
        line = line.text(format!(" {percent} %"));
    }
    line = line.gap(2).dim(mm_ss(model.now.since(restart.since)));
    let mut lines = vec![line];
    if !restart.held.is_empty() {
        let held: Vec<String> = restart
            .held
            .iter()
            .map(|(card, bytes)| format!("card {card} {} GiB", gib(*bytes)))
            .collect();
        lines.push(
            pen.words()
                .dim("still held: ")
                .role(Role::Warn, held.join(", ")),
        );
    }
    if let Some(last) = model.log.back() {
        lines.push(pen.words().dim(last.clone()));
    }
    lines
}

fn served_lines<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Words<'t>> {
    let Some(facts) = &model.rig.facts else {
        return Vec::new();
    };
    let context = &facts.context;
    let load = &model.rig.load;
    let g = pen.glyphs();
    let mut now = Vec::new();
    if let Some(tokens) = context.pool_tokens.known() {
        let words = pen.words().dim("KV pool ").text(thousands(*tokens));
        now.push(words.dim(" tokens"));
    }
    if let Some(used) = load.kv_use.known() {
        let percent = format!("{:.0} %", used * 100.0);
        now.push(pen.words().dim("used ").text(percent));
    }
    if let (Some(capacity), Some(served)) = (context.capacity(), model.served()) {
        let text = format!("{capacity:.1} {} {}", g.times, thousands(served));
        now.push(pen.words().dim("capacity ").strong(text));
    }
    for (name, value) in [("running ", &load.running), ("waiting ", &load.waiting)] {
        if let Some(n) = value.known() {
            now.push(pen.words().dim(name).text(n.to_string()));
        }
    }
    if let Some(accept) = load.accept_length.known() {
        now.push(pen.words().dim("accept ").text(format!("{accept:.1}")));
    }
    let show = |n: Option<&u64>| n.map_or(g.none.to_string(), |n| thousands(*n));
    // A server that does not tell its flag was started by a service that knows it.
    let started = model.rig.config.as_ref().map(|config| &config.context);
    let bounds = [
        ("flag", context.configured.known().or(started)),
        ("model", context.model_limit.known()),
        ("pool", context.pool_tokens.known()),
        ("slot", context.per_slot.known()),
    ];
    let bounds: Vec<String> = bounds
        .iter()
        .map(|(name, n)| format!("{name} {}", show(*n)))
        .collect();
    let line = pen
        .words()
        .dim("effective ")
        .strong(show(context.effective.known()))
        .gap(2)
        .dim(bounds.join(&format!(" {} ", g.between)));
    let note = match facts.kind.memory_grows_with_context() {
        Some(false) => {
            "The pool is taken at start: memory stays, capacity falls as the context grows."
        }
        Some(true) => "The KV cache is taken at start for the whole context: memory grows with it.",
        None => "This engine does not say what the context costs.",
    };
    let mut lines = vec![line, pen.words().dim(note)];
    if !now.is_empty() {
        lines.insert(0, pen.words().join(now, 3));
    }
    lines
}
