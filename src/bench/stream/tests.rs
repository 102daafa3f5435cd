use super::*;
use base64::Engine as _;
use serde_json::Value;
use std::path::Path;

const MS: u64 = 1_000_000;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The reads of a case: milliseconds and bytes.
fn timeline(case: &str) -> Vec<(u64, Vec<u8>)> {
    let json: Value =
        serde_json::from_slice(&fixture(&format!("sse/{case}.timeline.json"))).unwrap();
    json.as_array()
        .unwrap()
        .iter()
        .map(|read| {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(read["b64"].as_str().unwrap())
                .unwrap();
            (read["t_ms"].as_u64().unwrap(), bytes)
        })
        .collect()
}

/// Plays the reads through HTTP that ends when the connection closes, each read cut into pieces of `cut` bytes.
fn play(reads: &[(u64, Vec<u8>)], cut: usize) -> (Answer, Result<(), Failure>) {
    let mut reader = Reader::new(16);
    reader
        .feed(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
            0,
        )
        .unwrap();
    let mut last = 0;
    for (t_ms, bytes) in reads {
        last = t_ms * MS;
        for piece in bytes.chunks(cut) {
            reader.feed(piece, last).unwrap();
        }
    }
    let result = reader.end(&End::Closed, last);
    (reader.into_answer(), result)
}

fn ms(at: Option<u64>) -> Option<f64> {
    at.map(|ns| ns as f64 / MS as f64)
}

/// Every field that an expectation names.
fn check(case: &str, answer: &Answer, result: &Result<(), Failure>) {
    let expected: Value =
        serde_json::from_slice(&fixture(&format!("sse/{case}.expected.json"))).unwrap();
    let rate = answer.counted_tokens().and_then(|n| {
        let seconds = (answer.last_token_ns? - answer.first_token_ns?) as f64 / 1e9;
        Some((n - 1) as f64 / seconds)
    });
    for (field, want) in expected.as_object().unwrap() {
        let says = format!("{case}: {field}");
        match field.as_str() {
            "text" => assert_eq!(answer.text, want.as_str().unwrap(), "{says}"),
            "reasoning" => assert_eq!(answer.reasoning, want.as_str().unwrap(), "{says}"),
            "ttft_ms" => assert_eq!(ms(answer.first_token_ns), want.as_f64(), "{says}"),
            "ttft_answer_ms" => assert_eq!(ms(answer.first_answer_ns), want.as_f64(), "{says}"),
            "finish_reason" => assert_eq!(answer.finish_reason.as_deref(), want.as_str(), "{says}"),
            "prompt_tokens" => assert_eq!(answer.prompt_tokens(), want.as_u64(), "{says}"),
            "completion_tokens" => assert_eq!(answer.counted_tokens(), want.as_u64(), "{says}"),
            "tokens_source" => {
                assert_eq!(want, "usage");
                assert!(answer.counted_tokens().is_some(), "{says}");
            }
            "keepalives" => assert_eq!(Some(answer.keepalives), want.as_u64(), "{says}"),
            "content_chunks" => assert_eq!(Some(answer.chunks), want.as_u64(), "{says}"),
            "multi_token_chunks" => {
                let multi = answer.counted_tokens().is_some_and(|n| n > answer.chunks);
                assert_eq!(Some(multi), want.as_bool(), "{says}");
            }
            "decode_tok_s_min" => assert!(rate.unwrap() >= want.as_f64().unwrap(), "{says}"),
            "decode_tok_s_max" => assert!(rate.unwrap() <= want.as_f64().unwrap(), "{says}"),
            "complete" => {
                assert_eq!(Some(answer.is_complete()), want.as_bool(), "{says}");
                assert_eq!(Some(result.is_ok()), want.as_bool(), "{says}");
            }
            "error" if want.is_null() => assert!(result.is_ok(), "{says}"),
            "error" if want.is_string() => {
                let failure = result.as_ref().unwrap_err();
                assert_eq!(failure.kind, FailureKind::CutOff, "{says}");
                assert!(
                    failure.message.starts_with(want.as_str().unwrap()),
                    "{says}"
                );
            }
            "error" => {
                let error = answer.error.as_ref().unwrap();
                assert_eq!(error.code, want["code"].as_i64(), "{says}");
                assert_eq!(error.message, want["message"].as_str().unwrap(), "{says}");
                let failure = result.as_ref().unwrap_err();
                assert_eq!(failure.kind, FailureKind::ErrorInStream, "{says}");
            }
            "counts_as" if want == "failed" => assert!(result.is_err(), "{says}"),
            "counts_as" => assert_eq!(want, "suspect", "{says}"),
            "degenerate" => {
                let found = crate::bench::validity::looks_like_a_loop(&answer.text);
                assert_eq!(Some(found.is_some()), want.as_bool(), "{says}");
            }
            "repeated_unit" => {
                let found = crate::bench::validity::looks_like_a_loop(&answer.text);
                assert_eq!(found.as_deref(), want.as_str(), "{says}");
            }
            "replacement_chars" => {
                let n = answer.text.matches('\u{fffd}').count() as u64;
                assert_eq!(Some(n), want.as_u64(), "{says}");
            }
            other => panic!("{case} expects {other}, which this test does not know"),
        }
    }
}

#[test]
fn every_case_reads_right_however_it_is_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sse");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(case) = name.strip_suffix(".timeline.json") else {
            continue;
        };
        cases += 1;
        let reads = timeline(case);
        for cut in [usize::MAX, 1, 2, 3, 7, 61] {
            let (answer, result) = play(&reads, cut);
            check(case, &answer, &result);
        }
    }
    assert_eq!(cases, 8);
}

/// All that a capture of a real server said, in cuts of `cut` bytes, each with its own stamp.
fn capture(name: &str, cut: usize) -> (Answer, Result<(), Failure>) {
    let bytes = fixture(&format!("streams/{name}.http"));
    let mut reader = Reader::new(16);
    let mut at = 0;
    for piece in bytes.chunks(cut) {
        at += 1;
        reader.feed(piece, at).unwrap();
    }
    let end = if reader.is_whole() {
        End::Whole
    } else {
        End::Closed
    };
    let result = reader.end(&end, at);
    (reader.into_answer(), result)
}

#[test]
fn real_servers_read_right() {
    // Name, prompt tokens, output tokens, events with tokens, cached tokens, text, thinking.
    type Row = (
        &'static str,
        u64,
        u64,
        u64,
        Option<u64>,
        &'static str,
        &'static str,
    );
    let rows: [Row; 10] = [
        (
            "llama-server-chat-stream",
            36,
            8,
            7,
            Some(0),
            "Hi, welcome to my chat!",
            "",
        ),
        (
            "llama-server-completions-stream",
            3,
            6,
            6,
            Some(0),
            " a canvas of endless possibilities,",
            "",
        ),
        (
            "llama-server-completions-stream-timings_per_token",
            3,
            4,
            4,
            Some(2),
            " a canvas of endless",
            "",
        ),
        (
            "llama-server-chat-stream-return_progress",
            1531,
            2,
            2,
            Some(24),
            "\nYour",
            "",
        ),
        (
            "vllm-chat-stream",
            25,
            8,
            8,
            None,
            " we u we we we we we we",
            "",
        ),
        ("vllm-completions-stream", 6, 6, 5, None, " ha ha ha ha", ""),
        (
            "vllm-completions-stream-continuous_usage",
            3,
            4,
            2,
            None,
            "\u{fffd}find",
            "",
        ),
        (
            "vllm-chat-stream-reasoning-ngram-spec",
            26,
            8,
            6,
            Some(0),
            "",
            "eacheacheacheacheacheacheacheach",
        ),
        (
            "sglang-chat-stream",
            26,
            8,
            8,
            None,
            "eacheacheacheacheacheacheacheach",
            "",
        ),
        (
            "sglang-completions-stream-continuous_usage",
            3,
            4,
            4,
            None,
            "jj\u{fffd}*",
            "",
        ),
    ];
    for (name, prompt, output, chunks, cached, text, thinking) in rows {
        let (whole, result) = capture(name, usize::MAX);
        assert_eq!(result, Ok(()), "{name}");
        assert_eq!(whole.prompt_tokens(), Some(prompt), "{name}");
        assert_eq!(whole.counted_tokens(), Some(output), "{name}");
        assert_eq!(whole.chunks, chunks, "{name}");
        assert_eq!(whole.cached_tokens(), cached, "{name}");
        assert_eq!(whole.reasoning, thinking, "{name}");
        assert_eq!(whole.text, text, "{name}");
        assert!(whole.done, "{name}");
        for cut in [1, 5, 100] {
            let (cut_up, result) = capture(name, cut);
            assert_eq!(result, Ok(()), "{name}");
            assert_eq!(cut_up.chunks, chunks, "{name}");
            assert_eq!(
                (cut_up.text, cut_up.usage),
                (whole.text.clone(), whole.usage)
            );
        }
    }
}

#[test]
fn refusals_keep_the_servers_words() {
    let rows = [
        (
            "llama-server-overlong-chat-stream",
            FailureKind::ContextExceeded,
            "request (2579 tokens) exceeds",
        ),
        (
            "sglang-overlong-completions",
            FailureKind::ContextExceeded,
            "The input (8292 tokens)",
        ),
        (
            "vllm-overlong-chat-stream",
            FailureKind::ContextExceeded,
            "This model's maximum context length",
        ),
        ("vllm-404", FailureKind::Status(404), "Not Found"),
        (
            "sglang-bad-json",
            FailureKind::Status(400),
            "1 validation error",
        ),
        (
            "llama-server-midstream-error",
            FailureKind::ErrorInStream,
            "The model produced output",
        ),
    ];
    for (name, kind, starts) in rows {
        let failure = capture(name, 9).1.unwrap_err();
        assert_eq!(failure.kind, kind, "{name}");
        assert!(failure.message.starts_with(starts), "{}", failure.message);
    }
}

/// A body of events in an HTTP head, ended by close.
fn read(body: &str) -> (Answer, Result<(), Failure>) {
    play(&[(5, body.as_bytes().to_vec())], usize::MAX)
}

#[test]
fn tool_calls_and_empty_fields() {
    let (answer, result) = read(concat!(
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[],\"function_call\":null}}]}\n\n",
        "data: {\"choices\":null,\"usage\":null,\"error\":null}\n\n",
        "data: {\"type\":\"ping\"}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]},\"finish_reason\":\"\"}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    ));
    assert_eq!(result, Ok(()));
    assert_eq!((answer.chunks, answer.first_answer_ns), (1, Some(5 * MS)));
    assert_eq!(answer.finish_reason.as_deref(), Some("tool_calls"));
}

#[test]
fn what_only_looks_like_an_end_is_none() {
    let chunk = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}],\"usage\":{\"completion_tokens\":1}}\n\n";
    let kind = |body: &str| read(body).1.unwrap_err().kind;
    // Stopped servers say [DONE] in the middle, with a count of what there was.
    assert_eq!(
        kind(&format!("{chunk}data: [DONE]\n\n")),
        FailureKind::CutOff
    );
    let abort = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"abort\"}]}\n\n";
    assert_eq!(kind(&format!("{chunk}{abort}")), FailureKind::CutOff);
    let stop =
        "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(kind(stop), FailureKind::Empty);
    assert_eq!(
        kind(&format!("{chunk}data: {{oh\n\n{stop}")),
        FailureKind::Protocol
    );
    let flat = "data: {\"object\":\"error\",\"message\":\"no memory\",\"code\":500}\n\n";
    assert_eq!(
        kind(&format!("{chunk}{flat}{stop}")),
        FailureKind::ErrorInStream
    );
    let named = "event: error\ndata: worker died\n\n";
    let failure = read(&format!("{chunk}{named}")).1.unwrap_err();
    assert_eq!(failure.message, "worker died");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_counted() {
    let mut body =
        b"data: {\"choices\":[{\"text\":\"a\xff\xf0b\",\"finish_reason\":\"stop\"}]}\n\n".to_vec();
    body.extend_from_slice(b"data: [DONE]\n\n");
    for cut in [1, 999] {
        let (answer, result) = play(&[(5, body.clone())], cut);
        assert_eq!(
            (answer.text.as_str(), result),
            ("a\u{fffd}\u{fffd}b", Ok(()))
        );
        assert_eq!((answer.chunks, answer.events), (1, 2));
    }
}

#[test]
fn a_reset_after_the_end_of_the_answer_costs_nothing() {
    let mut reader = Reader::new(4);
    let body = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4d\r\ndata: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n     \r\n";
    reader.feed(body.as_bytes(), 1).unwrap();
    assert!(reader.is_settled() && !reader.is_whole());
    assert_eq!(reader.end(&End::Broken("reset".into()), 2), Ok(()));
}

#[test]
fn a_stream_that_somebody_compressed_is_read_and_stamped_as_it_comes() {
    use flate2::write::GzEncoder;
    use std::io::Write as _;
    let token = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n";
    let end = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
    for cut in [1, 3, 1000] {
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut reader = Reader::new(4);
        reader.feed(head.as_bytes(), 1).unwrap();
        for (at_ns, event) in [(10, token), (20, token), (30, token), (40, end)] {
            gzip.write_all(event.as_bytes()).unwrap();
            gzip.flush().unwrap();
            let wire = std::mem::take(gzip.get_mut());
            let chunk = [format!("{:x}\r\n", wire.len()).as_bytes(), &wire, b"\r\n"].concat();
            for piece in chunk.chunks(cut) {
                reader.feed(piece, at_ns).unwrap();
            }
        }
        reader.feed(b"0\r\n\r\n", 50).unwrap();
        assert_eq!(reader.end(&End::Whole, 50), Ok(()));
        let at: Vec<u64> = reader
            .answer()
            .marks
            .iter()
            .map(|mark| mark.at_ns)
            .collect();
        assert_eq!(at, [10, 20, 30]);
        assert!(reader.may_keep());
    }
    let mut reader = Reader::new(4);
    reader.feed(head.as_bytes(), 1).unwrap();
    let chunk = format!("{:x}\r\n{token}\r\n", token.len());
    let failure = reader.feed(chunk.as_bytes(), 2).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert!(
        failure.message.contains("cannot be decoded"),
        "{}",
        failure.message
    );
}

#[test]
fn a_chunk_for_each_event_comes_out_as_any_other_form_does() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let mut events: Vec<String> = ["a", "b c", "\u{fc}\u{1F680}", "\\n", "d", ""]
        .map(event)
        .to_vec();
    events.push(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".into(),
    );
    events.push("data: [DONE]\n\n".into());
    let reads: Vec<(u64, Vec<u8>)> = (1..)
        .zip(&events)
        .map(|(t, e)| (t, e.clone().into_bytes()))
        .collect();
    let want = play(&reads, usize::MAX);
    for cut in [1, 5, usize::MAX] {
        let mut reader = Reader::new(16);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        reader.feed(head.as_bytes(), 0).unwrap();
        for (t_ms, bytes) in &reads {
            let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
            for piece in chunk.chunks(cut) {
                reader.feed(piece, t_ms * MS).unwrap();
            }
        }
        reader.feed(b"0\r\n\r\n", 9 * MS).unwrap();
        let result = reader.end(&End::Whole, 9 * MS);
        assert_eq!((reader.into_answer(), result), want, "cut {cut}");
    }
    assert_eq!(
        (want.0.text.as_str(), want.0.chunks),
        ("ab c\u{fc}\u{1F680}\nd", 5)
    );
}

#[test]
fn html_and_plain_json_are_no_streams() {
    for (kind, body, says) in [
        (
            "text/html",
            "<html><h1>Welcome to nginx!</h1>",
            "Welcome to nginx!",
        ),
        ("application/json", "{\"choices\":[]}", "not a stream"),
    ] {
        let mut reader = Reader::new(4);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n{body}");
        reader.feed(head.as_bytes(), 1).unwrap();
        let failure = reader.end(&End::Closed, 1).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol);
        assert!(failure.message.contains(says), "{}", failure.message);
    }
}

proptest::proptest! {
    /// Whatever comes, in whatever pieces: no panic, and the pieces do not matter.
    #[test]
    fn cuts_of_anything_agree(
        body in "(data: |:|event: error|\\{\"choices\":\\[|\\{\"text\":\"[a-z\u{1F680}]{0,3}\"\\}|\\]\\}|\n|\r\n|\r|\\[DONE\\]){0,24}",
        cut in 1usize..12,
    ) {
        let reads = [(5, body.into_bytes())];
        proptest::prop_assert_eq!(play(&reads, cut), play(&reads, usize::MAX));
    }
}
