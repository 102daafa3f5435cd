//! Who holds a card that does not let go, and whether it is left over from the server that was stopped.

use super::cards::Held;
use super::left_over::{self, LeftOver};
use crate::discover;
use crate::gpu::GpuProcess;
use crate::host::Host;
use crate::service::{ProcessId, inspected};
use crate::units::{clean, gib};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Programs that may know the name of a container, in this order.
const ENGINES: [&str; 2] = ["docker", "podman"];
/// How long one of them may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Digits of a container's number that people use.
const SHORT: usize = 12;

/// Names of containers by their numbers, each asked for once: an engine may be slow, and workers share a container.
type Names = BTreeMap<String, Option<String>>;

/// A card that is not free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCard {
    pub card: u32,
    /// Bytes above what it holds without the server; `None` where that cannot be told.
    pub above_bytes: Option<u64>,
    /// The processes that the driver lists on it. It may list none although something holds memory.
    pub holders: Vec<Holder>,
}

/// A process on a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// `None`: its number is of another process namespace.
    pub name: Option<String>,
    pub container: Option<ContainerName>,
    /// On this card; the driver may not say.
    pub bytes: Option<u64>,
    /// It belonged to the server before the stop, and lives on.
    pub left_over: bool,
}

/// A container, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerName {
    /// The first twelve digits of its number.
    pub id: String,
    /// Where docker or podman tells it.
    pub name: Option<String>,
}

/// Cards that were not free in time, to be put to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    /// How long they were waited for, seconds.
    pub waited_s: u64,
    /// How long a process that is told to end may take before it is killed, seconds.
    pub grace_s: u64,
    pub held: Vec<HeldCard>,
    /// Processes of the stopped server that can be ended: those that are listed on the held cards, or all that live where the driver
    /// lists nobody.
    pub left_overs: Vec<LeftOver>,
}

/// What the cards show, with all that the host knows of the holders. `members` belonged to the server before the stop.
pub(super) async fn look(
    host: &dyn Host,
    held: &[Held],
    members: &[ProcessId],
    (waited_s, grace_s): (u64, u64),
) -> Occupied {
    // What cannot be looked at is no left-over: nothing is ended on a guess.
    let living = left_over::living(host, members).await.unwrap_or_default();
    let mut names = Names::new();
    let mut cards = Vec::with_capacity(held.len());
    for one in held {
        let mut holders = Vec::with_capacity(one.holders.len());
        for process in &one.holders {
            holders.push(holder(host, process, &living, &mut names).await);
        }
        cards.push(HeldCard {
            card: one.card,
            above_bytes: one.above,
            holders,
        });
    }
    let unlisted = cards.iter().any(|card| card.holders.is_empty());
    let listed = |one: &LeftOver| {
        let mut on_them = cards.iter().flat_map(|card| &card.holders);
        on_them.any(|holder| holder.left_over && holder.pid == one.id.pid)
    };
    let left_overs = living
        .into_iter()
        .filter(|one| unlisted || listed(one))
        .collect();
    Occupied {
        waited_s,
        grace_s,
        held: cards,
        left_overs,
    }
}

async fn holder(
    host: &dyn Host,
    process: &GpuProcess,
    living: &[LeftOver],
    names: &mut Names,
) -> Holder {
    // A number of another namespace means somebody else here.
    let (container, left_over) = if process.is_local() {
        let ours = living.iter().any(|one| one.id.pid == process.pid);
        (container(host, process.pid, names).await, ours)
    } else {
        (None, false)
    };
    Holder {
        pid: process.pid,
        name: process.name.as_deref().map(clean),
        container,
        bytes: process.used.known().copied(),
        left_over,
    }
}

async fn container(host: &dyn Host, pid: u32, names: &mut Names) -> Option<ContainerName> {
    let path = format!("/proc/{pid}/cgroup");
    let read = timeout(PATIENCE, host.read(Path::new(&path))).await;
    let text = String::from_utf8_lossy(&read.ok()?.ok()??).into_owned();
    let id = discover::container_id(&text)?;
    if !names.contains_key(id) {
        let name = name_of(host, id).await;
        names.insert(id.to_string(), name);
    }
    Some(ContainerName {
        name: names.get(id).cloned().flatten(),
        id: id.get(..SHORT)?.to_string(),
    })
}

async fn name_of(host: &dyn Host, id: &str) -> Option<String> {
    for engine in ENGINES {
        let argv = [engine, "inspect", "--type", "container", id].map(str::to_string);
        let run = timeout(PATIENCE, host.run(&argv)).await;
        if let Ok(Ok(output)) = run
            && output.code == Some(0)
            && let Ok(found) = inspected(&output.stdout)
            && let Some(first) = found.first()
        {
            return Some(clean(first.plain_name()));
        }
    }
    None
}

impl Holder {
    /// `python3 (pid 4242, container 3f2a1b0c9d8e vllm-1, 3.9 GiB, left over from the stopped server)`.
    pub fn words(&self) -> String {
        let mut facts = vec![format!("pid {}", self.pid)];
        if let Some(container) = &self.container {
            facts.push(container.words());
        }
        facts.push(self.size());
        if self.left_over {
            facts.push("left over from the stopped server".to_string());
        }
        format!("{} ({})", self.named(), facts.join(", "))
    }

    /// Its name, or what stands for it.
    pub fn named(&self) -> &str {
        self.name.as_deref().unwrap_or("a process")
    }

    /// What it holds on the card.
    pub fn size(&self) -> String {
        self.bytes.map_or_else(
            || "unknown size".to_string(),
            |bytes| format!("{} GiB", gib(bytes)),
        )
    }
}

impl ContainerName {
    pub fn words(&self) -> String {
        match &self.name {
            Some(name) => format!("container {} {name}", self.id),
            None => format!("container {}", self.id),
        }
    }
}

impl HeldCard {
    /// How much it holds, without who holds it.
    pub fn amount(&self) -> String {
        match self.above_bytes {
            Some(above) => format!(
                "card {} still holds {} GiB more than without the server",
                self.card,
                gib(above)
            ),
            None => format!("card {} cannot be judged", self.card),
        }
    }
}

/// The cards that hold on and who makes them, in words.
pub fn words(held: &[HeldCard]) -> String {
    let words: Vec<String> = held
        .iter()
        .map(|card| {
            let holders: Vec<String> = card.holders.iter().map(Holder::words).collect();
            let by = if holders.is_empty() {
                NONE_LISTED.to_string()
            } else {
                format!("listed on it: {}", holders.join(", "))
            };
            format!("{}; {by}", card.amount())
        })
        .collect();
    words.join("; ")
}

/// What is said of a card that something holds and on which the driver shows nobody.
pub const NONE_LISTED: &str = "the driver lists no process that holds it";

#[cfg(test)]
#[path = "holders_tests.rs"]
mod tests;
