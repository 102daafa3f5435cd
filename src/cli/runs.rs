//! `vramp runs`: what was measured, one by one, side by side, and in other forms.

use super::bench::json;
use super::{Failure, Listing, print, records};
use crate::report::bench::{RunReport, compare, csv, html, table, vllm};
use crate::store::Store;
use std::path::{Path, PathBuf};

/// Benchmark runs; without a command they are listed
#[derive(Debug, Clone, clap::Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
    #[command(flatten)]
    pub listing: Listing,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum RunsCommand {
    /// List the runs, the newest first
    List(#[command(flatten)] Listing),
    /// One run with its points, and what is to be said about each
    Show {
        /// Number or name of the run
        run: String,
        /// As JSON; to FILE, or to standard output without one
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
        /// One of the demo
        #[arg(long)]
        demo: bool,
    },
    /// Two runs side by side: better, worse, or no difference shown
    Compare {
        /// Number or name of the run to compare with
        a: String,
        /// Number or name of the run that is judged
        b: String,
        /// As JSON; to FILE, or to standard output without one
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
        /// Those of the demo
        #[arg(long)]
        demo: bool,
    },
    /// One run in another form
    Export {
        /// Number or name of the run
        run: String,
        /// vllm is what vllm bench serve writes: one document a line, one line a point
        #[arg(long, value_name = "FORM", default_value = "json")]
        format: Form,
        /// To FILE instead of standard output
        #[arg(long, short = 'o', value_name = "FILE")]
        output: Option<PathBuf>,
        /// One of the demo
        #[arg(long)]
        demo: bool,
    },
}

/// The forms of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    Json,
    Csv,
    Vllm,
    Html,
}

/// Carries one out.
pub fn runs(args: &RunsArgs) -> Result<i32, Failure> {
    match &args.what {
        None => records::runs(&args.listing),
        Some(RunsCommand::List(listing)) => records::runs(listing),
        Some(RunsCommand::Show {
            run,
            json: to,
            demo,
        }) => {
            let (_, run) = find(run, *demo)?;
            match to {
                Some(path) => write(&json(&run)?, path),
                None => print::text(&table(&run)),
            }
        }
        Some(RunsCommand::Compare {
            a,
            b,
            json: to,
            demo,
        }) => {
            let (store, a) = find(a, *demo)?;
            let (_, b) = find(b, *demo)?;
            let found = compare(&a, &b, |point| store.requests(point)).map_err(Failure::new)?;
            match to {
                Some(path) => {
                    let text = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
                    write(&format!("{text}\n"), path)
                }
                None => print::text(&found.text()),
            }
        }
        Some(RunsCommand::Export {
            run,
            format,
            output,
            demo,
        }) => {
            let (store, run) = find(run, *demo)?;
            let text = match format {
                Form::Json => json(&run)?,
                Form::Csv => csv(&run),
                Form::Html => html(&run),
                Form::Vllm => vllm_lines(&store, &run)?,
            };
            write(&text, output.as_deref().unwrap_or(Path::new("-")))
        }
    }
}

fn vllm_lines(store: &Store, run: &RunReport) -> Result<String, Failure> {
    let mut text = String::new();
    for (point, id) in run.points.iter().zip(&run.ids) {
        let requests = store.requests(*id).map_err(Failure::new)?;
        text.push_str(&vllm(run, point, &requests).to_string());
        text.push('\n');
    }
    Ok(text)
}

/// The run of a number or, where there is none, of a name.
fn find(wanted: &str, demo: bool) -> Result<(Store, RunReport), Failure> {
    let nothing = || {
        Failure::wrong_use(format!(
            "there is no run {wanted:?} on record; vramp runs lists them"
        ))
    };
    let store = records::open(&records::here(demo)?)?.ok_or_else(nothing)?;
    let by_number = match wanted.parse() {
        Ok(id) => store.run(id).map_err(Failure::new)?,
        Err(_) => None,
    };
    let row = match by_number {
        Some(row) => Some(row),
        None => store.run_named(wanted).map_err(Failure::new)?,
    };
    let id = row.ok_or_else(nothing)?.id;
    let run = RunReport::read(&store, id)
        .map_err(Failure::new)?
        .ok_or_else(nothing)?;
    Ok((store, run))
}

fn write(text: &str, path: &Path) -> Result<i32, Failure> {
    if path == Path::new("-") {
        return print::text(text);
    }
    crate::host::write_atomic(path, text.as_bytes()).map_err(Failure::new)?;
    Ok(0)
}
