//! From arguments and profile to exactly what will be measured.

use super::args::{ApiName, BenchArgs, Spacing};
use crate::bench::options::{Api, Options, Search, Slo};
use crate::bench::plan::{Arrivals, Cell, Plan, PlanKind, Rate};
use crate::cli::{Common, Failure, key_from};
use crate::engine::{Endpoint, Kind};
use crate::profile::{self, Profile};
use crate::units::thousands;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most requests in flight of an open loop that does not say.
const OPEN_LIMIT: u32 = 1024;
/// Seconds of an open loop that does not say.
const OPEN_S: f64 = 60.0;

/// What a run measures; kept with the run, so that it can be gone on with. No secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub url: String,
    pub profile: Option<String>,
    pub model: Option<String>,
    pub engine: Option<Kind>,
    pub key_env: Option<String>,
    pub plan: Plan,
    pub cells: Vec<Cell>,
    /// Somebody named the lengths: the server is asked for them whatever it says it serves.
    pub by_hand: bool,
    pub api: ApiName,
    pub duration_ms: Option<u64>,
    pub precision: Option<f64>,
    pub spread_us: Option<u64>,
    pub warm_up: bool,
    pub repeat_first: bool,
    pub slo: Slo,
    pub search: bool,
}

impl Order {
    /// Reads arguments and, without a URL, the profile.
    ///
    /// # Errors
    /// Wrong use, in words.
    pub fn new(
        args: &BenchArgs,
        common: &Common,
        quick: bool,
    ) -> Result<(Order, Endpoint), Failure> {
        let profile = profile_of(args, common)?;
        let plan = plan(args, &profile, quick)?;
        let cells = cells(args, &plan)?;
        let standard = Options::for_plan(&plan);
        let search = args.slo.is_some() && args.concurrency.is_empty() && args.rate.is_empty();
        let order = Order {
            url: profile.endpoint.url.clone(),
            profile: profile.file.is_some().then(|| profile.name.clone()),
            model: args.model.clone().or(profile.endpoint.model.clone()),
            engine: args.engine.or(profile.engine),
            key_env: args.key_env.clone(),
            by_hand: !args.input.is_empty() || args.output.is_some(),
            api: args.endpoint,
            duration_ms: args
                .duration
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            precision: args.precision,
            spread_us: args.spread_us,
            warm_up: standard.warm_up,
            // Levels that were named by hand are those that are measured, and no more.
            repeat_first: standard.repeat_first
                && args.concurrency.is_empty()
                && args.rate.is_empty(),
            slo: args.slo.unwrap_or_default(),
            search,
            plan,
            cells,
        };
        let mut endpoint = profile.endpoint;
        order.complete(&mut endpoint)?;
        Ok((order, endpoint))
    }

    /// The endpoint of an order from the record.
    ///
    /// # Errors
    /// The profile is gone or broken, or the key is.
    pub fn endpoint(&self, common: &Common) -> Result<Endpoint, Failure> {
        let mut endpoint = match &self.profile {
            Some(name) => load(common, Some(name))?.endpoint,
            None => {
                profile::attach(&self.url)
                    .map_err(Failure::wrong_use)?
                    .endpoint
            }
        };
        self.complete(&mut endpoint)?;
        Ok(endpoint)
    }

    fn complete(&self, endpoint: &mut Endpoint) -> Result<(), Failure> {
        endpoint.model = self.model.clone();
        endpoint.kind = self.engine;
        if let Some(name) = &self.key_env {
            endpoint.key = Some(key_from(name)?);
        }
        Ok(())
    }

    pub fn options(&self) -> Options {
        let standard = Options::default();
        Options {
            duration: self.duration_ms.map(Duration::from_millis),
            precision: self.precision,
            spread: self
                .spread_us
                .map_or(standard.spread, Duration::from_micros),
            warm_up: self.warm_up,
            repeat_first: self.repeat_first,
            slo: self.slo,
            search: self.search.then(Search::default),
            api: match self.api {
                ApiName::Auto => Api::Auto,
                ApiName::Chat => Api::Chat,
                ApiName::Completions => Api::Completions,
            },
            records: crate::bench::options::Records::Stream,
        }
    }

    /// Cells that fit into `context`, and what is to be said about the others.
    pub fn fitting(&self, context: Option<u64>) -> (Vec<Cell>, Vec<String>) {
        let mut words: Vec<String> = Vec::new();
        let (good, bad): (Vec<Cell>, Vec<Cell>) = self
            .cells
            .iter()
            .partition(|cell| context.is_none_or(|most| cell.needs() <= most));
        for cell in &bad {
            let needs = thousands(cell.needs());
            let line = format!(
                "{} in + {} out needs {needs} tokens, the server serves {}{}",
                thousands(cell.input),
                thousands(cell.output),
                context.map_or("?".to_string(), thousands),
                if self.by_hand {
                    "; asking it all the same"
                } else {
                    ": left out"
                }
            );
            if !words.contains(&line) {
                words.push(line);
            }
        }
        if self.by_hand {
            (self.cells.clone(), words)
        } else {
            (good, words)
        }
    }
}

fn load(common: &Common, name: Option<&str>) -> Result<Profile, Failure> {
    profile::load(common.config.as_deref(), name)
        .map_err(Failure::wrong_use)?
        .map(|loaded| loaded.profile)
        .ok_or_else(|| {
            Failure::wrong_use(
                "there is no profile to measure; name a server with --url http://HOST:PORT",
            )
        })
}

fn profile_of(args: &BenchArgs, common: &Common) -> Result<Profile, Failure> {
    match &args.url {
        Some(url) => profile::attach(url).map_err(Failure::wrong_use),
        None => load(common, common.profile.as_deref()),
    }
}

fn plan(args: &BenchArgs, profile: &Profile, quick: bool) -> Result<Plan, Failure> {
    let named = match args.plan.as_deref() {
        None if args.input.len() > 1 && args.concurrency.len() <= 1 && args.rate.is_empty() => {
            &profile.long_context
        }
        None | Some("throughput") => &profile.throughput,
        Some("long-context") => &profile.long_context,
        Some(name) if name == profile.throughput.name => &profile.throughput,
        Some(name) if name == profile.long_context.name => &profile.long_context,
        Some(other) => {
            return Err(Failure::wrong_use(format!(
                "there is no plan {other:?}; known are throughput and long-context"
            )));
        }
    };
    let mut plan = if quick {
        named.quicker()
    } else {
        named.clone()
    };
    if !args.input.is_empty() {
        plan.inputs.clone_from(&args.input);
    }
    if let Some(output) = args.output {
        plan.output = output;
    }
    if !args.concurrency.is_empty() {
        plan.concurrency.clone_from(&args.concurrency);
    } else if args.plan.is_none() && args.slo.is_some() {
        // The search goes up from one by itself.
        plan.concurrency = vec![1];
    }
    if args.plan.is_none()
        && (!args.input.is_empty() || !args.concurrency.is_empty() || !args.rate.is_empty())
    {
        plan.name = "by hand".to_string();
    }
    if plan.kind == PlanKind::LongContext && plan.concurrency.len() > 1 && plan.inputs.len() == 1 {
        plan.kind = PlanKind::Throughput;
    }
    Ok(plan)
}

fn cells(args: &BenchArgs, plan: &Plan) -> Result<Vec<Cell>, Failure> {
    let counted = |standard: u32| match (args.requests, args.duration) {
        (Some(requests), _) => requests,
        (None, Some(_)) => Cell::UNCOUNTED,
        (None, None) => standard,
    };
    if args.rate.is_empty() {
        return Ok(plan
            .cells()
            .into_iter()
            .map(|cell| Cell {
                requests: counted(cell.requests),
                ..cell
            })
            .collect());
    }
    let concurrency = match args.concurrency.as_slice() {
        [] => OPEN_LIMIT,
        [one] => *one,
        _ => {
            return Err(Failure::wrong_use(
                "with --rate, --concurrency is the most requests in flight and has one value",
            ));
        }
    };
    let mut cells = Vec::new();
    for &input in &plan.inputs {
        for &per_second in &args.rate {
            let rate = Rate::from(per_second);
            cells.push(Cell {
                kind: plan.kind,
                input,
                output: plan.output,
                concurrency,
                requests: counted(((per_second * OPEN_S).ceil() as u32).max(8)),
                arrivals: match args.arrivals {
                    Spacing::Poisson => Arrivals::Poisson { rate },
                    Spacing::Constant => Arrivals::Constant { rate },
                },
            });
        }
    }
    Ok(cells)
}
