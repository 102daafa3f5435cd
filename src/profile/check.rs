//! What makes a launch one that vramp can raise, and a URL one that it can ask.

use super::Launch;
use super::error::meant;
use super::launch_text::is_name;

const PLACES: [&str; 2] = ["context", "context_total"];

/// Checks that `launch` names a program, takes the context somewhere, and has no placeholder that would never be filled.
///
/// # Errors
/// What is wrong, in words.
pub fn check_launch(launch: &Launch) -> Result<(), String> {
    if launch.argv.first().is_none_or(String::is_empty) {
        return Err("the command is empty; its first part is the program".into());
    }
    if let Some((name, _)) = launch.env.iter().find(|(name, _)| !is_name(name)) {
        return Err(format!(
            "{name:?} is no name for an environment variable; use letters, digits and _"
        ));
    }
    let twice = launch.env.iter().enumerate().find(|(at, (name, _))| {
        launch
            .env
            .iter()
            .skip(at + 1)
            .any(|(later, _)| later == name)
    });
    if let Some((_, (name, _))) = twice {
        return Err(format!("{name} is set twice; keep one"));
    }
    let texts = || {
        let values = launch.env.iter().map(|(_, value)| value);
        launch.argv.iter().chain(values)
    };
    if let Some(zero) = texts().find(|text| text.contains('\0')) {
        return Err(format!(
            "{zero:?} has a NUL character, which no command can carry"
        ));
    }
    let places: Vec<&str> = texts().flat_map(|text| placeholders(text)).collect();
    if let Some(wrong) = places.iter().find(|name| !PLACES.contains(name)) {
        return Err(format!(
            "unknown placeholder {{{wrong}}}{}",
            meant(wrong, PLACES)
        ));
    }
    if places.is_empty() {
        return Err(
            "the command has no {context}, so its context could never be changed; write {context} where the context length \
             goes ({context_total} where the engine wants it times its slots)"
                .into(),
        );
    }
    if launch.slots > 1 && !places.contains(&"context_total") {
        return Err(format!(
            "slots is {}, so the engine divides its total over them: the command needs {{context_total}}, not {{context}}",
            launch.slots
        ));
    }
    Ok(())
}

/// The names in `{name}`. Braces around anything but a lower-case name are text (JSON in an argument).
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let is_place = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_place.then_some(name)
    })
}

/// The base URL of a server: `http` is added where no scheme is given, a trailing `/v1` and slashes are taken off.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn base_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let full = if text.contains("://") {
        text.to_string()
    } else {
        format!("http://{text}")
    };
    let url = url::Url::parse(&full).map_err(|error| format!("{text:?} is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(format!(
            "{text:?} is no web address; write http://HOST:PORT"
        ));
    }
    let base = url.as_str().trim_end_matches('/');
    Ok(base
        .strip_suffix("/v1")
        .unwrap_or(base)
        .trim_end_matches('/')
        .to_string())
}
