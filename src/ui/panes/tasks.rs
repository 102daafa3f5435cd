//! The task list: a sign, a title, a time; under the ones that need it, what is going on or why not.

use super::super::pen::{Pen, first_columns, from_column, row};
use super::super::view::ViewState;
use super::super::widgets::bar::bar;
use super::super::words::{Words, cut, wrap};
use crate::app::model::{Activity, Model, Pane};
use crate::app::task::{Task, TaskKind, TaskState};
use crate::keymap::{Action, Context};
use crate::theme::Role;
use crate::units::{mm_ss, thousands};
use ratatui::layout::Rect;

/// Lines of a reason at most.
const REASON: usize = 3;

/// One row of the list on screen.
enum Row<'t> {
    /// The task's own line: left, right, and whether the right is a time.
    Title(Words<'t>, Words<'t>, bool),
    Detail(Words<'t>),
    /// Share of 1, and words beside the bar.
    Progress(f64, String),
}

/// Done and all, for the border.
pub fn facts<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let (done, all) = model.tasks.tally();
    if all == 0 {
        return pen.words();
    }
    pen.words().dim(format!("{done} of {all} done"))
}

/// The line of a pane that is not open: what runs, else what is selected.
pub fn summary<'t>(pen: &Pen<'t>, model: &Model) -> Words<'t> {
    let running = |t: &&Task| matches!(t.state, TaskState::Running { .. });
    let (done, all) = model.tasks.tally();
    let tally = pen.words().dim(format!("{done} of {all}")).gap(2);
    match model
        .tasks
        .list
        .iter()
        .find(running)
        .or(model.tasks.selected())
    {
        Some(task) => {
            let (left, right) = title(pen, model, task);
            tally.and(left).gap(2).and(right)
        }
        None => tally.dim("no tasks yet"),
    }
}

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, view: &mut ViewState) {
    if model.tasks.list.is_empty() {
        let words = pen.words().dim("No tasks. ").and(pen.key(
            Context::Tasks,
            Action::TaskAdd,
            "adds one of your own",
        ));
        pen.put(area, words);
        return;
    }
    let mut rows: Vec<(usize, Row<'_>)> = Vec::new();
    let mut selected = (0, 0);
    for (index, task) in model.tasks.list.iter().enumerate() {
        let start = rows.len();
        let own = index == model.tasks.selected;
        rows.extend(
            task_rows(pen, model, task, own, usize::from(area.width))
                .into_iter()
                .map(|row| (index, row)),
        );
        if own {
            selected = (start, rows.len());
        }
    }
    let height = usize::from(area.height);
    view.tasks_top = scrolled(view.tasks_top, selected, rows.len(), height);
    for (y, (index, content)) in (0u16..).zip(rows.into_iter().skip(view.tasks_top).take(height)) {
        let place = row(area, y);
        let head = matches!(content, Row::Title(..));
        draw_row(pen, place, content);
        if head && index == model.tasks.selected && model.focus == Pane::Tasks {
            pen.select(place);
        }
        view.lines.push((Pane::Tasks, place, index));
    }
}

/// The first row on screen, so that the selected rows are in sight and no room is wasted.
fn scrolled(top: usize, selected: (usize, usize), rows: usize, height: usize) -> usize {
    let top = top.min(rows.saturating_sub(height));
    if selected.0 < top {
        selected.0
    } else if selected.1 > top + height {
        (selected.1 - height).min(selected.0)
    } else {
        top
    }
}

fn draw_row(pen: &mut Pen<'_>, place: Rect, content: Row<'_>) {
    match content {
        Row::Title(left, right, is_time) => {
            // A word that does not fit gives way to the title: the sign and the lines below say the same. A time stays.
            let fits = left.width() + right.width() < usize::from(place.width);
            let used = if fits || is_time {
                pen.put_right(place, right)
            } else {
                0
            };
            let room = place.width.saturating_sub(used + u16::from(used > 0));
            pen.put(first_columns(place, room), left);
        }
        Row::Detail(words) => {
            pen.put(from_column(place, 2), words);
        }
        Row::Progress(share, words) => {
            let words = pen.words().dim(words);
            let used = pen.put_right(place, words);
            let room = from_column(place, 2);
            let fill = pen.style(Role::BarFill);
            bar(
                pen,
                first_columns(room, room.width.saturating_sub(used + 1)),
                share,
                fill,
            );
        }
    }
}

fn task_rows<'t>(
    pen: &Pen<'t>,
    model: &Model,
    task: &Task,
    selected: bool,
    cells: usize,
) -> Vec<Row<'t>> {
    let (left, right) = title(pen, model, task);
    let is_time = matches!(
        task.state,
        TaskState::Done { .. } | TaskState::Running { .. }
    );
    let mut rows = vec![Row::Title(left, right, is_time)];
    let room = cells.saturating_sub(2);
    let mut reason = |role: Role, text: &str, lines: usize| {
        for (i, line) in wrap(text, room).into_iter().enumerate().take(lines) {
            let line = if i + 1 == lines {
                cut(&line, room, pen.glyphs().ellipsis)
            } else {
                line
            };
            rows.push(Row::Detail(pen.words().role(role, line)));
        }
    };
    match &task.state {
        TaskState::Failed { why, .. } => {
            reason(Role::Bad, why, if selected { 2 * REASON } else { REASON });
        }
        TaskState::Blocked { why, raise_to } => {
            reason(Role::Dim, why, REASON);
            if let Some(to) = raise_to {
                let text = format!("{} raise to {}", pen.glyphs().arrow, thousands(*to));
                reason(Role::Dim, &text, 1);
            }
        }
        TaskState::Running { share, .. } => {
            let words = progress(model, task);
            match share {
                Some(share) => rows.push(Row::Progress(f64::from(*share) / 1000.0, words)),
                None if !words.is_empty() => reason(Role::Accent, &words, 1),
                None => {}
            }
        }
        _ => {}
    }
    if selected
        && let Some(note) = &task.note
        && !matches!(task.state, TaskState::Running { .. })
    {
        for line in wrap(note, room).into_iter().take(REASON) {
            rows.push(Row::Detail(pen.words().dim(line)));
        }
    }
    rows
}

/// What a running task does now, in a few words.
fn progress(model: &Model, task: &Task) -> String {
    let Some(running) = model.running.as_ref().filter(|r| r.task == Some(task.id)) else {
        return String::new();
    };
    if running.stopping {
        return "stopping".into();
    }
    match running.activity {
        Activity::Bench => model.bench.run.as_ref().map_or_else(String::new, |run| {
            format!("{} of {} req", run.live.done, run.live.of)
        }),
        Activity::Checks => model.bench.checks.as_ref().map_or_else(String::new, |c| {
            format!("{} of {}: {}", c.done, c.of, c.name)
        }),
        Activity::Restart => model.restart.as_ref().map_or_else(String::new, |restart| {
            let words = restart.words();
            match restart.still {
                Some(_) => format!("no progress: {words}"),
                None => words,
            }
        }),
        Activity::Attaching | Activity::Smoke => String::new(),
    }
}

/// The line of a task: sign and title, time or state.
fn title<'t>(pen: &Pen<'t>, model: &Model, task: &Task) -> (Words<'t>, Words<'t>) {
    let g = pen.glyphs();
    let own = task.kind == TaskKind::Own;
    let words = || pen.words();
    let line = |sign_role, sign: &str, role| {
        words()
            .role(sign_role, sign)
            .gap(1)
            .role(role, task.title.clone())
    };
    let mine = || if own { words().dim("mine") } else { words() };
    match &task.state {
        TaskState::Pending if own => (line(Role::Dim, g.own, Role::Dim), mine()),
        TaskState::Pending => (line(Role::Dim, g.pending, Role::Dim), words()),
        TaskState::Running {
            since_unix_ms,
            left_ms,
            ..
        } => {
            let time = match left_ms {
                Some(left) => format!("~{}", mm_ss(*left)),
                None => {
                    let ms = model.now.unix_ms.saturating_sub(*since_unix_ms);
                    mm_ss(u64::try_from(ms).unwrap_or(0))
                }
            };
            let line = line(Role::Accent, g.running, Role::Strong);
            (line, words().dim(time))
        }
        TaskState::Done { .. } if own => (line(Role::Good, g.done, Role::Text), mine()),
        TaskState::Done { took_ms } => (
            line(Role::Good, g.done, Role::Text),
            words().dim(mm_ss(*took_ms)),
        ),
        TaskState::Failed { .. } => (
            line(Role::Bad, g.failed, Role::Text),
            words().role(Role::Bad, "failed"),
        ),
        TaskState::Blocked { .. } => (
            line(Role::Warn, g.blocked, Role::Text),
            words().role(Role::Warn, "blocked"),
        ),
        TaskState::Skipped => (
            line(Role::Dim, g.skipped, Role::Dim),
            words().dim("skipped"),
        ),
        TaskState::Waiting => (
            line(Role::Warn, g.waiting, Role::Text),
            words().role(Role::Warn, "waits for you"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_rows_are_in_sight_and_no_room_is_wasted() {
        assert_eq!(scrolled(0, (3, 5), 20, 10), 0);
        assert_eq!(scrolled(0, (12, 14), 20, 10), 4);
        assert_eq!(scrolled(8, (3, 5), 20, 10), 3);
        assert_eq!(scrolled(15, (12, 14), 20, 10), 10);
        assert_eq!(scrolled(0, (2, 9), 20, 3), 2);
        assert_eq!(scrolled(4, (0, 0), 0, 10), 0);
    }
}
