//! systemd units: a unit with its drop-ins and environment files becomes the commands that the manager would run.

use super::Reader;
use super::command::{Command, Env};
use super::env_file::{self, Rules};
use super::specifier;
use super::systemd_words::{assignments, commands, words};
use super::traced::{Byte, Text, lines, made, of_file, plain, shown, split_assignment, trim};

/// One setting, its continued lines joined.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub section: String,
    pub key: String,
    pub value: Text,
}

/// The settings of one file in their order.
pub(super) fn settings(text: &[Byte]) -> Vec<Setting> {
    let (mut out, mut section) = (Vec::new(), String::new());
    let mut joined: Option<Text> = None;
    for line in lines(text) {
        // A comment may stand between continued lines.
        if trim(line)
            .first()
            .is_some_and(|b| matches!(b.value, b'#' | b';'))
        {
            continue;
        }
        let mut whole = joined.take().unwrap_or_default();
        whole.extend_from_slice(line);
        if continues(line) {
            whole.pop();
            whole.extend(made(b" "));
            joined = Some(whole);
            continue;
        }
        read(&whole, &mut section, &mut out);
    }
    if let Some(whole) = joined {
        read(&whole, &mut section, &mut out);
    }
    out
}

/// Whether the line ends with a backslash that is not itself escaped.
fn continues(line: &[Byte]) -> bool {
    line.iter().rev().take_while(|b| b.is(b'\\')).count() % 2 == 1
}

fn read(line: &[Byte], section: &mut String, out: &mut Vec<Setting>) {
    let line = trim(line);
    if let [first, inner @ .., last] = line
        && first.is(b'[')
        && last.is(b']')
    {
        *section = shown(inner);
    } else if let Some((key, value)) = split_assignment(line) {
        out.push(Setting {
            section: section.clone(),
            key: shown(trim(key)),
            value: trim(value).to_vec(),
        });
    }
}

/// What the files of a unit come to.
#[derive(Debug, Default)]
struct Unit {
    exec: Vec<Text>,
    environment: Vec<Text>,
    files: Vec<Text>,
    unset: Vec<Text>,
    container: Vec<Text>,
    image: Option<Text>,
}

impl Unit {
    /// Merges the files in order: lists grow, an empty value empties them.
    fn of(files: &[Text]) -> Self {
        let mut unit = Unit::default();
        for setting in files.iter().flat_map(|text| settings(text)) {
            let Setting {
                section,
                key,
                value,
            } = setting;
            let list = match (section.as_str(), key.as_str()) {
                ("Service", "ExecStart") => &mut unit.exec,
                ("Service" | "Container", "Environment") => &mut unit.environment,
                ("Service" | "Container", "EnvironmentFile") => &mut unit.files,
                ("Service", "UnsetEnvironment") => &mut unit.unset,
                ("Container", "Exec") => {
                    // A single value: the last one counts.
                    unit.container.clear();
                    &mut unit.container
                }
                ("Container", "Image") => {
                    unit.image = Some(value);
                    continue;
                }
                _ => continue,
            };
            if value.is_empty() {
                list.clear();
            } else {
                list.push(value);
            }
        }
        unit
    }
}

/// The commands of a unit, and its environment where it has none (a drop-in alone).
pub(super) fn read_unit(reader: &mut Reader<'_>) -> (Vec<Command>, Env) {
    let name = reader.texts.unit.clone();
    let unit = Unit::of(&reader.main());
    let expand = |text: &Text| specifier::expand(text, name.as_deref());
    let mut env = Env::default();
    for (name, value) in unit.environment.iter().flat_map(|line| assignments(line)) {
        env.set(&name, expand(&value));
    }
    for line in &unit.files {
        let path = shown(&expand(line));
        let (path, optional) = match path.strip_prefix('-') {
            Some(path) => (path, true),
            None => (path.as_str(), false),
        };
        let path = path.trim_matches('"');
        for (name, value) in reader
            .beside(path, optional)
            .map(|text| env_file::read(&text, Rules::Systemd))
            .unwrap_or_default()
        {
            env.set(&name, value);
        }
    }
    for word in unit.unset.iter().flat_map(|line| words(line)) {
        env.unset(&word.shown());
    }
    let mut out = Vec::new();
    for line in &unit.exec {
        for words in commands(line, &env, name.as_deref()) {
            out.push(Command {
                names: name.clone().into_iter().collect(),
                words,
                env: env.clone(),
                image: None,
                inside: false,
                template: false,
            });
        }
    }
    if let Some(image) = &unit.image {
        out.push(Command {
            names: name.into_iter().collect(),
            words: unit.container.iter().flat_map(|line| words(line)).collect(),
            env: env.clone(),
            image: Some(shown(image)),
            inside: true,
            template: false,
        });
    }
    (out, env)
}

/// The commands in force as a unit file would repeat them, one `ExecStart=` value each: continued lines joined, comments left out,
/// everything else as written. `files` are the unit and its drop-ins in the manager's order.
pub fn exec_start(files: &[super::NamedText]) -> Vec<Vec<u8>> {
    let texts: Vec<Text> = files
        .iter()
        .enumerate()
        .map(|(i, file)| of_file(i, &file.bytes))
        .collect();
    Unit::of(&texts)
        .exec
        .iter()
        .map(|line| plain(line))
        .collect()
}
