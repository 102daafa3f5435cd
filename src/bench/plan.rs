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

/// One combination to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    pub kind: PlanKind,
    pub input: u64,
    pub output: u64,
    pub concurrency: u32,
    pub requests: u32,
}

impl Cell {
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
                });
            }
        }
        cells
    }
}
