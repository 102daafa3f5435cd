//! Any bytes: no panic, no endless memory, no figure that nobody stated.

use super::*;
use proptest::prelude::*;

fn any_log() -> impl Strategy<Value = String> {
    let pieces = [
        include_str!("../../../../tests/fixtures/startup/cases/start-01.log"),
        include_str!("../../../../tests/fixtures/startup/cases/start-04.log"),
        include_str!("../../../../tests/fixtures/startup/cases/start-06.log"),
        include_str!("../../../../tests/fixtures/startup/vllm/fail-kv-too-small.log"),
    ]
    .concat();
    let lines: Vec<String> = pieces.lines().map(str::to_string).collect();
    let known = prop::sample::select(lines);
    let cut = (known.clone(), 0..400usize).prop_map(|(line, at)| line.chars().take(at).collect());
    let strange = "\\PC{0,80}|[\\[\\](){}:=/%,.0-9 -]{0,60}|(\u{1b}\\[[0-9;]{0,4}[a-z]?|\r|é|#tokens: |n_ctx = |GPU |size: ){0,8}";
    let line = prop_oneof![known, cut, strange];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_log_is_too_strange(log in any_log(), asked in prop::option::of(any::<u64>()), kind in 0..4usize) {
        let kinds = [None, Some(Kind::Sglang), Some(Kind::Vllm), Some(Kind::LlamaCpp)];
        let reader = reader(kinds[kind], &log);
        let found = reader.diagnose(&Known { asked, ..Known::default() });
        prop_assert_eq!(found.cause.is_some(), matches!(found.outcome, Outcome::Failed | Outcome::Stuck));
        let fits = |line: &String| line.chars().count() <= 601 && !line.contains('\x1b');
        prop_assert!(found.evidence.iter().all(fits));
        prop_assert!(serde_json::to_string(&found).is_ok());
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2000), piece in 1..300usize) {
        let mut feed = Feed::new(Reader::new(None));
        for part in bytes.chunks(piece) {
            if feed.push(part).is_err() {
                return Ok(());
            }
        }
        if let Ok(reader) = feed.finish() {
            let _ = reader.diagnose(&Known::default());
        }
    }

    #[test]
    fn words_that_nobody_prints_state_nothing(words in "[a-z ]{0,200}", kind in 1..4usize) {
        let kinds = [Kind::Sglang, Kind::Sglang, Kind::Vllm, Kind::LlamaCpp];
        let found = read_as(Some(kinds[kind]), &words);
        prop_assert_eq!(found.facts, StartFacts::default());
        prop_assert_eq!(found.outcome, Outcome::Loading);
        prop_assert_eq!(found.phase, None);
    }
}
