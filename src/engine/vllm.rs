//! vLLM.

use super::http::Client;
use super::metrics::{Page, Sample};
use super::models::Models;
use super::openai::name_of_model;
use super::{Context, Endpoint, Engine, EngineError, Facts, Health, Kind, Load, Probe, chat};
use crate::reading::Reading;
use crate::units::clean;
use async_trait::async_trait;
use serde_json::Value;

/// One vLLM server.
#[derive(Debug)]
pub struct Vllm {
    client: Client,
    endpoint: Endpoint,
}

impl Vllm {
    pub fn new(client: Client, endpoint: Endpoint) -> Self {
        Vllm { client, endpoint }
    }

    /// The metrics page; `None` where it is switched off.
    async fn page(&self) -> Result<Option<Page>, EngineError> {
        let answer = self.client.get("/metrics").await?;
        if answer.status == 404 {
            return Ok(None);
        }
        answer.success()?;
        let page = Page::parse(&String::from_utf8_lossy(&answer.body));
        Ok(page.has_prefix("vllm:").then_some(page))
    }

    async fn health(&self) -> Result<Health, EngineError> {
        let answer = self.client.get("/health").await?;
        Ok(match answer.status {
            // A gateway that does not pass this page on says nothing of the server, whose other pages answered.
            200..=299 | 404 => Health::Up,
            status => Health::Down(format!(
                "/health answers {status}: {}",
                super::http::message(&answer.body)
            )),
        })
    }
}

/// Tokens in the KV pool of each engine, from the labels of `cache_config_info`. One request lives in one engine's pool.
fn pools(page: &Page) -> Vec<u64> {
    let number = |sample: &Sample, label: &str| sample.label(label)?.parse::<u64>().ok();
    page.named("vllm:cache_config_info")
        .filter_map(|sample| {
            number(sample, "kv_cache_size_tokens").or_else(|| {
                number(sample, "num_gpu_blocks")?.checked_mul(number(sample, "block_size")?)
            })
        })
        .collect()
}

fn read_facts(
    version: Option<String>,
    models: &Models,
    page: Option<&Page>,
    health: Health,
    endpoint: &Endpoint,
) -> Facts {
    let configured = models.base().and_then(|entry| entry.max_model_len);
    let pools = page.map(pools).unwrap_or_default();
    let smallest = pools.iter().copied().min();
    let effective = [configured, smallest].into_iter().flatten().min();
    let pool_tokens = if pools.is_empty() {
        Reading::failed("the metrics page does not give the size of the KV pool")
    } else {
        Reading::Value(pools.iter().sum())
    };
    Facts {
        kind: Kind::Vllm,
        version: version.into(),
        model: models.chosen_or(endpoint, page),
        model_file: models.base().and_then(|entry| entry.root.clone()),
        health,
        context: Context {
            configured: configured.into(),
            effective: effective.into(),
            model_limit: Reading::unsupported(),
            pool_tokens,
            slots: Reading::unsupported(),
            per_slot: Reading::unsupported(),
        },
        simulated: false,
        notes: models.notes(endpoint),
    }
}

fn read_load(page: &Page) -> Load {
    let ratio = |part: &[&str], whole: &[&str]| {
        let (part, whole) = (page.sum(part)?, page.sum(whole)?);
        (whole > 0.0).then(|| part / whole)
    };
    let accepted = ratio(
        &["vllm:spec_decode_num_accepted_tokens_total"],
        &["vllm:spec_decode_num_drafts_total"],
    );
    let hits = [
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
    ];
    let queries = [
        "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries_total",
    ];
    Load {
        running: page.count(&["vllm:num_requests_running"]).into(),
        waiting: page.count(&["vllm:num_requests_waiting"]).into(),
        kv_use: page
            .max(&["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"])
            .into(),
        state_use: Reading::unsupported(),
        output_tok_s: page
            .sum(&["vllm:avg_generation_throughput_toks_per_s"])
            .into(),
        // A step gives one token of the model itself and those accepted of the draft.
        accept_length: accepted.map(|per_draft| 1.0 + per_draft).into(),
        prompt_tokens_total: page.count(&["vllm:prompt_tokens_total"]).into(),
        generation_tokens_total: page.count(&["vllm:generation_tokens_total"]).into(),
        prefix_cache_hit_rate: ratio(&hits, &queries).into(),
        cache_hits_total: page.count(&hits).into(),
        cache_queries_total: page.count(&queries).into(),
        queued: page.spent("vllm:request_queue_time_seconds").into(),
        prefilled: page.spent("vllm:request_prefill_time_seconds").into(),
        preemptions_total: page
            .count(&["vllm:num_preemptions_total", "vllm:num_preemptions"])
            .into(),
    }
}

#[async_trait]
impl Engine for Vllm {
    fn kind(&self) -> Kind {
        Kind::Vllm
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        let models = Models::fetch_if_there(&self.client).await?;
        let version = self
            .client
            .get("/version")
            .await?
            .json_if_ok()
            .and_then(|value| value.get("version").and_then(Value::as_str).map(clean));
        let page = self.page().await?;
        let health = self.health().await?;
        Ok(read_facts(
            version,
            &models,
            page.as_ref(),
            health,
            &self.endpoint,
        ))
    }

    async fn load(&self) -> Result<Load, EngineError> {
        Ok(match self.page().await? {
            Some(page) => read_load(&page),
            None => super::load_failed("the server has no metrics page of vLLM"),
        })
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
