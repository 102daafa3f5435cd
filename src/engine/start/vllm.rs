//! The log of a vLLM start.

use super::super::Phase;
use super::super::text::{float_after, gib_after, number_after};
use super::line::Line;
use super::seen::{Progress, Seen, least, take};
use super::sglang::{bar, port};
use super::{argument, python};
use crate::units::thousands;

pub(super) fn read(line: &Line<'_>, seen: &mut Seen) {
    let text = line.text;
    if text.starts_with("non-default args:") {
        arguments(text, seen);
    } else if let Some(version) = after(text, "vLLM API server version ")
        .or_else(|| after(text, "Initializing a V1 LLM engine (v"))
        .or_else(|| after(text, "Initializing an LLM engine (v"))
        .or_else(|| after(text, "█  version "))
    {
        seen.version(version);
        seen.phase_if_new(Phase::Starting);
        take(
            &mut seen.facts.requested_context,
            argument::number(text, "max_seq_len"),
        );
    } else if text.starts_with("Using max model len ") {
        seen.phase(Phase::Starting);
        take(
            &mut seen.facts.requested_context,
            number_after(text, "Using max model len "),
        );
    } else if text.starts_with("vLLM is using nccl") || text.contains("backend=nccl") {
        seen.collective = true;
    } else if text.starts_with("Starting to load model")
        || text.starts_with("Loading model weights")
    {
        seen.collective = false;
        seen.phase(Phase::LoadingWeights);
    } else if python::downloads(text) {
        seen.phase_before(Phase::LoadingWeights, Phase::Downloading);
        seen.update(Phase::Downloading, bar(text));
    } else if text.contains("checkpoint shards:") {
        seen.collective = false;
        seen.enter(Phase::LoadingWeights, bar(text));
    } else if text.starts_with("Loading weights took") || text.starts_with("Model loading took") {
        let done = Progress {
            percent: Some(100),
            parts: None,
        };
        seen.enter(Phase::LoadingWeights, done);
        take(
            &mut seen.taken.weights_gib,
            gib_after(text, "Model loading took "),
        );
    } else if text.contains("KV cache size: ") || text.starts_with("# GPU blocks:") {
        seen.phase(Phase::AllocatingPool);
        take(
            &mut seen.facts.kv_pool_tokens,
            number_after(text, "KV cache size: "),
        );
        concurrency(text, seen);
    } else if text.starts_with("Maximum concurrency for ") {
        concurrency(text, seen);
    } else if text.contains("vailable KV cache memory: ") {
        seen.phase(Phase::AllocatingPool);
        let room = gib_after(text, "vailable KV cache memory: ");
        least(&mut seen.facts.available_gib, room);
        seen.facts.kv_pool_gib_per_gpu = seen.facts.available_gib.filter(|gib| *gib > 0.0);
    } else if text.starts_with("Auto-fit max_model_len: reduced from ") {
        take(
            &mut seen.facts.requested_context,
            number_after(text, " to "),
        );
        seen.remark("the context was fitted to the pool by vLLM itself");
    } else if text.contains("Capturing CUDA graph") || text.contains("Capturing cudagraphs") {
        seen.enter(Phase::CapturingGraphs, bar(text));
    } else if text.starts_with("Graph capturing finished") {
        let done = Progress {
            percent: Some(100),
            parts: None,
        };
        seen.enter(Phase::CapturingGraphs, done);
        take(&mut seen.taken.graphs_gib, gib_after(text, ", took "));
    } else if text.starts_with("init engine (") || text.starts_with("Starting vLLM ") {
        seen.phase(Phase::WarmingUp);
        take(&mut seen.facts.port, port(text));
    } else if text.contains("Application startup complete.") {
        seen.serves(text);
    } else if text.contains("No available shared memory broadcast block found") {
        seen.waits += 1;
    } else if text.contains("is greater than the derived max_model_len (")
        && !text.contains("To allow overriding")
    {
        seen.remark("the context is above the model's own limit, by an override: its answers may be nonsense");
    }
}

fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.split_once(words).map(|(_, rest)| rest)
}

fn arguments(text: &str, seen: &mut Seen) {
    seen.phase_if_new(Phase::Starting);
    let facts = &mut seen.facts;
    take(
        &mut facts.requested_context,
        argument::number(text, "max_model_len"),
    );
    take(
        &mut facts.fraction,
        argument::number(text, "gpu_memory_utilization"),
    );
    take(
        &mut facts.max_running_requests,
        argument::number(text, "max_num_seqs"),
    );
    take(&mut facts.port, argument::number(text, "port"));
}

/// `Maximum concurrency for 131,072 tokens per request: 2.00x`. Of hybrid models the printed size of the pool is not that of whole
/// requests; the product is.
fn concurrency(text: &str, seen: &mut Seen) {
    let context = number_after(text, "aximum concurrency for ");
    take(&mut seen.facts.requested_context, context);
    let times = float_after(text, "tokens per request: ");
    take(&mut seen.taken.concurrency, times);
    let whole = context
        .zip(times)
        .map(|(context, times)| context as f64 * times);
    if let (Some(whole), Some(printed)) = (whole, seen.facts.kv_pool_tokens)
        && (whole - printed as f64).abs() > printed as f64 * 0.05
    {
        seen.facts.kv_pool_tokens = Some(whole as u64);
        seen.remark(format!(
            "vLLM prints a pool of {} tokens; for whole requests it counts as {}",
            thousands(printed),
            thousands(whole as u64)
        ));
    }
}
