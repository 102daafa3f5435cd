//! What to measure.

use serde::{Deserialize, Serialize};

/// Which question a plan answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanKind {
    /// One input length, many concurrencies.
    Throughput,
    /// Many input lengths, one request at a time.
    LongContext,
}

/// A plan: every input length at every concurrency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub name: String,
    pub kind: PlanKind,
    /// Input lengths in tokens.
    pub inputs: Vec<u64>,
    /// Output length in tokens.
    pub output: u64,
    pub concurrency: Vec<u32>,
    /// Fewer requests a cell, for a first look.
    pub quick: bool,
}

/// A rate in requests a second, kept in thousandths, so that cells compare exactly.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(from = "f64", into = "f64")]
pub struct Rate(u64);

impl Rate {
    /// Requests a second.
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl From<f64> for Rate {
    /// What is no rate becomes none at all: 0.
    fn from(per_second: f64) -> Self {
        Rate((per_second * 1e3).round().max(0.0) as u64)
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.per_second()
    }
}

/// When the requests of a cell are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// A new one as soon as one ends: the cell's concurrency is always in flight.
    #[default]
    Closed,
    /// At even intervals, whatever the server does.
    Constant { rate: Rate },
    /// At random, independent moments of this mean rate.
    Poisson { rate: Rate },
}

impl Arrivals {
    /// The rate of an open loop.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Arrivals::Closed => None,
            Arrivals::Constant { rate } | Arrivals::Poisson { rate } => Some(rate),
        }
    }
}

/// One combination to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    pub kind: PlanKind,
    pub input: u64,
    pub output: u64,
    /// Requests in flight; in an open loop the most that may be, the others wait in the client.
    pub concurrency: u32,
    /// Requests to send, [`Cell::UNCOUNTED`] where only time ends the cell.
    pub requests: u32,
    #[serde(default)]
    pub arrivals: Arrivals,
}

impl Cell {
    /// As many requests as there is time for.
    pub const UNCOUNTED: u32 = u32::MAX;

    /// Tokens that one request of this cell needs.
    pub fn needs(&self) -> u64 {
        self.input + self.output
    }
}

impl Plan {
    /// 1000 in, 500 out, concurrency 1 to 100.
    pub fn throughput(quick: bool) -> Self {
        Plan {
            name: "throughput".into(),
            kind: PlanKind::Throughput,
            inputs: vec![1000],
            output: if quick { 100 } else { 500 },
            concurrency: vec![1, 2, 4, 8, 16, 32, 64, 100],
            quick,
        }
    }

    /// 1K to 120K in, 200 out, one request at a time.
    pub fn long_context(quick: bool) -> Self {
        Plan {
            name: "long-context".into(),
            kind: PlanKind::LongContext,
            inputs: vec![1_000, 10_000, 30_000, 60_000, 100_000, 120_000],
            output: 200,
            concurrency: vec![1],
            quick,
        }
    }

    /// The same plan with less work a cell: never a shorter clock.
    pub fn quicker(&self) -> Self {
        let output = if self.kind == PlanKind::Throughput {
            (self.output / 5).max(32).min(self.output)
        } else {
            self.output
        };
        Plan {
            quick: true,
            output,
            ..self.clone()
        }
    }

    /// All cells in order. At least `max(3 x concurrency, 8)` requests each, `concurrency` in the quick form.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.inputs.len() * self.concurrency.len());
        for &input in &self.inputs {
            for &concurrency in &self.concurrency {
                let requests = if self.quick {
                    concurrency
                } else {
                    concurrency.saturating_mul(3).max(8)
                };
                cells.push(Cell {
                    kind: self.kind,
                    input,
                    output: self.output,
                    concurrency,
                    requests,
                    arrivals: Arrivals::Closed,
                });
            }
        }
        cells
    }
}
