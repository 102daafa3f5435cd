//! Any other server that speaks the OpenAI API.

use super::http::Client;
use super::models::Models;
use super::{Context, Endpoint, Engine, EngineError, Facts, Health, Kind, Load, Probe, chat};
use crate::reading::Reading;
use async_trait::async_trait;

/// A server of which only the API is known.
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    endpoint: Endpoint,
}

impl OpenAi {
    pub fn new(client: Client, endpoint: Endpoint) -> Self {
        OpenAi { client, endpoint }
    }

    async fn model(&self) -> Result<String, EngineError> {
        name_of_model(&self.client, &self.endpoint).await
    }
}

/// The model to name in a request; the server's own choice where its list is empty.
pub async fn name_of_model(client: &Client, endpoint: &Endpoint) -> Result<String, EngineError> {
    match &endpoint.model {
        Some(name) => Ok(name.clone()),
        None => {
            let models = Models::fetch(client).await?;
            Ok(models
                .chosen(endpoint)
                .known()
                .cloned()
                .unwrap_or_else(|| "default".to_string()))
        }
    }
}

#[async_trait]
impl Engine for OpenAi {
    fn kind(&self) -> Kind {
        Kind::OpenAi
    }

    async fn facts(&self) -> Result<Facts, EngineError> {
        let models = Models::fetch(&self.client).await?;
        let served = models.base().and_then(|entry| entry.max_model_len);
        Ok(Facts {
            kind: Kind::OpenAi,
            version: Reading::unsupported(),
            model: models.chosen(&self.endpoint),
            model_file: None,
            health: Health::Up,
            context: Context {
                configured: served.into(),
                effective: served.into(),
                model_limit: Reading::unsupported(),
                pool_tokens: Reading::unsupported(),
                slots: Reading::unsupported(),
                per_slot: Reading::unsupported(),
            },
            simulated: false,
            notes: models.notes(&self.endpoint),
        })
    }

    async fn load(&self) -> Result<Load, EngineError> {
        Ok(super::load_unsupported())
    }

    async fn probe(&self) -> Result<Probe, EngineError> {
        chat::probe(&self.client, &self.model().await?).await
    }

    async fn ask(&self, question: &str, max_tokens: u32) -> Result<Probe, EngineError> {
        chat::ask(&self.client, &self.model().await?, question, max_tokens).await
    }

    fn expected_context(&self, asked: u64, _slots: u64) -> u64 {
        asked
    }
}
