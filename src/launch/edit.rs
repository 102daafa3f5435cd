//! Changing the number: exactly its bytes, or one argument more where there is none.

use super::command::After;
use super::dialect::{Dialect, Length};
use super::{Launches, Server, Texts, find};
use std::ops::Range;

/// A new context length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Tokens that one request may use; multiplied where the argument is a total over slots.
    PerRequest(u64),
    /// The number as the argument itself has it.
    Argument(u64),
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The name of the text that changes.
    pub file: String,
    /// The whole new text.
    pub bytes: Vec<u8>,
    /// The bytes of the old text that are replaced; empty where something is inserted.
    pub span: Range<usize>,
    /// Line of the change, from 1.
    pub line: usize,
    pub old: String,
    pub new: String,
    /// The number that the argument has now, and what it leaves for one request.
    pub number: u64,
    pub per_request: Option<u64>,
    /// The server as the old texts have it.
    pub server: Server,
}

impl Edit {
    /// Whether the argument was not there before.
    pub fn inserted(&self) -> bool {
        self.span.is_empty()
    }

    /// Whether the text is as it was: the number is in force already.
    pub fn changes_nothing(&self) -> bool {
        self.old == self.new
    }
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{0}")]
    Unreadable(String),
    #[error("there is no command here that starts a server{hint}")]
    NoServer { hint: String },
    #[error("several servers are started here; choose one: {}", .names.join(", "))]
    Several { names: Vec<String> },
    #[error("nothing here is called {asked:?}; there is: {}", .names.join(", "))]
    Unnamed { asked: String, names: Vec<String> },
    #[error("the context length cannot be changed here: {0}")]
    Fixed(String),
    #[error("no argument gives the context length, and none can be put in: {0}")]
    NoPlace(String),
    #[error("{0} tokens a request is no number that the argument can have")]
    Number(u64),
    #[error(
        "how many slots share the number cannot be read here; give the argument's own number instead of the length per request"
    )]
    Slots,
    #[error("the changed text would not mean {0}; it is left as it is")]
    Unproven(u64),
}

impl Refused {
    pub(super) fn no_engine() -> Self {
        Refused::NoPlace("the engine is not known; name it".to_string())
    }
}

impl Launches {
    /// The server called `name`, or the only one.
    ///
    /// # Errors
    /// None, several, none of that name.
    pub fn choose(&self, name: Option<&str>) -> Result<&Server, Refused> {
        let fits = |server: &&Server| {
            name.is_none_or(|name| {
                server.names.iter().any(|n| n == name) || server.line().as_deref() == Some(name)
            })
        };
        let names = || self.servers.iter().map(Server::label).collect();
        // Where nothing is named, what only looks like a server does not count beside one that is known.
        let known = name.is_none() && self.servers.iter().any(|server| server.sure);
        let mut fitting = self
            .servers
            .iter()
            .filter(fits)
            .filter(|server| server.sure || !known);
        let first = fitting.next();
        // Two branches of a script, or a function called twice, that take the same digits are one.
        let same = |other: &Server| {
            let place = |server: &Server| server.in_force().and_then(|found| found.place.clone());
            first.is_some_and(|first| {
                first.meaning == other.meaning
                    && place(first).is_some()
                    && place(first) == place(other)
            })
        };
        match (first, fitting.find(|other| !same(other)), name) {
            (Some(server), None, _) => Ok(server),
            (Some(_), Some(_), _) => Err(Refused::Several { names: names() }),
            (None, _, Some(asked)) if !self.servers.is_empty() => Err(Refused::Unnamed {
                asked: asked.to_string(),
                names: names(),
            }),
            (None, ..) => Err(match &self.trouble {
                Some(why) => Refused::Unreadable(why.clone()),
                None => Refused::NoServer { hint: self.hint() },
            }),
        }
    }

    fn hint(&self) -> String {
        match self.wanted.first() {
            Some(wanted) => format!("; {}, which it refers to, was not read", wanted.path),
            None => String::new(),
        }
    }
}

impl Server {
    fn line(&self) -> Option<String> {
        self.place.as_ref().map(|place| place.line.to_string())
    }

    /// How it is called in a list: its name and the line of its command.
    pub fn label(&self) -> String {
        let name = self
            .names
            .first()
            .cloned()
            .or_else(|| self.argv.first().cloned())
            .unwrap_or_default();
        match self.line() {
            Some(line) => format!("{name} (line {line})"),
            None => name,
        }
    }
}

/// Gives the server `number`. The result is read again, and returned only if it says what was asked for.
///
/// # Errors
/// See [`Refused`]; nothing is changed then.
pub fn set(
    texts: &Texts,
    engine: Option<Dialect>,
    name: Option<&str>,
    number: Number,
) -> Result<Edit, Refused> {
    let launches = find(texts, engine);
    let server = launches.choose(name)?;
    let argument = number.argument(server.meaning)?;
    let Change { file, span, text } = change(server, argument)?;
    let edit = applied(texts, server, argument, file, span, text)?;
    prove(texts, engine, name, file, &edit)?;
    Ok(edit)
}

struct Change {
    file: usize,
    span: Range<usize>,
    text: String,
}

fn change(server: &Server, argument: u64) -> Result<Change, Refused> {
    if let Some(found) = server.in_force() {
        if let Some(why) = &found.fixed {
            return Err(Refused::Fixed(why.clone()));
        }
        let place = found
            .place
            .as_ref()
            .ok_or_else(|| Refused::Fixed("it is written nowhere".to_string()))?;
        return Ok(Change {
            file: place.number,
            span: place.span.clone(),
            text: argument.to_string(),
        });
    }
    let dialect = server.engine.ok_or_else(Refused::no_engine)?;
    insertion(server.after.as_ref(), dialect.flag(), argument)
}

/// A new argument behind the last one.
fn insertion(after: Option<&After>, flag: &str, argument: u64) -> Result<Change, Refused> {
    let (file, at, text) = match after {
        Some(After::Text { file, at }) => (*file, *at, format!(" {flag} {argument}")),
        Some(After::Flow { file, at, quote }) => (
            *file,
            *at,
            format!(", {quote}{flag}{quote}, {}", quoted(argument, quote)),
        ),
        Some(After::Block {
            file,
            at,
            indent,
            quote,
            newline,
        }) => (
            *file,
            *at,
            format!(
                "{newline}{indent}- {quote}{flag}{quote}{newline}{indent}- {}",
                quoted(argument, quote)
            ),
        ),
        Some(After::Nowhere(why)) => return Err(Refused::NoPlace((*why).to_string())),
        None => {
            return Err(Refused::NoPlace("no command is written here".to_string()));
        }
    };
    Ok(Change {
        file,
        span: at..at,
        text,
    })
}

/// In a list an argument is text; bare digits would be a number.
fn quoted(argument: u64, quote: &str) -> String {
    let quote = if quote.is_empty() { "\"" } else { quote };
    format!("{quote}{argument}{quote}")
}

fn applied(
    texts: &Texts,
    server: &Server,
    number: u64,
    file: usize,
    span: Range<usize>,
    new: String,
) -> Result<Edit, Refused> {
    let nowhere = || Refused::Fixed("its place is not in the text".to_string());
    let text = texts.file(file).ok_or_else(nowhere)?;
    let place = texts.place(file, span.clone()).ok_or_else(nowhere)?;
    let old = text.bytes.get(span.clone()).ok_or_else(nowhere)?;
    let before = text.bytes.get(..span.start).ok_or_else(nowhere)?;
    let behind = text.bytes.get(span.end..).ok_or_else(nowhere)?;
    Ok(Edit {
        file: text.name.clone(),
        bytes: [before, new.as_bytes(), behind].concat(),
        old: String::from_utf8_lossy(old).into_owned(),
        line: place.line,
        span,
        new,
        number,
        per_request: server.meaning.per_request(number),
        server: server.clone(),
    })
}

fn prove(
    texts: &Texts,
    engine: Option<Dialect>,
    name: Option<&str>,
    file: usize,
    edit: &Edit,
) -> Result<(), Refused> {
    let mut changed = texts.clone();
    let text = changed.main.iter_mut().chain(&mut changed.beside).nth(file);
    if let Some(text) = text {
        text.bytes.clone_from(&edit.bytes);
    }
    let launches = find(&changed, engine);
    let value = launches
        .choose(name)
        .ok()
        .and_then(|server| server.in_force())
        .map(|found| found.value);
    match value {
        Some(Length::Tokens(n)) if n == edit.number => Ok(()),
        _ => Err(Refused::Unproven(edit.number)),
    }
}
