//! The configuration: the context length with its ladder, what another one would cost, and the launch text.

use super::super::pen::{Pen, first_rows, from_row, last_rows, row};
use super::super::widgets::field::text_area;
use super::super::words::{Words, wrap};
use crate::app::forecast;
use crate::app::model::{Model, Pane};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::thousands;
use ratatui::layout::Rect;

/// How the server is run, for the border.
pub fn facts<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    if model.config.editing.is_some() {
        return pen.words().role(Role::Accent, "editing");
    }
    match &model.rig.service {
        Some(service) => pen.words().dim(service.name.clone()),
        None => pen.words().dim("attached only"),
    }
}

/// The line of a pane that is not open.
pub fn summary<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let mut words = pen.words().dim("context ");
    words = match model.running_context() {
        Some(context) => words.strong(thousands(context)),
        None => words.dim(pen.glyphs().none),
    };
    if let Some(chosen) = model
        .config
        .chosen
        .filter(|c| Some(*c) != model.running_context())
    {
        words = words
            .dim(format!(" {} ", pen.glyphs().arrow))
            .role(Role::Accent, thousands(chosen));
    }
    if model.config.edited.is_some() {
        words = words.gap(2).role(Role::Warn, "launch edited, not applied");
    }
    words
}

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model) {
    if let Some(edit) = &model.config.editing {
        let below = error(pen, model, usize::from(area.width));
        let foot = u16::try_from(below.len()).unwrap_or(0).min(area.height / 2);
        let wrong = model.config.error.as_ref().map(|error| error.line);
        text_area(pen, first_rows(area, area.height - foot), edit, wrong);
        put_all(pen, last_rows(area, foot), below);
        return;
    }
    let width = usize::from(area.width);
    let mut lines = vec![chooser(pen, model), ladder(pen, model, width)];
    let running = model.running_context();
    if let Some(chosen) = model
        .config
        .chosen
        .filter(|chosen| Some(*chosen) != running)
    {
        lines.extend(cost(pen, model, chosen, width));
    } else if let Some(last) = forecast::last(model) {
        lines.push(pen.words().dim(last));
    }
    lines.extend(error(pen, model, width));
    let launch = launch(pen, model, width);
    if !launch.is_empty() {
        lines.push(pen.words());
        lines.extend(launch);
    }
    let hint = apply(pen, model);
    let hinted = !hint.is_empty() && area.height > 4;
    let room = usize::from(area.height) - usize::from(hinted);
    if lines.len() > room && room > 4 {
        let more = lines.len() - (room - 1);
        lines.truncate(room - 1);
        let key = if model.zoomed { "" } else { ", z zooms" };
        lines.push(pen.words().dim(format!("{more} lines more{key}")));
    }
    put_all(pen, area, lines);
    if hinted {
        let foot = last_rows(area, 1);
        pen.clear(foot);
        pen.put(foot, hint);
    }
}

fn put_all(pen: &mut Pen<'_>, area: Rect, lines: Vec<Words<'_>>) {
    for (y, words) in (0..area.height).zip(lines) {
        pen.put(row(from_row(area, y), 0), words);
    }
}

fn chooser<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let g = pen.glyphs();
    let words = pen.words().dim("context length").gap(3);
    match model.config.chosen.or(model.running_context()) {
        Some(context) => {
            let ends = if model.can_restart() {
                [g.left, g.right]
            } else {
                [" ", " "]
            };
            words
                .dim(ends[0])
                .gap(1)
                .role(Role::Input, format!(" {} ", thousands(context)))
                .gap(1)
                .dim(ends[1])
        }
        None => words.dim(g.none),
    }
}

/// The steps, the running one strong and the chosen one in the accent, so far as they have room around the chosen one.
fn ladder<'t>(pen: &Pen<'t>, model: &Model, width: usize) -> Words<'t> {
    let running = model.running_context();
    let chosen = model.config.chosen.or(running);
    let steps = model.config.steps(running);
    if steps.is_empty() {
        return pen.words();
    }
    let label = "ladder";
    let at = steps.iter().position(|s| Some(*s) == chosen).unwrap_or(0);
    let mut first = 0;
    let cells = |from: usize| -> usize {
        steps
            .iter()
            .skip(from)
            .take(at + 1 - from)
            .map(|s| thousands(*s).len() + 2)
            .sum()
    };
    while first < at && label.len() + cells(first) > width {
        first += 1;
    }
    let mut words = pen.words().dim(label);
    for step in steps.iter().skip(first) {
        let role = if Some(*step) == chosen {
            Role::Accent
        } else if Some(*step) == running {
            Role::Strong
        } else {
            Role::Dim
        };
        words = words.gap(2).role(role, thousands(*step));
    }
    words
}

/// What the chosen context would cost, as far as it is known.
fn cost<'t>(pen: &Pen<'t>, model: &Model, chosen: u64, width: usize) -> Vec<Words<'t>> {
    let launch = model.next_launch();
    let forecast = forecast::lines(model, chosen, launch.as_ref());
    if forecast.is_empty() {
        return Vec::new();
    }
    let title = format!("at {}", thousands(chosen));
    let mut lines = vec![pen.words(), pen.words().role(Role::Title, title)];
    for doubt in forecast::doubts(model, chosen, launch.as_ref()) {
        for (i, part) in wrap(&doubt, width.saturating_sub(2))
            .into_iter()
            .enumerate()
        {
            let lead = if i == 0 { pen.glyphs().warn } else { " " };
            lines.push(pen.words().role(Role::Warn, format!("{lead} {part}")));
        }
    }
    for line in forecast {
        for (i, part) in wrap(&line, width.saturating_sub(2)).into_iter().enumerate() {
            let lead = if i == 0 { pen.glyphs().between } else { " " };
            lines.push(pen.words().dim(format!("{lead} ")).text(part));
        }
    }
    lines
}

fn error<'t>(pen: &Pen<'t>, model: &Model, width: usize) -> Vec<Words<'t>> {
    let Some(error) = &model.config.error else {
        return Vec::new();
    };
    let text = format!("{} {error}", pen.glyphs().failed);
    wrap(&text, width)
        .into_iter()
        .map(|part| pen.words().role(Role::Bad, part))
        .collect()
}

/// The launch, with the place of the context in the accent.
fn launch<'t>(pen: &Pen<'t>, model: &Model, width: usize) -> Vec<Words<'t>> {
    if model.config.launch_text.is_empty() {
        let text = match model.rig.service {
            Some(_) => return Vec::new(),
            None => "vramp only attaches to this server: nothing can be restarted from here.",
        };
        return wrap(text, width)
            .into_iter()
            .map(|line| pen.words().dim(line))
            .collect();
    }
    let (title, text) = match &model.config.edited {
        Some(edited) => ("launch, edited, not applied", edited),
        None => ("launch", &model.config.launch_text),
    };
    let role = if model.config.edited.is_some() {
        Role::Warn
    } else {
        Role::Title
    };
    let mut lines = vec![pen.words().role(role, title)];
    lines.extend(text.lines().map(|line| {
        let role = if line.contains("{context") {
            Role::Accent
        } else {
            Role::Dim
        };
        pen.words().role(role, line)
    }));
    lines
}

/// The key that applies what is chosen, where it would change something.
fn apply<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let running = model.running_context();
    let differs =
        model.config.chosen.is_some_and(|c| Some(c) != running) || model.config.edited.is_some();
    if model.focus != Pane::Config || !differs || !model.can_restart() || model.running.is_some() {
        return pen.words();
    }
    let apply = pen.key(
        Context::Config,
        Action::ConfigApply,
        "restart as a trial (asks first)",
    );
    if model.config.edited.is_none() {
        return apply;
    }
    let discard = pen.key(Context::Config, Action::ConfigDiscard, "discard edits");
    apply.gap(2).and(discard)
}
