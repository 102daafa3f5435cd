//! The context argument among a server's words: every place, which one is in force, and what the number means there.

use super::arithmetic;
use super::command::{Env, Word};
use super::dialect::{Dialect, Length, parallel, unified};
use super::server::Candidate;
use super::traced::{Byte, Text, shown, stretch, trim};
use super::{Found, GivenAs, Meaning, Place, Server, Texts};

/// What a server's words say about its context.
pub(super) fn server(candidate: Candidate, texts: &Texts) -> Server {
    let Candidate {
        names,
        dialect,
        words,
        first,
        env,
        sure,
        template,
    } = candidate;
    let args = words.get(first..).unwrap_or_default();
    let mut server = Server {
        names,
        engine: dialect,
        argv: words
            .iter()
            .filter(|word| !word.text.is_empty() || words.len() > 1)
            .map(Word::shown)
            .collect(),
        env: env
            .iter()
            .map(|(name, value)| (name.to_string(), shown(value)))
            .collect(),
        found: Vec::new(),
        meaning: Meaning::PerRequest,
        notes: Vec::new(),
        place: place_of(&words, texts),
        after: words.last().map(|word| word.after.clone()),
        sure,
    };
    let Some(dialect) = dialect else {
        return server;
    };
    if dialect == Dialect::LlamaCpp && !template {
        server.meaning = meaning(args, &env);
    }
    let look = Look {
        dialect,
        meaning: server.meaning,
        words: &words,
        env: &env,
        texts,
        template,
    };
    if let Some(name) = dialect.variable()
        && let Some(value) = env.get(name)
    {
        let given = GivenAs::Variable(name.to_string());
        server.found.push(look.found(given, value, None));
    }
    let mut at = first;
    while let Some(word) = words.get(at) {
        let Some(hit) = dialect.context(&word.shown()) else {
            at += 1;
            continue;
        };
        let (value, value_word) = match hit.value_at {
            Some(from) => (word.text.get(from..).unwrap_or_default(), at),
            None => {
                at += 1;
                let value = words.get(at).map(|w| w.text.as_slice());
                (value.unwrap_or_default(), at)
            }
        };
        let given = GivenAs::Argument(hit.name);
        server
            .found
            .push(look.found(given, value, Some(value_word)));
        at += 1;
    }
    finish(&mut server, dialect, args);
    server
}

/// A variable of an environment file that is a context length by its name; who reads it is not known here.
pub(super) fn variable(
    name: &str,
    value: &[Byte],
    env: &Env,
    dialect: Option<Dialect>,
    texts: &Texts,
) -> Server {
    let meaning = match dialect {
        Some(Dialect::LlamaCpp) | None => Meaning::UnknownSlots,
        Some(_) => Meaning::PerRequest,
    };
    let look = Look {
        // Plain digits mean the same to all.
        dialect: dialect.unwrap_or(Dialect::Sglang),
        meaning,
        words: &[],
        env,
        texts,
        template: false,
    };
    let mut found = look.found(GivenAs::Variable(name.to_string()), value, None);
    found.in_force = true;
    Server {
        names: vec![name.to_string()],
        engine: dialect,
        argv: Vec::new(),
        env: Vec::new(),
        place: found.place.clone(),
        found: vec![found],
        meaning,
        notes: vec![format!(
            "{name} is taken for the context length by its name; which command reads it is not written here"
        )],
        after: None,
        sure: false,
    }
}

/// Marks the one in force, the last, and says what it hides.
fn finish(server: &mut Server, dialect: Dialect, args: &[Word]) {
    if let Some(last) = server.found.last_mut() {
        last.in_force = true;
    }
    let argument = |found: &&Found| matches!(found.given_as, GivenAs::Argument(_));
    let times = server.found.iter().filter(argument).count();
    if times > 1 {
        server.notes.push(format!(
            "duplicate: the argument is given {times} times; the last one is in force, the others are without effect"
        ));
    }
    if times > 0 && times < server.found.len() {
        server.notes.push(format!(
            "{} is set too, but the argument overrides it",
            dialect.variable().unwrap_or("a variable")
        ));
    }
    for word in args {
        let word = word.shown();
        let name = word.split('=').next().unwrap_or_default();
        match (dialect, name) {
            (Dialect::Vllm | Dialect::Sglang, "--config") => server.notes.push(
                "more arguments come from the file behind --config; those of the command line win"
                    .into(),
            ),
            (Dialect::LlamaCpp, "--kv-unified-per-slot") => server.notes.push(
                "--kv-unified-per-slot limits what one request may use below the figure given here"
                    .into(),
            ),
            _ => {}
        }
    }
}

/// What the number of llama.cpp's argument is divided by.
fn meaning(args: &[Word], env: &Env) -> Meaning {
    let mut slots = env.get("LLAMA_ARG_N_PARALLEL").map(|value| shown(value));
    let mut shared = env
        .get("LLAMA_ARG_KV_UNIFIED")
        .and_then(|value| truth(value));
    if env.get("LLAMA_ARG_NO_KV_UNIFIED").is_some() {
        shared = Some(false);
    }
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.shown();
        if let Some(hit) = parallel(&text) {
            slots = match hit.value_at {
                Some(from) => text.get(from..).map(str::to_string),
                None => {
                    at += 1;
                    args.get(at).map(Word::shown)
                }
            };
        }
        shared = unified(&text).or(shared);
        at += 1;
    }
    let number = slots.as_deref().map(|text| text.trim().parse::<i64>());
    match (number, shared) {
        // Without a number of slots the server takes some and lets them share.
        (None, _) => Meaning::PerRequest,
        (Some(Ok(n)), _) if n < 0 => Meaning::PerRequest,
        (Some(Ok(0 | 1)), _) => Meaning::PerRequest,
        (Some(Ok(n)), Some(true)) => Meaning::Shared {
            slots: n.unsigned_abs(),
        },
        (Some(Ok(n)), _) => Meaning::Total {
            slots: n.unsigned_abs(),
        },
        (Some(Err(_)), Some(true)) => Meaning::PerRequest,
        (Some(Err(_)), _) => Meaning::UnknownSlots,
    }
}

fn truth(value: &[Byte]) -> Option<bool> {
    match shown(trim(value)).to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "enabled" => Some(true),
        "0" | "false" | "off" | "disabled" => Some(false),
        _ => None,
    }
}

struct Look<'a> {
    dialect: Dialect,
    meaning: Meaning,
    words: &'a [Word],
    env: &'a Env,
    texts: &'a Texts,
    template: bool,
}

impl Look<'_> {
    /// `word` is the number of the word that holds the value.
    fn found(&self, given_as: GivenAs, value: &[Byte], word: Option<usize>) -> Found {
        let text = shown(value);
        let open = value.iter().any(|b| b.open);
        let computed = arithmetic::value(&text).filter(|_| open);
        let length = match (open, computed) {
            (_, Some(n)) => Length::Tokens(n),
            (true, None) => Length::Unknown,
            _ if self.template => {
                crate::units::parse_context(&text).map_or(Length::Unknown, Length::Tokens)
            }
            (false, None) => self.dialect.read(&text),
        };
        let open = open && computed.is_none();
        let place = place(value, self.texts);
        let mut notes = Vec::new();
        if let Length::Tokens(n) = length {
            if text.trim() != n.to_string() && !text.contains('_') && !self.template {
                notes.push(format!(
                    "{} reads {text} as {}",
                    self.dialect,
                    crate::units::thousands(n)
                ));
            }
            notes.extend(self.rounding(n));
        } else if length == Length::Automatic {
            notes.push(format!(
                "{} takes {text} as: what the model or the memory allows",
                self.dialect
            ));
        }
        let variable = place.as_ref().and_then(|_| self.variable(value));
        for name in self.shares(value, word) {
            notes.push(format!(
                "the same digits are also the value of {name}; both change together"
            ));
        }
        Found {
            fixed: fixed(value, open, place.as_ref(), self.texts),
            per_request: length.tokens().and_then(|n| self.meaning.per_request(n)),
            value: length,
            meaning: self.meaning,
            variable: variable.filter(|name| given_as != GivenAs::Variable(name.clone())),
            in_force: false,
            text,
            place,
            notes,
            given_as,
        }
    }

    fn rounding(&self, n: u64) -> Option<String> {
        let block = match (self.dialect, self.meaning) {
            (Dialect::LlamaCpp, Meaning::Total { slots }) => slots.checked_mul(256)?,
            (Dialect::LlamaCpp, _) => 256,
            _ => return None,
        };
        (!n.is_multiple_of(block)).then(|| {
            format!("llama.cpp serves whole blocks of 256 tokens a slot; {n} is no multiple of {block}, so it rounds up")
        })
    }

    /// The variable of the environment in which the value is written.
    fn variable(&self, value: &[Byte]) -> Option<String> {
        let (file, range) = stretch(value)?;
        let within = |text: &Text| {
            text.iter()
                .filter_map(|b| b.at)
                .any(|at| at.file == file && range.contains(&at.start))
        };
        self.env
            .iter()
            .find(|(_, text)| within(text))
            .map(|(name, _)| name.to_string())
    }

    /// Other arguments that are made from the same digits.
    fn shares(&self, value: &[Byte], word: Option<usize>) -> Vec<String> {
        let Some((file, range)) = stretch(value) else {
            return Vec::new();
        };
        let touches = |word: &Word| {
            word.text
                .iter()
                .filter_map(|b| b.at)
                .any(|at| at.file == file && range.contains(&at.start))
        };
        let mut out = Vec::new();
        for (at, other) in self.words.iter().enumerate() {
            if Some(at) == word || !touches(other) {
                continue;
            }
            let text = other.shown();
            let flag = match text.split_once('=') {
                Some((flag, _)) => Some(flag.to_string()),
                None => at
                    .checked_sub(1)
                    .and_then(|before| self.words.get(before))
                    .map(Word::shown)
                    .filter(|flag| flag.starts_with('-')),
            };
            let flag = flag.unwrap_or(text);
            let own = self.dialect.variable() == Some(flag.as_str());
            if !own && self.dialect.context(&flag).is_none() {
                out.push(flag);
            }
        }
        out
    }
}

/// Where a value stands in a file.
pub(super) fn place(value: &[Byte], texts: &Texts) -> Option<Place> {
    let (file, span) = stretch(value)?;
    texts.place(file, span)
}

fn place_of(words: &[Word], texts: &Texts) -> Option<Place> {
    words.iter().find_map(|word| place(&word.text, texts))
}

/// Why the value cannot be changed in its file.
fn fixed(value: &[Byte], open: bool, place: Option<&Place>, texts: &Texts) -> Option<String> {
    let text = shown(value);
    if open {
        return Some(format!(
            "{text} is known only on the running system, or in a file that was not read"
        ));
    }
    if value.is_empty() {
        return Some("it has no value".to_string());
    }
    let Some(place) = place else {
        return Some(format!(
            "{text} is not written anywhere in one piece; it is put together from several places or from the name of the unit"
        ));
    };
    let written = texts
        .file(place.number)
        .and_then(|file| file.bytes.get(place.span.clone()));
    if written != Some(text.as_bytes()) {
        return Some(format!("{text} is written with escapes"));
    }
    None
}
