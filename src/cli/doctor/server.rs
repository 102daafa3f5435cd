//! The address and what answers there.

use super::super::rig::{Rig, token};
use super::check::Check;
use crate::engine::EngineError;
use crate::units::thousands;

/// `stopped`: the service of the profile does not run, so that nobody has to answer.
pub async fn look(rig: &Rig, stopped: bool, checks: &mut Vec<Check>) {
    const URL: &str = "URL";
    const ENGINE: &str = "engine";
    let url = &rig.profile.endpoint.url;
    let (engine, facts) = match rig.server().await {
        Ok(found) => found,
        Err(error) => {
            let unreached = matches!(
                error,
                EngineError::Refused { .. }
                    | EngineError::Timeout { .. }
                    | EngineError::Unreachable { .. }
            );
            if unreached && stopped {
                let advice = "vramp, or vramp ramp, starts it";
                checks.push(Check::warn(URL, error, advice));
            } else if unreached {
                let advice = "Start the server, or correct url in the profile";
                checks.push(Check::fail(URL, error, advice));
            } else {
                checks.push(Check::ok(URL, format!("something answers at {url}")));
                let check = match error {
                    EngineError::Loading => Check::warn(ENGINE, error, "Wait until it has loaded"),
                    EngineError::Denied { .. } => Check::fail(
                        ENGINE,
                        error,
                        "Name the key in the profile (key_env or key_file)",
                    ),
                    _ => Check::fail(ENGINE, error, "Correct url or engine in the profile"),
                };
                checks.push(check);
            }
            return;
        }
    };
    checks.push(Check::ok(URL, format!("{url} answers")));
    let context = facts.context.effective.known();
    let about = format!(
        "{} {} {}, context {}",
        facts.kind.name(),
        facts.version.known().map_or("?", String::as_str),
        facts.model.known().map_or("?", String::as_str),
        context.map_or("unknown".to_string(), |n| thousands(*n))
    );
    checks.push(match token(engine.as_ref()).await {
        Ok(how) => Check::ok(ENGINE, format!("{about}; {how}")),
        Err(why) => Check::fail(
            ENGINE,
            format!("{about}; {why}"),
            "Its pages answer and no request does: see its log",
        ),
    });
}
