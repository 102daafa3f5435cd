//! The edits that turn one command and environment into another.

use super::text::{Edit, add_after, add_line, line_end, remove_lines, string};
use std::ops::Range;
use toml_edit::{Item, Value};

/// Edits of the array `item`: arguments that stay keep their bytes and the comments beside them.
pub(super) fn argv(text: &str, item: &Item, old: &[String], new: &[String]) -> Option<Vec<Edit>> {
    let spans: Vec<Range<usize>> = item
        .as_array()?
        .iter()
        .map(Value::span)
        .collect::<Option<_>>()?;
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = (old.iter().rev().zip(new.iter().rev()))
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let added = new.get(head..new.len() - tail)?;
    let gone = spans.get(head..spans.len() - tail)?;
    let next = spans.get(spans.len() - tail);
    let layout = Layout::of(text, item, &spans)?;
    let edit = match (gone.first().zip(gone.last()), added.is_empty()) {
        (None, true) => return Some(Vec::new()),
        (Some((first, last)), false) => Edit::new(first.start..last.end, layout.join(added)),
        (None, false) => match (head.checked_sub(1).and_then(|at| spans.get(at)), next) {
            (Some(before), _) => Edit::new(
                before.end..before.end,
                format!("{}{}", layout.gap(added.first()?), layout.join(added)),
            ),
            (None, Some(next)) => {
                Edit::new(next.start..next.start, format!("{}, ", layout.join(added)))
            }
            (None, None) => return None,
        },
        (Some((first, last)), true) => match next {
            Some(next) => Edit::new(first.start..next.start, ""),
            None => Edit::new(without_tail(text, first.start, last.end)?, ""),
        },
    };
    Some(vec![edit])
}

/// The last elements, the blanks before them and the comma after them.
fn without_tail(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let start = text.get(..start)?.trim_end().len();
    let rest = text.get(end..)?;
    let comma = rest.len() - rest.trim_start().len();
    let end = if rest.trim_start().starts_with(',') {
        end + comma + 1
    } else {
        end
    };
    Some(start..end)
}

/// How the array is laid out: on one line, or flags on lines of their own with this indentation.
struct Layout {
    new_line: Option<String>,
}

impl Layout {
    fn of(text: &str, item: &Item, spans: &[Range<usize>]) -> Option<Self> {
        let whole = item.span()?;
        let first = spans.first()?.start;
        let opening = text.get(whole.start..first)?;
        let indent = opening.rsplit_once('\n').map(|(_, indent)| indent);
        Some(Layout {
            new_line: indent.map(|indent| format!(",{}{indent}", line_end(text))),
        })
    }

    fn gap(&self, before: &str) -> &str {
        match &self.new_line {
            Some(gap) if before.starts_with('-') => gap,
            _ => ", ",
        }
    }

    fn join(&self, arguments: &[String]) -> String {
        let mut out = String::new();
        for (at, argument) in arguments.iter().enumerate() {
            if at > 0 {
                out.push_str(self.gap(argument));
            }
            out.push_str(&string(argument));
        }
        out
    }
}

type Pairs = [(String, String)];

/// Edits of `env` in the process table `process`.
pub(super) fn env(text: &str, process: &Item, old: &Pairs, new: &Pairs) -> Option<Vec<Edit>> {
    let Some(item) = process.get("env") else {
        return if new.is_empty() {
            Some(Vec::new())
        } else {
            Some(vec![add_after(text, process, "argv", "env", &inline(new))?])
        };
    };
    let table = item.as_table_like()?;
    let lasting = |pairs: &Pairs, other: &Pairs| -> Vec<(String, String)> {
        let known = |name: &str| other.iter().any(|(other, _)| other == name);
        pairs
            .iter()
            .filter(|(name, _)| !known(name))
            .cloned()
            .collect()
    };
    let gone = lasting(old, new);
    let added = lasting(new, old);
    if item.is_inline_table() && !(gone.is_empty() && added.is_empty()) {
        return Some(vec![Edit::new(item.span()?, inline(new))]);
    }
    let mut edits = Vec::new();
    for (name, value) in new {
        if old.iter().any(|(n, v)| n == name && v != value) {
            edits.push(Edit::new(table.get(name)?.span()?, string(value)));
        }
    }
    for (at, (name, _)) in gone.iter().enumerate() {
        // A new entry takes the place of one that goes, so that a place is left for those after it.
        match added.get(at) {
            Some((new_name, value)) => {
                let (key, item) = table.get_key_value(name)?;
                edits.push(Edit::new(key.span()?, new_name.as_str()));
                edits.push(Edit::new(item.span()?, string(value)));
            }
            None => edits.push(remove_lines(text, item, name)?),
        }
    }
    for (name, value) in added.iter().skip(gone.len()) {
        edits.push(match old.last() {
            Some((last, _)) => add_after(text, item, last, name, &string(value))?,
            None => add_line(
                text,
                item.span()?.end,
                &format!("{name} = {}", string(value)),
            ),
        });
    }
    Some(edits)
}

fn inline(pairs: &Pairs) -> String {
    let entries: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name} = {}", string(value)))
        .collect();
    if entries.is_empty() {
        "{}".into()
    } else {
        format!("{{ {} }}", entries.join(", "))
    }
}
