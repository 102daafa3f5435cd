//! SGLang.

use super::http::Client;
use super::metrics::{Page, to_count};
use super::models::Models;
use super::openai::name_of_model;
use super::{Context, Endpoint, Engine, EngineError, Facts, Health, Kind, Load, Probe, chat};
use crate::reading::Reading;
use crate::units::{clean, thousands};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;

/// One SGLang server.
#[derive(Debug)]
pub struct Sglang {
    client: Client,
    endpoint: Endpoint,
}

impl Sglang {
    pub fn new(client: Client, endpoint: Endpoint) -> Self {
        Sglang { client, endpoint }
    }

    /// `/server_info`; older releases have it under another name, newer ones warn about that one.
    async fn info(&self) -> Result<Value, EngineError> {
        let answer = self.client.get("/server_info").await?;
        if answer.status == 404 {
            return self.client.get("/get_server_info").await?.json();
        }
        answer.json()
    }

    /// The model's own limit: `/tokenize` reports it whatever context is served.
    async fn model_limit(&self) -> Reading<u64> {
        let body = json!({"prompt": "a"});
        match self
            .client
            .post("/tokenize", &body, Duration::from_secs(5))
            .await
            .and_then(|answer| answer.json())
        {
            Ok(value) => value.get("max_model_len").and_then(Value::as_u64).into(),
            Err(EngineError::Status { status: 404, .. }) => Reading::unsupported(),
            Err(error) => Reading::failed(error.to_string()),
        }
    }

    /// `/ready` is cheap; `/health` would generate a token. Releases without it are up when their pages answer.
    async fn health(&self) -> Result<Health, EngineError> {
        let answer = self.client.get("/ready").await?;
        Ok(match answer.status {
            503 => Health::Loading,
            200..=299 | 404 => Health::Up,
            status => Health::Down(format!(
                "/ready answers {status}: {}",
                super::http::message(&answer.body)
            )),
        })
    }

    /// The metrics page; `None` where it is switched off.
    async fn page(&self) -> Result<Option<Page>, EngineError> {
        let answer = self.client.get("/metrics").await?;
        if answer.status == 404 {
            return Ok(None);
        }
        answer.success()?;
        let page = Page::parse(&String::from_utf8_lossy(&answer.body));
        Ok(page.has_prefix("sglang:").then_some(page))
    }

    /// Without `--enable-metrics` the server still counts its requests on a page of its own.
    async fn load_without_metrics(&self) -> Result<Load, EngineError> {
        let why = "the server has no metrics page: start it with --enable-metrics";
        let mut load = super::load_failed(why);
        let Some(value) = self.client.get("/v1/loads").await?.json_if_ok() else {
            return Ok(load);
        };
        let ranks = value
            .get("loads")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let total = |name: &str| {
            let counts: Vec<u64> = ranks
                .iter()
                .filter_map(|rank| rank.get(name).and_then(Value::as_u64))
                .collect();
            (!counts.is_empty()).then(|| counts.iter().sum::<u64>())
        };
        if let Some(running) = total("num_running_reqs") {
            load.running = Reading::Value(running);
        }
        if let Some(waiting) = total("num_waiting_reqs") {
            load.waiting = Reading::Value(waiting);
        }
        let fullest = ranks
            .iter()
            .filter_map(|rank| rank.get("token_usage").and_then(Value::as_f64))
            .reduce(f64::max);
        if let Some(share) = fullest {
            load.kv_use = Reading::Value(share);
        }
        Ok(load)
    }
}

/// A figure of the scheduler: at the top in most releases and inside the first state in some.
fn number(info: &Value, name: &str) -> Option<u64> {
    info.get(name).and_then(Value::as_u64).or_else(|| {
        info.pointer(&format!("/internal_states/0/{name}"))?
            .as_u64()
    })
}

/// What `/server_info`, or in its place the metrics page, and the list of models say together.
fn read_facts(
    info: &Value,
    page: Option<&Page>,
    models: &Models,
    model_limit: Reading<u64>,
    health: Health,
    endpoint: &Endpoint,
) -> Facts {
    let configured = models
        .base()
        .and_then(|entry| entry.max_model_len)
        .or_else(|| number(info, "context_length"))
        .or_else(|| most(page, "sglang:context_len"));
    let pool =
        number(info, "max_total_num_tokens").or_else(|| most(page, "sglang:max_total_num_tokens"));
    let effective = [configured, pool].into_iter().flatten().min();
    let mut notes = models.notes(endpoint);
    if let (Some(context), Some(pool)) = (configured, pool)
        && pool < context
    {
        notes.push(format!(
            "the KV pool holds {} tokens, fewer than the context of {}: longer requests are refused",
            thousands(pool),
            thousands(context)
        ));
    }
    Facts {
        kind: Kind::Sglang,
        version: info
            .get("version")
            .and_then(Value::as_str)
            .map(clean)
            .into(),
        model: models.chosen_or(endpoint, page),
        model_file: super::text_of(info, "model_path"),
        health,
        context: Context {
            configured: configured.into(),
            effective: effective.into(),
            model_limit,
            pool_tokens: pool.into(),
            slots: Reading::unsupported(),
            per_slot: Reading::unsupported(),
        },
        simulated: info.get("simulated").and_then(Value::as_bool) == Some(true),
        notes,
    }
}

/// A figure that every rank states alike.
fn most(page: Option<&Page>, name: &str) -> Option<u64> {
    page?.max(&[name]).and_then(to_count)
}

/// What the metrics page says.
fn read_load(page: &Page) -> Load {
    // The share of the KV pool alone; `token_usage` is that of the fullest pool, which may be the state's.
    let kv_use = page.max(&["sglang:full_token_usage", "sglang:token_usage"]);
    let prompts = page.count(&["sglang:prompt_tokens_total"]);
    Load {
        running: page.count(&["sglang:num_running_reqs"]).into(),
        waiting: page.count(&["sglang:num_queue_reqs"]).into(),
        kv_use: kv_use.into(),
        state_use: page.max(&["sglang:mamba_usage"]).into(),
        output_tok_s: page.sum(&["sglang:gen_throughput"]).into(),
        // Zero stands for "no speculation".
        accept_length: page
            .max(&["sglang:spec_accept_length"])
            .filter(|length| *length > 0.0)
            .into(),
        prompt_tokens_total: prompts.into(),
        generation_tokens_total: page.count(&["sglang:generation_tokens_total"]).into(),
        cache_queries_total: prompts.into(),
        cache_hits_total: cache_hits(page).into(),
        queued: page.spent("sglang:queue_time_seconds").into(),
        // From the first pass through the model to the last of the prompt, its parts included.
        prefilled: page
            .spent_where(
                "sglang:per_stage_req_latency_seconds",
                "stage",
                "prefill_forward",
            )
            .into(),
        prefix_cache_hit_rate: page.max(&["sglang:cache_hit_rate"]).into(),
        preemptions_total: page
            .count(&[
                "sglang:num_retracted_requests_total",
                "sglang:num_retracted_reqs",
            ])
            .into(),
    }
}

/// Prompt tokens that came from the cache. Their own counter is not on the page before the first of them; the tokens that had to be
/// worked on are, with the first prompt.
fn cache_hits(page: &Page) -> Option<u64> {
    let fresh = page.count(&["sglang:uncached_prompt_tokens_histogram_sum"]);
    let all = page.count(&["sglang:prompt_tokens_histogram_sum"]);
    page.count(&["sglang:cached_tokens_total"])
        .or_else(|| all?.checked_sub(fresh?))
}

#[async_trait]
impl Engine for Sglang {
    fn kind(&self) -> Kind {
        Kind::Sglang
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        let info = self.info().await;
        // A gateway may pass the metrics page on and not this one: then that one's figures count.
        let page = match &info {
            Ok(info) if number(info, "max_total_num_tokens").is_none() => self.page().await?,
            Err(EngineError::Status { .. }) => self.page().await?,
            _ => None,
        };
        let info = match (info, &page) {
            (Err(EngineError::Status { .. }), Some(_)) => Value::Null,
            (info, _) => info?,
        };
        let models = Models::fetch_if_there(&self.client).await?;
        let health = self.health().await?;
        // While it warms up, a POST would wait behind the warm-up request.
        let limit = match health {
            Health::Up => self.model_limit().await,
            _ => Reading::default(),
        };
        Ok(read_facts(
            &info,
            page.as_ref(),
            &models,
            limit,
            health,
            &self.endpoint,
        ))
    }

    async fn load(&self) -> Result<Load, EngineError> {
        match self.page().await? {
            Some(page) => Ok(read_load(&page)),
            None => self.load_without_metrics().await,
        }
    }

    async fn probe(&self) -> Result<Probe, EngineError> {
        let model = name_of_model(&self.client, &self.endpoint).await?;
        chat::probe(&self.client, &model).await
    }

    async fn ask(&self, question: &str, max_tokens: u32) -> Result<Probe, EngineError> {
        let model = name_of_model(&self.client, &self.endpoint).await?;
        chat::ask(&self.client, &model, question, max_tokens).await
    }

    fn expected_context(&self, asked: u64, _slots: u64) -> u64 {
        asked
    }
}

#[cfg(test)]
#[path = "sglang_tests.rs"]
mod tests;
