//! What the files of a service start, as a launch with a place for the context.

use crate::launch::{self, Dialect, GivenAs, Meaning, Server};
use crate::profile::Launch;
use crate::store;

/// What a server is started with by its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Per request.
    pub context: u64,
    /// With a place for the context.
    pub launch: Launch,
    /// The words of the command, variables filled in.
    pub argv: Vec<String>,
    /// The variable of the environment that carries the context, if one does.
    pub variable: Option<String>,
}

impl Started {
    /// What `server` is started with.
    ///
    /// # Errors
    /// Its context is not given in digits: what is wrong, and what to do.
    pub fn of(server: &Server, engine: Option<Dialect>) -> Result<Started, (String, &'static str)> {
        let Some(found) = server.in_force() else {
            return Err((
                "neither its command nor its environment gives the server a context length"
                    .to_string(),
                "Add the engine's argument with the length that it serves now, and restart it by hand once; then vramp can change it",
            ));
        };
        let Some(context) = found.per_request else {
            let why = found.fixed.clone().unwrap_or_else(|| {
                format!("how much of {} one request has cannot be read", found.text)
            });
            return Err((why, "Write the context length in digits"));
        };
        let variable = match &found.given_as {
            GivenAs::Variable(name) => Some(name.clone()),
            GivenAs::Argument(_) => found.variable.clone(),
        };
        Ok(Started {
            context,
            launch: template(server, engine, found.text.as_str()),
            argv: server.argv.clone(),
            variable,
        })
    }
}

/// The server's words with a place where the number stands. Of the environment only the variable that carries the number is shown:
/// the rest may hold secrets.
fn template(server: &Server, engine: Option<Dialect>, number: &str) -> Launch {
    let (slots, place) = match server.meaning {
        Meaning::Total { slots } => (slots, "{context_total}"),
        _ => (1, "{context}"),
    };
    let mut argv = server.argv.clone();
    let mut env = Vec::new();
    let again = launch::find_in_argv(&server.argv, &server.env, server.engine.or(engine));
    if let Some(found) = again.as_ref().and_then(Server::in_force) {
        match &found.given_as {
            GivenAs::Variable(name) => env.push((name.clone(), place.to_string())),
            GivenAs::Argument(flag) => fill(&mut argv, flag, number, place),
        }
    }
    store::without_secrets(&Launch {
        argv,
        env,
        cwd: None,
        slots,
    })
}

/// Puts `place` where the last argument `flag` has its number.
fn fill(argv: &mut [String], flag: &str, number: &str, place: &str) {
    let joined = format!("{flag}={number}");
    let at = (0..argv.len()).rev().find(|at| {
        let word = argv.get(*at).map(String::as_str);
        let before = at.checked_sub(1).and_then(|before| argv.get(before));
        word == Some(&joined) || (word == Some(number) && before.is_some_and(|word| word == flag))
    });
    if let Some(word) = at.and_then(|at| argv.get_mut(at)) {
        *word = match word.strip_prefix(&format!("{flag}=")) {
            Some(_) => format!("{flag}={place}"),
            None => place.to_string(),
        };
    }
}
