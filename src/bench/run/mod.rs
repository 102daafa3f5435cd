//! A run: its cells one after another, on its own thread.

mod beside;
mod cell;
mod live;
mod measure;
mod tally;
mod window;

pub use super::worker::Handle;
pub use window::Steady;

use super::asker::{Asker, Form, Recipe};
use super::plan::Cell;
use super::point::{Failure, FailureKind};
use super::prompt::Scale;
use super::worker::{self, Reporter, Stop};
use super::{Event, Job, Sink};
use crate::engine::Load;
use crate::gpu::Snapshot;
use beside::OwnLoad;
use live::Forecast;
use std::io;
use std::rc::Rc;
use tokio::sync::watch;

/// Starts a run on its own thread. Fails if the server's address cannot be used or the thread cannot be started; everything later is
/// told to the sink.
pub fn start(job: Job, sink: Sink) -> io::Result<Handle> {
    let asker = Asker::new(&job.endpoint, job.kind, &job.model, job.seed)
        .map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    worker::spawn("vramp-bench", sink, move |reporter, stop| {
        drive(job, asker, reporter, stop)
    })
}

/// What lasts over the cells of a run.
struct Run {
    asker: Rc<Asker>,
    context: Option<u64>,
    simulated: bool,
    load: watch::Receiver<Load>,
    gpus: watch::Receiver<Snapshot>,
    reporter: Reporter<Event>,
    own_load: OwnLoad,
    forecast: Forecast,
    /// Cells after the present one.
    ahead: Vec<Cell>,
    /// Tokens that every prompt has in common and that a cache may hold.
    template: u64,
    /// As the last good request had it.
    tokens_per_chunk: f64,
}

impl Run {
    fn report_failure(&self, message: &str) {
        self.reporter.tell(Event::Failed(Failure {
            kind: FailureKind::Protocol,
            message: message.to_string(),
        }));
    }
}

async fn drive(job: Job, asker: Asker, reporter: Reporter<Event>, mut stop: Stop) {
    let mut run = Run {
        asker: Rc::new(asker),
        context: job.context,
        simulated: job.simulated,
        load: job.load,
        gpus: job.gpus,
        reporter,
        own_load: OwnLoad::default(),
        forecast: Forecast::default(),
        ahead: job.cells.clone(),
        template: 0,
        tokens_per_chunk: 1.0,
    };
    let stopped = cells(&mut run, &job.cells, &mut stop).await;
    run.reporter.tell(Event::Finished { stopped });
}

/// Runs all cells; true if the operator stopped it.
async fn cells(run: &mut Run, cells: &[Cell], stop: &mut Stop) -> bool {
    let asker = run.asker.clone();
    let mut form = None;
    for (index, cell) in cells.iter().enumerate() {
        run.ahead = cells.get(index + 1..).unwrap_or_default().to_vec();
        run.reporter.tell(Event::CellStarted {
            index,
            of: cells.len(),
            cell: *cell,
        });
        let recipe = tokio::select! {
            biased;
            () = stop.wait() => return true,
            recipe = recipe(run, &asker, &mut form, cell.input) => recipe,
        };
        let (point, stopped) = cell::run(run, *cell, index, recipe, stop).await;
        if let Some(point) = point {
            run.forecast.learn(&point);
            run.reporter.tell(Event::CellDone(Box::new(point)));
        }
        if stopped || stop.is_set() {
            return true;
        }
    }
    false
}

/// How to make the prompts of a cell. What must be learnt of the server for it is learnt at the first one that answers; one that is
/// gone says so again in the cell itself, which counts it.
async fn recipe(run: &mut Run, asker: &Asker, form: &mut Option<Form>, input: u64) -> Recipe {
    let learnt = match form {
        Some(form) => Ok(&*form),
        None => match asker.learn(run.context).await {
            Ok(learnt) => Ok(&*form.insert(learnt)),
            Err(failure) => Err(failure),
        },
    };
    let recipe = match learnt {
        Ok(form) => {
            if let Form::Words(scale) = form {
                run.template = scale.overhead.round() as u64;
            }
            asker.recipe(form, input).await
        }
        Err(failure) => Err(failure),
    };
    recipe.unwrap_or_else(|failure| {
        run.reporter.tell(Event::Failed(failure));
        Recipe::Words {
            count: Scale::GUESS.words_for(input),
        }
    })
}
