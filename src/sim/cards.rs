//! Keeps `cards.json` up to date while the simulated server lives.

use super::api::Rig;
use super::memory::{self, Cards, Stage};
use super::rig::{FORMAT, RigFile, process};
use super::server::SimError;
use crate::clock::unix_ms;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the file is written.
const EVERY: Duration = Duration::from_millis(200);

/// Writes the rig's file from a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rig: Arc<Rig>,
    dir: Option<PathBuf>,
    ended: AtomicBool,
    state: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    stage: Stage,
    cards: Cards,
    stepped: Instant,
    start_ticks: u64,
}

impl Keeper {
    /// Takes the rig over and begins to write. Also gives the bytes that the tightest card has free for the server.
    pub fn open(rig: &Arc<Rig>) -> Result<(Self, u64), SimError> {
        let args = &rig.args;
        let dir = args.rig.clone();
        let before = match &dir {
            Some(dir) => prepare(dir).map_err(|source| SimError::Rig {
                dir: dir.display().to_string(),
                source,
            })?,
            None => None,
        };
        let idle = memory::idle_cards(args.cards.max(1));
        let found = before.map_or(idle, |file| file.cards_at(unix_ms()));
        let free = found
            .iter()
            .map(memory::free_for_server)
            .min()
            .unwrap_or(u64::MAX);
        let shared = Arc::new(Shared {
            rig: Arc::clone(rig),
            dir,
            ended: AtomicBool::new(false),
            state: Mutex::new(Inner {
                stage: Stage::Weights(0.0),
                cards: Cards::new(args.cards, args.served(), args.seed),
                stepped: Instant::now(),
                start_ticks: process(std::process::id()).map_or(0, |(_, ticks)| ticks),
            }),
        });
        if shared.dir.is_some() {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("cards".to_string())
                .spawn(move || {
                    while !shared.ended.load(Ordering::Acquire) {
                        shared.write();
                        std::thread::sleep(EVERY);
                    }
                })?;
        }
        Ok((Keeper { shared }, free))
    }

    /// A step of the start; readers see it at once.
    pub fn set_stage(&self, stage: Stage) {
        self.shared.lock().stage = stage;
        self.shared.write();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
    }
}

/// Makes the directory and reads what an earlier server left there. A file that cannot be read is replaced.
fn prepare(dir: &Path) -> std::io::Result<Option<RigFile>> {
    std::fs::create_dir_all(dir)?;
    Ok(RigFile::read(dir).unwrap_or(None))
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let Some(dir) = &self.dir else {
            return;
        };
        let state = self.rig.state();
        let mut inner = self.lock();
        let load = match inner.stage {
            Stage::Weights(_) | Stage::Pool(_) => 0.05,
            Stage::Graphs(_) | Stage::WarmUp(_) => 0.5,
            Stage::Serving if state.prefilling > 0 => 1.0,
            Stage::Serving if state.decoding > 0 => 0.9,
            Stage::Serving => 0.0,
        };
        let dt = inner.stepped.elapsed().as_secs_f64();
        inner.stepped = Instant::now();
        let stage = inner.stage;
        let file = RigFile {
            format: FORMAT,
            simulated: true,
            pid: std::process::id(),
            start_ticks: inner.start_ticks,
            written_unix_ms: unix_ms(),
            hold_ms: self.rig.args.hold_cards_ms,
            cards: inner.cards.step(dt, stage, load).to_vec(),
        };
        // A disk that is full for a moment must not end the server; the next write tries again.
        let _ = file.write(dir);
    }
}
