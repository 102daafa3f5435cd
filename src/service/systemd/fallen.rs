//! Units that fall with the server's stop (`Requires=`, `BindsTo=`, `PartOf=`): recorded before it, brought back after the proof.

use super::manager::Manager;
use crate::service::ServiceError;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// By these the stop of a unit reaches others.
const REACHES: [&str; 3] = ["RequiredBy", "BoundBy", "ConsistsOf"];
/// How long they may take to be up again before that is said.
const PATIENCE: Duration = Duration::from_secs(20);

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("fallen.json")
}

/// The units that run now and would fall with a stop of the server's.
pub async fn find(manager: &Manager) -> Result<Vec<String>, ServiceError> {
    let mut found = Vec::new();
    let mut open = vec![manager.unit.clone()];
    let mut seen = open.clone();
    while let Some(unit) = open.pop() {
        let shown = manager.show_any(&unit).await?;
        if unit != manager.unit {
            if shown.at_rest() {
                continue;
            }
            found.push(unit);
        }
        for next in REACHES.iter().flat_map(|name| shown.list(name)) {
            if !seen.contains(&next) {
                seen.push(next.clone());
                open.push(next);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Those on record.
pub async fn recorded(manager: &Manager, state_dir: &Path) -> Result<Vec<String>, ServiceError> {
    let Some(bytes) = manager.host.read(&path(state_dir)).await? else {
        return Ok(Vec::new());
    };
    serde_json::from_slice(&bytes).map_err(|error| ServiceError::Failed {
        tried: format!("read {}", path(state_dir).display()),
        what: error.to_string(),
        advice: "Start the units that depend on the server by hand, then remove the file"
            .to_string(),
    })
}

/// Puts the units that would fall now on record, beside those that are down already.
pub async fn record(manager: &Manager, state_dir: &Path) -> Result<(), ServiceError> {
    let mut units = recorded(manager, state_dir).await?;
    for unit in find(manager).await? {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    if units.is_empty() {
        return Ok(());
    }
    let bytes = serde_json::to_vec(&units).unwrap_or_default();
    manager.host.make_dir(state_dir).await?;
    Ok(manager.host.write(&path(state_dir), &bytes).await?)
}

/// Starts what fell, and says what came of it.
pub async fn bring_back(manager: &Manager, state_dir: &Path) -> Result<Vec<String>, ServiceError> {
    let units = recorded(manager, state_dir).await?;
    if units.is_empty() {
        return Ok(Vec::new());
    }
    let mut order = vec!["start", "--no-block", "--"];
    order.extend(units.iter().map(String::as_str));
    manager.order(&order).await?;
    let until = Instant::now() + PATIENCE;
    let mut down = units.clone();
    while !down.is_empty() && Instant::now() < until {
        sleep(Duration::from_millis(200)).await;
        let mut still = Vec::new();
        for unit in down {
            if manager.show_any(&unit).await?.get("ActiveState") != "active" {
                still.push(unit);
            }
        }
        down = still;
    }
    manager.host.remove(&path(state_dir)).await?;
    let up: Vec<&str> = units
        .iter()
        .filter(|unit| !down.contains(unit))
        .map(String::as_str)
        .collect();
    let mut notes = Vec::new();
    if !up.is_empty() {
        notes.push(format!("started again with the server: {}", up.join(", ")));
    }
    if !down.is_empty() {
        notes.push(format!(
            "fell with the server and did not come back: {}; see systemctl status",
            down.join(", ")
        ));
    }
    Ok(notes)
}
