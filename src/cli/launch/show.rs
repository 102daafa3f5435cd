//! What `vramp launch show` says.

use super::{Failure, Files, TextArgs, print};
use crate::cli::FAILED;
use crate::launch::{Found, GivenAs, Launches, Length, Meaning, Refused, Server};
use crate::units::{clean, thousands};
use serde_json::{Value, json};
use std::path::Path;

/// Shows every server, or the one that is named.
pub(super) fn show(
    args: &TextArgs,
    files: &Files,
    launches: &Launches,
    to: Option<&Path>,
) -> Result<i32, Failure> {
    let chosen = launches.choose(args.service.as_deref());
    let servers: Vec<&Server> = match (&chosen, &args.service) {
        (Ok(server), _) => vec![server],
        (Err(Refused::Several { .. }), None) => launches.servers.iter().collect(),
        (Err(why), _) if to.is_none() => return Err(super::refused(args, launches, why)),
        (Err(_), _) => Vec::new(),
    };
    let code = if servers.is_empty() { FAILED } else { 0 };
    let Some(to) = to else {
        let text: String = servers
            .iter()
            .map(|server| text(server, files, launches))
            .collect();
        print::text(&text)?;
        return Ok(code);
    };
    let document = document(args, files, launches, &servers);
    let text = serde_json::to_string_pretty(&document).map_err(Failure::new)?;
    match to == Path::new("-") {
        true => print::text(&format!("{text}\n"))?,
        false => std::fs::write(to, format!("{text}\n"))
            .map(|()| 0)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", to.display())))?,
    };
    Ok(code)
}

/// What is to be said about the server and about the length in force.
pub(super) fn notes(server: &Server) -> Vec<String> {
    let found = server.in_force();
    server
        .notes
        .iter()
        .chain(found.iter().flat_map(|found| &found.notes))
        .cloned()
        .collect()
}

fn text(server: &Server, files: &Files, launches: &Launches) -> String {
    let mut out = String::new();
    let engine = server.engine.map_or("engine not known", |e| e.name());
    let mut line = |label: &str, text: String| {
        out.push_str(&format!("{label:<11}{}\n", clean(&text)));
    };
    line("server", format!("{}, {engine}", server.label()));
    match server.in_force() {
        Some(found) => line("context", length(found)),
        None => line(
            "context",
            match server.engine.map(|engine| engine.flag()) {
                Some(flag) => {
                    format!("not given: the engine takes the model's own; set puts in {flag} N")
                }
                None => "not given".to_string(),
            },
        ),
    }
    for found in server.found.iter().rev() {
        line(
            if found.in_force {
                "in force"
            } else {
                "overridden"
            },
            place(found, files),
        );
    }
    for note in files.notes.iter().cloned().chain(notes(server)) {
        line("note", note);
    }
    if let Some(why) = server.in_force().and_then(|found| found.fixed.as_ref()) {
        line("fixed", why.clone());
    }
    for wanted in &launches.wanted {
        line("not read", wanted.path.clone());
    }
    out
}

/// What the number stands for, in words.
pub fn length(found: &Found) -> String {
    let tokens = |n: Option<u64>| n.map_or("an unknown number of".to_string(), thousands);
    match (found.value, found.meaning) {
        (Length::Automatic, _) => "what the model or the memory allows".to_string(),
        (Length::Unknown, _) => format!("not known: {}", found.text),
        (Length::Tokens(n), Meaning::PerRequest) => format!("{} tokens a request", thousands(n)),
        (Length::Tokens(n), Meaning::Shared { slots }) => format!(
            "{} tokens a request, out of a cache of as many that {slots} slots share",
            thousands(n)
        ),
        (Length::Tokens(n), Meaning::Total { slots }) => format!(
            "{} tokens a request: {} in all over {slots} slots",
            tokens(found.per_request),
            thousands(n)
        ),
        (Length::Tokens(n), Meaning::UnknownSlots) => format!(
            "{}; whether for one request or for all slots together is not written here",
            thousands(n)
        ),
    }
}

fn place(found: &Found, files: &Files) -> String {
    let given = match &found.given_as {
        GivenAs::Argument(name) => format!("{name} {}", found.text),
        GivenAs::Variable(name) => format!("{name}={}", found.text),
    };
    let through = match &found.variable {
        Some(name) => format!(", from the variable {name}"),
        None => String::new(),
    };
    match &found.place {
        Some(place) => format!(
            "{given}{through}, {} line {}",
            files.path(&place.file).display(),
            place.line
        ),
        None => format!("{given}{through}"),
    }
}

fn document(args: &TextArgs, files: &Files, launches: &Launches, servers: &[&Server]) -> Value {
    json!({
        "file": args.file.display().to_string(),
        "form": files.texts.form.name(),
        "servers": servers.iter().map(|server| of_server(server, files)).collect::<Vec<_>>(),
        "not_read": launches.wanted.iter().map(|wanted| json!({
            "path": wanted.path,
            "optional": wanted.optional,
        })).collect::<Vec<_>>(),
        "notes": files.notes,
        "error": launches.trouble,
    })
}

fn of_server(server: &Server, files: &Files) -> Value {
    let (meaning, slots) = match server.meaning {
        Meaning::PerRequest => ("per_request", None),
        Meaning::Shared { slots } => ("shared", Some(slots)),
        Meaning::Total { slots } => ("total", Some(slots)),
        Meaning::UnknownSlots => ("unknown", None),
    };
    json!({
        "names": server.names,
        "engine": server.engine.map(|engine| engine.name()),
        "line": server.place.as_ref().map(|place| place.line),
        "value": server.in_force().and_then(|found| found.value.tokens()),
        "context_per_request": server.per_request(),
        "meaning": meaning,
        "slots": slots,
        "argument": server.engine.map(|engine| engine.flag()),
        "found": server.found.iter().map(|found| of_found(found, files)).collect::<Vec<_>>(),
        "notes": server.notes,
    })
}

fn of_found(found: &Found, files: &Files) -> Value {
    let (given, name) = match &found.given_as {
        GivenAs::Argument(name) => ("argument", name),
        GivenAs::Variable(name) => ("variable", name),
    };
    let place = found.place.as_ref();
    json!({
        "given_as": given,
        "name": name,
        "text": found.text,
        "value": found.value.tokens(),
        "automatic": found.value == Length::Automatic,
        "per_request": found.per_request,
        "in_force": found.in_force,
        "variable": found.variable,
        "file": place.map(|place| files.path(&place.file).display().to_string()),
        "line": place.map(|place| place.line),
        "start": place.map(|place| place.span.start),
        "end": place.map(|place| place.span.end),
        "fixed": found.fixed,
        "notes": found.notes,
    })
}
