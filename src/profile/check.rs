//! What makes a launch one that vramp can raise.

use super::Launch;
use super::launch_text::is_name;
use crate::service::{Config, render};

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
    let filled = |context: u64, slots: u64| {
        render(&Config {
            context,
            launch: Launch {
                slots,
                ..launch.clone()
            },
        })
    };
    let plain = filled(1, 1)?;
    if filled(2, 1)? == plain {
        return Err(
            "the command has no {context}, so its context could never be changed; write {context} where the context length \
             goes ({context_total} where the engine wants it times its slots)"
                .into(),
        );
    }
    if launch.slots > 1 && filled(1, 2)? == plain {
        return Err(format!(
            "slots is {}, so the engine divides its total over them: the command needs {{context_total}}, not {{context}}",
            launch.slots
        ));
    }
    Ok(())
}
