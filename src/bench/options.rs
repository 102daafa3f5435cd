//! How a run measures, beyond what its cells say.

use super::plan::{Plan, PlanKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of a run. The default is what a first look wants: the requests that the cells ask for, and nothing around them.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// No request of a cell is sent later than this after its first one; those in flight go on to their end. Whatever comes first,
    /// this or the cell's number of requests, ends it.
    pub duration: Option<Duration>,
    /// A cell ends early when the 95 % intervals of the medians of TTFT and TPOT are both at most this wide, as a share of the
    /// median (0.05 is 5 %).
    pub precision: Option<f64>,
    /// Time between the first requests of a closed loop. Requests that are written in one go queue behind each other at the server,
    /// and that queue would count as TTFT.
    pub spread: Duration,
    /// Before each cell, one short answer for every request that it keeps in flight; counted nowhere.
    pub warm_up: bool,
    /// The first cell is measured once more at the end, which shows drift.
    pub repeat_first: bool,
    /// What goodput means here.
    pub slo: Slo,
    /// After the cells, look for the highest concurrency that keeps the targets.
    pub search: Option<Search>,
    pub api: Api,
    pub records: Records,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            duration: None,
            precision: None,
            spread: Duration::from_micros(30),
            warm_up: false,
            repeat_first: false,
            slo: Slo::default(),
            search: None,
            api: Api::Auto,
            records: Records::Keep,
        }
    }
}

impl Options {
    /// What a plan wants around its cells: in the full form a warm-up for each, and the first level of several again at the end.
    pub fn for_plan(plan: &Plan) -> Self {
        let levels = plan.kind == PlanKind::Throughput && plan.concurrency.len() > 2;
        Options {
            warm_up: !plan.quick,
            repeat_first: !plan.quick && levels,
            ..Options::default()
        }
    }
}

/// Targets that one request must meet. A target that is `None` is met by all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Slo {
    /// From the moment at which the request should have been sent, in milliseconds.
    pub ttft_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
}

impl Slo {
    pub fn is_some(&self) -> bool {
        self.ttft_ms.is_some() || self.tpot_ms.is_some()
    }

    /// Whether a request with these figures meets the targets. An answer of one token has no TPOT and cannot miss it.
    pub fn met(&self, ttft_ms: f64, tpot_ms: Option<f64>) -> bool {
        let within = |value: f64, target: Option<f64>| target.is_none_or(|most| value <= most);
        within(ttft_ms, self.ttft_ms) && tpot_ms.is_none_or(|ms| within(ms, self.tpot_ms))
    }
}

/// A search over concurrencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The highest concurrency that is tried.
    pub limit: u32,
    /// Share of all requests (failed ones included) that must meet the targets.
    pub share: f64,
}

impl Default for Search {
    fn default() -> Self {
        Search {
            limit: 1024,
            share: 0.95,
        }
    }
}

/// Which part of the API requests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/v1/completions` with token ids where the server takes them, else chat.
    #[default]
    Auto,
    Chat,
    Completions,
}

/// What becomes of the records of single requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Records {
    /// In the point, as the cockpit keeps them.
    #[default]
    Keep,
    /// Told in batches as they come ([`super::Event::Requests`]), so that a run of any length needs the same memory.
    Stream,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_met_or_missed() {
        let slo = Slo {
            ttft_ms: Some(1000.0),
            tpot_ms: Some(50.0),
        };
        assert!(slo.met(1000.0, Some(50.0)) && slo.met(10.0, None));
        assert!(!slo.met(1001.0, Some(1.0)) && !slo.met(1.0, Some(50.1)));
        assert!(Slo::default().met(1e9, Some(1e9)) && !Slo::default().is_some());
    }

    #[test]
    fn only_full_throughput_plans_repeat_their_first_level() {
        let full = Options::for_plan(&Plan::throughput(false));
        assert!(full.warm_up && full.repeat_first);
        let quick = Options::for_plan(&Plan::throughput(true));
        assert_eq!(quick, Options::default());
        assert!(!Options::for_plan(&Plan::long_context(false)).repeat_first);
    }
}
