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

/// Requests that are made ahead of their turn.
const AHEAD: usize = 16;

/// All on one thread, apart from the making.
#[derive(Debug)]
pub struct Supply {
    /// Made before the clock starts.
    first: RefCell<VecDeque<Request>>,
    later: Mutex<mpsc::Receiver<Request>>,
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
                for request in 0..u64::from(cell.requests) {
                    let number = Number {
                        seed,
                        group,
                        request,
                    };
                    let (path, body) = ask.body(&recipe.prompt(number));
                    let request = Request {
                        bytes: target.post(path, &body),
                        output: cell.output,
                        limits,
                    };
                    // Nobody takes them any more: the cell is over.
                    if sender.blocking_send(request).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Supply {
            first: RefCell::new(VecDeque::new()),
            later: Mutex::new(receiver),
            issued: StdCell::new(0),
            of: cell.requests,
        })
    }

    /// Waits until `count` requests are ready. False if the operator stops it.
    pub async fn ready(&self, count: u32, stop: &mut Stop) -> bool {
        let mut later = self.later.lock().await;
        while self.first.borrow().len() < count as usize {
            tokio::select! {
                biased;
                () = stop.wait() => return false,
                request = later.recv() => match request {
                    Some(request) => self.first.borrow_mut().push_back(request),
                    None => break,
                },
            }
        }
        true
    }

    pub async fn next(&self) -> Option<Request> {
        let first = self.first.borrow_mut().pop_front();
        let request = match first {
            Some(request) => Some(request),
            None => self.later.lock().await.recv().await,
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
