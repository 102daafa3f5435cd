//! `vramp bench`: one benchmark without a screen.

mod args;
mod drive;
mod order;
mod outputs;
mod progress;
mod record;

pub use args::BenchArgs;
pub use drive::Outcome;
pub use outputs::json;

use super::{Common, Failure, places};
use crate::clock::unix_ms;
use crate::engine::{self, EngineError};
use crate::store::{NewRun, Store};
use drive::{Server, context, drive};
use order::Order;
use outputs::Outputs;
use progress::Progress;
use record::Record;
use std::sync::Arc;

/// Measures what is asked for; gives the exit code.
pub fn bench(common: &Common, quick: bool, args: &BenchArgs) -> Result<i32, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?
        .block_on(async {
            let outputs = Outputs::new(args)?;
            let (record, outcome) = measure(common, quick, args, &outputs, None).await?;
            outputs.print(&record.report()?)?;
            Ok(match outcome {
                Outcome::Measured => 0,
                Outcome::Failed => super::FAILED,
                Outcome::Interrupted => super::INTERRUPTED,
            })
        })
}

/// Measures the plan `name` on the server of the profile, as part of a session; gives the run on record and how it went.
pub async fn part_of(
    session: i64,
    common: &Common,
    quick: bool,
    name: &str,
) -> Result<(i64, Outcome), Failure> {
    let args = of_plan(name);
    let outputs = Outputs::new(&args)?;
    let (record, outcome) = measure(common, quick, &args, &outputs, Some(session)).await?;
    Ok((record.run, outcome))
}

/// That there is such a plan.
pub fn check_plan(common: &Common, quick: bool, name: &str) -> Result<(), Failure> {
    Order::new(&of_plan(name), common, quick).map(drop)
}

fn of_plan(name: &str) -> BenchArgs {
    BenchArgs {
        plan: Some(name.to_string()),
        ..BenchArgs::default()
    }
}

async fn measure(
    common: &Common,
    quick: bool,
    args: &BenchArgs,
    outputs: &Outputs,
    session: Option<i64>,
) -> Result<(Record, Outcome), Failure> {
    let places = places()?;
    let mut progress = Progress::new();
    let mut store = Store::open(&places.database()).map_err(Failure::new)?;
    let (order, endpoint, before) = match args.resume {
        None => {
            let (order, endpoint) = Order::new(args, common, quick)?;
            (order, endpoint, None)
        }
        Some(id) => {
            let asked = if id.is_some() || is_bare(args) {
                None
            } else {
                Some(Order::new(args, common, quick)?.0)
            };
            let fits = |order: &Order| asked.as_ref().is_none_or(|asked| asked == order);
            let (row, order) = record::unfinished(&store, id, fits)?;
            let endpoint = order.endpoint(common)?;
            (order, endpoint, Some(row))
        }
    };
    let server = look(endpoint, &order, &mut progress).await?;
    let served = context(server.facts.as_ref());
    let (cells, words) = order.fitting(served);
    for line in &words {
        progress.line(line);
    }
    if cells.is_empty() {
        return Err(Failure::new(
            "nothing of the plan fits into the context that the server serves",
        ));
    }
    // The prompts of an earlier part are in the server's cache: the second part needs others.
    let seed = match (&before, args.seed) {
        (None, Some(seed)) => seed,
        _ => fastrand::u64(..),
    };
    let run = match &before {
        Some(row) => row.id,
        None => {
            let benchmark = serde_json::to_value(&order).map_err(Failure::new)?;
            let facts = server.facts.as_ref();
            let version = facts.and_then(|facts| facts.version.known());
            store
                .begin_run(&NewRun {
                    session,
                    plan: &order.plan,
                    url: &server.endpoint.url,
                    engine: server.kind,
                    engine_version: version.map(String::as_str),
                    model: &server.model,
                    context: served,
                    seed,
                    simulated: facts.is_some_and(|facts| facts.simulated),
                    started_unix_ms: unix_ms(),
                    name: args.save.as_deref(),
                    benchmark: Some(&benchmark),
                })
                .map_err(Failure::new)?
        }
    };
    let mut record = Record::hold(store, run, &places)?;
    if before.is_some() {
        record.store.go_on(run).map_err(Failure::new)?;
    }
    let due = record.remaining(&order, &cells)?;
    if before.is_some() {
        progress.line(&format!(
            "going on with run {run}: {} of {} points are to be measured",
            due.len(),
            cells.len()
        ));
    }
    // A file that cannot be written is found out before anything is measured.
    outputs.write(&record.report()?)?;
    let outcome = drive(
        &order,
        &server,
        &due,
        seed,
        &mut record,
        outputs,
        &mut progress,
    )
    .await?;
    progress.line(&match outcome {
        Outcome::Interrupted => {
            format!("run {run} is on record, partial; go on: vramp bench --resume={run}")
        }
        _ => format!("run {run} is on record: vramp runs show {run}"),
    });
    Ok((record, outcome))
}

/// Nothing is said about what to measure.
fn is_bare(args: &BenchArgs) -> bool {
    args.url.is_none()
        && args.plan.is_none()
        && args.input.is_empty()
        && args.concurrency.is_empty()
        && args.rate.is_empty()
}

/// Finds out what there is to know of the server. One that says nothing of itself is measured all the same if its model is named.
async fn look(
    endpoint: engine::Endpoint,
    order: &Order,
    progress: &mut Progress,
) -> Result<Server, Failure> {
    let found = async {
        let engine = engine::detect(&endpoint).await?;
        let facts = engine.facts().await?;
        Ok::<_, EngineError>((engine, facts))
    }
    .await;
    let (engine, facts) = match found {
        Ok((engine, facts)) => (Some(Arc::from(engine)), Some(facts)),
        Err(
            error @ (EngineError::Strange { .. }
            | EngineError::Status {
                status: 404 | 405 | 501,
                ..
            }),
        ) if order.model.is_some() => {
            progress.line(&format!(
                "the server says nothing of itself ({error}); measuring it all the same"
            ));
            (None, None)
        }
        Err(error) => return Err(Failure::new(error)),
    };
    let told = facts
        .as_ref()
        .and_then(|facts| facts.model.known().cloned());
    let model = order.model.clone().or(told).ok_or_else(|| {
        Failure::wrong_use("the server does not say which model it serves; name it with --model")
    })?;
    let kind = facts
        .as_ref()
        .map(|facts| facts.kind)
        .or(order.engine)
        .unwrap_or(engine::Kind::OpenAi);
    Ok(Server {
        endpoint,
        engine,
        facts,
        kind,
        model,
    })
}
