//! Environment files and drop-ins by themselves: which of the variables is the context length, or holds a server's arguments.

use super::command::{Command, Env};
use super::context;
use super::dialect::{ALL, Dialect};
use super::server;
use super::systemd_words::words;
use super::traced::{Text, shown};
use super::{Server, Texts};

/// Ends of names under which people keep a context length.
const NAMES: [&str; 20] = [
    "CTX",
    "CTX_SIZE",
    "CTX_LEN",
    "CTX_LENGTH",
    "CTXSIZE",
    "N_CTX",
    "NCTX",
    "CONTEXT",
    "CONTEXT_LENGTH",
    "CONTEXT_LEN",
    "CONTEXT_SIZE",
    "CONTEXT_WINDOW",
    "MAX_MODEL_LEN",
    "MODEL_LEN",
    "MAX_SEQ_LEN",
    "MAX_SEQUENCE_LENGTH",
    "SESSION_LEN",
    "MAX_LEN",
    "MAX_CONTEXT",
    "MAX_TOKENS_PER_REQUEST",
];

/// Servers that the variables speak of: by the engine's own variable, by arguments inside a value, else by a name.
pub(super) fn servers(env: &Env, asked: Option<Dialect>, texts: &Texts) -> Vec<Server> {
    let known = ALL
        .into_iter()
        .filter(|dialect| asked.is_none_or(|asked| asked == *dialect))
        .find(|dialect| dialect.variable().is_some_and(|v| env.get(v).is_some()));
    if let Some(dialect) = known {
        let command = Command {
            env: env.clone(),
            ..Command::default()
        };
        return server::of_arguments(command, Some(dialect))
            .map(|candidate| context::server(candidate, texts))
            .into_iter()
            .collect();
    }
    let with_arguments: Vec<Server> = env
        .iter()
        .filter_map(|(name, value)| {
            let command = Command {
                names: vec![name.to_string()],
                words: words(value),
                env: env.clone(),
                image: None,
                inside: false,
                template: false,
            };
            server::of_arguments(command, asked)
        })
        .map(|candidate| context::server(candidate, texts))
        .collect();
    if !with_arguments.is_empty() {
        return with_arguments;
    }
    env.iter()
        .filter(|(name, value)| speaks_of_context(name, value))
        .map(|(name, value)| context::variable(name, value, env, asked, texts))
        .collect()
}

fn speaks_of_context(name: &str, value: &Text) -> bool {
    let name = name.to_ascii_uppercase();
    let fits = NAMES.iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    });
    let other = ["DRAFT", "FIT", "ROPE", "OUTPUT"]
        .iter()
        .any(|part| name.contains(part));
    fits && !other && shown(value).starts_with(|c: char| c.is_ascii_digit())
}
