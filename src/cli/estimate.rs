//! `vramp estimate`: the memory of a model at given contexts.

use super::{Failure, print};
use crate::discover::model;
use crate::engine::Kind;
use crate::host::Address;
use crate::memory::types::{KvTypes, StateChoice};
use crate::memory::{self, Deployment, Estimate, Geometry, Split};
use crate::profile::HostSpec;
use crate::units::{self, GIB, thousands};
use std::path::{Path, PathBuf};

/// Memory of a model at given contexts, on each card: KV cache, fixed state, and with the card's memory what fits
#[derive(Debug, Clone, clap::Args)]
pub struct EstimateArgs {
    /// The model's config.json, its folder, a GGUF file, or - for a config.json on standard input
    #[arg(value_name = "CONFIG|GGUF")]
    pub model: PathBuf,
    /// Another machine on which the file lies: ssh:USER@HOST:PORT
    #[arg(long, value_name = "HOST")]
    pub host: Option<Address>,
    /// sglang, vllm or llamacpp: what it makes of the formulas [llamacpp for a GGUF file]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Kind>,
    /// Tokens of one request, several with commas: 32K,64K,131072
    #[arg(long, value_name = "N,…", required = true, value_delimiter = ',', value_parser = units::parse_context)]
    pub context: Vec<u64>,
    /// Tensor ranks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub tp: u64,
    /// Data-parallel replicas of the attention among the ranks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub dp: u64,
    /// Pipeline stages, or cards among which llama.cpp splits the layers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub pp: u64,
    /// Type of the KV cache: bf16, fp16, fp8, q8_0, q4_0 …, or k=q8_0,v=f16 [16 bits]
    #[arg(long, value_name = "TYPE")]
    pub kv_dtype: Option<KvTypes>,
    /// Requests at once: running requests, or slots
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seqs: Option<u64>,
    /// Draft tokens verified in one step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub draft_tokens: Option<u64>,
    /// Types of the fixed state of linear layers [the engine's own]
    #[arg(long, value_name = "conv=TYPE,ssm=TYPE")]
    pub state_dtype: Option<StateChoice>,
    /// State slots set by hand (SGLang's --max-mamba-cache-size)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub state_slots: Option<u64>,
    /// Memory of a card that is free before the start: 48GiB
    #[arg(long, value_name = "SIZE", value_parser = memory::size::parse)]
    pub vram: Option<u64>,
    /// SGLang's --mem-fraction-static or vLLM's --gpu-memory-utilization
    #[arg(long, value_name = "0..1", value_parser = fraction)]
    pub fraction: Option<f64>,
    /// Weights on each card: 27GiB
    #[arg(long, value_name = "SIZE", value_parser = memory::size::parse)]
    pub weights: Option<u64>,
    /// llama.cpp's physical batch
    #[arg(long, value_name = "N", default_value_t = memory::UBATCH, value_parser = clap::value_parser!(u64).range(1..))]
    pub ubatch: u64,
    /// llama.cpp's slots share one cache
    #[arg(long)]
    pub kv_unified: bool,
    /// As JSON, one object a context; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|f| *f > 0.0 && *f <= 1.0)
        .ok_or_else(|| {
            format!("{text:?} is no fraction; write a number above 0 and up to 1, for example 0.85")
        })
}

/// Carries it out.
pub fn estimate(args: &EstimateArgs) -> Result<i32, Failure> {
    let split = Split::checked(args.tp, args.dp, args.pp).map_err(Failure::wrong_use)?;
    let (geometry, found) = read(args)?;
    let own = Deployment::new(args.engine.unwrap_or(found));
    let deployment = Deployment {
        split,
        kv: args.kv_dtype.unwrap_or(own.kv),
        state: args.state_dtype.unwrap_or_default(),
        requests: args.seqs,
        draft_tokens: args.draft_tokens,
        state_slots: args.state_slots,
        ubatch: args.ubatch,
        shared_cache: args.kv_unified,
        vram: args.vram,
        fraction: args.fraction,
        weights: args.weights,
        ..own
    };
    let estimates = args
        .context
        .iter()
        .map(|context| memory::estimate(&geometry, &deployment, *context))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::new(format!("{}: {error}", shown(&args.model))))?;
    match &args.json {
        None => print::text(&table(&geometry, &deployment, &estimates)),
        Some(path) => {
            let text = serde_json::to_string_pretty(&estimates).map_err(Failure::new)?;
            let text = format!("{text}\n");
            if path == Path::new("-") {
                return print::text(&text);
            }
            crate::host::write_atomic(path, text.as_bytes()).map_err(Failure::new)?;
            Ok(0)
        }
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_string()
    } else {
        units::clean(&path.display().to_string())
    }
}

/// The model, and the engine that its form speaks for.
fn read(args: &EstimateArgs) -> Result<(Geometry, Kind), Failure> {
    let path = &args.model;
    let place = HostSpec::at(args.host.clone());
    if path == Path::new("-") {
        if args.host.is_some() {
            return Err(Failure::wrong_use(
                "standard input is here; give a path of the host, or leave --host out",
            ));
        }
        let text = model::text(std::io::stdin().lock()).map_err(Failure::new)?;
        let geometry = memory::config::parse(&text, None)
            .map_err(|error| Failure::new(format!("{}: {error}", shown(path))))?;
        return Ok((geometry, Kind::OpenAi));
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?
        .block_on(model::read(place.open().as_ref(), path))
        .map_err(Failure::new)
}

/// A column of the table: its heading and its value in a row.
type Column = (&'static str, fn(&Estimate) -> Option<String>);

const COLUMNS: [Column; 11] = [
    ("context", |e| Some(thousands(e.context))),
    ("KV B/token", |e| Some(thousands(e.kv_bytes_per_token))),
    ("KV", |e| Some(gib(e.kv_bytes))),
    ("KV uniform", |e| {
        (e.kv_uniform_bytes != e.kv_bytes).then(|| gib(e.kv_uniform_bytes))
    }),
    ("KV llama.cpp", |e| {
        e.kv_llamacpp_bytes.filter(|b| *b != e.kv_bytes).map(gib)
    }),
    ("state", |e| (e.state_bytes > 0).then(|| gib(e.state_bytes))),
    ("verify", |e| {
        e.spec_intermediate_bytes.filter(|b| *b > 0).map(gib)
    }),
    ("draft KV", |e| e.mtp_draft_kv_bytes.map(gib)),
    ("pool tokens", |e| e.pool_tokens.map(thousands)),
    // Rounded down: 0.97 is not a request that fits.
    ("capacity", |e| {
        e.capacity
            .map(|c| format!("{:.1} x", (c * 10.0).floor() / 10.0))
    }),
    ("fits", |e| {
        e.fits.map(|f| if f { "yes" } else { "no" }.to_string())
    }),
];

fn gib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / GIB)
}

/// The table: GiB on each card, columns that say something, then the notes.
fn table(geometry: &Geometry, d: &Deployment, estimates: &[Estimate]) -> String {
    let mut text = format!(
        "{}  {}  KV {}  {}{}  (GiB on each card)\n\n",
        geometry.name,
        match d.engine {
            Kind::OpenAi => "no engine",
            engine => engine.name(),
        },
        d.kv,
        memory::layout(d.split),
        d.requests
            .map(|n| format!("  {} requests", thousands(n)))
            .unwrap_or_default()
    );
    let columns: Vec<Vec<String>> = COLUMNS
        .iter()
        .filter_map(|(heading, value)| {
            let values: Vec<Option<String>> = estimates.iter().map(value).collect();
            values.iter().any(Option::is_some).then(|| {
                std::iter::once((*heading).to_string())
                    .chain(values.into_iter().map(|v| v.unwrap_or_else(|| "-".into())))
                    .collect()
            })
        })
        .collect();
    for row in 0..=estimates.len() {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let width = column
                    .iter()
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0);
                let cell = column.get(row).map_or("", String::as_str);
                format!("{cell:>width$}")
            })
            .collect();
        text.push_str(&format!("  {}\n", cells.join("   ")));
    }
    text.push('\n');
    text.push_str(&notes(estimates));
    text
}

/// What holds for every context once; what holds for one with it.
fn notes(estimates: &[Estimate]) -> String {
    let mut said: Vec<String> = Vec::new();
    for estimate in estimates {
        for note in &estimate.notes {
            let everywhere = estimates.iter().all(|e| e.notes.contains(note));
            let line = if everywhere {
                format!("- {note}\n")
            } else {
                format!("- {}: {note}\n", thousands(estimate.context))
            };
            if !said.contains(&line) {
                said.push(line);
            }
        }
    }
    said.concat()
}
