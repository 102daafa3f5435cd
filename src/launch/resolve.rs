//! From the command that a text starts to the command that is the server: through containers, `bash -c` and scripts.

use super::command::{Command, Word};
use super::traced::Text;
use super::{Reader, container, server, shell};

/// Wrappers inside one another, at most.
const DEPTH: usize = 6;

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"];

/// The innermost commands.
pub(super) fn resolve(command: Command, reader: &mut Reader<'_>) -> Vec<Command> {
    inner(command, reader, 0)
}

fn inner(command: Command, reader: &mut Reader<'_>, depth: usize) -> Vec<Command> {
    if depth >= DEPTH {
        return vec![command];
    }
    let further = match container::command(&command, reader) {
        Some(inside) => vec![inside],
        None => match script(&command, reader) {
            Some(commands) => commands,
            None => return vec![command],
        },
    };
    further
        .into_iter()
        .flat_map(|command| inner(command, reader, depth + 1))
        .collect()
}

/// The commands of a script that `command` runs: after `-c`, or in a file.
fn script(command: &Command, reader: &mut Reader<'_>) -> Option<Vec<Command>> {
    let words = &command.words;
    let first = words.first()?;
    let is_shell = |word: &Word| SHELLS.contains(&word.base().as_str());
    let at = match is_shell(first) {
        true => Some(0),
        false if server::starts_others(&first.base()) => words.iter().position(is_shell),
        false => None,
    };
    let Some(at) = at else {
        return file(command, 0, reader);
    };
    let mut env = command.env.clone();
    for word in words.iter().take(at) {
        server::preset(word, &mut env);
    }
    let mut next = at + 1;
    let mut inline = false;
    while let Some(word) = words.get(next) {
        let text = word.shown();
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            // busybox sh
            if is_shell(word) && next == at + 1 {
                next += 1;
                continue;
            }
            break;
        };
        next += 1;
        if letters.starts_with('-') || letters.is_empty() {
            continue;
        }
        inline |= letters.contains('c');
        next += usize::from(letters.ends_with('o'));
    }
    if !inline {
        return file(command, next, reader);
    }
    let text: &Text = &words.get(next)?.text;
    // Behind the script come its name and its arguments.
    let rest = words.get(next + 2..).unwrap_or_default();
    let arguments = rest.iter().map(|word| word.text.clone()).collect();
    let mut found = shell::commands(text, &env, Some(arguments), &command.names, reader);
    for started in &mut found {
        started.inside = command.inside;
    }
    Some(found)
}

/// The commands of a script in a file, where it can be had.
fn file(command: &Command, at: usize, reader: &mut Reader<'_>) -> Option<Vec<Command>> {
    if command.inside {
        // That is a file of the image.
        return None;
    }
    let word = command.words.get(at).filter(|word| !word.open())?;
    let path = word.shown();
    let system = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"]
        .iter()
        .any(|folder| path.starts_with(folder));
    let named = path.ends_with(".sh") || path.ends_with(".bash");
    let own = path.starts_with('/') && !system && !word.base().contains('.');
    if !named && (!own || server::is_program(&command.words)) {
        return None;
    }
    let text = reader.script(&path)?;
    if !named && !shell::is_script(&text) {
        return None;
    }
    let rest = command.words.get(at + 1..).unwrap_or_default();
    let arguments = rest.iter().map(|word| word.text.clone()).collect();
    let names = &command.names;
    let found = shell::commands(&text, &command.env, Some(arguments), names, reader);
    Some(found)
}
