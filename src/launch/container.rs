//! `docker run` and its kin: which words are the engine's, and with what environment it runs.

use super::Reader;
use super::command::{Command, Env, Word};
use super::env_file::{self, Rules};
use super::traced::{Byte, Text, plain, shown, split_assignment};

/// Long options of `run` that take no value.
const SWITCHES: [&str; 24] = [
    "--rm",
    "--detach",
    "--interactive",
    "--tty",
    "--init",
    "--privileged",
    "--read-only",
    "--publish-all",
    "--quiet",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--sig-proxy",
    "--disable-content-trust",
    "--help",
    "--replace",
    "--tls-verify",
    "--env-host",
    "--http-proxy",
    "--no-hosts",
    "--no-hostname",
    "--rmi",
    "--rootfs",
    "--passwd",
    "--read-only-tmpfs",
];

/// Short options that take no value; they may stand together (`-it`).
const LETTERS: &[u8] = b"ditPqh";

/// The command that a container runs, if `command` starts one.
pub(super) fn command(command: &Command, reader: &mut Reader<'_>) -> Option<Command> {
    let words = &command.words;
    let first = words.first()?.base();
    let tool = |word: &Word| ["docker", "podman", "nerdctl"].contains(&word.base().as_str());
    let at = match tool(words.first()?) {
        true => 0,
        false if super::server::starts_others(&first) => words.iter().position(tool)?,
        false => return None,
    };
    let verb = |word: &Word| word.is("run") || word.is("create");
    let run = words.iter().skip(at + 1).take(8).position(verb)? + at + 2;
    let mut line = Line {
        words,
        at: run,
        env: Env::default(),
        outer: &command.env,
        entrypoint: None,
        names: command.names.clone(),
    };
    while line.option(reader) {}
    let image = words.get(line.at)?;
    let arguments = words.get(line.at + 1..).unwrap_or_default();
    let entrypoint = line.entrypoint.map(|text| Word {
        text,
        after: image.after.clone(),
    });
    let mut all: Vec<Word> = entrypoint.into_iter().collect();
    all.extend_from_slice(arguments);
    if all.is_empty() {
        // Where the first argument would go.
        all.push(Word {
            text: Text::new(),
            after: image.after.clone(),
        });
    }
    Some(Command {
        names: line.names,
        words: all,
        env: line.env,
        image: Some(image.shown()),
        inside: true,
        template: false,
    })
}

struct Line<'a> {
    words: &'a [Word],
    at: usize,
    env: Env,
    outer: &'a Env,
    entrypoint: Option<Text>,
    names: Vec<String>,
}

impl Line<'_> {
    /// Takes one option of the tool; `false` at the image.
    fn option(&mut self, reader: &mut Reader<'_>) -> bool {
        let Some(word) = self.words.get(self.at) else {
            return false;
        };
        let text = word.shown();
        if text == "--" {
            self.at += 1;
            return false;
        }
        if !text.starts_with('-') || text.len() < 2 {
            // A variable that holds the tool's own options is not the image.
            let skip = text.starts_with('$') && word.open() && self.words.len() > self.at + 1;
            self.at += usize::from(skip);
            return skip;
        }
        self.at += 1;
        let (name, value) = match text.starts_with("--") {
            true => match word.text.iter().position(|b| b.value == b'=') {
                Some(at) => (
                    shown(word.text.get(..at).unwrap_or_default()),
                    word.text.get(at + 1..).map(<[Byte]>::to_vec),
                ),
                None => (text, None),
            },
            false => short(&word.text),
        };
        if SWITCHES.contains(&name.as_str()) || name.is_empty() {
            return true;
        }
        let value = value.unwrap_or_else(|| {
            let next = self.words.get(self.at).map(|word| word.text.clone());
            self.at += 1;
            next.unwrap_or_default()
        });
        self.take(&name, value, reader);
        true
    }

    fn take(&mut self, name: &str, value: Text, reader: &mut Reader<'_>) {
        match name {
            "-e" | "--env" => match split_assignment(&value) {
                Some((name, value)) => self
                    .env
                    .set(&String::from_utf8_lossy(&plain(name)), value.to_vec()),
                // The name alone passes the caller's value on.
                None => {
                    let name = shown(&value);
                    if let Some(value) = self.outer.get(&name) {
                        self.env.set(&name, value.clone());
                    }
                }
            },
            "--env-file" => {
                let read = reader.beside(&shown(&value), false);
                for (name, value) in read
                    .map(|text| env_file::read(&text, Rules::Docker))
                    .unwrap_or_default()
                {
                    // -e wins over a file, wherever it stands.
                    if self.env.get(&name).is_none() {
                        self.env.set(&name, value);
                    }
                }
            }
            "--entrypoint" => self.entrypoint = Some(value).filter(|text| !text.is_empty()),
            "--name" => self.names.push(shown(&value)),
            _ => {}
        }
    }
}

/// `-it`, `-eNAME=value`, `-p`: the option that takes a value, and the value in the same word; an empty name where none does.
fn short(word: &Text) -> (String, Option<Text>) {
    for (at, byte) in word.iter().enumerate().skip(1) {
        if LETTERS.contains(&byte.value) {
            continue;
        }
        let rest = word.get(at + 1..).unwrap_or_default();
        let rest = match rest.first() {
            Some(b) if b.value == b'=' => rest.get(1..).unwrap_or_default(),
            _ => rest,
        };
        let value = Some(rest.to_vec()).filter(|rest| !rest.is_empty());
        return (format!("-{}", char::from(byte.value)), value);
    }
    (String::new(), None)
}
