//! Lines about memory that is not there: whose, for what, how much.

use super::super::Phase;
use super::super::text::{float_after, gib_after, number_after, rounded};
use super::seen::{Seen, take};
use super::words::Words;
use std::sync::LazyLock;

/// Words of an allocation on a card that failed.
const CARD: &[&str] = &[
    "CUDA out of memory",
    "HIP out of memory",
    "XPU out of memory",
    "OutOfMemoryError",
    "CUDA error: out of memory",
    "cudaMalloc failed: out of memory",
    "cudaErrorMemoryAllocation",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "ErrorOutOfDeviceMemory",
    "Cuda failure 2 'out of memory'",
    "Cuda failure 'out of memory'",
    "Prefill out of memory",
    "Decode out of memory",
];

static CARD_WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(CARD));

/// Whether the line tells of a card's memory that ran out.
pub(super) fn of_card(text: &str) -> bool {
    let buffer = text.contains("allocate") && text.contains(" buffer");
    let of_card = ["CUDA", "ROCm", "Vulkan", "SYCL", "MUSA"]
        .iter()
        .any(|name| {
            text.split_once(name)
                .is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
    CARD_WORDS.first_in(text).is_some()
        || (buffer && of_card && (text.contains("failed") || text.contains("unable")))
        || (text.contains("failed to allocate")
            && (text.contains("for kv cache") || text.contains("compute")))
}

/// SGLang's own words for a pool that has no room for a prompt.
pub(super) fn is_pool_exhausted(text: &str) -> bool {
    text.contains("Prefill out of memory") || text.contains("Decode out of memory")
}

/// What the line itself says that the memory was for.
pub(super) fn phase_of(text: &str) -> Option<Phase> {
    let lower = |words: &str| text.contains(words);
    if lower("Capture cuda graph failed") || lower("capturing") {
        Some(Phase::CapturingGraphs)
    } else if lower("when warming up") || lower("compute buffers") || lower("compute pp buffers") {
        Some(Phase::WarmingUp)
    } else if lower("for kv cache") || lower("kv_cache") {
        Some(Phase::AllocatingPool)
    } else if lower("unable to allocate") {
        Some(Phase::LoadingWeights)
    } else {
        None
    }
}

/// llama.cpp says on a later line what the memory was for.
pub(super) fn refine(text: &str, seen: &mut Seen) {
    let Some(phase) = phase_of(text) else {
        return;
    };
    if let Some(trouble) = &mut seen.trouble
        && matches!(trouble.kind, super::trouble::Kind::CardMemory)
    {
        trouble.phase = Some(phase);
    }
}

/// What was tried, what was free, on which card, and who else holds memory there.
pub(super) fn figures(text: &str, seen: &mut Seen) {
    let facts = &mut seen.facts;
    let tried = [
        "Tried to allocate ",
        "attempted to allocate ",
        "allocating ",
    ]
    .iter()
    .find_map(|words| gib_after(text, words))
    .or_else(|| number_after(text, "you tried to allocate ").map(gib_of))
    .or_else(|| number_after(text, "buffer of size ").map(gib_of));
    take(&mut facts.needed_gib, tried);
    let gpu = number_after(text, "GPU ").or_else(|| number_after(text, "on device "));
    take(
        &mut facts.device,
        gpu.filter(|gpu| *gpu < 1024)
            .map(|gpu| format!("cuda:{gpu}")),
    );
    let total = gib_after(text, "total capacity of ");
    take(
        &mut facts.total_gib,
        total.or_else(|| older(text, " total capacity")),
    );
    let free = gib_after(text, " of which ").or_else(|| older(text, " free;"));
    take(&mut facts.free_gib, free);
    seen.own_gib = gib_after(text, "this process has ");
    if seen.own_gib.is_some() {
        let others: f64 = text
            .match_indices("Process ")
            .filter_map(|(at, _)| gib_after(text.get(at..)?, " has "))
            .sum();
        if others > 0.0 {
            seen.others_gib = Some(rounded(others));
        }
    }
}

fn gib_of(bytes: u64) -> f64 {
    rounded(bytes as f64 / crate::units::GIB)
}

/// PyTorch before 2.1: `(GPU 0; 23.69 GiB total capacity; 22.10 GiB already allocated; 120.88 MiB free; …)`.
fn older(text: &str, words: &str) -> Option<f64> {
    let head = text.get(..text.find(words)?)?;
    let from = head.rfind(['(', ';'])?;
    gib_after(head.get(from + 1..)?, "")
}

/// `Free memory on device cuda:0 (12.18/23.56 GiB) on startup is less than desired GPU memory utilization (0.92, 21.67 GiB).`
/// and SGLang's words for ranks that differ.
pub(super) fn not_free(text: &str, seen: &mut Seen) {
    let facts = &mut seen.facts;
    if let Some((_, rest)) = text.split_once("Free memory on device ") {
        let (device, rest) = rest.split_once('(').unwrap_or(("", rest));
        let device = device.trim();
        take(
            &mut facts.device,
            (!device.is_empty()).then(|| device.to_string()),
        );
        take(&mut facts.free_gib, float_after(rest, ""));
        take(&mut facts.total_gib, float_after(rest, "/"));
        take(&mut facts.fraction, float_after(rest, "utilization ("));
        let needed = rest
            .split_once("utilization (")
            .and_then(|(_, tail)| float_after(tail, ","));
        take(&mut facts.needed_gib, needed);
    } else if text.contains("is unbalanced") {
        let least = float_after(text, "min_per_gpu_memory=")
            .or_else(|| float_after(text, "pre_model_load_memory="))
            .or_else(|| float_after(text, "min_available_device_memory="));
        take(&mut facts.free_gib, least.map(rounded));
        let other = float_after(text, "local_gpu_memory * 0.9=")
            .or_else(|| float_after(text, "local_device_memory*0.9="));
        take(&mut facts.needed_gib, other.map(rounded));
    }
}

/// vLLM's words for a pool that is smaller than one request, of this and of earlier releases.
pub(super) fn below_one_request(text: &str, seen: &mut Seen) {
    let facts = &mut seen.facts;
    take(
        &mut facts.requested_context,
        number_after(text, "max seq len ("),
    );
    take(
        &mut facts.kv_pool_tokens,
        number_after(text, "stored in KV cache ("),
    );
    let needed = text
        .split_once(" KV cache is needed")
        .and_then(|(head, _)| {
            let head = head.trim_end().trim_end_matches("GiB").trim_end();
            let from = head.rfind(|c: char| !(c.is_ascii_digit() || c == '.'))?;
            gib_after(head.get(from + 1..)?, "")
        });
    take(&mut facts.needed_gib, needed);
    take(
        &mut facts.available_gib,
        gib_after(text, "KV cache memory ("),
    );
}

/// The largest context that vLLM names.
pub(super) fn largest(text: &str) -> Option<u64> {
    number_after(text, "stimated maximum model length is ")
        .or_else(|| number_after(text, "stored in KV cache ("))
        .filter(|tokens| *tokens > 0)
}
