//! Cards of machines that already export them: a DCGM exporter's page, or a Prometheus server that collects such pages.

mod series;

use super::blocking::Blocking;
use super::{Card, CardState, Snapshot, Source};
use crate::clock::Now;
use crate::engine::http::Client;
use crate::engine::metrics::{Page, Sample};
use crate::engine::{Endpoint, EngineError};
use crate::reading::Absent;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

/// All that a DCGM exporter says.
const QUERY: &str = r#"{__name__=~"DCGM_FI_.+"}"#;
/// How old that is, seconds: the server answers with the last figure for minutes.
const AGE: &str =
    "(time() - timestamp(DCGM_FI_DEV_FB_USED)) or (time() - timestamp(DCGM_FI_DEV_GPU_TEMP))";

/// Reads the page or asks the server.
pub struct Exporter {
    ask: Ask,
    url: String,
    client: Result<Client, EngineError>,
    /// Keeps the cards of this machine alone.
    node: Option<String>,
    cards: Vec<Card>,
    blocking: Blocking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Page,
    Query,
}

impl Exporter {
    /// A DCGM exporter; without a path, its page is `/metrics`. Nothing is asked before the first reading.
    pub fn dcgm(url: &str, node: Option<&str>) -> Exporter {
        Exporter::new(Ask::Page, url, node)
    }

    /// A Prometheus server by its base address.
    pub fn prometheus(url: &str, node: Option<&str>) -> Exporter {
        Exporter::new(Ask::Query, url, node)
    }

    fn new(ask: Ask, url: &str, node: Option<&str>) -> Exporter {
        let url = url.trim_end_matches('/').to_string();
        Exporter {
            ask,
            client: Client::new(&Endpoint {
                url: url.clone(),
                model: None,
                key: None,
                kind: None,
            }),
            url,
            node: node.map(str::to_string),
            cards: Vec::new(),
            blocking: Blocking::default(),
        }
    }

    fn words(&self) -> &'static str {
        match self.ask {
            Ask::Page => "DCGM exporter",
            Ask::Query => "Prometheus",
        }
    }

    /// Keeps what was seen, and what was seen before. Gives what is wrong with it.
    fn take(&mut self, mut seen: Vec<Card>) -> Option<String> {
        if let Some(node) = &self.node {
            seen.retain(|card| card.detail.host.as_deref() == Some(node));
        }
        series::number(&mut seen);
        for card in &mut seen {
            let before = self.cards.iter().find(|known| same(known, card));
            if let Some(before) = before {
                series::keep_first_sight(card, before);
            }
        }
        let gone = format!("{} at {} names it no more", self.words(), self.url);
        let missing: Vec<Card> = self
            .cards
            .iter()
            .filter(|known| !seen.iter().any(|card| same(known, card)))
            .map(|known| {
                let why = Absent::Failed(gone.clone());
                known.without_figures(CardState::Unknown(gone.clone()), &why)
            })
            .collect();
        let none = seen.is_empty();
        seen.extend(missing);
        series::number(&mut seen);
        self.cards = seen;
        none.then(|| match &self.node {
            Some(node) => format!(
                "{} at {} has no card of the machine {node:?}",
                self.words(),
                self.url
            ),
            None => format!(
                "{} at {} has no figures of cards (DCGM_FI_DEV_…)",
                self.words(),
                self.url
            ),
        })
    }

    /// It does not answer: the cards stay on the list.
    fn fail(&mut self, fault: String) -> String {
        let why = Absent::Failed(fault.clone());
        for card in &mut self.cards {
            *card = card.without_figures(CardState::Unknown(fault.clone()), &why);
        }
        fault
    }
}

/// Why nothing was read.
enum Fault {
    Here(String),
    There(EngineError),
}

fn same(a: &Card, b: &Card) -> bool {
    (&a.detail.host, &a.uuid, &a.detail.mig) == (&b.detail.host, &b.uuid, &b.detail.mig)
        && (!a.uuid.is_empty() || a.index == b.index)
}

impl Source for Exporter {
    fn read(&mut self, at: Now) -> Snapshot {
        let (ask, url) = (self.ask, self.url.clone());
        let answer = match &self.client {
            Err(error) => Err(Fault::There(error.clone())),
            Ok(client) => match ask {
                Ask::Page => self.blocking.run(page(client, &url)),
                Ask::Query => self.blocking.run(query(client)),
            }
            .map_err(Fault::Here)
            .and_then(|answer| answer.map_err(Fault::There)),
        };
        let fault = match answer {
            Ok((samples, ages)) => {
                let cards = series::cards(&samples, &ages, at);
                self.take(cards)
            }
            Err(error) => {
                let fault = match error {
                    Fault::Here(why) => why,
                    Fault::There(EngineError::Strange { url, what }) => {
                        format!("{url} answers, but not as a {}: {what}", self.words())
                    }
                    Fault::There(error) => format!("{}: {error}", self.words()),
                };
                Some(self.fail(fault))
            }
        };
        Snapshot {
            at,
            cards: self.cards.clone(),
            source: format!("{} at {}", self.words(), self.url),
            fault,
            simulated: false,
        }
    }
}

/// Figures, and how old they are.
type Answer = (Vec<Sample>, Vec<Sample>);

async fn page(client: &Client, url: &str) -> Result<Answer, EngineError> {
    let named = url::Url::parse(url).is_ok_and(|url| url.path() != "/");
    let answer = client.get(if named { "" } else { "/metrics" }).await?;
    answer.success()?;
    let page = Page::parse(&String::from_utf8_lossy(&answer.body));
    Ok((page.into_samples(), Vec::new()))
}

async fn query(client: &Client) -> Result<Answer, EngineError> {
    let samples = vector(client, QUERY).await?;
    let ages = vector(client, AGE).await?;
    Ok((samples, ages))
}

/// The answer to an instant query.
async fn vector(client: &Client, query: &str) -> Result<Vec<Sample>, EngineError> {
    let query: String = byte_serialize(query.as_bytes()).collect();
    let answer = client.get(&format!("/api/v1/query?query={query}")).await?;
    let body = answer.json()?;
    let result = body.pointer("/data/result").and_then(Value::as_array);
    let Some(result) = result else {
        return Err(EngineError::Strange {
            url: answer.url().to_string(),
            what: "it is not the answer of a Prometheus server".to_string(),
        });
    };
    Ok(result.iter().filter_map(sample).collect())
}

fn sample(series: &Value) -> Option<Sample> {
    let labels = series.get("metric")?.as_object()?;
    let text = |value: &Value| value.as_str().map(str::to_string);
    Some(Sample {
        name: labels.get("__name__").and_then(text).unwrap_or_default(),
        labels: labels
            .iter()
            .filter(|(name, _)| *name != "__name__")
            .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect(),
        value: series.pointer("/value/1")?.as_str()?.parse().ok()?,
    })
}
