//! The host, and the service on it.

use super::super::rig::{Rig, Stand, stranger};
use super::check::Check;
use crate::host::Sudo;
use crate::profile::ServiceSpec;
use crate::service::{Config, Service};
use crate::units::thousands;
use std::sync::Arc;

/// Whether the host is reached.
pub async fn host(rig: &Rig, checks: &mut Vec<Check>) -> bool {
    const WHAT: &str = "ssh";
    if rig.host.is_local() {
        checks.push(Check::ok(
            WHAT,
            "not needed: the server runs on this machine",
        ));
        return true;
    }
    let name = rig.host.name();
    match rig.host.boot_id().await {
        Ok(_) => {
            checks.push(Check::ok(WHAT, format!("{name} answers")));
            true
        }
        Err(error) => {
            let advice = "Until ssh works without a question, nothing of the service is looked at";
            checks.push(Check::fail(WHAT, error, advice));
            false
        }
    }
}

/// Looks at the service; says whether it is known to be stopped.
pub async fn look(rig: &Rig, checks: &mut Vec<Check>) -> bool {
    const READABLE: &str = "service readable";
    let Some(service) = &rig.service else {
        checks.push(Check::warn(
            READABLE,
            "the profile does not say how the server is run",
            "With [profile.NAME.process] or [profile.NAME.service] vramp can restart it; vramp init writes it",
        ));
        return false;
    };
    checks.push(sudo(rig).await);
    let stand = match Stand::of(service.as_ref()).await {
        Ok(stand) => stand,
        Err(error) => {
            let advice = "Correct the service in the profile";
            checks.push(Check::fail(READABLE, error, advice));
            return false;
        }
    };
    checks.push(readable(service.as_ref(), &stand).await);
    checks.push(writable(rig, service.as_ref(), &stand).await);
    checks.push(log(service.as_ref(), &stand).await);
    checks.push(standing(rig).await);
    !stand.runs()
}

async fn readable(service: &dyn Service, stand: &Stand) -> Check {
    const WHAT: &str = "service readable";
    let name = service.name();
    let production = stand.standing.production;
    let brings = production.map_or("nothing that is confirmed".to_string(), thousands);
    match (stand.runs(), stand.running()) {
        (true, Some(config)) => {
            if let Some(what) = stranger(service).await {
                return Check::fail(
                    WHAT,
                    format!("{name} runs, but {what}"),
                    "Correct url in the profile, or stop the other one",
                );
            }
            let running = thousands(config.context);
            Check::ok(
                WHAT,
                format!("{name} runs at {running}; a reboot brings {brings}"),
            )
        }
        (true, None) => Check::warn(
            WHAT,
            format!("{name} runs, and what it was started with is not known"),
            "Stop it yourself, and vramp starts it; then it can be restarted",
        ),
        (false, _) => Check::ok(
            WHAT,
            format!("{name} does not run; a start brings {brings}"),
        ),
    }
}

/// Whether a trial could be started and kept: asked for a context that is not the confirmed one.
async fn writable(rig: &Rig, service: &dyn Service, stand: &Stand) -> Check {
    const WHAT: &str = "service writable";
    let production = stand.standing.production;
    let ladder = &rig.profile.ladder;
    let other = ladder.iter().find(|step| Some(**step) != production);
    let Some(context) = other.copied().or(production) else {
        return Check::warn(
            WHAT,
            "no context to try",
            "Name some in ladder of the profile",
        );
    };
    let config = Config {
        context,
        launch: stand.standing.launch.clone(),
    };
    match service.validate(&config).await {
        Ok(()) => Check::ok(
            WHAT,
            format!("a trial at {} could be started", thousands(context)),
        ),
        Err(error) => Check::fail(WHAT, error, "Until then no context can be tried"),
    }
}

async fn sudo(rig: &Rig) -> Check {
    const WHAT: &str = "sudo";
    let asked = match &rig.profile.service {
        ServiceSpec::Systemd { sudo, .. } => *sudo,
        ServiceSpec::Compose(compose) => compose.sudo,
        _ => false,
    };
    if !asked {
        return Check::ok(WHAT, "not needed: the profile does not ask for it");
    }
    match Sudo::new(Arc::clone(&rig.host)).check().await {
        Ok(()) => Check::ok(WHAT, "sudo -n works without a question"),
        Err(error) => Check::fail(
            WHAT,
            error,
            "Allow it in sudoers (NOPASSWD), or set sudo = false in the profile",
        ),
    }
}

async fn log(service: &dyn Service, stand: &Stand) -> Check {
    const WHAT: &str = "journal";
    let Some(name) = service.log_name() else {
        let advice = "Without its log a start that fails cannot say why";
        return Check::warn(WHAT, "the service has no log that vramp knows", advice);
    };
    let read = async {
        let past = service.log_past().await?;
        service.log_since(past).await
    };
    match read.await {
        Ok((lines, _)) if lines.is_empty() && stand.runs() => Check::warn(
            WHAT,
            format!("{name}: nothing of the server's log is there"),
            "If it does write one: may you read it? (the group systemd-journal, the file's mode)",
        ),
        Ok((lines, _)) => Check::ok(WHAT, format!("{name}: {} recent lines", lines.len())),
        Err(error) => Check::fail(
            WHAT,
            error,
            "Without its log a start that fails cannot say why",
        ),
    }
}

/// What stands beside the service.
async fn standing(rig: &Rig) -> Check {
    const WHAT: &str = "unfinished restart";
    match (rig.intent().await, rig.holder().await) {
        (Err(why), _) | (_, Err(why)) => Check::fail(WHAT, why, "See what runs, by hand"),
        (Ok(_), Ok(Some(holder))) => Check::warn(
            WHAT,
            format!("another vramp works on the service: {holder}"),
            "This one is read-only until it ends",
        ),
        (Ok(Some(intent)), Ok(None)) => Check::fail(
            WHAT,
            format!(
                "one to {} stands at the step \"{}\"",
                thousands(intent.plan.to.context),
                intent.step.words()
            ),
            "vramp shows it and offers both ways out; or vramp ramp --recover go-on, or --recover roll-back",
        ),
        (Ok(None), Ok(None)) => Check::ok(WHAT, "none, and nobody works on the service"),
    }
}
