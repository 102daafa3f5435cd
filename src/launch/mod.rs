//! The text of a launch: where the context length is written, what the number means there, and how it is changed without touching
//! another byte.
//!
//! Pure: texts in, places and new texts out. Files that a text refers to (environment files) are handed in by the caller;
//! [`Launches::wanted`] names those that were not.

mod argv;
mod arithmetic;
mod command;
mod compose;
mod container;
mod context;
mod dialect;
mod edit;
mod env_file;
mod form;
mod interpolate;
mod kubernetes;
mod overlay;
mod profile;
mod resolve;
mod server;
mod shell;
mod specifier;
mod systemd_words;
mod traced;
mod unit;
mod variables;
mod yaml;

pub use argv::{ArgvEdit, find_in_argv, set_in_argv};
pub use dialect::{Dialect, Length};
pub use edit::{Edit, Number, Refused, set};
pub use overlay::{
    compose_dependents, compose_name, compose_override, compose_services, resolved_texts,
};
pub use unit::exec_start;

use command::{After, Command, Env};
use std::ops::Range;
use traced::{At, Byte, Text};

/// A text and what it is called: a path as the other texts name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A systemd unit and its drop-ins in the manager's order; also a quadlet's `[Container]`.
    Unit,
    /// An environment file by itself.
    EnvFile,
    /// Compose files in the order in which they are merged.
    Compose,
    /// Kubernetes manifests and YAML like them, also a bare list of arguments.
    Kubernetes,
    /// vramp's own profiles.
    Profile,
    /// A shell script, or a command as one would type it.
    Script,
    /// Words, each ended by a NUL byte, as `/proc/PID/cmdline` has them.
    Argv,
}

/// The texts of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    pub form: Form,
    /// The text itself with those that are merged over it, in order.
    pub main: Vec<NamedText>,
    /// Files that it may refer to, under the names that it uses.
    pub beside: Vec<NamedText>,
    /// The unit's name with its instance (`llm@2.service`), for specifiers.
    pub unit: Option<String>,
}

impl Texts {
    fn file(&self, number: usize) -> Option<&NamedText> {
        self.main.iter().chain(&self.beside).nth(number)
    }

    fn place(&self, number: usize, span: Range<usize>) -> Option<Place> {
        let file = self.file(number)?;
        let before = file.bytes.get(..span.start)?;
        Some(Place {
            file: file.name.clone(),
            number,
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            span,
        })
    }
}

/// A stretch of bytes in one of the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    /// Which of the texts: those of `main`, then those of `beside`.
    number: usize,
    pub span: Range<usize>,
    /// From 1.
    pub line: usize,
}

/// How the server is given the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenAs {
    /// By this argument, named as written.
    Argument(String),
    /// By this variable of its environment.
    Variable(String),
}

/// What the number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The most tokens of one request.
    PerRequest,
    /// The most tokens of one request, out of a cache that the slots share.
    Shared { slots: u64 },
    /// The tokens of all slots together; a request has its share.
    Total { slots: u64 },
    /// Divided by a number of slots that cannot be read here.
    UnknownSlots,
}

impl Meaning {
    /// What `number` leaves for one request.
    pub fn per_request(self, number: u64) -> Option<u64> {
        match self {
            Meaning::PerRequest | Meaning::Shared { .. } => Some(number),
            Meaning::Total { slots } => number.checked_div(slots),
            Meaning::UnknownSlots => None,
        }
    }

    /// The number that gives each request `tokens`.
    pub fn number_for(self, tokens: u64) -> Option<u64> {
        match self {
            Meaning::PerRequest | Meaning::Shared { .. } => Some(tokens),
            Meaning::Total { slots } => tokens.checked_mul(slots),
            Meaning::UnknownSlots => None,
        }
    }
}

/// One place that gives the context length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub given_as: GivenAs,
    /// Where the value is written; `None` where it is written nowhere in one piece.
    pub place: Option<Place>,
    /// The value as the server gets it.
    pub text: String,
    /// As the engine reads it.
    pub value: Length,
    pub per_request: Option<u64>,
    pub meaning: Meaning,
    /// Whether this is the one that counts.
    pub in_force: bool,
    /// The environment variable through which an argument gets its value.
    pub variable: Option<String>,
    /// Why the value cannot be changed here.
    pub fixed: Option<String>,
    pub notes: Vec<String>,
}

/// A command that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// What it can be chosen by: unit, service, container, function.
    pub names: Vec<String>,
    pub engine: Option<Dialect>,
    /// The words as the server's system gets them, variables expanded where their values are known.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Every place that gives the context length, in the order in which later ones override.
    pub found: Vec<Found>,
    /// What a number in its context argument means, also where there is none yet.
    pub meaning: Meaning,
    pub notes: Vec<String>,
    /// Where the command is written.
    pub place: Option<Place>,
    after: Option<After>,
    sure: bool,
}

impl Server {
    pub fn in_force(&self) -> Option<&Found> {
        self.found.iter().find(|found| found.in_force)
    }

    /// The context length per request, where one is given in digits.
    pub fn per_request(&self) -> Option<u64> {
        self.in_force()?.per_request
    }
}

/// A file that a text refers to and that was not handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the text names it.
    pub path: String,
    /// Whether the reader of the text goes on without it.
    pub optional: bool,
    /// Whether it is a script that runs, not a file of variables for the manager.
    pub script: bool,
}

/// What the texts start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launches {
    pub servers: Vec<Server>,
    pub wanted: Vec<Wanted>,
    /// Why a text cannot be read at all.
    pub trouble: Option<String>,
}

/// Reads the texts. `engine` says what a command is that does not tell by itself.
pub fn find(texts: &Texts, engine: Option<Dialect>) -> Launches {
    let mut reader = Reader {
        texts,
        wanted: Vec::new(),
        branches: Vec::new(),
    };
    let (read, env) = match texts.form {
        Form::Unit => {
            let (commands, env) = unit::read_unit(&mut reader);
            (Ok(commands), env)
        }
        Form::EnvFile => (Ok(Vec::new()), env_file::read_alone(&reader.main())),
        Form::Script => (Ok(script(&mut reader)), Env::default()),
        Form::Argv => (Ok(argv::read_file(&reader.main())), Env::default()),
        Form::Compose => (compose::commands(&mut reader), Env::default()),
        Form::Profile => (profile::commands(&reader), Env::default()),
        Form::Kubernetes => (kubernetes::commands(&reader), Env::default()),
    };
    let (commands, trouble) = match read {
        Ok(commands) => (commands, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let alone = commands.is_empty();
    let mut servers: Vec<Server> = commands
        .into_iter()
        .flat_map(|command| resolve::resolve(command, &mut reader))
        .filter_map(|command| server::candidate(command, engine))
        .map(|candidate| context::server(candidate, texts))
        .collect();
    if alone {
        servers = variables::servers(&env, engine, texts);
    }
    tell_shared(&mut servers);
    tell_branches(&mut servers, &reader.branches);
    Launches {
        servers,
        wanted: reader.wanted,
        trouble,
    }
}

/// Notes on each server which others take their length from the same digits.
fn tell_shared(servers: &mut [Server]) {
    let place = |server: &Server| server.in_force().and_then(|found| found.place.clone());
    let others: Vec<(Option<Place>, Option<String>)> = servers
        .iter()
        .map(|server| (place(server), server.names.first().cloned()))
        .collect();
    for (at, server) in servers.iter_mut().enumerate() {
        let own = place(server);
        for (i, (place, name)) in others.iter().enumerate() {
            if i != at
                && own.is_some()
                && *place == own
                && let Some(name) = name
                && !server.names.contains(name)
            {
                server.notes.push(format!(
                    "{name} takes its context length from the same digits; it changes with this one"
                ));
            }
        }
    }
}

/// Notes on each server whose length is written where a script branches: the last one of the text was taken.
fn tell_branches(servers: &mut [Server], branches: &[At]) {
    for server in servers {
        let place = server.in_force().and_then(|found| found.place.clone());
        let branched = place.filter(|place| {
            branches
                .iter()
                .any(|at| at.file == place.number && (at.start..at.end).contains(&place.span.start))
        });
        if let Some(place) = branched {
            server.notes.push(format!(
                "line {} is in a branch of the script (if or case); only running it tells whether that branch is taken",
                place.line
            ));
        }
    }
}

fn script(reader: &mut Reader<'_>) -> Vec<Command> {
    let mut out = Vec::new();
    for text in reader.main() {
        out.extend(shell::commands(&text, &Env::default(), None, &[], reader));
    }
    out
}

/// Hands out the texts and notes what is missing.
struct Reader<'a> {
    texts: &'a Texts,
    wanted: Vec<Wanted>,
    /// Where scripts write values in their branches.
    branches: Vec<At>,
}

impl Reader<'_> {
    fn main(&self) -> Vec<Text> {
        self.texts
            .main
            .iter()
            .enumerate()
            .map(|(number, file)| traced::of_file(number, &file.bytes))
            .collect()
    }

    /// A file of variables.
    fn beside(&mut self, path: &str, optional: bool) -> Option<Text> {
        self.look(path, optional, false)
    }

    /// A value that a script gives to a variable, or to a command, in one of its branches.
    fn branched(&mut self, value: &[Byte]) {
        self.branches
            .extend(value.iter().filter_map(|byte| byte.at));
    }

    /// A script, which may be a program as well.
    fn script(&mut self, path: &str) -> Option<Text> {
        self.look(path, true, true)
    }

    fn look(&mut self, path: &str, optional: bool, script: bool) -> Option<Text> {
        let at = self.texts.beside.iter().position(|f| f.name == path);
        let Some(at) = at else {
            if !self.wanted.iter().any(|wanted| wanted.path == path) {
                self.wanted.push(Wanted {
                    path: path.to_string(),
                    optional,
                    script,
                });
            }
            return None;
        };
        let file = self.texts.beside.get(at)?;
        Some(traced::of_file(self.texts.main.len() + at, &file.bytes))
    }
}

#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_tests;
