//! The first line: what is served, how, and how tight it is. What finds no room leaves in the order of its rank.

use super::pen::{Pen, first_columns};
use super::words::{Words, cut, width};
use crate::app::model::{Activity, Model};
use crate::app::rig::Connection;
use crate::clock::hms;
use crate::engine::Health;
use crate::theme::Role;
use crate::units::{gib, mm_ss, model_name, thousands};
use ratatui::layout::Rect;

/// Blanks between two facts, and where there is little room.
const GAP: usize = 3;
const SMALL_GAP: usize = 2;
/// Cells under which facts are said in fewer words.
const NARROW: u16 = 100;
/// Cells of a model's name at most.
const NAME: usize = 32;

/// A fact with its rank: the highest leaves first, 0 stays.
type Fact<'t> = (u8, Words<'t>);

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    let ground = pen.style(Role::Header);
    pen.tint(area, ground);
    let inner = Rect {
        x: area.x + 1,
        width: area.width.saturating_sub(2),
        ..area
    };
    let all = facts(pen, model, inner.width < NARROW);
    let wide = usize::from(inner.width);
    let whole: usize = all.iter().map(|(_, words)| words.width() + GAP).sum();
    let gap = if whole > wide + GAP { SMALL_GAP } else { GAP };
    let mut facts = fitting(all, wide, gap);
    // The clock stands at the right end, wherever the rest stands.
    let clock = facts
        .iter()
        .position(|(rank, _)| *rank == CLOCK)
        .map(|at| facts.remove(at).1);
    let mut used = 0;
    if let Some(clock) = clock {
        used = pen.put_right(inner, clock) + 1;
    }
    let line = pen
        .words()
        .join(facts.into_iter().map(|(_, words)| words), gap);
    pen.put(first_columns(inner, inner.width.saturating_sub(used)), line);
}

/// The facts that have room, in their order: each in the turn of its rank, so that a long one that does not fit keeps no short one out.
fn fitting(facts: Vec<Fact<'_>>, wide: usize, gap: usize) -> Vec<Fact<'_>> {
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|at| facts.get(*at).map_or(0, |(rank, _)| *rank));
    let mut left = wide + gap;
    let mut stays = vec![false; facts.len()];
    for at in order {
        let Some((rank, words)) = facts.get(at) else {
            continue;
        };
        let needs = words.width() + gap;
        if *rank == 0 || needs <= left {
            left = left.saturating_sub(needs);
            if let Some(stay) = stays.get_mut(at) {
                *stay = true;
            }
        }
    }
    let both = facts.into_iter().zip(stays);
    both.filter_map(|(fact, stay)| stay.then_some(fact))
        .collect()
}

/// The rank of the time of day, which stands at the right end.
const CLOCK: u8 = 6;

fn facts<'t>(pen: &Pen<'t>, model: &Model, narrow: bool) -> Vec<Fact<'t>> {
    let words = || pen.words();
    let mut facts = vec![(0, words().role(Role::Key, "vramp"))];
    if model.simulated() {
        facts.push((0, words().role(Role::Simulated, " SIMULATED ")));
    }
    if let Some(server) = &model.rig.facts {
        if let Some(name) = server.model.known() {
            let name = cut(model_name(name), NAME, pen.glyphs().ellipsis);
            facts.push((if width(&name) > 16 { 5 } else { 3 }, words().strong(name)));
        }
        let version = server.version.known().map_or("?", String::as_str);
        facts.push((7, words().dim(format!("{} {version}", server.kind.name()))));
    }
    facts.push((0, state(pen, model)));
    facts.extend(badges(pen, model));
    facts.extend(context(pen, model));
    facts.extend(cards(pen, model, narrow));
    if !model.who.user.is_empty() {
        facts.push((9, words().dim(model.who.to_string())));
    }
    facts.push((CLOCK, words().dim(hms(model.now.unix_ms))));
    facts
}

/// The state of the server by sign and word. Ready is only what answered a real token.
fn state<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let glyphs = pen.glyphs();
    let say = |role: Role, sign: &str, text: &str| pen.words().role(role, format!("{sign} {text}"));
    if let Some(running) = &model.running
        && running.activity == Activity::Restart
        && let Some(restart) = &model.restart
    {
        return say(Role::Accent, glyphs.running, &restart.words());
    }
    match &model.rig.connection {
        Connection::None => say(Role::Dim, glyphs.pending, "not attached"),
        Connection::Trying => say(Role::Accent, glyphs.running, "attaching"),
        Connection::Restarting => say(Role::Accent, glyphs.running, "restarting"),
        Connection::Down { .. } => say(Role::Bad, glyphs.failed, "down"),
        Connection::Up { .. } => match model.rig.facts.as_ref().map(|f| &f.health) {
            Some(Health::Down(_)) => say(Role::Bad, glyphs.failed, "not serving"),
            Some(Health::Loading) => say(Role::Warn, glyphs.pending, "loading"),
            _ if model.rig.smoke_passed.is_some() => say(Role::Good, glyphs.dot, "ready"),
            _ => say(Role::Text, glyphs.dot, "up, not proven"),
        },
    }
}

fn badges<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Fact<'t>> {
    let mut out = Vec::new();
    if model.question_waits {
        let text = format!("{} a question waits", pen.glyphs().waiting);
        out.push((1, pen.words().role(Role::Warn, text)));
    }
    if let (Some(left), Some(production)) = (model.deadline_left_ms(), model.production()) {
        let text = format!("{} back in {}", thousands(production), mm_ss(left));
        out.push((1, pen.words().role(Role::Warn, text)));
    }
    if model.settings.read_only.is_some() {
        out.push((0, pen.words().role(Role::Warn, "read-only")));
    }
    if model.frozen.is_some() {
        out.push((1, pen.words().role(Role::Warn, "charts frozen")));
    }
    if let Some(foreign) = model.foreign().filter(|n| *n > 0) {
        let text = format!(
            "{foreign} {} of others",
            if foreign == 1 { "request" } else { "requests" }
        );
        out.push((2, pen.words().role(Role::Warn, text)));
    }
    out
}

fn context<'t>(pen: &Pen<'t>, model: &Model) -> Vec<Fact<'t>> {
    let mut out = Vec::new();
    let production = model.production();
    let Some(served) = model.served() else {
        out.extend(production.map(|p| {
            let words = pen.words().dim("production ").text(thousands(p));
            (4, words)
        }));
        return out;
    };
    let mut words = pen.words().dim("context ").strong(thousands(served));
    if model.on_trial() {
        words = words.role(Role::Warn, " trial");
    }
    out.push((0, words));
    if let Some(production) = production {
        let words = if model.on_trial() {
            pen.words().dim("production ").text(thousands(production))
        } else {
            pen.words().dim("production")
        };
        out.push((5, words));
    }
    if let Some(capacity) = model.rig.facts.as_ref().and_then(|f| f.context.capacity()) {
        let times = pen.glyphs().times;
        let words = pen
            .words()
            .dim("capacity ")
            .strong(format!("{capacity:.1} {times}"));
        out.push((4, words));
    }
    out
}

fn cards<'t>(pen: &Pen<'t>, model: &Model, narrow: bool) -> Vec<Fact<'t>> {
    let mut out = Vec::new();
    let gpus = &model.rig.gpus;
    if let Some((card, free)) = gpus.tightest(model.cards()) {
        let lead = if narrow {
            "tightest ".to_string()
        } else {
            format!("tightest card {} ", card.index)
        };
        let words = pen
            .words()
            .dim(lead)
            .text(format!("{} GiB", gib(free)))
            .dim(" free");
        out.push((2, words));
    }
    if let Some(first) = gpus.cards.first() {
        let same = gpus.cards.iter().all(|card| card.name == first.name);
        let text = if same {
            format!("{} {} {}", gpus.cards.len(), pen.glyphs().times, first.name)
        } else {
            format!("{} cards", gpus.cards.len())
        };
        out.push((8, pen.words().dim(text)));
    }
    out
}
