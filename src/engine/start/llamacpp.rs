//! The log of a llama-server start.

use super::super::Phase;
use super::super::text::{float_after, gib_after, number_after, number_before, rounded};
use super::StartFacts;
use super::line::Line;
use super::seen::{Seen, take};
use super::sglang::port;

/// What only this engine's reader needs to remember.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Cells for all sequences together.
    n_ctx: Option<u64>,
    /// Cells of one sequence, before any cap.
    n_ctx_seq: Option<u64>,
    n_seq_max: Option<u64>,
    unified: Option<bool>,
    /// Tokens of one slot, as the server will serve them.
    slot: Option<u64>,
    /// Weights on the cards, GiB.
    pub weights_gib: f64,
    /// Free on each card before the start, GiB.
    pub free_gib: Vec<f64>,
    /// A draft model's caches are not the model's.
    draft: bool,
    /// Layers on the cards, of all.
    layers: Option<(u64, u64)>,
    no_gpu: bool,
}

pub(super) fn read(line: &Line<'_>, seen: &mut Seen) {
    let text = line.text;
    if let Some(value) = text.strip_prefix("llama_context: ") {
        context(value, seen);
    } else if text.starts_with("llama_kv_cache") || text.starts_with("llama_kv_cache_init") {
        cache(text, seen);
    } else if text.starts_with("llama_memory_recurrent: size =") {
        seen.phase(Phase::AllocatingPool);
        if !seen.llama.draft {
            let sum = seen.facts.fixed_state_mib.unwrap_or(0.0)
                + float_after(text, "size =").unwrap_or(0.0);
            seen.facts.fixed_state_mib = Some(rounded(sum));
        }
    } else if text.contains("load_model: ")
        || text.starts_with("main: ")
        || text.starts_with("srv ")
        || text.starts_with("slot ")
    {
        server(text, seen);
    } else if text.starts_with("load_tensors:") || text.starts_with("llm_load_tensors:") {
        tensors(text, seen);
    } else if text.starts_with("sched_reserve:") || text.starts_with("graph_reserve:") {
        seen.phase_after(Phase::AllocatingPool, Phase::WarmingUp);
        if text.contains("retrying without pipeline parallelism") {
            seen.overcome();
        }
    } else if text.contains("n_ctx_train") && text.starts_with("print_info:") {
        take(&mut seen.facts.model_limit, number_after(text, "="));
    } else if text.contains("warming up the model") {
        seen.phase(Phase::WarmingUp);
    } else if text.contains("context size reduced from ") {
        seen.remark(format!(
            "llama.cpp reduced the context itself, {}",
            tail(text, "context size ")
        ));
    } else if text.contains("common_download")
        || text.contains("downloading") && text.contains("http")
    {
        seen.phase(Phase::Downloading);
    } else if let Some(rest) = text.strip_prefix("build: ") {
        build(rest, seen);
    } else if let Some((_, rest)) = text.split_once("common_params_print_info: build ") {
        build(rest, seen);
    } else if text.contains("using device ") && text.contains(" MiB free") {
        let free = number_before(text, " MiB free").map(|mib| mib as f64 / 1024.0);
        seen.llama
            .free_gib
            .extend(free.filter(|_| seen.llama.free_gib.len() < 64));
    } else if text.starts_with("ggml_cuda_init: failed to initialize")
        || text.contains("no usable GPU found")
    {
        seen.llama.no_gpu = true;
    }
}

/// `build: 7437 (ec98e2002) with …` is `b7437-ec98e2002`, as the server's own pages say it.
fn build(rest: &str, seen: &mut Seen) {
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let commit = rest
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    if let (false, Some((commit, _))) = (number.is_empty(), commit) {
        seen.version(&format!("b{number}-{commit}"));
    }
}

fn tail<'a>(text: &'a str, words: &str) -> &'a str {
    text.split_once(words).map_or(text, |(_, rest)| rest)
}

fn context(value: &str, seen: &mut Seen) {
    let number = |name: &str| {
        let rest = value.strip_prefix(name)?.trim_start();
        number_after(rest.strip_prefix('=')?, "")
    };
    if value.starts_with("constructing") || value.starts_with("n_seq_max") {
        seen.phase(Phase::AllocatingPool);
        if !seen.llama.draft {
            // A context that is made anew replaces the one before.
            seen.facts.kv_gib = None;
            seen.facts.fixed_state_mib = None;
        }
    }
    if value.contains("> n_ctx_train (") {
        seen.phase(Phase::AllocatingPool);
        take(
            &mut seen.facts.model_limit,
            number_after(value, "n_ctx_train ("),
        );
        if !seen.llama.draft {
            take(
                &mut seen.llama.n_ctx_seq,
                number_after(value, "n_ctx_seq ("),
            );
        }
        return;
    }
    if value.contains("< n_ctx_train (") {
        take(
            &mut seen.facts.model_limit,
            number_after(value, "n_ctx_train ("),
        );
        return;
    }
    if seen.llama.draft {
        return;
    }
    take(&mut seen.llama.n_seq_max, number("n_seq_max"));
    take(&mut seen.llama.n_ctx, number("n_ctx "));
    take(&mut seen.llama.n_ctx_seq, number("n_ctx_seq"));
    if value.starts_with("kv_unified") {
        seen.llama.unified = Some(value.contains("true"));
    }
}

fn cache(text: &str, seen: &mut Seen) {
    seen.phase(Phase::AllocatingPool);
    if !text.contains(": size =") || seen.llama.draft {
        return;
    }
    let sum = seen.facts.kv_gib.unwrap_or(0.0) + gib_after(text, "size =").unwrap_or(0.0);
    let first = seen.facts.kv_gib.is_none();
    seen.facts.kv_gib = Some(rounded(sum));
    if first {
        // `4/1 seqs`: four sequences over one stream; each stream has all the cells.
        let streams = number_before(text, " seqs").unwrap_or(1);
        let pool = number_before(text, " cells").and_then(|cells| cells.checked_mul(streams));
        take(&mut seen.facts.kv_pool_tokens, pool);
    }
}

fn server(text: &str, seen: &mut Seen) {
    if text.contains("loading draft model") || text.contains("MTP draft context") {
        seen.llama.draft = true;
    } else if text.contains("loading model") {
        seen.phase(Phase::LoadingWeights);
    } else if text.contains("exceeds the training context of the model (") {
        seen.show(text);
        take(
            &mut seen.facts.model_limit,
            number_after(text, "training context of the model ("),
        );
        take(
            &mut seen.llama.n_ctx_seq,
            number_after(text, "the slot context ("),
        );
        seen.llama.slot = seen.facts.model_limit;
    } else if text.contains("n_slots = ") {
        take(&mut seen.facts.slots, number_after(text, "n_slots = "));
        take(&mut seen.llama.slot, number_after(text, "n_ctx_slot = "));
        if text.contains("kv_unified = '") {
            seen.llama.unified = Some(text.contains("kv_unified = 'true'"));
        }
        seen.phase_after(Phase::AllocatingPool, Phase::WarmingUp);
        seen.overcome();
    } else if text.contains("new slot") && text.contains("n_ctx") {
        let slot = number_after(text, "n_ctx = ").or_else(|| number_after(text, "n_ctx_slot = "));
        take(&mut seen.llama.slot, slot);
    } else if text.ends_with("model loaded") {
        seen.phase(Phase::WarmingUp);
    } else if text.contains("listening on http") {
        seen.serves(text);
        take(&mut seen.facts.port, port(text));
    }
}

fn tensors(text: &str, seen: &mut Seen) {
    seen.phase_before(Phase::AllocatingPool, Phase::LoadingWeights);
    if let Some((_, rest)) = text.split_once("offloaded ") {
        let on = number_after(rest, "");
        let all = number_after(rest, "/");
        seen.llama.layers = on.zip(all).or(seen.llama.layers);
        if on < all {
            seen.show(text);
        }
    } else if text.contains("model buffer size =") {
        let on_card = !text.contains("CPU") && !text.contains("_Host");
        seen.llama.weights_gib += gib_after(text, "buffer size =")
            .filter(|_| on_card)
            .unwrap_or(0.0);
    }
}

impl Own {
    /// Puts the figures together that stand on different lines.
    pub fn settle(&self, facts: &mut StartFacts, ready: bool) {
        let slots = facts.slots.or(self.n_seq_max);
        // Caches that the whole is divided into.
        let streams = match self.unified {
            Some(true) => Some(1),
            _ => slots,
        };
        facts.slots = slots;
        facts.effective_context_per_request = self.slot.or(self.n_ctx_seq.filter(|_| ready));
        let told = self.n_ctx.or(match streams {
            // The context of the only sequence is the whole.
            Some(1) => self.n_ctx_seq,
            _ => None,
        });
        take(&mut facts.requested_context, told);
        if facts.kv_pool_tokens.is_none() {
            let each = self.n_ctx_seq.or(self.slot);
            let all = || each.zip(streams).and_then(|(each, n)| each.checked_mul(n));
            facts.kv_pool_tokens = self.n_ctx.or_else(all);
        }
        // What the slots cannot reach although it is allocated.
        if let (Some(kv), Some(pool), Some(slot)) = (facts.kv_gib, facts.kv_pool_tokens, self.slot)
        {
            let reach = slot.saturating_mul(slots.unwrap_or(1)).min(pool);
            if pool > 0 && reach < pool {
                facts.wasted_gib = Some(rounded(kv * (1.0 - reach as f64 / pool as f64)));
            }
        }
    }
}

/// Layers that were left to the processor, in words.
pub(super) fn on_cpu(seen: &Seen) -> Option<String> {
    match seen.llama.layers {
        _ if seen.llama.no_gpu => {
            Some("no card could be used: the whole model runs on the CPU".to_string())
        }
        Some((on, all)) if on < all => Some(format!(
            "{} of {all} layers run on the CPU: expect it to be many times slower",
            all - on
        )),
        _ => None,
    }
}
