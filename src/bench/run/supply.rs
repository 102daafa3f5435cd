//! The requests of a cell, made ahead of their turn on a thread of their own.

use crate::bench::asker::{Asker, Recipe};
use crate::bench::client::{Deadlines, Request};
use crate::bench::plan::Cell;
use crate::bench::prompt::{Aim, Ask, Number};
use crate::bench::worker::Stop;
use crate::engine::Kind;
use std::cell::{Cell as StdCell, RefCell};
use std::collections::VecDeque;
use std::io;
use tokio::sync::{Mutex, mpsc};

/// Requests that are handed over at a time, so that the thread that measures and the one that makes them rarely wake each other, and how
/// many such batches are made ahead of their turn.
const BATCH: usize = 8;
const AHEAD: usize = 2;

/// All on one thread, apart from the making.
#[derive(Debug)]
pub struct Supply {
    /// Handed over: those made before the clock starts, and the rest of a batch.
    here: RefCell<VecDeque<Request>>,
    later: Mutex<mpsc::Receiver<Vec<Request>>>,
    issued: StdCell<u32>,
    of: u32,
}

impl Supply {
    /// Starts making requests. Prompts of different groups of one run are different.
    pub fn start(asker: &Asker, cell: Cell, group: u64, recipe: Recipe) -> io::Result<Supply> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let limits = Deadlines::for_request(cell.input, cell.output, cell.concurrency);
        let target = asker.client.target().clone();
        let (model, kind, seed): (String, Kind, u64) =
            (asker.model.clone(), asker.kind, asker.seed);
        std::thread::Builder::new()
            .name("vramp-prompts".to_string())
            .spawn(move || {
                let ask = Ask {
                    model: &model,
                    output: cell.output,
                    kind,
                    aim: Aim::Speed,
                };
                let all = u64::from(cell.requests);
                let mut batch = Vec::with_capacity(BATCH);
                for request in 0..all {
                    let number = Number {
                        seed,
                        group,
                        request,
                    };
                    let (path, body) = ask.body(&recipe.prompt(number));
                    batch.push(Request {
                        bytes: target.post(path, &body),
                        output: cell.output,
                        limits,
                    });
                    if batch.len() < BATCH && request + 1 < all {
                        continue;
                    }
                    let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                    // Nobody takes them any more: the cell is over.
                    if sender.blocking_send(full).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Supply {
            here: RefCell::new(VecDeque::new()),
            later: Mutex::new(receiver),
            issued: StdCell::new(0),
            of: cell.requests,
        })
    }

    /// Waits until `count` requests are ready. False if the operator stops it.
    pub async fn ready(&self, count: u32, stop: &mut Stop) -> bool {
        let mut later = self.later.lock().await;
        while self.here.borrow().len() < count as usize {
            tokio::select! {
                biased;
                () = stop.wait() => return false,
                batch = later.recv() => match batch {
                    Some(batch) => self.here.borrow_mut().extend(batch),
                    None => break,
                },
            }
        }
        true
    }

    pub async fn next(&self) -> Option<Request> {
        let here = || self.here.borrow_mut().pop_front();
        let request = match here() {
            Some(request) => Some(request),
            None => {
                let mut later = self.later.lock().await;
                // Whoever waited for the lock may find that another has fetched a batch meanwhile.
                match here() {
                    Some(request) => Some(request),
                    None => {
                        let batch = later.recv().await.unwrap_or_default();
                        self.here.borrow_mut().extend(batch);
                        here()
                    }
                }
            }
        };
        if request.is_some() {
            self.issued.set(self.issued.get() + 1);
        }
        request
    }

    /// All requests are under way or done.
    pub fn is_empty(&self) -> bool {
        self.issued.get() >= self.of
    }
}
