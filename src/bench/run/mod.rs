//! A run: its cells one after another, on its own thread.

mod beside;
mod cell;
mod floor;
mod judge;
mod live;
mod measure;
mod settle;
mod supply;
mod tally;
mod watching;
mod window;

pub use super::worker::Handle;
pub use window::Steady;

use super::asker::{Asker, Form, Recipe};
use super::client::Access;
use super::options::Options;
use super::plan::Cell;
use super::point::{Failure, FailureKind, Point, Validity};
use super::prompt::Scale;
use super::saturation;
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
    let access = Access::new(&job.endpoint)
        .map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    worker::spawn("vramp-bench", sink, move |reporter, stop| {
        let api = job.options.api;
        let asker = Asker::new(access, job.kind, &job.model, job.seed, api);
        drive(job, asker, reporter, stop)
    })
}

/// What lasts over the cells of a run.
struct Run {
    asker: Rc<Asker>,
    options: Options,
    /// What prompts look like here, once it is learnt.
    form: Option<Form>,
    /// Cells begun so far, and how many there will be as far as that is known.
    begun: usize,
    of: usize,
    /// Points of the cells so far, without their requests.
    points: Vec<Point>,
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
    /// Reads of the client when the newest reading of the server was waited for: no more than that, and the reading holds still.
    settled_reads: Option<u64>,
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
        of: job.cells.len() + usize::from(job.options.repeat_first),
        options: job.options,
        form: None,
        begun: 0,
        points: Vec::new(),
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
        settled_reads: None,
    };
    let stopped = cells(&mut run, &job.cells, &mut stop).await;
    run.reporter.tell(Event::Finished { stopped });
}

/// Relative change of the first level's output rate over the run that is drift.
const DRIFT: f64 = 0.05;

/// Runs all cells; true if the operator stopped it.
async fn cells(run: &mut Run, cells: &[Cell], stop: &mut Stop) -> bool {
    for (index, cell) in cells.iter().enumerate() {
        run.ahead = cells.get(index + 1..).unwrap_or_default().to_vec();
        if run.options.repeat_first {
            run.ahead.extend(cells.first());
        }
        if measure(run, *cell, false, stop).await {
            return true;
        }
        if run.points.last().is_some_and(|point| point.ok == 0) {
            // Not one answer: whatever is wrong, more load makes it no better.
            return false;
        }
    }
    let Some(first) = cells.first().copied() else {
        return false;
    };
    run.ahead.clear();
    if search(run, first, stop).await {
        return true;
    }
    run.options.repeat_first && measure(run, first, true, stop).await
}

/// Looks for the highest concurrency that keeps the targets, if that is asked for.
async fn search(run: &mut Run, first: Cell, stop: &mut Stop) -> bool {
    let Some(search) = run.options.search.filter(|_| run.options.slo.is_some()) else {
        return false;
    };
    loop {
        let same =
            |point: &&Point| point.cell.input == first.input && point.cell.output == first.output;
        let known: Vec<Point> = run.points.iter().filter(same).cloned().collect();
        let Some(concurrency) = saturation::next_level(&search, &known) else {
            return false;
        };
        let requests = match first.requests {
            Cell::UNCOUNTED => Cell::UNCOUNTED,
            _ => concurrency.saturating_mul(3).max(8),
        };
        let cell = Cell {
            concurrency,
            requests,
            ..first
        };
        run.of += 1;
        let measured = run.points.len();
        // A level of which nothing was measured would be tried again without end.
        if measure(run, cell, false, stop).await || run.points.len() == measured {
            return stop.is_set();
        }
    }
}

/// Runs one cell and tells its point; true if the operator stopped it.
async fn measure(run: &mut Run, cell: Cell, repeat: bool, stop: &mut Stop) -> bool {
    let index = run.begun;
    run.begun += 1;
    run.reporter.tell(Event::CellStarted {
        index,
        of: run.of,
        cell,
    });
    let recipe = tokio::select! {
        biased;
        () = stop.wait() => return true,
        recipe = recipe(run, cell.input) => recipe,
    };
    let (point, stopped) = cell::run(run, cell, index, recipe, stop).await;
    if let Some(mut point) = point {
        if repeat {
            point.repeat = true;
            drift(run.points.first(), &mut point);
        }
        run.forecast.learn(&point);
        run.points.push(Point {
            requests: Vec::new(),
            ..point.clone()
        });
        run.reporter.tell(Event::CellDone(Box::new(point)));
    }
    stopped || stop.is_set()
}

/// Compares the first level with itself, measured again at the end.
fn drift(first: Option<&Point>, again: &mut Point) {
    let Some((before, now)) = first.and_then(|p| p.output_tok_s).zip(again.output_tok_s) else {
        return;
    };
    let change = now / before - 1.0;
    if before > 0.0 && change.abs() > DRIFT {
        let text = format!(
            "the first level gives {now:.1} tok/s now and gave {before:.1} at the beginning ({:+.0} %): the machine or the server \
             drifts, so compare levels with care",
            change * 100.0
        );
        again.doubt(Validity::Suspect, text);
    }
}

/// How to make the prompts of a cell. What must be learnt of the server for it is learnt at the first one that answers; one that is
/// gone says so again in the cell itself, which counts it.
async fn recipe(run: &mut Run, input: u64) -> Recipe {
    let asker = run.asker.clone();
    let learnt = match &run.form {
        Some(form) => Ok(form.clone()),
        None => asker.learn(run.context).await,
    };
    let recipe = match learnt {
        Ok(form) => {
            if let Form::Words(scale) = form {
                run.template = scale.overhead.round() as u64;
            }
            let recipe = asker.recipe(&form, input).await;
            run.form = Some(form);
            recipe
        }
        Err(failure) => Err(failure),
    };
    recipe.unwrap_or_else(|failure| {
        run.reporter.tell(Event::Failed(failure));
        Recipe::Words {
            count: Scale::GUESS.words_for(input),
            api: asker.api,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::{Arrivals, PlanKind};

    #[test]
    fn drift_is_said_from_five_percent_on() {
        let cell = Cell {
            kind: PlanKind::Throughput,
            input: 1,
            output: 1,
            concurrency: 1,
            requests: 1,
            arrivals: Arrivals::Closed,
        };
        let at = |rate| Point {
            output_tok_s: Some(rate),
            ..Point::empty(cell)
        };
        let mut same = at(96.0);
        drift(Some(&at(100.0)), &mut same);
        assert_eq!((same.validity, same.reasons.len()), (Validity::Valid, 0));
        let mut slower = at(90.0);
        drift(Some(&at(100.0)), &mut slower);
        assert_eq!(slower.validity, Validity::Suspect);
        let text = &slower.reasons[0].text;
        assert!(
            text.contains("gives 90.0 tok/s now and gave 100.0"),
            "{text}"
        );
        assert!(text.contains("(-10 %)"), "{text}");
        drift(None, &mut slower);
        assert_eq!(slower.reasons.len(), 1);
    }
}
