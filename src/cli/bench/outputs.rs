//! The files that a run is written to, whole after every point.

use super::args::BenchArgs;
use crate::cli::{Failure, print};
use crate::report::bench::{RunReport, csv, document, html, table};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Outputs {
    json: Option<PathBuf>,
    csv: Option<PathBuf>,
    html: Option<PathBuf>,
}

impl Outputs {
    /// # Errors
    /// Two documents for one standard output.
    pub fn new(args: &BenchArgs) -> Result<Self, Failure> {
        let out = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if out(&args.json) && out(&args.csv) {
            return Err(Failure::wrong_use(
                "--json and --csv both write to standard output; give one of them a file",
            ));
        }
        if out(&args.html) {
            return Err(Failure::wrong_use("--html writes a page; give it a file"));
        }
        Ok(Outputs {
            json: args.json.clone(),
            csv: args.csv.clone(),
            html: args.html.clone(),
        })
    }

    /// Writes the files, not standard output.
    pub fn write(&self, run: &RunReport) -> Result<(), Failure> {
        type Form = fn(&RunReport) -> Result<String, Failure>;
        let forms: [(&Option<PathBuf>, Form); 3] = [
            (&self.json, json),
            (&self.csv, |run| Ok(csv(run))),
            (&self.html, |run| Ok(html(run))),
        ];
        for (path, form) in forms {
            if let Some(path) = path.as_deref().filter(|path| *path != Path::new("-")) {
                crate::host::write_atomic(path, form(run)?.as_bytes()).map_err(Failure::new)?;
            }
        }
        Ok(())
    }

    /// Writes standard output, once, at the end.
    pub fn print(&self, run: &RunReport) -> Result<(), Failure> {
        let out = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        let text = if out(&self.json) {
            json(run)?
        } else if out(&self.csv) {
            csv(run)
        } else {
            table(run)
        };
        print::text(&text).map(drop)
    }
}

/// The JSON document of a run.
pub fn json(run: &RunReport) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&document(run)).map_err(Failure::new)?;
    text.push('\n');
    Ok(text)
}
