//! `vramp demo`: the cockpit on the simulated rig, through the same code as any server.

use super::cockpit::{enter, read_only, terminal};
use super::{Failure, Look, places};
use crate::app::model::Settings;
use crate::gpu::sim::SimSource;
use crate::host::{Host, Local};
use crate::places::Places;
use crate::profile::{self, Profile};
use crate::ramp;
use crate::runtime::{self, Which};
use crate::service::Status;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "demo";

/// Opens the demo: afresh, or where a killed one left its server or a restart.
pub fn open(look: &Look) -> Result<i32, Failure> {
    terminal("vramp sim runs the simulated rig as a plain server")?;
    let places = places()?.demo();
    let file = places.config.join("vramp.toml");
    let left = if look.new {
        None
    } else {
        left_behind(&places, &file)?
    };
    let which = if left.is_some() {
        Which::Newest
    } else {
        Which::New
    };
    let profile = match left {
        Some(profile) => profile,
        None => fresh(&places, &file)?,
    };
    let settings = Settings {
        quick: look.quick,
        read_only: read_only(look),
        demo: true,
    };
    let cards = SimSource::new(places.data.join("rig"));
    enter(
        places,
        Some(profile),
        settings,
        look,
        which,
        Box::new(cards),
    )
}

/// The profile of a demo that did not end as it should: its server still runs, or a restart is unfinished.
fn left_behind(places: &Places, file: &Path) -> Result<Option<Profile>, Failure> {
    if !file.exists() {
        return Ok(None);
    }
    let Ok(Some(loaded)) = profile::load(Some(file), Some(NAME)) else {
        return Ok(None);
    };
    let dir = places.service(&loaded.profile);
    let host: Arc<dyn Host> = Arc::new(Local);
    let Some(service) = runtime::service(&loaded.profile, &host, dir.clone()) else {
        return Ok(None);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let found = runtime.block_on(async {
        let intent = ramp::find(host.as_ref(), &dir)
            .await
            .map_err(Failure::new)?;
        let status = service.status().await.map_err(Failure::new)?;
        Ok(intent.is_some() || matches!(status, Status::Running { .. }))
    })?;
    Ok(found.then_some(loaded.profile))
}

fn fresh(places: &Places, file: &Path) -> Result<Profile, Failure> {
    let exe = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program's own file: {error}")))?;
    let port = free_port()
        .map_err(|error| Failure::new(format!("no free port for the simulated server: {error}")))?;
    let rig = places.data.join("rig");
    // Cards of an earlier rig are history, and so is what stood beside its service: it knew another port.
    for old in [&rig, &places.state.join("services")] {
        let _ = std::fs::remove_dir_all(old);
    }
    for dir in [&places.config, &rig] {
        std::fs::create_dir_all(dir)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", dir.display())))?;
    }
    let text = profile::demo_text(&exe, &places.data, port);
    crate::host::write_atomic(file, text.as_bytes()).map_err(Failure::new)?;
    match profile::load(Some(file), Some(NAME)) {
        Ok(Some(loaded)) => Ok(loaded.profile),
        Ok(None) => Err(Failure::new("the demo's profile is gone")),
        Err(error) => Err(Failure::new(error)),
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
