//! vramp's own profiles: the launch of a process, with the production value where the template says `{context}`.

use super::Reader;
use super::command::{After, Command, Word};
use super::traced::{Text, made, opened, slice};
use std::ops::Range;
use toml_edit::{Document, Item, Value};

/// The commands of all profiles that start a process.
///
/// # Errors
/// The file that is no TOML, and why.
pub(super) fn commands(reader: &Reader<'_>) -> Result<Vec<Command>, String> {
    let mut out = Vec::new();
    for (number, file) in reader.texts.main.iter().enumerate() {
        let fail = |why: String| format!("{} cannot be read as TOML: {why}", file.name);
        let text = std::str::from_utf8(&file.bytes).map_err(|_| fail("it is not UTF-8".into()))?;
        let document = Document::parse(text).map_err(|error| fail(error.message().to_string()))?;
        let profiles = document.get("profile").and_then(Item::as_table_like);
        for (name, profile) in profiles.into_iter().flat_map(|table| table.iter()) {
            let source = Source {
                number,
                bytes: &file.bytes,
            };
            out.extend(source.command(name, profile));
        }
    }
    Ok(out)
}

struct Source<'a> {
    number: usize,
    bytes: &'a [u8],
}

impl Source<'_> {
    fn command(&self, name: &str, profile: &Item) -> Option<Command> {
        let argv = profile.get("process")?.get("argv")?.as_array()?;
        let production = profile.get("production").and_then(|item| self.number(item));
        let mut command = Command {
            names: vec![name.to_string()],
            ..Command::default()
        };
        for value in argv {
            let (text, end) = self.string(value)?;
            let text = match placeholder(&text) {
                None => text,
                Some(range) => {
                    command.template = true;
                    filled(&text, range, production.as_ref())
                }
            };
            command.words.push(Word {
                text,
                after: After::Flow {
                    file: self.number,
                    at: end,
                    quote: "\"",
                },
            });
        }
        Some(command)
    }

    /// A string that is written without escapes, and where it ends.
    fn string(&self, value: &Value) -> Option<(Text, usize)> {
        let string = value.as_str()?;
        let span = value.span()?;
        let inner = span.start + 1..span.end.checked_sub(1)?;
        let text = match self.bytes.get(inner.clone()) == Some(string.as_bytes()) {
            true => slice(self.number, self.bytes, inner),
            false => made(string.as_bytes()),
        };
        Some((text, span.end))
    }

    fn number(&self, item: &Item) -> Option<Text> {
        let value = item.as_value()?;
        match value.is_integer() {
            true => Some(slice(self.number, self.bytes, value.span()?)),
            false => self.string(value).map(|(text, _)| text),
        }
    }
}

/// Where `{context}` or `{context_total}` stands.
fn placeholder(text: &Text) -> Option<Range<usize>> {
    let shown = super::traced::plain(text);
    ["{context}", "{context_total}"].iter().find_map(|name| {
        let at = shown
            .windows(name.len())
            .position(|window| window == name.as_bytes())?;
        Some(at..at + name.len())
    })
}

fn filled(text: &Text, range: Range<usize>, production: Option<&Text>) -> Text {
    let name = text.get(range.clone()).unwrap_or_default();
    let number = production.cloned().unwrap_or_else(|| opened(name));
    [
        text.get(..range.start).unwrap_or_default(),
        &number,
        text.get(range.end..).unwrap_or_default(),
    ]
    .concat()
}
