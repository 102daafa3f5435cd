//! What the server says at the edges of a cell: its counters are read now and then, and the requests between the last reading and the
//! edge would count for the wrong cell or for none.

use crate::bench::worker::Stop;
use crate::engine::Load;
use crate::reading::{Absent, Reading};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the next reading is waited for: readings come every second or more often while the server answers.
const PATIENCE: Duration = Duration::from_millis(2500);

/// The next reading of a server that counts. `None` if it counts nothing, if no reading comes in time, or if the operator stops.
pub async fn next(load: &mut watch::Receiver<Load>, stop: &mut Stop) -> Option<Load> {
    if !counts(&load.borrow_and_update()) {
        return None;
    }
    tokio::select! {
        biased;
        () = stop.wait() => None,
        told = timeout(PATIENCE, load.changed()) => match told {
            Ok(Ok(())) => Some(load.borrow_and_update().clone()),
            Ok(Err(_)) | Err(_) => None,
        },
    }
}

/// Whether there are counters, or may be: nobody has looked yet.
fn counts(load: &Load) -> bool {
    let cache = &load.cache_queries_total;
    cache.known().is_some()
        || load.queued.known().is_some()
        || *cache == Reading::Absent(Absent::Pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::worker::stopping;

    fn counted(queries: u64) -> Load {
        Load {
            cache_queries_total: Reading::Value(queries),
            ..Load::default()
        }
    }

    #[tokio::test]
    async fn the_reading_after_the_edge_is_the_one_that_counts() {
        let (handle, mut stop) = stopping();
        let (told, mut load) = watch::channel(counted(1));
        let later = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            told.send_replace(counted(7));
            told
        });
        assert_eq!(next(&mut load, &mut stop).await, Some(counted(7)));
        let told = later.await.unwrap();
        // One that counts nothing is not waited for.
        let uncounted = Load {
            cache_queries_total: Reading::unsupported(),
            ..Load::default()
        };
        told.send_replace(uncounted);
        let began = std::time::Instant::now();
        assert_eq!(next(&mut load, &mut stop).await, None);
        assert!(began.elapsed() < PATIENCE);
        told.send_replace(counted(8));
        handle.send_replace(true);
        assert_eq!(next(&mut load, &mut stop).await, None);
        drop(told);
        assert_eq!(next(&mut load, &mut stopping().1).await, None);
        assert!(began.elapsed() < PATIENCE);
    }
}
