//! Which kind of server answers at an endpoint.

use super::http::{Client, message};
use super::llamacpp::LlamaCpp;
use super::metrics::Page;
use super::models::Models;
use super::openai::OpenAi;
use super::sglang::Sglang;
use super::vllm::Vllm;
use super::{Endpoint, Engine, EngineError, Kind};

/// The engine at an endpoint. A kind that the endpoint names is taken at its word and nothing is sent; else the server is asked.
///
/// # Errors
/// [`EngineError`] in words for the operator; [`EngineError::Loading`] while a server loads that cannot be told apart yet.
pub async fn detect(endpoint: &Endpoint) -> Result<Box<dyn Engine>, EngineError> {
    let client = Client::new(endpoint)?;
    let kind = match endpoint.kind {
        Some(kind) => kind,
        None => find(&client).await?,
    };
    Ok(make(kind, client, endpoint.clone()))
}

fn make(kind: Kind, client: Client, endpoint: Endpoint) -> Box<dyn Engine> {
    match kind {
        Kind::Sglang => Box::new(Sglang::new(client, endpoint)),
        Kind::Vllm => Box::new(Vllm::new(client, endpoint)),
        Kind::LlamaCpp => Box::new(LlamaCpp::new(client, endpoint)),
        Kind::OpenAi => Box::new(OpenAi::new(client, endpoint)),
    }
}

/// Asks the pages that only one kind of server has. The list of models comes first: most servers sign it.
async fn find(client: &Client) -> Result<Kind, EngineError> {
    let list = client.get("/v1/models").await?;
    if list.server.contains("llama.cpp") {
        return Ok(Kind::LlamaCpp);
    }
    let models = list.json_if_ok().and_then(|value| Models::read(&value));
    let owner = models
        .as_ref()
        .and_then(Models::base)
        .map(|entry| entry.owned_by.to_ascii_lowercase());
    match owner.as_deref() {
        Some("sglang") => return Ok(Kind::Sglang),
        Some("vllm") => return Ok(Kind::Vllm),
        Some("llamacpp") => return Ok(Kind::LlamaCpp),
        _ => {}
    }
    if let Some(props) = client.get("/props").await?.json_if_ok()
        && props.get("default_generation_settings").is_some()
    {
        return Ok(Kind::LlamaCpp);
    }
    for path in ["/server_info", "/get_server_info"] {
        if let Some(info) = client.get(path).await?.json_if_ok()
            && info.get("max_total_num_tokens").is_some()
        {
            return Ok(Kind::Sglang);
        }
    }
    // Behind a gateway the list may be signed by nobody, or not be passed on at all: the metrics page names its program on every line.
    let metrics = client.get("/metrics").await?;
    let page = Page::parse(&String::from_utf8_lossy(&metrics.body));
    for (prefix, kind) in [
        ("sglang:", Kind::Sglang),
        ("vllm:", Kind::Vllm),
        ("llamacpp:", Kind::LlamaCpp),
    ] {
        if metrics.success().is_ok() && page.has_prefix(prefix) {
            return Ok(kind);
        }
    }
    match models {
        Some(_) => Ok(Kind::OpenAi),
        None if matches!(list.status, 404 | 405) => Err(EngineError::Strange {
            what: format!("there is no such page ({})", message(&list.body)),
            url: list.url().to_string(),
        }),
        // The list itself says what is wrong: loading, another program, an error.
        None => match list.json() {
            Err(error) => Err(error),
            Ok(_) => Err(EngineError::Strange {
                url: list.url().to_string(),
                what: "JSON without a list of models".to_string(),
            }),
        },
    }
}
