//! What to do next: which knob, which way, by how much.

use super::super::{Kind, Phase};
use super::judge::{Found, occupied};
use super::reader::Reader;
use super::seen::{End, Seen};
use super::{Cause, Known, Outcome, StartFacts, llamacpp};
use crate::units::{gib, thousands};

/// A line is shown whole up to this many characters.
pub(super) const MAX_LINE: usize = 600;
/// Room to leave beside what was missing, GiB.
const MARGIN_GIB: f64 = 0.5;

/// The names of an engine's knobs.
struct Knobs {
    context: &'static str,
    fraction: &'static str,
    requests: &'static str,
    batch: &'static str,
    graphs: &'static str,
    cards: &'static str,
    cache_type: &'static str,
}

fn knobs(kind: Option<Kind>) -> Knobs {
    match kind {
        Some(Kind::Vllm) => Knobs {
            context: "--max-model-len",
            fraction: "--gpu-memory-utilization",
            requests: "--max-num-seqs",
            batch: "--max-num-batched-tokens",
            graphs: "fewer --cudagraph-capture-sizes",
            cards: "a larger --tensor-parallel-size",
            cache_type: "--kv-cache-dtype fp8",
        },
        Some(Kind::LlamaCpp) => Knobs {
            context: "--ctx-size",
            fraction: "--n-gpu-layers",
            requests: "--parallel",
            batch: "--ubatch-size",
            graphs: "a smaller --ubatch-size",
            cards: "more cards (--tensor-split)",
            cache_type: "--cache-type-k q8_0 --cache-type-v q8_0",
        },
        _ => Knobs {
            context: "--context-length",
            fraction: "--mem-fraction-static",
            requests: "--max-running-requests",
            batch: "--chunked-prefill-size",
            graphs: "a smaller --cuda-graph-max-bs",
            cards: "a larger --tp-size",
            cache_type: "--kv-cache-dtype fp8_e4m3",
        },
    }
}

/// The advice for what was found; with the remarks that belong to it, and a word on earlier starts in the same log.
pub(super) fn advise(
    found: &Found,
    reader: &Reader,
    facts: &StartFacts,
    known: &Known,
    kind: Option<Kind>,
) -> Option<String> {
    let seen = &reader.seen;
    let mut parts = Vec::new();
    if let Some(cause) = found.cause {
        parts.push(for_cause(cause, found, seen, facts, known, kind));
        parts.extend(held(cause, known));
    } else if found.outcome == Outcome::Ready {
        parts.extend(serves_less(facts, found.suggested, kind));
    } else if reader.kind().is_none() {
        parts.push(
            "no line of this log is known: name the engine with --engine if it is the log of one"
                .to_string(),
        );
    }
    if found.outcome == Outcome::Ready {
        parts.extend(llamacpp::on_cpu(seen));
    }
    if let Some(wasted) = facts.wasted_gib {
        parts.push(format!(
            "{wasted:.1} GiB of the KV cache can never be used: ask for {} in all",
            thousands(
                facts
                    .effective_context_per_request
                    .unwrap_or(0)
                    .saturating_mul(facts.slots.unwrap_or(1))
            )
        ));
    }
    parts.extend(seen.remarks.iter().cloned());
    parts.extend(earlier(reader));
    let text = parts.join("; ");
    (!text.is_empty()).then_some(text)
}

fn earlier(reader: &Reader) -> Option<String> {
    let before = reader.before.as_ref()?;
    let how = match (before.outcome, before.cause) {
        (Outcome::Ready, _) => "served".to_string(),
        (_, Some(cause)) => format!("failed ({})", cause.words()),
        (_, None) => "did not come to its end".to_string(),
    };
    Some(format!(
        "this log holds {} starts, the last one counts; the one before it {how}",
        reader.earlier + 1
    ))
}

/// The bounds of a start that serves less than its flag says.
fn serves_less(facts: &StartFacts, suggested: Option<u64>, kind: Option<Kind>) -> Option<String> {
    let served = suggested?;
    let bounds = bounds(facts, kind);
    Some(format!(
        "it serves {} tokens a request, not {}: as a start for that value it has failed ({bounds}); go on with {}",
        thousands(served),
        thousands(facts.requested_context?),
        thousands(served)
    ))
}

fn bounds(facts: &StartFacts, kind: Option<Kind>) -> String {
    let flag = match kind {
        Some(Kind::LlamaCpp) => "flag, over all slots",
        _ => "flag",
    };
    let share = match kind {
        Some(Kind::LlamaCpp) => facts.effective_context_per_request,
        _ => None,
    };
    let shown = |name: &str, value: Option<u64>| match value {
        Some(value) => format!("{name} {}", thousands(value)),
        None => format!("{name} not stated"),
    };
    let mut all = vec![
        shown(flag, facts.requested_context),
        shown("model limit", facts.model_limit),
        shown("KV pool", facts.kv_pool_tokens),
    ];
    if let Some(slots) = facts.slots.filter(|_| share.is_some()) {
        all.push(shown(&format!("share of one of {slots} slots"), share));
    }
    all.join(", ")
}

fn for_cause(
    cause: Cause,
    found: &Found,
    seen: &Seen,
    facts: &StartFacts,
    known: &Known,
    kind: Option<Kind>,
) -> String {
    let knobs = knobs(kind);
    match cause {
        Cause::OomWeights => weights(seen, facts, &knobs, kind),
        Cause::NoRoomForPool => no_room(found, facts, &knobs, kind),
        Cause::KvPoolBelowOneRequest => below_one_request(found, facts, &knobs, kind),
        Cause::OomGraphCapture => format!(
            "the pool left too little for the graphs: lower {} {}, or capture {}; a smaller {} alone changes little",
            knobs.fraction,
            lower(facts),
            knobs.graphs,
            knobs.context
        ),
        Cause::OomPrefill => prefill(found, facts, &knobs, kind),
        Cause::OomHost => host(seen, facts, &knobs, kind),
        Cause::ContextAboveModelLimit => above_limit(facts, &knobs, kind),
        Cause::GpuNotFree => not_free(seen, facts, &knobs),
        Cause::PortInUse => format!(
            "another server still holds port {}: name its process and end it (ss -ltnp), or take another port; what answers there now is the old server",
            facts.port.map_or_else(|| "of this one".to_string(), |port| port.to_string())
        ),
        Cause::BadArgument => "mend the argument that the line names; --help of this release lists what it takes".to_string(),
        Cause::ModelMissing => {
            "check the path or the name of the model, that the download is complete, and that the token may read it (HF_TOKEN for gated models)".to_string()
        }
        Cause::DriverMismatch => {
            "driver and CUDA libraries do not fit: after a driver update restart the machine or the container, else install a driver for the CUDA release of the server; nvidia-smi must work first".to_string()
        }
        Cause::StalledInCollectives => {
            "the ranks wait for each other, usually in NCCL: try NCCL_P2P_DISABLE=1 (PCIe without peer access, IOMMU or ACS on), a larger /dev/shm (--ipc=host), the right NCCL_SOCKET_IFNAME; NCCL_DEBUG=INFO names the step. Memory settings do not help".to_string()
        }
        Cause::Killed => killed(seen, known),
        Cause::Crashed => {
            "it ended without a reason of its own: see dmesg and the lines above; a build for another processor or driver ends like this, and so does a bug of the release".to_string()
        }
        Cause::Unknown if found.outcome == Outcome::Stuck => {
            "nothing gets on: see what the process waits for (py-spy dump, disk and network load), then end it".to_string()
        }
        Cause::Unknown => "see the line and those above it".to_string(),
    }
}

/// By how much the fraction goes down: what was missing and a margin, in hundredths of the card.
fn lower(facts: &StartFacts) -> String {
    let missing = facts
        .needed_gib
        .zip(facts.free_gib)
        .map(|(needed, free)| (needed - free).max(0.0) + MARGIN_GIB);
    let step = missing
        .zip(facts.total_gib.filter(|total| *total > 0.0))
        .map(|(missing, total)| missing / total);
    let step = step.map_or(0.03, |step| {
        ((step * 100.0).ceil() / 100.0).clamp(0.02, 0.2)
    });
    match facts.fraction.filter(|fraction| *fraction - step > 0.1) {
        Some(fraction) => format!("from {fraction} to {:.2}", fraction - step),
        None => format!("by {step:.2}"),
    }
}

fn raise(found: &Found, facts: &StartFacts) -> String {
    if let Some(fraction) = found.fraction {
        return format!("above {fraction:.3}");
    }
    match facts.fraction.filter(|fraction| *fraction < 0.93) {
        Some(fraction) => format!("from {fraction} to {:.2}", (fraction + 0.05).min(0.95)),
        None => "by 0.05, to 0.95 at most".to_string(),
    }
}

fn weights(seen: &Seen, facts: &StartFacts, knobs: &Knobs, kind: Option<Kind>) -> String {
    if kind == Some(Kind::LlamaCpp) {
        return "the weights do not fit on the cards: fewer layers on them (--n-gpu-layers), a smaller quantization, or more cards; the context is not the reason".to_string();
    }
    if facts.kv_pool_tokens.is_some() {
        return format!(
            "the pool was taken before the draft's weights: lower {} {}, or serve without the draft",
            knobs.fraction,
            lower(facts)
        );
    }
    let others = seen
        .others_gib
        .map(|gib| format!(" (others hold {gib:.1} GiB of the card)"));
    format!(
        "the weights do not fit{}: {}, a quantized model, or free cards; neither the context nor {} helps",
        others.unwrap_or_default(),
        knobs.cards,
        knobs.fraction
    )
}

fn no_room(found: &Found, facts: &StartFacts, knobs: &Knobs, kind: Option<Kind>) -> String {
    if kind == Some(Kind::LlamaCpp) {
        let try_it = found
            .suggested
            .map(|tokens| format!(" to about {} a slot", thousands(tokens)));
        return format!(
            "the KV cache does not fit on the cards: lower {}{}, fewer slots ({}), or a smaller cache type ({})",
            knobs.context,
            try_it.unwrap_or_default(),
            knobs.requests,
            knobs.cache_type
        );
    }
    if found.pool_too_large {
        return format!(
            "the pool did not fit as it was sized: lower {} {}, or fewer requests at once ({}); see whether something else took memory meanwhile",
            knobs.fraction,
            lower(facts),
            knobs.requests
        );
    }
    format!(
        "the weights leave nothing for the pool: raise {} {}, or fewer requests at once ({}), {}; at a start the fraction goes up, at run time down",
        knobs.fraction,
        raise(found, facts),
        knobs.requests,
        knobs.cards
    )
}

fn below_one_request(
    found: &Found,
    facts: &StartFacts,
    knobs: &Knobs,
    kind: Option<Kind>,
) -> String {
    let tokens = found
        .suggested
        .map(|tokens| format!("set {} to {}", knobs.context, thousands(tokens)));
    let room = facts
        .needed_gib
        .zip(facts.available_gib)
        .map(|(needed, available)| {
            format!(
                " by the {:.2} GiB a card that are missing",
                needed - available
            )
        });
    let mut text = tokens.unwrap_or_else(|| format!("lower {}", knobs.context));
    if kind == Some(Kind::LlamaCpp) {
        text.push_str(&format!(
            ", or fewer slots ({}); {}",
            knobs.requests,
            bounds(facts, kind)
        ));
        return text;
    }
    text.push_str(&format!(
        "; for more, raise {}{}, or {}, {}; {}",
        knobs.fraction,
        room.unwrap_or_default(),
        knobs.cache_type,
        knobs.cards,
        bounds(facts, kind)
    ));
    text
}

fn prefill(found: &Found, facts: &StartFacts, knobs: &Knobs, kind: Option<Kind>) -> String {
    if found.pool_exhausted {
        return format!(
            "the KV pool was full, not the card: fewer requests at once ({}), or a higher {}",
            knobs.requests, knobs.fraction
        );
    }
    if kind == Some(Kind::LlamaCpp) {
        return format!(
            "the compute buffers do not fit beside weights and cache: halve {}, or lower {}",
            knobs.batch, knobs.context
        );
    }
    format!(
        "the pool left too little for the work on a prompt: halve {}, or lower {} {}; at run time the fraction goes down, at a start that finds no room for the pool up",
        knobs.batch,
        knobs.fraction,
        lower(facts)
    )
}

fn host(seen: &Seen, facts: &StartFacts, knobs: &Knobs, kind: Option<Kind>) -> String {
    let line = seen
        .trouble
        .as_ref()
        .map(|trouble| trouble.line.as_str())
        .unwrap_or_default();
    if line.contains("shm") || line.contains("shared memory") {
        return "the shared memory is too small: --ipc=host or a larger --shm-size for the container".to_string();
    }
    if line.contains("hierarchical cache") || line.contains("Not enough host memory") {
        return "the host-side cache does not fit: lower --hicache-ratio or --hicache-size"
            .to_string();
    }
    if kind == Some(Kind::LlamaCpp)
        && seen
            .trouble
            .as_ref()
            .is_some_and(|t| t.phase >= Some(Phase::AllocatingPool))
    {
        let needed = facts.needed_gib.map(|gib| format!(" of {gib:.1} GiB"));
        return format!(
            "the KV cache{} does not fit into the host's memory: lower {}, fewer slots ({}), or a smaller cache type ({})",
            needed.unwrap_or_default(),
            knobs.context,
            knobs.requests,
            knobs.cache_type
        );
    }
    "the host's memory ran out, not the cards': raise the limit of the unit or container (MemoryMax, --memory), load fewer weights at once, or offload less to the CPU".to_string()
}

fn above_limit(facts: &StartFacts, knobs: &Knobs, kind: Option<Kind>) -> String {
    let keep = facts.model_limit.map_or_else(
        || "stay within the model's limit".to_string(),
        |limit| format!("keep {} at {}", knobs.context, thousands(limit)),
    );
    let scaling = match kind {
        Some(Kind::LlamaCpp) => "--rope-scaling yarn with --rope-scale and --yarn-orig-ctx",
        Some(Kind::Vllm) => "rope scaling in --hf-overrides",
        _ => "rope scaling in --json-model-override-args",
    };
    format!(
        "{keep}, or configure position scaling ({scaling}) and check the quality; memory is not the reason, and forcing the override alone gives nonsense"
    )
}

fn not_free(seen: &Seen, facts: &StartFacts, knobs: &Knobs) -> String {
    let device = facts.device.as_deref().unwrap_or("a card");
    let mut text = format!("{device} is held by something else");
    if let (Some(free), Some(total)) = (facts.free_gib, facts.total_gib) {
        text.push_str(&format!(": {free:.2} of {total:.2} GiB are free"));
    } else if let Some(others) = seen.others_gib {
        text.push_str(&format!(": others hold {others:.2} GiB"));
    }
    text.push_str(
        "; wait until the old server has let go of it, or name the process (nvidia-smi) and end it",
    );
    let fits = facts
        .free_gib
        .zip(facts.total_gib.filter(|total| *total > 0.0));
    if let Some((free, total)) = fits.filter(|_| facts.fraction.is_some()) {
        let fraction = ((free / total - 0.01) * 100.0).floor() / 100.0;
        if fraction >= 0.1 {
            text.push_str(&format!(
                "; only if it shall stay, lower {} to {fraction:.2}",
                knobs.fraction
            ));
        }
    }
    text
}

fn killed(seen: &Seen, known: &Known) -> String {
    let timed_out =
        matches!(&seen.end, Some((End::TimedOut, _))) || known.result.as_deref() == Some("timeout");
    if timed_out {
        return "the service manager's limit on the time of a start ended it: raise TimeoutStartSec of the unit".to_string();
    }
    "somebody or something killed it: dmesg tells whether the host's memory ran out (then raise its limit, or load less), else it was ended by hand".to_string()
}

/// A card that still holds memory although the start is over.
fn held(cause: Cause, known: &Known) -> Option<String> {
    let matters = matches!(
        cause,
        Cause::OomWeights
            | Cause::NoRoomForPool
            | Cause::OomGraphCapture
            | Cause::OomPrefill
            | Cause::GpuNotFree
    );
    let card = occupied(known).filter(|_| matters)?;
    Some(format!(
        "card {} holds {} of {} GiB now: if the server is gone, that is something else",
        card.index,
        gib(card.used?),
        gib(card.total?)
    ))
}
