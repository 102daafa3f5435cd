//! What requests wait for, from the server's own figures.

use super::{Context, Load};

/// A pool this full lets the next request wait: it needs room for its whole prompt.
const FULL: f64 = 0.85;

/// The limit that lets requests wait now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bottleneck {
    /// In a few words: `KV pool`, `state slots / max running requests`.
    pub what: &'static str,
    /// In one sentence, with the figures that say so.
    pub words: String,
}

/// What requests wait for; `None` while none waits, or where the server does not say.
pub fn bottleneck(context: &Context, load: &Load) -> Option<Bottleneck> {
    let waiting = load.waiting.known().copied().filter(|n| *n > 0)?;
    let running = load.running.known().copied();
    let kv = load.kv_use.known().copied();
    let state = load.state_use.known().copied();
    let slots = context.slots.known().copied();
    let (what, hint) = if kv.is_some_and(|share| share >= FULL) {
        (
            "KV pool",
            "more pool, or shorter requests, would let more run",
        )
    } else if state.is_some_and(|share| kv.is_none_or(|kv| share > kv)) {
        (
            "state slots / max running requests",
            "the limit on requests at once decides, not the KV pool",
        )
    } else if slots.is_some() && running >= slots {
        ("slots", "every slot is at work")
    } else {
        (
            "max running requests",
            "the limit on requests at once, or on the tokens of one step, decides; the KV pool has room",
        )
    };
    let percent = |name: &str, share: Option<f64>| {
        share.map(|share| format!("{name} {:.0} % full", share * 100.0))
    };
    let figures: Vec<String> = [
        running.map(|n| format!("{n} run")),
        percent("KV pool", kv),
        percent("state", state),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(Bottleneck {
        what,
        words: format!(
            "{waiting} requests wait ({}): the bottleneck is {what}; {hint}",
            figures.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;

    fn load(running: u64, waiting: u64, kv: Option<f64>, state: Option<f64>) -> Load {
        Load {
            running: Reading::Value(running),
            waiting: Reading::Value(waiting),
            kv_use: kv.into(),
            state_use: state.into(),
            ..Load::default()
        }
    }

    fn what(context: &Context, load: &Load) -> Option<&'static str> {
        bottleneck(context, load).map(|found| found.what)
    }

    #[test]
    fn the_fullest_limit_is_named() {
        let none = Context::default();
        let state = load(8, 92, Some(0.35), Some(0.8));
        assert_eq!(
            what(&none, &state),
            Some("state slots / max running requests")
        );
        let words = bottleneck(&none, &state).unwrap().words;
        for part in [
            "92 requests wait",
            "8 run",
            "KV pool 35 % full",
            "state 80 % full",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(
            what(&none, &load(8, 1, Some(0.97), Some(0.8))),
            Some("KV pool")
        );
        assert_eq!(
            what(&none, &load(8, 1, Some(0.2), None)),
            Some("max running requests")
        );
        let slots = Context {
            slots: Reading::Value(4),
            ..Context::default()
        };
        assert_eq!(what(&slots, &load(4, 1, Some(0.2), None)), Some("slots"));
        assert_eq!(what(&none, &load(8, 0, Some(0.99), None)), None);
        assert_eq!(what(&none, &Load::default()), None, "unknown is not zero");
    }
}
