//! The driver, its library, and the cards.

use super::super::rig::Rig;
use super::check::Check;
use crate::clock::Clock;
use crate::gpu::nvml::Nvml;
use crate::gpu::{self, CardState, Snapshot};
use crate::units::gib;
use std::sync::mpsc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a driver may take.
const PATIENCE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(1);

pub async fn look(rig: Option<&Rig>, checks: &mut Vec<Check>) {
    let snapshot = read(rig).await;
    checks.push(driver(&snapshot));
    if rig.is_none_or(|rig| rig.host.is_local()) {
        checks.push(symbols());
    }
    let wanted = rig.map_or(&[][..], |rig| rig.profile.cards.as_slice());
    checks.push(cards(&snapshot, wanted));
}

async fn read(rig: Option<&Rig>) -> Snapshot {
    let source: Box<dyn gpu::Source> = match rig {
        Some(rig) => gpu::source_on(&rig.host),
        None => Box::new(Nvml::new()),
    };
    let (mut cards, _reader) = gpu::watch::watch(source, Clock::default(), PERIOD);
    let first = cards.wait_for(|shot| !shot.cards.is_empty() || shot.fault.is_some());
    match timeout(PATIENCE, first).await {
        Ok(Ok(shot)) => shot.clone(),
        _ => Snapshot {
            fault: Some(format!(
                "the driver does not answer within {} s",
                PATIENCE.as_secs()
            )),
            ..Snapshot::default()
        },
    }
}

fn driver(snapshot: &Snapshot) -> Check {
    const WHAT: &str = "driver";
    match &snapshot.fault {
        None => Check::ok(WHAT, &snapshot.source),
        Some(fault) if fault.starts_with("no NVIDIA driver") => Check::warn(
            WHAT,
            fault,
            "If there are cards, install their driver (a container needs it too: --gpus all). Without cards vramp measures and restarts all the same",
        ),
        Some(fault) => Check::fail(
            WHAT,
            fault,
            "Until that is mended no memory is watched, and no restart waits for the cards. See nvidia-smi and dmesg",
        ),
    }
}

/// On a thread of its own: the call may hang, and nobody waits for it then.
fn symbols() -> Check {
    const WHAT: &str = "NVML symbols";
    let (say, said) = mpsc::channel();
    let asked = std::thread::Builder::new()
        .name("nvml".into())
        .spawn(move || {
            // Nobody listens any more when it took too long.
            let _ = say.send(Nvml::new().missing_calls());
        });
    if let Err(error) = asked {
        return Check::warn(WHAT, format!("no thread: {error}"), "Try again");
    }
    match said.recv_timeout(PATIENCE) {
        Ok(Ok(missing)) if missing.is_empty() => Check::ok(WHAT, "every call that vramp makes"),
        Ok(Ok(missing)) => Check::warn(
            WHAT,
            format!("missing: {}", missing.join(", ")),
            "The driver is old: those figures stay unknown. A newer driver has them",
        ),
        Ok(Err(why)) => Check::warn(WHAT, why, "See the driver"),
        Err(_) => Check::fail(
            WHAT,
            "the library does not answer",
            "A card may hang: see nvidia-smi and dmesg",
        ),
    }
}

fn cards(snapshot: &Snapshot, wanted: &[u32]) -> Check {
    const WHAT: &str = "cards";
    let there = |index: &&u32| snapshot.cards.iter().any(|card| card.index == **index);
    if let Some(missing) = wanted.iter().find(|index| !there(index)) {
        return Check::fail(
            WHAT,
            format!("card {missing} of the profile is not there"),
            "Correct cards in the profile; nvidia-smi -L lists them",
        );
    }
    if snapshot.cards.is_empty() {
        return Check::warn(WHAT, "none is read", "See the driver");
    }
    let bad: Vec<String> = snapshot
        .chosen(wanted)
        .filter_map(|card| match &card.state {
            CardState::Ok => card
                .memory
                .absent()
                .map(|why| format!("card {}: memory {why}", card.index)),
            CardState::Lost { .. } => Some(format!("card {} is lost", card.index)),
            CardState::Unknown(why) => Some(format!("card {}: {why}", card.index)),
        })
        .collect();
    if !bad.is_empty() {
        return Check::fail(
            WHAT,
            bad.join("; "),
            "A card that is lost needs a reset or a reboot. Memory that is not told cannot be watched",
        );
    }
    let all: Vec<String> = snapshot
        .chosen(wanted)
        .map(|card| {
            let free = card.memory.known().map_or("?".to_string(), |memory| {
                format!("{} of {} GiB free", gib(memory.free), gib(memory.total))
            });
            format!("{} {} ({free})", card.index, card.name)
        })
        .collect();
    Check::ok(WHAT, all.join(", "))
}
