//! The truth about raw streams.

use super::{Rig, pages};
use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Deserialize)]
pub struct Which {
    /// The newest so many streams one by one.
    requests: Option<usize>,
}

pub async fn read(State(rig): State<Arc<Rig>>, Query(which): Query<Which>) -> Response {
    match &rig.raw {
        Some(raw) => Json(raw.truth.json(which.requests.unwrap_or(0))).into_response(),
        None => pages::not_found().await,
    }
}

pub async fn reset(State(rig): State<Arc<Rig>>) -> Response {
    match &rig.raw {
        Some(raw) => {
            raw.truth.reset();
            Json(json!({"simulated": true})).into_response()
        }
        None => pages::not_found().await,
    }
}
