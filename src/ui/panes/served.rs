//! What the server makes of the memory: its pool, what bounds a request, the tightest card, its machine; while a restart runs, how far
//! it is.

use super::super::pen::{Pen, row};
use super::super::words::Words;
use super::host;
use crate::app::model::{Activity, Model};
use crate::app::rig::PoolSize;
use crate::clock::hm;
use crate::engine::Facts;
use crate::memory;
use crate::ramp::Leg;
use crate::theme::Role;
use crate::units::{gib, mm_ss, thousands};
use ratatui::layout::Rect;

/// Cells from which on the pool and its use stand on one line.
const ONE_LINE: u16 = 140;

/// Rows for all lines in an area of this width.
pub fn rows(width: u16) -> u16 {
    if width >= ONE_LINE { 5 } else { 6 }
}

/// Draws as many lines as have room, the most important first.
pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    if area.is_empty() {
        return;
    }
    let restarts = model
        .running
        .as_ref()
        .is_some_and(|r| r.activity == Activity::Restart);
    let mut lines = match (restarts, model.rig.up()) {
        (true, _) => restart_lines(pen, model),
        (false, true) => served_lines(pen, model, area.width >= ONE_LINE),
        // What the pool held is history.
        (false, false) => Vec::new(),
    };
    lines.extend(host::line(pen, model));
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
    if restart.phase.is_some() {
        line = line
            .dim(format!(" {} ", pen.glyphs().between))
            .text(restart.words());
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
    if let Some(still) = &restart.still {
        lines.push(pen.words().role(Role::Warn, still.clone()));
    }
    if let Some(last) = model.log.back() {
        lines.push(pen.words().dim(last.clone()));
    }
    lines
}

fn served_lines<'t>(pen: &Pen<'t>, model: &Model, one_line: bool) -> Vec<Words<'t>> {
    let Some(facts) = &model.rig.facts else {
        return Vec::new();
    };
    let note = match facts.kind.memory_grows_with_context() {
        Some(false) => "The pool is taken at start: memory stays, more context is less capacity.",
        Some(true) => "The KV cache is taken at start for the whole context: memory grows with it.",
        None => "This engine does not say what the context costs.",
    };
    let (mut pool, mut usage) = (pool(pen, model, facts), usage(pen, model, facts));
    if one_line {
        pool.append(&mut usage);
    }
    let parts = [pool, usage].into_iter().filter(|parts| !parts.is_empty());
    let mut lines: Vec<Words<'t>> = parts.map(|parts| pen.words().join(parts, 3)).collect();
    lines.push(bounds(pen, model, facts));
    lines.push(pen.words().dim(note));
    lines.extend(tightest(pen, model));
    lines
}

/// The pool in tokens and bytes, and how many requests of full length that is.
fn pool<'t>(pen: &Pen<'t>, model: &Model, facts: &Facts) -> Vec<Words<'t>> {
    let mut parts = Vec::new();
    if let Some(tokens) = facts.context.pool_tokens.known() {
        let words = pen.words().dim("KV pool ").text(thousands(*tokens));
        let words = words.dim(" tokens");
        parts.push(match model.rig.since_start.pool {
            Some(PoolSize::Card(bytes)) => words.gap(1).text(gib(bytes)).dim(" GiB a card"),
            Some(PoolSize::Whole(bytes)) => words.gap(1).text(gib(bytes)).dim(" GiB"),
            None => words,
        });
    }
    if let (Some(capacity), Some(served)) = (facts.context.capacity(), model.served()) {
        let times = pen.glyphs().times;
        let text = format!("{capacity:.1} {times} {}", thousands(served));
        parts.push(pen.words().dim("capacity ").strong(text));
    }
    parts
}

/// What of the pool is used now and was at most, and the requests there are.
fn usage<'t>(pen: &Pen<'t>, model: &Model, facts: &Facts) -> Vec<Words<'t>> {
    let load = &model.rig.load;
    let mut parts = Vec::new();
    if let Some(used) = load.kv_use.known() {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut words = pen.words().dim("used ").text(percent(*used));
        if let Some(pool) = facts.context.pool_tokens.known() {
            let tokens = (*pool as f64 * used).round() as u64;
            words = words.dim(" = ").text(thousands(tokens)).dim(" tokens");
        }
        if let Some(peak) = model.rig.since_start.kv_peak {
            words = words.dim(", peak ").text(percent(peak));
        }
        parts.push(words);
    }
    for (name, value) in [("running ", &load.running), ("waiting ", &load.waiting)] {
        if let Some(n) = value.known() {
            parts.push(pen.words().dim(name).text(n.to_string()));
        }
    }
    if let Some(accept) = load.accept_length.known() {
        parts.push(pen.words().dim("accept ").text(format!("{accept:.1}")));
    }
    parts
}

/// What a request can really use, and what bounds it.
fn bounds<'t>(pen: &Pen<'t>, model: &Model, facts: &Facts) -> Words<'t> {
    let context = &facts.context;
    let show = |n: Option<&u64>| n.map_or(pen.glyphs().none.to_string(), |n| thousands(*n));
    // A server that does not tell its flag was started by a service that knows it.
    let started = model.rig.config.as_ref().map(|config| &config.context);
    // Nor does every server tell the model's own limit; its file does.
    let geometry = model.rig.geometry.as_ref().and_then(|g| g.as_ref().ok());
    let of_file = geometry.and_then(|geometry| memory::limit(geometry, facts.kind));
    let bounds = [
        ("flag", context.configured.known().or(started)),
        ("model", context.model_limit.known().or(of_file.as_ref())),
        ("pool", context.pool_tokens.known()),
        ("slot", context.per_slot.known()),
    ];
    let bounds: Vec<String> = bounds
        .iter()
        .map(|(name, n)| format!("{name} {}", show(*n)))
        .collect();
    pen.words()
        .dim("effective ")
        .strong(show(context.effective.known()))
        .gap(2)
        .dim(bounds.join(&format!(" {} ", pen.glyphs().between)))
}

/// The card that decides, and how little was free on any of the server's cards since it serves.
fn tightest<'t>(pen: &Pen<'t>, model: &Model) -> Option<Words<'t>> {
    let (card, free) = model.rig.gpus.tightest(model.cards())?;
    let sign = pen.glyphs().card;
    let mut words = pen
        .words()
        .dim("tightest ")
        .styled(pen.theme.card(card.index), sign)
        .text(card.index.to_string())
        .gap(2)
        .strong(gib(free))
        .dim(" GiB free");
    if let Some((index, lowest)) = model.rig.since_start.lowest {
        words = words.dim(", lowest ").text(gib(lowest));
        if index != card.index {
            words = words
                .dim(" on ")
                .styled(pen.theme.card(index), sign)
                .text(index.to_string());
        }
        if let Some(since) = model.rig.serving_since {
            words = words.dim(format!(" since {}", hm(since.unix_ms)));
        }
    }
    Some(words)
}
