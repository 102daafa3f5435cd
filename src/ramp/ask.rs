//! Questions to the server, each with a limit of patience.

use super::Detect;
use crate::engine::{Engine, EngineError, Health};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a page of the server may take to answer.
pub const PAGE: Duration = Duration::from_secs(10);
/// Between two questions whether it is up: each leaves its lines in the server's log.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks once, after a moment, whether the server says that it is up.
pub async fn up(detecting: Arc<dyn Detect>) -> bool {
    sleep(PAUSE).await;
    let Ok(engine) = detect(detecting.as_ref()).await else {
        return false;
    };
    answer(PAGE, engine.facts())
        .await
        .is_ok_and(|facts| facts.health == Health::Up)
}

pub async fn detect(detecting: &dyn Detect) -> Result<Arc<dyn Engine>, String> {
    answer(PAGE, detecting.detect()).await.map(Arc::from)
}

/// An answer of the server in time, or why there is none.
pub async fn answer<T>(
    within: Duration,
    asked: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, String> {
    match timeout(within, asked).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it did not answer within {} s", within.as_secs())),
    }
}
