//! Compose files: the services, merged over several files, with anchors, variables and environment files.

use super::Reader;
use super::command::{After, Command, Env, Word};
use super::env_file::{self, Rules};
use super::interpolate::interpolate;
use super::traced::{Text, is_name, made, plain, shown, split_assignment};
use super::yaml::{Kind, Node, documents};

/// The file from which variables in the compose file come.
const DOT_ENV: &str = ".env";

/// The commands of all services.
///
/// # Errors
/// The file that is no YAML, and why.
pub(super) fn commands(reader: &mut Reader<'_>) -> Result<Vec<Command>, String> {
    let mut files = Vec::new();
    for (number, file) in reader.texts.main.iter().enumerate() {
        let roots = documents(number, &file.bytes)
            .map_err(|why| format!("{} cannot be read as YAML: {why}", file.name))?;
        files.extend(roots);
    }
    let services: Vec<&Node> = files
        .iter()
        .filter_map(|root| root.get("services"))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for name in services.iter().flat_map(|map| map.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let variables = dot_env(reader, &files);
    Ok(names
        .iter()
        .map(|name| {
            let mut service = Service::default();
            for map in &services {
                if let Some(node) = map.get(name) {
                    service.take(map, node, &variables, reader, 0);
                }
            }
            service.command(name)
        })
        .collect())
}

/// What stands behind `$` in the files; the caller's own environment, which would win, is not known here.
fn dot_env(reader: &mut Reader<'_>, files: &[Node]) -> Env {
    let mut env = Env::default();
    if !files.iter().any(uses_variables) {
        return env;
    }
    let read = reader.beside(DOT_ENV, true);
    for (name, value) in read
        .map(|text| env_file::read(&text, Rules::Dotenv))
        .unwrap_or_default()
    {
        let value = interpolate(&value, &env);
        env.set(&name, value);
    }
    env
}

fn uses_variables(node: &Node) -> bool {
    match &node.kind {
        Kind::Scalar(text) => text
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.is(b'$') && !b.is(b'$'))),
        Kind::Null => false,
        Kind::List(items) => items.iter().any(uses_variables),
        Kind::Map(entries) => entries
            .iter()
            .any(|(key, value)| uses_variables(key) || uses_variables(value)),
    }
}

#[derive(Default)]
struct Service {
    names: Vec<String>,
    image: Option<String>,
    entrypoint: Option<Vec<Word>>,
    command: Option<Vec<Word>>,
    /// From files first, then from the service itself, which wins.
    files: Env,
    own: Env,
}

impl Service {
    /// Merges one file's entry over what there is.
    fn take(
        &mut self,
        services: &Node,
        node: &Node,
        variables: &Env,
        reader: &mut Reader<'_>,
        depth: usize,
    ) {
        if let Some(base) = node.get("extends")
            && depth < 4
        {
            let other = base.get("file").is_some();
            let name = base.shown().or_else(|| base.get("service")?.shown());
            if let Some(base) = name.filter(|_| !other).and_then(|name| services.get(&name)) {
                self.take(services, base, variables, reader, depth + 1);
            }
        }
        let text = |node: &Node| node.scalar().map(|text| interpolate(text, variables));
        if let Some(name) = node.get("container_name").and_then(text) {
            self.names.push(shown(&name));
        }
        if let Some(image) = node.get("image").and_then(text) {
            self.image = Some(shown(&image));
        }
        if let Some(entrypoint) = node.get("entrypoint") {
            self.entrypoint = words(entrypoint, variables);
            // A new entrypoint drops the image's own arguments, not the service's.
        }
        if let Some(command) = node.get("command") {
            self.command = words(command, variables);
        }
        for path in node.get("env_file").map(paths).unwrap_or_default() {
            let path = shown(&interpolate(&path, variables));
            for (name, value) in reader
                .beside(&path, false)
                .map(|text| env_file::read(&text, Rules::Dotenv))
                .unwrap_or_default()
            {
                self.files.set(&name, value);
            }
        }
        if let Some(environment) = node.get("environment") {
            environment_of(environment, variables, &mut self.own);
        }
    }

    fn command(self, name: &str) -> Command {
        let mut env = self.files;
        for (name, value) in self.own.iter() {
            env.set(name, value.clone());
        }
        let mut words = self.entrypoint.unwrap_or_default();
        words.extend(self.command.unwrap_or_default());
        if words.is_empty() {
            words.push(Word {
                text: made(b""),
                after: After::Nowhere(
                    "the service has no command of its own, and one would replace the image's; write the command into the file first",
                ),
            });
        }
        let mut names = vec![name.to_string()];
        names.extend(self.names);
        Command {
            names,
            words,
            env,
            image: Some(self.image.unwrap_or_default()),
            inside: true,
            template: false,
        }
    }
}

/// A command as a list, or as text that is split as a shell would.
fn words(node: &Node, variables: &Env) -> Option<Vec<Word>> {
    match &node.kind {
        Kind::List(_) => Some(
            node.words()
                .into_iter()
                .map(|word| Word {
                    text: interpolate(&word.text, variables),
                    after: word.after,
                })
                .collect(),
        ),
        Kind::Scalar(text) => Some(split(&interpolate(text, variables))),
        _ => None,
    }
}

/// Quotes and backslashes as a POSIX shell has them; nothing is expanded.
pub(super) fn split(text: &Text) -> Vec<Word> {
    let (mut out, mut at) = (Vec::new(), 0);
    loop {
        while text.get(at).is_some_and(|b| b.blank()) {
            at += 1;
        }
        if at >= text.len() {
            return out;
        }
        let (mut word, mut quote) = (Text::new(), None);
        while let Some(&byte) = text.get(at) {
            let next = text.get(at + 1).copied();
            match (byte.value, quote) {
                _ if byte.open => word.push(byte),
                // People end lines so, although only a shell would go on with the next.
                (b'\\', None) if next.is_some_and(|b| b.value == b'\n') => at += 1,
                (b'\\', None | Some(b'"')) if let Some(next) = next => {
                    if quote.is_none() || b"\"\\$`".contains(&next.value) {
                        word.push(super::traced::merged(next.value, &[byte, next]));
                    } else {
                        word.extend([byte, next]);
                    }
                    at += 1;
                }
                (b'\'' | b'"', None) => quote = Some(byte.value),
                (mark, Some(open)) if mark == open => quote = None,
                (_, None) if byte.blank() => break,
                _ => word.push(byte),
            }
            at += 1;
        }
        out.push(Word::ending(
            word,
            at.checked_sub(1).and_then(|last| text.get(last)),
        ));
    }
}

/// `env_file`: one path, several, or several with `path` and `required`.
fn paths(node: &Node) -> Vec<Text> {
    match &node.kind {
        Kind::Scalar(text) => vec![text.clone()],
        Kind::List(items) => items.iter().flat_map(paths).collect(),
        Kind::Map(_) => node
            .get("path")
            .and_then(Node::scalar)
            .cloned()
            .into_iter()
            .collect(),
        Kind::Null => Vec::new(),
    }
}

fn environment_of(node: &Node, variables: &Env, env: &mut Env) {
    for item in node.items().iter().filter_map(Node::scalar) {
        match split_assignment(item) {
            Some((name, value)) if is_name(&plain(name)) => {
                env.set(&shown(name), interpolate(value, variables));
            }
            _ => {
                // The name alone passes the caller's value on, or that of `.env`.
                let name = shown(item);
                if let Some(value) = variables.get(&name) {
                    env.set(&name, value.clone());
                }
            }
        }
    }
    for name in node.keys() {
        if let Some(value) = node.get(&name).and_then(Node::scalar) {
            env.set(&name, interpolate(value, variables));
        }
    }
}
