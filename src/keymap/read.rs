//! Reads a keymap file and says exactly where it is wrong.

use super::{Action, Context, Key};
use std::collections::BTreeMap;
use std::ops::Range;
use toml_edit::{Document, Item, TableLike, Value};

type Bindings = BTreeMap<Context, BTreeMap<Action, Vec<Key>>>;

/// What is wrong with a keymap file. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct KeymapError {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

/// Lays the bindings of `text` over `bindings`, then checks the whole.
pub(super) fn merge(bindings: &mut Bindings, text: &str) -> Result<(), KeymapError> {
    let document = Document::parse(text).map_err(|error| {
        fail(
            text,
            error.span(),
            error.message().lines().collect::<Vec<_>>().join(" "),
        )
    })?;
    let mut places = BTreeMap::new();
    for (name, item) in document.iter() {
        let span = key_span(document.as_table(), name).or_else(|| item.span());
        let context: Context = name.parse().map_err(|()| {
            let known: Vec<_> = Context::ALL.iter().map(|c| c.name()).collect();
            fail(
                text,
                span.clone(),
                format!(
                    "unknown place {name:?}; the places are {}",
                    known.join(", ")
                ),
            )
        })?;
        let table = item.as_table_like().ok_or_else(|| {
            fail(
                text,
                span,
                format!("{name} is a table of actions and keys: write [{name}]"),
            )
        })?;
        read_table(bindings, &mut places, text, context, table)?;
    }
    check_double(bindings, &places, text)
}

fn read_table(
    bindings: &mut Bindings,
    places: &mut BTreeMap<(Context, Action), Range<usize>>,
    text: &str,
    context: Context,
    table: &dyn TableLike,
) -> Result<(), KeymapError> {
    for (name, item) in table.iter() {
        let span = key_span(table, name);
        let action: Action = name.parse().map_err(|()| {
            fail(
                text,
                span.clone(),
                format!("unknown action {name:?}{}", nearest(name)),
            )
        })?;
        let keys = read_keys(text, item)?;
        if action.answers() && keys.iter().any(|key| key.code == super::Code::Enter) {
            return Err(fail(
                text,
                item.span(),
                format!(
                    "{action} cannot be on Enter: a habit must not answer a question about the server"
                ),
            ));
        }
        if let Some(span) = item.span().or(span) {
            places.insert((context, action), span);
        }
        bindings.entry(context).or_default().insert(action, keys);
    }
    Ok(())
}

fn read_keys(text: &str, item: &Item) -> Result<Vec<Key>, KeymapError> {
    let wrong = || {
        fail(
            text,
            item.span(),
            "a key is text in quotes, or a list of such: \"z\", [\"Up\", \"k\"], or \"none\""
                .to_string(),
        )
    };
    let read = |value: &Value| -> Result<Key, KeymapError> {
        value
            .as_str()
            .ok_or_else(wrong)?
            .parse()
            .map_err(|what| fail(text, value.span(), what))
    };
    match item.as_value() {
        Some(Value::String(one)) if one.value() == "none" => Ok(Vec::new()),
        Some(Value::Array(several)) => several.iter().map(read).collect(),
        Some(one @ Value::String(_)) => Ok(vec![read(one)?]),
        _ => Err(wrong()),
    }
}

/// One key must not mean two things in one place. The error points at the line of this file that made it so.
fn check_double(
    bindings: &Bindings,
    places: &BTreeMap<(Context, Action), Range<usize>>,
    text: &str,
) -> Result<(), KeymapError> {
    for (context, actions) in bindings {
        let mut seen: BTreeMap<Key, Action> = BTreeMap::new();
        for (action, keys) in actions {
            for key in keys {
                let Some(other) = seen.insert(*key, *action) else {
                    continue;
                };
                let span = places
                    .get(&(*context, *action))
                    .or_else(|| places.get(&(*context, other)));
                return Err(fail(
                    text,
                    span.cloned(),
                    format!(
                        "{key} means {other} and {action} in [{}]; give one of them another key or \"none\"",
                        context.name()
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn key_span(table: &dyn TableLike, name: &str) -> Option<Range<usize>> {
    table.get_key_value(name).and_then(|(key, _)| key.span())
}

/// The action whose name is most like what was written, as a hint.
fn nearest(name: &str) -> String {
    Action::ALL
        .iter()
        .map(|action| {
            let ratio = similar::TextDiff::from_chars(name, action.name()).ratio();
            (ratio, action)
        })
        .filter(|(ratio, _)| *ratio > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(
            || "; `vramp keys` lists them".to_string(),
            |(_, action)| format!("; is {:?} meant?", action.name()),
        )
}

fn fail(text: &str, span: Option<Range<usize>>, what: String) -> KeymapError {
    let at = span.map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or(text);
    KeymapError {
        line: before.matches('\n').count() + 1,
        column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
        what,
    }
}
