//! The list of models that every server has at `/v1/models`.

use super::http::Client;
use super::metrics::Page;
use super::{Endpoint, EngineError};
use crate::reading::Reading;
use crate::units::clean;
use serde_json::Value;

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: String,
    pub owned_by: String,
    /// An adapter names its base model here.
    pub parent: Option<String>,
    /// vLLM: the model's folder, or its name on a hub.
    pub root: Option<String>,
    /// SGLang, vLLM: the served context.
    pub max_model_len: Option<u64>,
    /// llama.cpp: the trained context.
    pub n_ctx_train: Option<u64>,
}

/// The list, and which entry requests are for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Models {
    pub entries: Vec<Entry>,
}

impl Models {
    pub async fn fetch(client: &Client) -> Result<Self, EngineError> {
        let answer = client.get("/v1/models").await?;
        let value = answer.json()?;
        Models::read(&value).ok_or_else(|| EngineError::Strange {
            url: answer.url().to_string(),
            what: "JSON without a list of models".to_string(),
        })
    }

    /// The same for a server that says enough on other pages: one without this page has an empty list.
    pub async fn fetch_if_there(client: &Client) -> Result<Self, EngineError> {
        match Models::fetch(client).await {
            Err(EngineError::Status {
                status: 404 | 405, ..
            }) => Ok(Models::default()),
            other => other,
        }
    }

    pub fn read(value: &Value) -> Option<Self> {
        let data = value.get("data")?.as_array()?;
        let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).map(clean);
        let entries = data
            .iter()
            .filter_map(|entry| {
                Some(Entry {
                    id: text(entry, "id")?,
                    owned_by: text(entry, "owned_by").unwrap_or_default(),
                    parent: text(entry, "parent"),
                    root: super::text_of(entry, "root"),
                    max_model_len: entry.get("max_model_len").and_then(Value::as_u64),
                    n_ctx_train: entry.pointer("/meta/n_ctx_train").and_then(Value::as_u64),
                })
            })
            .collect();
        Some(Models { entries })
    }

    /// The first entry that is no adapter.
    pub fn base(&self) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.parent.is_none())
            .or_else(|| self.entries.first())
    }

    /// The model that requests name: the endpoint's own choice, else the base model.
    pub fn chosen(&self, endpoint: &Endpoint) -> Reading<String> {
        match (&endpoint.model, self.base()) {
            (Some(name), _) => Reading::Value(name.clone()),
            (None, Some(entry)) => Reading::Value(entry.id.clone()),
            (None, None) => Reading::failed("the server lists no model"),
        }
    }

    /// The same; where the list is empty, the model that the metrics page names.
    pub fn chosen_or(&self, endpoint: &Endpoint, page: Option<&Page>) -> Reading<String> {
        match self.chosen(endpoint) {
            Reading::Absent(why) => match page.and_then(Page::model) {
                Some(name) => Reading::Value(clean(name)),
                None => Reading::Absent(why),
            },
            known => known,
        }
    }

    /// What is odd about the list, in words.
    pub fn notes(&self, endpoint: &Endpoint) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(name) = &endpoint.model
            && !self.entries.is_empty()
            && !self.entries.iter().any(|entry| entry.id == *name)
        {
            let listed: Vec<&str> = self.entries.iter().take(5).map(|e| e.id.as_str()).collect();
            notes.push(format!(
                "the model asked for, {name}, is not in the server's list: {}",
                listed.join(", ")
            ));
        }
        if let Some(first) = self.entries.first()
            && let Some(parent) = &first.parent
        {
            notes.push(format!(
                "the first entry, {}, is an adapter of {parent}; the context is the base model's",
                first.id
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn endpoint(model: Option<&str>) -> Endpoint {
        Endpoint {
            url: "http://x".into(),
            model: model.map(str::to_string),
            key: None,
            kind: None,
        }
    }

    #[test]
    fn an_adapter_listed_first_is_not_the_model() {
        let models = Models::read(&json!({"data":[
            {"id":"sql","parent":"base","max_model_len":null},
            {"id":"base","parent":null,"max_model_len":65536}]}))
        .expect("list");
        assert_eq!(
            models.chosen(&endpoint(None)),
            Reading::Value("base".into())
        );
        assert_eq!(models.base().and_then(|e| e.max_model_len), Some(65_536));
        assert_eq!(models.notes(&endpoint(None)).len(), 1);
        assert_eq!(models.notes(&endpoint(Some("nope"))).len(), 2);
    }

    #[test]
    fn an_empty_list_names_no_model() {
        let models = Models::read(&json!({"data":[]})).expect("list");
        assert!(models.chosen(&endpoint(None)).known().is_none());
        assert!(models.notes(&endpoint(Some("x"))).is_empty());
        assert_eq!(Models::read(&json!({"models":[]})), None);
    }
}
