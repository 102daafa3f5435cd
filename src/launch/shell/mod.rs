//! Shell scripts, read for the commands that they would run.
//!
//! No shell is run and nothing branches: every command is taken in the order of the text, an assignment counts from its line on. What is
//! written in a branch is taken note of.
//! What only running tells stays open.

mod expand;
mod lex;
mod raw;

use super::Reader;
use super::command::{Command, Env, Word};
use super::traced::{Text, is_name, plain, shown};
use expand::{Value, Variables};
use raw::{Part, Raw, Token};
use std::collections::HashMap;
use std::ops::Range;

/// Calls of functions and sourced files inside one another, at most.
const DEPTH: usize = 8;

/// The commands that `script` runs with this environment and these arguments (the first is `$1`).
pub(super) fn commands(
    script: &Text,
    env: &Env,
    arguments: Option<Vec<Text>>,
    names: &[String],
    reader: &mut Reader<'_>,
) -> Vec<Command> {
    let mut variables = Variables::default();
    for (name, value) in env.iter() {
        variables.set(name, Value::One(value.clone()));
        variables.export(name);
    }
    variables.arguments = arguments;
    let mut run = Run {
        variables,
        functions: HashMap::new(),
        names: names.to_vec(),
        out: Vec::new(),
        depth: 0,
        branches: 0,
        reader,
    };
    let tokens = lex::tokens(script);
    run.range(&tokens, 0..tokens.len());
    // A function that the text never calls is what somebody else calls.
    let mut left: Vec<(String, Function)> = run.functions.drain().collect();
    left.sort_by_key(|(_, function)| function.body.start);
    for (name, function) in left {
        if !function.called {
            run.names.push(name);
            run.range(&tokens, function.body);
            run.names.pop();
        }
    }
    run.out
}

/// Whether a file is a script for a shell, by its first line.
pub(super) fn is_script(text: &Text) -> bool {
    let first: Text = text
        .iter()
        .take_while(|b| b.value != b'\n')
        .copied()
        .collect();
    let first = shown(&first);
    first.starts_with("#!") && first.contains("sh")
}

#[derive(Debug, Clone)]
struct Function {
    body: Range<usize>,
    called: bool,
}

struct Run<'r, 't> {
    variables: Variables,
    functions: HashMap<String, Function>,
    names: Vec<String>,
    out: Vec<Command>,
    depth: usize,
    /// Branches around the command.
    branches: usize,
    reader: &'r mut Reader<'t>,
}

impl Token {
    fn bare(&self) -> Option<String> {
        match self {
            Token::Word(raw) => raw.bare(),
            _ => None,
        }
    }
}

/// Words that only steer the shell when they begin a command.
const STEERING: [&str; 14] = [
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "!", "time",
    "esac",
];

impl Run<'_, '_> {
    fn range(&mut self, tokens: &[Token], range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let token = tokens.get(at);
            if matches!(token, Some(Token::End | Token::Open | Token::Close)) {
                at += 1;
                continue;
            }
            if let Some(word) = token.and_then(Token::bare) {
                match word.as_str() {
                    "if" | "case" => self.branches += 1,
                    "fi" | "esac" => self.branches = self.branches.saturating_sub(1),
                    _ => {}
                }
                if STEERING.contains(&word.as_str()) {
                    at += 1;
                    continue;
                }
            }
            if let Some((name, body)) = function(tokens, at, range.end) {
                at = body.end;
                self.functions.insert(
                    name,
                    Function {
                        body,
                        called: false,
                    },
                );
                continue;
            }
            let end = (at..range.end)
                .find(|i| {
                    matches!(
                        tokens.get(*i),
                        Some(Token::End | Token::Open | Token::Close)
                    )
                })
                .unwrap_or(range.end);
            self.simple(tokens, tokens.get(at..end).unwrap_or_default());
            at = end;
        }
    }

    /// One command: assignments, words, redirections.
    fn simple(&mut self, tokens: &[Token], command: &[Token]) {
        let mut own = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirect = false;
        if self.branches > 0 {
            for token in command {
                self.branch(token);
            }
        }
        for token in command {
            match token {
                Token::Redirect => redirect = true,
                Token::Word(_) if redirect => redirect = false,
                Token::Word(raw) => match assignment(raw).filter(|_| words.is_empty()) {
                    Some((name, append, value)) => {
                        let value = self.variables.text(&value);
                        own.push((name, append, Value::One(value)));
                    }
                    None => words.extend(self.variables.words(raw)),
                },
                Token::Array {
                    name,
                    append,
                    items,
                } => {
                    let items = items
                        .iter()
                        .flat_map(|raw| self.variables.words(raw))
                        .map(|word| word.text)
                        .collect();
                    own.push((name.clone(), *append, Value::Many(items)));
                }
                _ => {}
            }
        }
        let Some(first) = words.first().map(Word::shown) else {
            for (name, append, value) in own {
                self.variables.put(&name, append, value);
            }
            return;
        };
        if self.builtin(&first, &words, &mut own) {
            return;
        }
        let arguments = || words.iter().skip(1).map(|word| word.text.clone()).collect();
        if let Some(function) = self.functions.get_mut(&first)
            && self.depth < DEPTH
        {
            function.called = true;
            let body = function.body.clone();
            let before = self.variables.arguments.replace(arguments());
            self.names.push(first);
            self.depth += 1;
            self.range(tokens, body);
            self.depth -= 1;
            self.names.pop();
            self.variables.arguments = before;
            return;
        }
        let mut env = self.variables.exported();
        for (name, _, value) in own {
            if let Value::One(value) = value {
                env.set(&name, value);
            }
        }
        self.out.push(Command {
            names: self.names.clone(),
            words,
            env,
            image: None,
            inside: false,
            template: false,
        });
    }

    /// Takes note of what is written in a branch.
    fn branch(&mut self, token: &Token) {
        let words = match token {
            Token::Word(raw) => std::slice::from_ref(raw),
            Token::Array { items, .. } => items.as_slice(),
            _ => return,
        };
        for part in words.iter().flat_map(|raw| &raw.parts) {
            if let Part::Text { text, .. } = part {
                self.reader.branched(text);
            }
        }
    }

    /// Commands that change what later ones see; `false` where it is none.
    fn builtin(
        &mut self,
        name: &str,
        words: &[Word],
        own: &mut Vec<(String, bool, Value)>,
    ) -> bool {
        let rest = words.get(1..).unwrap_or_default();
        match name {
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                let exports = name == "export" || rest.iter().any(|word| word.is("-x"));
                for (name, append, value) in own.drain(..) {
                    self.variables.put(&name, append, value);
                }
                for word in rest {
                    let (name, value) = match super::traced::split_assignment(&word.text) {
                        Some((name, value)) => (plain(name), Some(value.to_vec())),
                        None => (plain(&word.text), None),
                    };
                    if !is_name(&name) {
                        continue;
                    }
                    let name = String::from_utf8_lossy(&name).into_owned();
                    if let Some(value) = value {
                        self.variables.set(&name, Value::One(value));
                    }
                    if exports {
                        self.variables.export(&name);
                    }
                }
            }
            "unset" => rest
                .iter()
                .for_each(|word| self.variables.unset(&word.shown())),
            "set" => {
                if rest.first().is_some_and(|word| word.is("-a")) {
                    self.variables.export_all = true;
                }
                if let Some(at) = rest.iter().position(|word| word.is("--")) {
                    let given = rest.iter().skip(at + 1).map(|word| word.text.clone());
                    self.variables.arguments = Some(given.collect());
                }
            }
            ":" | "true" | "false" | "return" | "shift" | "trap" | "cd" => {}
            "source" | "." => self.source(rest),
            "eval" => {
                let mut text = Text::new();
                for word in rest {
                    text.extend_from_slice(&word.text);
                    text.extend(super::traced::made(b" "));
                }
                self.inner(&text);
            }
            _ => return false,
        }
        true
    }

    fn source(&mut self, rest: &[Word]) {
        let Some(file) = rest.first().filter(|word| !word.open()) else {
            return;
        };
        // Scripts of Python environments set nothing that matters here.
        if file.base() == "activate" {
            return;
        }
        if let Some(text) = self.reader.script(&file.shown()) {
            self.inner(&text);
        }
    }

    /// A text that runs in this shell.
    fn inner(&mut self, text: &Text) {
        if self.depth >= DEPTH {
            return;
        }
        let tokens = lex::tokens(text);
        // Its functions are known by their places among these tokens alone.
        let outer = std::mem::take(&mut self.functions);
        self.depth += 1;
        self.range(&tokens, 0..tokens.len());
        self.depth -= 1;
        self.functions = outer;
    }
}

/// `NAME=value` or `NAME+=value` at the start of a command.
fn assignment(raw: &Raw) -> Option<(String, bool, Raw)> {
    let Some(Part::Text {
        text,
        quoted: false,
    }) = raw.parts.first()
    else {
        return None;
    };
    let at = text.iter().position(|b| b.is(b'='))?;
    let name = shown(text.get(..at)?);
    let (name, append) = match name.strip_suffix('+') {
        Some(name) => (name.to_string(), true),
        None => (name, false),
    };
    if !is_name(name.as_bytes()) {
        return None;
    }
    let mut value = raw.clone();
    if let Some(Part::Text { text, .. }) = value.parts.first_mut() {
        text.drain(..=at);
    }
    Some((name, append, value))
}

/// A function that is defined at `at`: its name and the tokens of its body.
fn function(tokens: &[Token], at: usize, end: usize) -> Option<(String, Range<usize>)> {
    let mut at = at;
    let keyword = tokens.get(at)?.bare()? == "function";
    at += usize::from(keyword);
    let name = tokens.get(at)?.bare()?;
    let parens =
        tokens.get(at + 1) == Some(&Token::Open) && tokens.get(at + 2) == Some(&Token::Close);
    if !parens && !keyword {
        return None;
    }
    at += if parens { 3 } else { 1 };
    while tokens.get(at) == Some(&Token::End) {
        at += 1;
    }
    let brace = tokens.get(at)?.bare().as_deref() == Some("{");
    if !brace && tokens.get(at) != Some(&Token::Open) {
        return None;
    }
    let mut depth = 0_usize;
    for i in at..end {
        let token = tokens.get(i)?;
        let (opens, closes) = match brace {
            true => {
                let bare = token.bare();
                (bare.as_deref() == Some("{"), bare.as_deref() == Some("}"))
            }
            false => (*token == Token::Open, *token == Token::Close),
        };
        depth += usize::from(opens);
        if closes {
            depth -= 1;
            if depth == 0 {
                return Some((name, at + 1..i));
            }
        }
    }
    Some((name, at + 1..end))
}
