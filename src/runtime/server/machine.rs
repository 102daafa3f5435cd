//! The machine that the server is on: how it does, which processes serve there, and the file of the model.

use super::Place;
use crate::app::msg::Msg;
use crate::discover::{self, model};
use crate::engine::Facts;
use crate::gpu::Tenant;
use crate::host::vitals;
use crate::profile::Launch;
use crate::reading::Reading;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Sender;

/// It is looked at every so many seconds.
const EVERY: u32 = 5;

/// All that is asked of it is asked beside the watching of the server: a disk, a container engine, a line to another host may be slow.
pub struct Machine {
    place: Place,
    url: String,
    say: Sender<Msg>,
    /// Taken by the look that goes on.
    seen: Arc<Mutex<Seen>>,
    /// Seconds since the server was looked for.
    beats: u32,
}

/// How the machine is looked at, and the server's processes on it.
#[derive(Default)]
struct Seen {
    watch: vitals::Watch,
    pids: Vec<u32>,
}

impl Machine {
    pub fn new(place: Place, url: String, say: Sender<Msg>) -> Self {
        Machine {
            place,
            url,
            say,
            seen: Arc::default(),
            beats: 0,
        }
    }

    /// Which processes serve now, so that the cards can tell what the server holds; and the model that they have, where what is `served`
    /// is known.
    pub fn look(&self, served: Option<(Facts, Option<Launch>)>) {
        let (place, say) = (self.place.clone(), self.say.clone());
        let (seen, url) = (Arc::clone(&self.seen), self.url.clone());
        tokio::spawn(async move {
            let host = place.host.as_ref();
            let found = discover::tenant(host, place.service.as_deref(), &url).await;
            let tenant = found.unwrap_or_else(|error| {
                tracing::warn!("the server's processes are not known: {error}");
                Tenant::default()
            });
            let pids = tenant.pids.clone();
            seen.lock().await.pids.clone_from(&pids);
            let _ = say.send(Msg::Tenant(tenant)).await;
            let Some((facts, launch)) = served else {
                return;
            };
            let served = model::Served {
                launch: launch.as_ref(),
                facts: &facts,
                pids: &pids,
                own: place.service.is_some(),
            };
            let geometry = model::of_server(host, &served).await;
            let _ = say.send(Msg::Geometry(geometry.map(Box::new))).await;
        });
    }

    /// A second has passed: now and then the machine is looked at. No look begins before the last one has ended.
    pub fn beat(&mut self) {
        self.beats = self.beats.wrapping_add(1);
        if self.beats % EVERY != 1 {
            return;
        }
        let (place, say) = (self.place.clone(), self.say.clone());
        if place.service.is_none() && !discover::is_on(place.host.as_ref(), &self.url) {
            return;
        }
        let Ok(mut seen) = Arc::clone(&self.seen).try_lock_owned() else {
            return;
        };
        tokio::spawn(async move {
            let Seen { watch, pids } = &mut *seen;
            let vitals = match watch.look(place.host.as_ref(), pids).await {
                Ok(vitals) => Reading::Value(vitals),
                Err(error) => Reading::failed(error.to_string()),
            };
            let _ = say.send(Msg::Host(vitals)).await;
        });
    }
}
