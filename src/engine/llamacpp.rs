//! llama.cpp's `llama-server`.

use super::http::Client;
use super::metrics::Page;
use super::models::Models;
use super::openai::name_of_model;
use super::{Context, Endpoint, Engine, EngineError, Facts, Health, Kind, Load, Probe, chat};
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
    // Whether the slots share one cache (`--kv-unified`, the default without `--parallel`) is not on the pages.
    let pool_tokens = match (per_slot, slots) {
        (Some(slot), Some(1)) => Reading::Value(slot),
        (Some(slot), Some(slots)) => {
            notes.push(format!(
                "{COUNTED_AS} {slots} slots of {} tokens; slots that share one cache (--kv-unified) have {0} in all",
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
        model_file: super::text_of(props, "model_path"),
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

/// How the note begins that stands where it is not known whether the slots share one cache.
const COUNTED_AS: &str = "the KV pool is counted as";

/// Settles what the pages leave open, once the launch says whether the slots share one cache.
pub fn settle_cache(facts: &mut Facts, shared: bool) {
    facts.notes.retain(|note| !note.starts_with(COUNTED_AS));
    if let Some(slot) = facts.context.per_slot.known().filter(|_| shared) {
        facts.context.pool_tokens = Reading::Value(*slot);
    }
}

fn read_load(page: Option<&Page>, slots: Option<&[Value]>) -> Load {
    let mut load = match page {
        Some(page) => Load {
            running: page.count(&["llamacpp:requests_processing"]).into(),
            waiting: page.count(&["llamacpp:requests_deferred"]).into(),
            prompt_tokens_total: page.count(&["llamacpp:prompt_tokens_total"]).into(),
            generation_tokens_total: page.count(&["llamacpp:tokens_predicted_total"]).into(),
            output_tok_s: page.sum(&["llamacpp:predicted_tokens_seconds"]).into(),
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
