//! The log of an SGLang start.

use super::super::Phase;
use super::super::text::{float_after, gib_after, last_parts, last_percent, number_after, rounded};
use super::line::Line;
use super::seen::{Progress, Seen, add, take};
use super::{argument, python};

/// What only this engine's reader needs to remember.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// The rank whose allocations are counted; the others allocate the same.
    rank: Option<String>,
    /// The target's pools are complete: what follows is the draft's.
    pools_done: bool,
    /// The model's own pools were taken from this many tokens.
    first_tokens: Option<u64>,
    /// The figures are of the host's memory.
    on_cpu: bool,
}

pub(super) fn read(line: &Line<'_>, seen: &mut Seen) {
    let text = line.text;
    if text.starts_with("server_args=") {
        arguments(text, seen);
    } else if text.starts_with("Init torch distributed begin")
        || text.starts_with("Init parallel begin")
    {
        seen.phase(Phase::Starting);
        seen.collective = text.contains("torch");
    } else if text.starts_with("Init torch distributed end")
        || text.starts_with("Init parallel end")
    {
        seen.collective = false;
    } else if text.starts_with("Load weight begin") {
        seen.collective = false;
        seen.phase(Phase::LoadingWeights);
        free(text, seen);
    } else if python::downloads(text) {
        seen.phase_before(Phase::LoadingWeights, Phase::Downloading);
        seen.update(Phase::Downloading, bar(text));
    } else if text.contains("loading shards:") || text.contains("checkpoint shards:") {
        seen.enter(Phase::LoadingWeights, bar(text));
    } else if text.starts_with("Load weight end") {
        let done = Progress {
            percent: Some(100),
            parts: None,
        };
        seen.enter(Phase::LoadingWeights, done);
        if counted(line, seen) {
            add(&mut seen.taken.weights_gib, gib_after(text, "mem usage="));
        }
        free(text, seen);
    } else if text.starts_with("Mamba Cache is allocated") {
        seen.phase(Phase::AllocatingPool);
        if counted(line, seen) {
            state(text, seen);
        }
    } else if text.contains("KV Cache is allocated") {
        seen.phase(Phase::AllocatingPool);
        if counted(line, seen) {
            pool(text, seen);
        }
    } else if text.starts_with("Memory pool end") {
        seen.phase(Phase::AllocatingPool);
        if counted(line, seen) {
            seen.sglang.pools_done = true;
        }
        free(text, seen);
    } else if let Some(tail) = text.strip_prefix("KV pool holds ") {
        seen.show(text);
        take(&mut seen.facts.kv_pool_tokens, number_after(tail, ""));
        take(
            &mut seen.facts.requested_context,
            number_after(text, "--context-length "),
        );
    } else if text.contains("uda graph begin") || text.contains("UDA graph begin") {
        seen.phase(Phase::CapturingGraphs);
        free(text, seen);
    } else if text.starts_with("Capturing batches") || text.starts_with("Capturing num tokens") {
        seen.enter(Phase::CapturingGraphs, bar(text));
    } else if text.contains("uda graph end") || text.contains("UDA graph end") {
        let done = Progress {
            percent: Some(100),
            parts: None,
        };
        seen.enter(Phase::CapturingGraphs, done);
        if counted(line, seen) {
            add(&mut seen.taken.graphs_gib, gib_after(text, "mem usage="));
        }
        free(text, seen);
    } else if text.starts_with("max_total_num_tokens=") {
        take(
            &mut seen.facts.kv_pool_tokens,
            number_after(text, "max_total_num_tokens="),
        );
        take(
            &mut seen.facts.max_running_requests,
            number_after(text, "max_running_requests="),
        );
        take(
            &mut seen.facts.requested_context,
            number_after(text, "context_len="),
        );
        free(text, seen);
    } else if text.contains("Started server process [") {
        seen.phase(Phase::WarmingUp);
    } else if text.contains("Uvicorn running on") {
        // The port is open; a warm-up request follows before anything is served.
        seen.phase(Phase::WarmingUp);
        take(&mut seen.facts.port, port(text));
    } else if text.contains("The server is fired up and ready to roll!") {
        seen.serves(text);
    } else if text.starts_with("sglang is using nccl") {
        seen.collective = true;
    } else if let Some(version) = text.strip_prefix("sglang version: ") {
        seen.version(version);
    } else if text.contains("is greater than the derived context_length (")
        && !text.contains("To allow overriding")
    {
        take(
            &mut seen.facts.model_limit,
            number_after(text, "derived context_length ("),
        );
        seen.remark("the context is above the model's own limit, by an override: its answers may be nonsense");
    }
}

fn arguments(text: &str, seen: &mut Seen) {
    seen.phase(Phase::Starting);
    let facts = &mut seen.facts;
    take(
        &mut facts.requested_context,
        argument::number(text, "context_length"),
    );
    take(
        &mut facts.fraction,
        argument::number(text, "mem_fraction_static"),
    );
    take(
        &mut facts.max_running_requests,
        argument::number(text, "max_running_requests"),
    );
    take(&mut facts.port, argument::number(text, "port"));
}

/// Whether the line is of the rank whose allocations are counted.
fn counted(line: &Line<'_>, seen: &mut Seen) -> bool {
    let rank = line.rank.unwrap_or_default();
    seen.sglang.rank.get_or_insert_with(|| rank.to_string()) == rank
}

fn state(text: &str, seen: &mut Seen) {
    take(
        &mut seen.facts.mamba_slots,
        number_after(text, "max_mamba_cache_size:"),
    );
    let sizes = [
        "max_mamba_cache_size",
        " conv_state size:",
        " ssm_state size:",
        "intermediate_ssm_state_cache size:",
        "intermediate_conv_window_cache size:",
    ];
    let sum: f64 = sizes
        .iter()
        .skip(1)
        .filter_map(|name| gib_after(text, name))
        .sum();
    if sum > 0.0 {
        seen.facts.fixed_state_gib_per_gpu = Some(rounded(sum));
    }
}

fn pool(text: &str, seen: &mut Seen) {
    let halves = [" K size:", " V size:", "KV size:"];
    let found: Vec<f64> = halves
        .iter()
        .filter_map(|name| gib_after(text, name))
        .collect();
    let size = (!found.is_empty()).then(|| rounded(found.iter().sum()));
    let tokens = number_after(text, "#tokens:");
    let own = &mut seen.sglang;
    // A second pool of as many tokens is the draft's also where the end of the first is not told; one of fewer tokens is the
    // model's own, for layers with a window.
    let draft = own.pools_done || (own.first_tokens.is_some() && own.first_tokens == tokens);
    if draft {
        let sum = seen.facts.draft_kv_gib_per_gpu.unwrap_or(0.0) + size.unwrap_or(0.0);
        seen.facts.draft_kv_gib_per_gpu = Some(rounded(sum));
        return;
    }
    if own.first_tokens.is_none() {
        own.first_tokens = tokens;
        take(&mut seen.facts.kv_pool_tokens, tokens);
    }
    let sum = seen.facts.kv_pool_gib_per_gpu.unwrap_or(0.0) + size.unwrap_or(0.0);
    seen.facts.kv_pool_gib_per_gpu = size.map(|_| rounded(sum));
}

/// What is free now; of several ranks at the same step the least.
fn free(text: &str, seen: &mut Seen) {
    if text.contains("available_cpu_mem=") {
        seen.sglang.on_cpu = true;
        seen.facts.free_gib_per_gpu = None;
    }
    if seen.sglang.on_cpu {
        return;
    }
    let now = gib_after(text, "available_gpu_mem=").or_else(|| gib_after(text, "avail mem="));
    take(&mut seen.facts.free_gib_per_gpu, now);
}

/// A progress bar.
pub(super) fn bar(text: &str) -> Progress {
    Progress {
        percent: last_percent(text),
        parts: last_parts(text),
    }
}

/// The port at the end of an address: `http://0.0.0.0:30000 (Press …)`.
pub(super) fn port(text: &str) -> Option<u64> {
    let (_, address) = text.split_once("://")?;
    let address = address.split([' ', '/']).next()?;
    let (_, port) = address.rsplit_once(':')?;
    port.parse().ok().filter(|port| (1..=65_535).contains(port))
}

/// What SGLang's own words about its fraction say: the value in force, and the least that would do.
pub(super) fn fraction(text: &str, seen: &mut Seen) -> Option<f64> {
    let now = float_after(text, "mem_fraction_static=")
        .or_else(|| float_after(text, "--mem-fraction-static="));
    take(&mut seen.facts.fraction, now);
    float_after(text, "Raise --mem-fraction-static above ")
}
