//! What changes in a launch, line by line.

use super::dialog::DiffLine;
use crate::profile::Launch;
use crate::service::Config;

/// The launch that runs against the one that will, filled in.
pub fn launches(from: Option<&Config>, to: &Config) -> Vec<DiffLine> {
    let text = |config: &Config| {
        crate::service::render(config)
            .map(|filled| {
                crate::profile::launch_text(&Launch {
                    argv: filled.argv,
                    env: filled.env,
                    ..config.launch.clone()
                })
            })
            .unwrap_or_else(|error| error)
    };
    texts(&from.map(text).unwrap_or_default(), &text(to))
}

/// Two texts.
pub fn texts(old: &str, new: &str) -> Vec<DiffLine> {
    similar::TextDiff::from_lines(old, new)
        .iter_all_changes()
        .map(|change| {
            let line = change.value().trim_end_matches('\n').to_string();
            match change.tag() {
                similar::ChangeTag::Equal => DiffLine::Same(line),
                similar::ChangeTag::Delete => DiffLine::Removed(line),
                similar::ChangeTag::Insert => DiffLine::Added(line),
            }
        })
        .collect()
}
