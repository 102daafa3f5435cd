//! From the parser's events to a tree.

use super::scalar;
use crate::launch::command::After;
use crate::launch::traced::Text;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::HashMap;

/// A node; aliases are copies of what they stand for, with the same places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::launch) struct Node {
    pub kind: Kind,
    /// For an item of a list: how another one goes behind it.
    pub after: Option<After>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::launch) enum Kind {
    Scalar(Text),
    /// A plain scalar that says nothing: `null`, `~`, an empty place.
    Null,
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Copies that aliases make, at most; more is an attack, not a configuration.
const NODES: usize = 100_000;

/// The documents of a file.
///
/// # Errors
/// What the parser says, with the line.
pub(in crate::launch) fn documents(file: usize, bytes: &[u8]) -> Result<Vec<Node>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_string())?;
    let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let text = text.get(mark..).unwrap_or_default();
    let mut offsets: Vec<usize> = text.char_indices().map(|(at, _)| at + mark).collect();
    offsets.push(bytes.len());
    let mut builder = Builder {
        file,
        bytes,
        offsets,
        open: Vec::new(),
        anchors: HashMap::new(),
        documents: Vec::new(),
        nodes: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let line = error.marker().line();
            format!("line {line}: {}", error.info())
        })?;
        builder.event(event, span)?;
    }
    if builder.open.is_empty() {
        Ok(builder.documents)
    } else {
        Err("it ends in the middle of a list or map".to_string())
    }
}

struct Builder<'a> {
    file: usize,
    bytes: &'a [u8],
    /// Byte of each character.
    offsets: Vec<usize>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    documents: Vec<Node>,
    nodes: usize,
}

struct Open {
    anchor: usize,
    flow: bool,
    /// `None` for a list.
    keys: Option<Vec<Node>>,
    values: Vec<Node>,
    size: usize,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), String> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let start = self.offset(span.start.index());
                let read = scalar::trace(self.file, self.bytes, start, style, &value);
                let null = style == ScalarStyle::Plain
                    && tag.is_none()
                    && matches!(value.as_ref(), "" | "~" | "null" | "Null" | "NULL");
                let kind = match null {
                    true => Kind::Null,
                    false => Kind::Scalar(read.text),
                };
                let after = self.after(start, read.end, style);
                self.add(Node { kind, after }, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, span, None),
            Event::MappingStart(anchor, _) => self.begin(anchor, span, Some(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => self.finish(),
            Event::Alias(anchor) => {
                let copy = self.anchors.get(&anchor).cloned();
                let null = Node {
                    kind: Kind::Null,
                    after: None,
                };
                let (node, size) = copy.unwrap_or((null, 1));
                let start = self.offset(span.start.index());
                let end = self.offset(span.end.index());
                let after = self.after(start, end, ScalarStyle::Plain);
                self.add(Node { after, ..node }, 0, size)
            }
            _ => Ok(()),
        }
    }

    fn offset(&self, character: usize) -> usize {
        let last = self.bytes.len();
        self.offsets.get(character).copied().unwrap_or(last)
    }

    fn begin(&mut self, anchor: usize, span: Span, keys: Option<Vec<Node>>) -> Result<(), String> {
        let sign = self.bytes.get(self.offset(span.start.index())).copied();
        self.open.push(Open {
            anchor,
            flow: matches!(sign, Some(b'[' | b'{')),
            keys,
            values: Vec::new(),
            size: 1,
        });
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = match open.keys {
            Some(keys) => Kind::Map(keys.into_iter().zip(open.values).collect()),
            None => Kind::List(open.values),
        };
        self.add(Node { kind, after: None }, open.anchor, open.size)
    }

    fn add(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), String> {
        self.nodes += size;
        if self.nodes > NODES {
            return Err("its aliases make it too large".to_string());
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.documents.push(node),
            Some(open) => {
                open.size += size;
                match &mut open.keys {
                    Some(keys) if keys.len() == open.values.len() => keys.push(node),
                    _ => open.values.push(node),
                }
            }
        }
        Ok(())
    }

    /// How an item goes behind the scalar, if it is one of a list.
    fn after(&self, start: usize, end: usize, style: ScalarStyle) -> Option<After> {
        let open = self.open.last().filter(|open| open.keys.is_none())?;
        let file = self.file;
        let quote = match style {
            ScalarStyle::SingleQuoted => "'",
            ScalarStyle::DoubleQuoted => "\"",
            _ => "",
        };
        if open.flow {
            let at = end;
            return Some(After::Flow { file, at, quote });
        }
        let before = self.bytes.get(..start)?;
        let line = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        // A block scalar may start on the line below its dash.
        let lead = self.bytes.get(line..start)?;
        let blanks = lead.iter().take_while(|b| **b == b' ').count();
        if lead.get(blanks) != Some(&b'-') || lead.iter().filter(|b| **b == b'-').count() > 1 {
            return None;
        }
        let rest = self.bytes.get(end..)?;
        let newline = rest.iter().position(|b| *b == b'\n');
        let at = end + newline.unwrap_or(rest.len());
        let cr = at > end && self.bytes.get(at.checked_sub(1)?) == Some(&b'\r');
        let crlf = cr || self.bytes.windows(2).any(|pair| pair == b"\r\n");
        Some(After::Block {
            file,
            at: if cr { at - 1 } else { at },
            indent: " ".repeat(blanks),
            quote,
            newline: if crlf { "\r\n" } else { "\n" },
        })
    }
}
