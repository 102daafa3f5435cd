//! The context argument in an argument vector, without any file.

use super::command::{After, Command, Env, Word};
use super::dialect::Dialect;
use super::edit::{Number, Refused};
use super::traced::{Text, of_file};
use super::{Form, GivenAs, Meaning, NamedText, Server, Texts, context, server};

/// An argument vector and environment with the new number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgvEdit {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The number that the argument has now.
    pub number: u64,
}

/// Finds the context argument of the server that `argv` starts, with `env` as its environment; `None` if it starts none. Places are
/// of no use here: the number of the word is in [`super::Found::place`]'s file name.
pub fn find_in_argv(
    argv: &[String],
    env: &[(String, String)],
    engine: Option<Dialect>,
) -> Option<Server> {
    let texts = texts(argv, env);
    let command = Command {
        words: argv
            .iter()
            .enumerate()
            .map(|(i, word)| Word {
                text: of_file(i, word.as_bytes()),
                after: After::Nowhere("it is a vector"),
            })
            .collect(),
        env: environment(argv.len(), env),
        ..Command::default()
    };
    let candidate = server::candidate(command, engine)?;
    Some(context::server(candidate, &texts))
}

/// The same with a new number; appends the argument where there is none.
///
/// # Errors
/// See [`Refused`].
pub fn set_in_argv(
    argv: &[String],
    env: &[(String, String)],
    engine: Option<Dialect>,
    number: Number,
) -> Result<ArgvEdit, Refused> {
    let server = find_in_argv(argv, env, engine).ok_or(Refused::NoServer {
        hint: String::new(),
    })?;
    let number = number.argument(server.meaning)?;
    let mut edit = ArgvEdit {
        argv: argv.to_vec(),
        env: env.to_vec(),
        number,
    };
    let Some(found) = server.in_force() else {
        let dialect = server.engine.ok_or_else(Refused::no_engine)?;
        edit.argv
            .extend([dialect.flag().to_string(), number.to_string()]);
        return Ok(edit);
    };
    let place = match (&found.fixed, &found.place) {
        (None, Some(place)) => place,
        (why, _) => return Err(Refused::Fixed(why.clone().unwrap_or_default())),
    };
    let text = match &found.given_as {
        GivenAs::Argument(_) => edit.argv.get_mut(place.number),
        GivenAs::Variable(_) => place
            .number
            .checked_sub(argv.len())
            .and_then(|at| edit.env.get_mut(at))
            .map(|(_, value)| value),
    };
    match text {
        Some(text) if text.get(place.span.clone()).is_some() => {
            text.replace_range(place.span.clone(), &number.to_string());
            Ok(edit)
        }
        _ => Err(Refused::Fixed("its place is not in the vector".to_string())),
    }
}

impl Number {
    /// The number as the argument has it.
    pub(super) fn argument(self, meaning: Meaning) -> Result<u64, Refused> {
        let number = match self {
            Number::Argument(n) => n,
            Number::PerRequest(n) => match meaning.number_for(n) {
                Some(number) => number,
                None if meaning == Meaning::UnknownSlots => return Err(Refused::Slots),
                None => return Err(Refused::Number(n)),
            },
        };
        match number {
            0 => Err(Refused::Number(0)),
            _ => Ok(number),
        }
    }
}

/// The words of a file in which each ends with a NUL byte.
pub(super) fn read_file(files: &[Text]) -> Vec<Command> {
    let word = |text: &[super::traced::Byte]| Word {
        text: text.to_vec(),
        after: After::Nowhere("the words stand in memory, not in a file"),
    };
    files
        .iter()
        .map(|text| Command {
            words: text
                .split(|b| b.value == 0)
                .map(word)
                .filter(|word| !word.text.is_empty())
                .collect(),
            ..Command::default()
        })
        .collect()
}

fn texts(argv: &[String], env: &[(String, String)]) -> Texts {
    let named = |name: String, text: &str| NamedText {
        name,
        bytes: text.as_bytes().to_vec(),
    };
    Texts {
        form: Form::Argv,
        main: argv
            .iter()
            .enumerate()
            .map(|(i, word)| named(format!("argument {i}"), word))
            .collect(),
        beside: env
            .iter()
            .map(|(name, value)| named(name.clone(), value))
            .collect(),
        unit: None,
    }
}

fn environment(first: usize, env: &[(String, String)]) -> Env {
    let mut out = Env::default();
    for (i, (name, value)) in env.iter().enumerate() {
        out.set(name, of_file(first + i, value.as_bytes()));
    }
    out
}
