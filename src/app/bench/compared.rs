//! Two finished runs over each other.

use super::series::{names, series};
use super::view::Line;
use crate::bench::plan::PlanKind;
use crate::bench::point::Point;
use crate::clock::date_time;
use crate::report::bench::{CellComparison, Comparison, Figure, RunReport};
use crate::store::RunRow;
use crate::units::{clean, thousands};

/// The two runs and what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// What is compared with.
    pub a: RunReport,
    /// The run that is judged.
    pub b: RunReport,
    pub found: Comparison,
    /// The figure that is selected.
    pub selected: usize,
}

/// A row of the comparison's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'c> {
    /// A load that both runs have, or why it is not compared.
    Cell(&'c CellComparison),
    /// One figure of it, with its place among all figures.
    Figure(&'c Figure, usize),
    /// What the runs do not share: `differs in context: 32,768 -> 65,536`.
    Difference(&'c str),
    /// A load that only the run of this number has.
    Only(i64, &'c str),
    /// The runs have nothing in common.
    Nothing,
}

impl Compared {
    pub fn new(a: RunReport, b: RunReport, found: Comparison) -> Self {
        Compared {
            a,
            b,
            found,
            selected: 0,
        }
    }

    /// The kind of the run that is judged.
    pub fn kind(&self) -> PlanKind {
        self.b.row.kind
    }

    /// Figures that can be selected.
    pub fn figures(&self) -> usize {
        self.found.cells.iter().map(|c| c.figures.len()).sum()
    }

    /// The table, from top to bottom.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let found = &self.found;
        let mut rows = Vec::new();
        let mut at = 0;
        for cell in &found.cells {
            rows.push(Row::Cell(cell));
            for figure in &cell.figures {
                rows.push(Row::Figure(figure, at));
                at += 1;
            }
        }
        if found.cells.is_empty() {
            rows.push(Row::Nothing);
        }
        for (run, cells) in [(found.a, &found.only_a), (found.b, &found.only_b)] {
            rows.extend(cells.iter().map(|cell| Row::Only(run, cell)));
        }
        rows.extend(found.differences.iter().map(|d| Row::Difference(d)));
        rows
    }

    /// The runs as lines of charts, the judged one first.
    pub fn lines(&self, kind: PlanKind) -> Vec<Line<'_>> {
        [&self.b, &self.a]
            .into_iter()
            .flat_map(|run| lines(run, kind))
            .collect()
    }

    /// What the selected figure is, for whom, and how it came about.
    pub fn origin(&self) -> Vec<String> {
        let mut cell = None;
        let chosen = self.rows().into_iter().find_map(|row| match row {
            Row::Cell(one) => {
                cell = Some(one);
                None
            }
            Row::Figure(figure, at) if at == self.selected => Some(figure),
            _ => None,
        });
        let (Some(figure), Some(cell)) = (chosen, cell) else {
            return vec!["the two runs have no figure to compare".into()];
        };
        let mut lines = vec![format!("{}: {}", cell.cell, figure.name)];
        for (run, n) in [(&self.a, figure.n_a), (&self.b, figure.n_b)] {
            lines.push(format!(
                "{} of {}, on record here: n = {n} requests",
                name(&run.row),
                date_time(run.row.started_unix_ms)
            ));
        }
        lines.push(figure.formula().into());
        lines.push("the change is b / a - 1 with its 95 % interval; without 0 in it the verdict is better or worse, else no difference is shown".into());
        lines.push("the interval does not know how much one run differs from the next: repeat both to see that".into());
        lines
    }

    /// The table as tab-separated text.
    pub fn sheet(&self) -> String {
        let mut out = format!(
            "load\tfigure\trun {}\trun {}\tunit\tchange\tlow\thigh\tverdict\n",
            self.found.a, self.found.b
        );
        let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.4}"));
        for cell in &self.found.cells {
            if let Some(void) = &cell.void {
                out.push_str(&format!(
                    "{}\t\t\t\t\t\t\t\tnot compared: {void}\n",
                    cell.cell
                ));
            }
            for f in &cell.figures {
                let figures = [f.a, f.b].map(number).join("\t");
                let bounds = [f.change, f.low, f.high].map(number).join("\t");
                out.push_str(&format!(
                    "{}\t{}\t{figures}\t{}\t{bounds}\t{}\n",
                    cell.cell,
                    f.name,
                    f.unit,
                    f.verdict.words()
                ));
            }
        }
        out
    }
}

fn lines(run: &RunReport, kind: PlanKind) -> Vec<Line<'_>> {
    let all = series(run.points.iter().filter(|p: &&Point| p.cell.kind == kind));
    let shapes: Vec<_> = all.iter().map(|one| one.shape).collect();
    let several = all.len() > 1;
    let names = names(&shapes);
    all.into_iter()
        .zip(names)
        .map(|(one, load)| Line {
            name: if several {
                format!("run {}: {load}", run.row.id)
            } else {
                name(&run.row)
            },
            points: one.points,
        })
        .collect()
}

/// A run as it is called: `run 12 (before), 32,768`.
pub fn name(row: &RunRow) -> String {
    let named = row
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({})", clean(name)));
    let context = row
        .context
        .map_or(String::new(), |n| format!(", {}", thousands(n)));
    format!("run {}{named}{context}", row.id)
}

/// The runs that a filter finds: of this number or name first, then those that have its words.
pub fn matching<'r>(rows: &'r [RunRow], query: &str) -> Vec<&'r RunRow> {
    let query = query.trim().to_lowercase();
    let exact = |row: &RunRow| {
        row.id.to_string() == query || row.name.as_ref().is_some_and(|n| n.to_lowercase() == query)
    };
    let has = |row: &RunRow| {
        let fields = [
            Some(&row.plan),
            Some(&row.model),
            row.name.as_ref(),
            row.profile.as_ref(),
        ];
        let words = fields.into_iter().flatten();
        words
            .into_iter()
            .any(|text| text.to_lowercase().contains(&query))
            || row.id.to_string().starts_with(&query)
            || row.context.is_some_and(|n| thousands(n).contains(&query))
    };
    let mut found: Vec<&RunRow> = rows.iter().filter(|row| exact(row) || has(row)).collect();
    found.sort_by_key(|row| !exact(row));
    found
}
