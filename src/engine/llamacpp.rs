//! llama.cpp's `llama-server`.

use super::http::Client;
use super::metrics::Page;
use super::models::Models;
use super::openai::name_of_model;
use super::text::{number_after, number_before};
use super::{
    Context, Endpoint, Engine, EngineError, Facts, Health, Kind, Load, LogFact, Phase, Probe, chat,
};
use crate::reading::Reading;
use crate::units::{clean, thousands};
use async_trait::async_trait;
use serde_json::Value;

/// The server rounds a context up to whole blocks of this many tokens (`GGML_PAD(n_ctx, 256)` in `llama-context.cpp`).
const BLOCK: u64 = 256;

/// One llama-server.
#[derive(Debug)]
pub struct LlamaCpp {
    client: Client,
    endpoint: Endpoint,
}

impl LlamaCpp {
    pub fn new(client: Client, endpoint: Endpoint) -> Self {
        LlamaCpp { client, endpoint }
    }

    /// The slots' own page; `None` where it is switched off (`--no-slots`).
    async fn slots(&self) -> Result<Option<Vec<Value>>, EngineError> {
        let answer = self.client.get("/slots").await?;
        Ok(answer
            .json_if_ok()
            .and_then(|value| value.as_array().cloned()))
    }
}

fn read_facts(props: &Value, models: &Models, endpoint: &Endpoint) -> Facts {
    let per_slot = props
        .pointer("/default_generation_settings/n_ctx")
        .and_then(Value::as_u64);
    let slots = props.get("total_slots").and_then(Value::as_u64);
    let model_limit = models.base().and_then(|entry| entry.n_ctx_train);
    let effective = [per_slot, model_limit].into_iter().flatten().min();
    let mut notes = models.notes(endpoint);
    if let (Some(slot), Some(limit)) = (per_slot, model_limit)
        && slot > limit
    {
        notes.push(format!(
            "each slot has {} tokens, more than the {} that the model was trained for",
            thousands(slot),
            thousands(limit)
        ));
    }
    // Whether the slots share one cache (`--kv-unified`, the default without `--parallel`) stands in the log alone.
    let pool_tokens = match (per_slot, slots) {
        (Some(slot), Some(1)) => Reading::Value(slot),
        (Some(slot), Some(slots)) => {
            notes.push(format!(
                "the KV pool is counted as {slots} slots of {} tokens; slots that share one cache (--kv-unified) have {0} in all",
                thousands(slot)
            ));
            slot.checked_mul(slots).into()
        }
        _ => Reading::unsupported(),
    };
    Facts {
        kind: Kind::LlamaCpp,
        version: props
            .get("build_info")
            .and_then(Value::as_str)
            .map(clean)
            .into(),
        model: models.chosen(endpoint),
        health: Health::Up,
        context: Context {
            // The server caps what was asked for and then tells only what is left.
            configured: Reading::unsupported(),
            effective: effective.into(),
            model_limit: model_limit.into(),
            pool_tokens,
            slots: slots.into(),
            per_slot: per_slot.into(),
        },
        simulated: false,
        notes,
    }
}

fn read_load(page: Option<&Page>, slots: Option<&[Value]>) -> Load {
    let mut load = match page {
        Some(page) => Load {
            running: page.count(&["llamacpp:requests_processing"]).into(),
            waiting: page.count(&["llamacpp:requests_deferred"]).into(),
            prompt_tokens_total: page.count(&["llamacpp:prompt_tokens_total"]).into(),
            generation_tokens_total: page.count(&["llamacpp:tokens_predicted_total"]).into(),
            ..super::load_unsupported()
        },
        None => super::load_failed("the server has no metrics page: start it with --metrics"),
    };
    load.accept_length = Reading::unsupported();
    load.prefix_cache_hit_rate = Reading::unsupported();
    load.preemptions_total = Reading::unsupported();
    load.cache_queries_total = Reading::unsupported();
    load.cache_hits_total = Reading::unsupported();
    load.queued = Reading::unsupported();
    load.prefilled = Reading::unsupported();
    let Some(slots) = slots else {
        load.kv_use = Reading::failed("the server does not show its slots (--no-slots)");
        return load;
    };
    if page.is_none() {
        let busy = slots
            .iter()
            .filter(|slot| slot.get("is_processing").and_then(Value::as_bool) == Some(true))
            .count();
        load.running = Reading::Value(busy as u64);
    }
    load.kv_use = kv_use(slots).into();
    load
}

/// Tokens of the slots at work over the tokens of all slots.
fn kv_use(slots: &[Value]) -> Option<f64> {
    let number = |slot: &Value, at: &str| slot.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    let total: u64 = slots.iter().map(|slot| number(slot, "/n_ctx")).sum();
    let used: u64 = slots
        .iter()
        .filter(|slot| slot.get("is_processing").and_then(Value::as_bool) == Some(true))
        .map(|slot| number(slot, "/n_prompt_tokens") + number(slot, "/next_token/0/n_decoded"))
        .sum();
    (total > 0).then(|| used as f64 / total as f64)
}

/// What a log line says about a start. Lines may carry the elapsed time and a level, or not.
fn read_log_line(line: &str) -> Vec<LogFact> {
    let text = clean(line);
    let text = text.trim();
    if let Some(cause) = failure(text) {
        return vec![LogFact::Failure(cause)];
    }
    let phase = |phase| vec![LogFact::Phase(phase, None)];
    if text.contains("loading model '") || text.contains("load_tensors:") {
        phase(Phase::LoadingWeights)
    } else if text.contains("llama_kv_cache: size =") {
        let mut facts = phase(Phase::AllocatingPool);
        // `4/1 seqs`: four sequences over one stream; each stream has all the cells.
        let streams = number_after(text, "seqs)")
            .or_else(|| number_before(text, " seqs"))
            .unwrap_or(1);
        let pool = number_before(text, " cells").and_then(|cells| cells.checked_mul(streams));
        facts.extend(pool.map(LogFact::PoolTokens));
        facts
    } else if text.contains("exceeds the training context of the model (") {
        number_after(text, "training context of the model (").map_or_else(Vec::new, |limit| {
            vec![LogFact::Context(limit), LogFact::Suggests(limit)]
        })
    } else if text.contains("n_slots = ") && text.contains("n_ctx_slot = ") {
        let slots = number_after(text, "n_slots = ");
        let per_slot = number_after(text, "n_ctx_slot = ");
        let unified = text.contains("kv_unified = 'true'");
        let pool = match (per_slot, slots) {
            (Some(slot), _) if unified => Some(slot),
            (Some(slot), Some(slots)) => slot.checked_mul(slots),
            _ => None,
        };
        pool.map(LogFact::PoolTokens)
            .into_iter()
            .chain(per_slot.map(LogFact::Context))
            .collect()
    } else if text.contains("new slot, n_ctx = ") {
        number_after(text, "new slot, n_ctx = ")
            .map(LogFact::Context)
            .into_iter()
            .collect()
    } else if text.contains("warming up the model") || text.ends_with("model loaded") {
        phase(Phase::WarmingUp)
    } else if text.contains("listening on http") {
        phase(Phase::Listening)
    } else {
        Vec::new()
    }
}

/// The line that names the cause; those after it only say that something has failed.
fn failure(text: &str) -> Option<String> {
    let known = [
        "insufficient memory (attempted to allocate",
        "failed to allocate buffer for kv cache",
        "cudaMalloc failed: out of memory",
        "CUDA error: out of memory",
        "couldn't bind HTTP server socket",
        "failed to open GGUF file",
        "model is corrupted or incomplete",
        "error: invalid argument:",
        "error while handling argument",
    ];
    known
        .iter()
        .any(|words| text.contains(words))
        .then(|| super::http::shorten(text, 600))
}

#[async_trait]
impl Engine for LlamaCpp {
    fn kind(&self) -> Kind {
        Kind::LlamaCpp
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        let props = self.client.get("/props").await?.json()?;
        let models = Models::fetch(&self.client).await?;
        Ok(read_facts(&props, &models, &self.endpoint))
    }

    async fn load(&self) -> Result<Load, EngineError> {
        let answer = self.client.get("/metrics").await?;
        let page = match answer.status {
            // Switched off: a stated fact, not an error.
            404 | 501 => None,
            _ => {
                answer.success()?;
                Some(Page::parse(&String::from_utf8_lossy(&answer.body)))
            }
        };
        let slots = self.slots().await?;
        Ok(read_load(page.as_ref(), slots.as_deref()))
    }

    async fn probe(&self) -> Result<Probe, EngineError> {
        let model = name_of_model(&self.client, &self.endpoint).await?;
        chat::probe(&self.client, &model).await
    }

    async fn ask(&self, question: &str, max_tokens: u32) -> Result<Probe, EngineError> {
        let model = name_of_model(&self.client, &self.endpoint).await?;
        chat::ask(&self.client, &model, question, max_tokens).await
    }

    fn read_log_line(&self, line: &str) -> Vec<LogFact> {
        read_log_line(line)
    }

    /// The total is `asked` times the slots, rounded up to a block; each slot gets its share of that, rounded up again.
    fn expected_context(&self, asked: u64, slots: u64) -> u64 {
        let slots = slots.max(1);
        let total = asked
            .saturating_mul(slots)
            .div_ceil(BLOCK)
            .saturating_mul(BLOCK);
        (total / slots).div_ceil(BLOCK).saturating_mul(BLOCK)
    }
}

#[cfg(test)]
#[path = "llamacpp_tests.rs"]
mod tests;
