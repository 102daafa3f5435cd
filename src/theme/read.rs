//! Reads theme files: a palette, roles, hues of cards, and a theme to inherit from.

use super::depth::named;
use super::{Role, SHIPPED};
use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;
use std::ops::Range;
use toml_edit::{Document, InlineTable, Item, TableLike, Value};

/// What is wrong with a theme. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error(
        "there is no theme {name:?}; shipped are {known}, and your own are NAME.toml in the themes folder"
    )]
    Unknown { name: String, known: String },
    #[error("theme {name:?}, line {line}, column {column}: {what}")]
    Wrong {
        name: String,
        line: usize,
        column: usize,
        what: String,
    },
    #[error("theme {name:?} inherits from itself: {chain}")]
    Ring { name: String, chain: String },
}

/// The looks of a theme before the depth of a terminal is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Looks {
    pub roles: BTreeMap<Role, Style>,
    pub cards: Vec<Color>,
    palette: BTreeMap<String, Color>,
}

/// Reads `name` and all that it inherits from.
pub(super) fn resolve(
    name: &str,
    user: &dyn Fn(&str) -> Option<String>,
) -> Result<Looks, ThemeError> {
    inherit(name, user, &mut Vec::new())
}

fn inherit(
    name: &str,
    user: &dyn Fn(&str) -> Option<String>,
    chain: &mut Vec<String>,
) -> Result<Looks, ThemeError> {
    // An operator's theme may bear a shipped name and inherit from the shipped one.
    let seen = chain.iter().filter(|one| *one == name).count();
    chain.push(name.to_string());
    let own = if seen == 0 { user(name) } else { None };
    let shipped = || {
        SHIPPED
            .iter()
            .find(|(one, _)| *one == name)
            .map(|(_, text)| (*text).to_string())
    };
    if seen > 1 || (seen == 1 && shipped().is_none()) {
        return Err(ThemeError::Ring {
            name: name.to_string(),
            chain: chain.join(" > "),
        });
    }
    let text = own.or_else(shipped).ok_or_else(|| ThemeError::Unknown {
        name: name.to_string(),
        known: SHIPPED
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    let file = File { name, text: &text };
    let document = Document::parse(text.as_str())
        .map_err(|error| file.wrong(error.span(), error.message().replace('\n', " ")))?;
    let mut looks = match document.get("inherits") {
        Some(parent) => {
            let parent = parent
                .as_str()
                .ok_or_else(|| file.wrong(parent.span(), "inherits names one theme".into()))?;
            inherit(parent, user, chain)?
        }
        None => Looks::default(),
    };
    file.read(document.as_table(), &mut looks)?;
    Ok(looks)
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn wrong(&self, span: Option<Range<usize>>, what: String) -> ThemeError {
        let at = span.map_or(0, |span| span.start);
        let before = self.text.get(..at).unwrap_or(self.text);
        ThemeError::Wrong {
            name: self.name.to_string(),
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            what,
        }
    }

    fn read(&self, table: &dyn TableLike, looks: &mut Looks) -> Result<(), ThemeError> {
        // The palette first, wherever it stands.
        if let Some(item) = table.get("palette") {
            for (name, item) in self.table(item, "palette")?.iter() {
                let value = item
                    .as_value()
                    .ok_or_else(|| self.wrong(item.span(), "a colour is expected".into()))?;
                let color = self.color(value, looks)?;
                looks.palette.insert(name.to_string(), color);
            }
        }
        for (name, item) in table.iter() {
            match name {
                "inherits" | "palette" => {}
                "cards" => looks.cards = self.cards(item, looks)?,
                "roles" => self.roles(item, looks)?,
                _ => {
                    return Err(self.wrong(
                        key_span(table, name),
                        format!(
                            "unknown entry {name:?}; known are inherits, palette, cards and roles"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn table<'i>(&self, item: &'i Item, name: &str) -> Result<&'i dyn TableLike, ThemeError> {
        item.as_table_like()
            .ok_or_else(|| self.wrong(item.span(), format!("{name} is a table: write [{name}]")))
    }

    fn cards(&self, item: &Item, looks: &Looks) -> Result<Vec<Color>, ThemeError> {
        let list = item
            .as_array()
            .filter(|list| !list.is_empty())
            .ok_or_else(|| self.wrong(item.span(), "cards is a list of colours".into()))?;
        list.iter().map(|value| self.color(value, looks)).collect()
    }

    fn roles(&self, item: &Item, looks: &mut Looks) -> Result<(), ThemeError> {
        let table = self.table(item, "roles")?;
        for (name, item) in table.iter() {
            let role: Role = name.parse().map_err(|()| {
                let known: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
                self.wrong(
                    key_span(table, name),
                    format!("unknown role {name:?}; the roles are {}", known.join(", ")),
                )
            })?;
            let style = match item.as_value() {
                Some(Value::InlineTable(look)) => self.look(look, looks)?,
                Some(value) => Style::new().fg(self.color(value, looks)?),
                None => {
                    return Err(self.wrong(
                        item.span().or_else(|| key_span(table, name)),
                        "a look is a colour or { fg = …, bg = …, bold = true }".into(),
                    ));
                }
            };
            looks.roles.insert(role, style);
        }
        Ok(())
    }

    fn look(&self, table: &InlineTable, looks: &Looks) -> Result<Style, ThemeError> {
        let mut style = Style::new();
        for (name, value) in table.iter() {
            let modifier = match name {
                "fg" => {
                    style = style.fg(self.color(value, looks)?);
                    continue;
                }
                "bg" => {
                    style = style.bg(self.color(value, looks)?);
                    continue;
                }
                "bold" => Modifier::BOLD,
                "dim" => Modifier::DIM,
                "italic" => Modifier::ITALIC,
                "underlined" => Modifier::UNDERLINED,
                "reversed" => Modifier::REVERSED,
                _ => {
                    return Err(self.wrong(
                        value.span(),
                        format!("unknown part {name:?} of a look; known are fg, bg, bold, dim, italic, underlined and reversed"),
                    ));
                }
            };
            let on = value
                .as_bool()
                .ok_or_else(|| self.wrong(value.span(), format!("{name} is true or false")))?;
            if on {
                style = style.add_modifier(modifier);
            }
        }
        Ok(style)
    }

    /// A colour: a name of the palette, one of the terminal's 16, `default`, `#rrggbb`, or a number of xterm's 256.
    fn color(&self, value: &Value, looks: &Looks) -> Result<Color, ThemeError> {
        let read = match value {
            Value::Integer(n) => u8::try_from(*n.value()).ok().map(|n| match n {
                0..16 => named(n),
                n => Color::Indexed(n),
            }),
            Value::String(text) => {
                let text = text.value();
                looks
                    .palette
                    .get(text)
                    .copied()
                    .or_else(|| ansi(text))
                    .or_else(|| hex(text))
            }
            _ => None,
        };
        read.ok_or_else(|| {
            self.wrong(
                value.span(),
                format!(
                    "{} is no colour; write a name of the palette, a name like red or bright-red, default, \"#rrggbb\", or a number up to 255",
                    value.to_string().trim()
                ),
            )
        })
    }
}

fn key_span(table: &dyn TableLike, name: &str) -> Option<Range<usize>> {
    table.get_key_value(name).and_then(|(key, _)| key.span())
}

fn ansi(text: &str) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    let (name, bright) = text
        .strip_prefix("bright-")
        .map_or((text, 0), |name| (name, 8));
    const NAMES: [&str; 8] = [
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    ];
    let at = NAMES.iter().position(|one| *one == name)?;
    Some(named(u8::try_from(at).ok()? + bright))
}

fn hex(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#').filter(|d| d.len() == 6)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    let [_, r, g, b] = number.to_be_bytes();
    Some(Color::Rgb(r, g, b))
}
