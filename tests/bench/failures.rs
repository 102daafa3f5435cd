//! Every way in which a request fails, by its kind and in words, through the real program. What takes minutes (time-outs by stage) is tested at the
//! client with deadlines of its own.

use super::support::bench::Bench;
use super::support::http;
use super::support::place::Place;
use serde_json::Value;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n";

fn whole(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The one point of a server that gives every request this answer.
fn measure(answer: String) -> (Option<i32>, Value) {
    let bench = Bench {
        place: Place::new(),
        port: http::answering(move |path| match path {
            "/v1/chat/completions" => answer.clone(),
            _ => whole(
                "404 Not Found",
                "application/json",
                "{\"detail\":\"Not Found\"}",
            ),
        }),
    };
    let (code, json) = bench.json(&[
        "--model",
        "m",
        "--engine",
        "openai",
        "--input",
        "50",
        "--output",
        "10",
        "--concurrency",
        "1",
        "--requests",
        "3",
    ]);
    (code, json["points"][0].clone())
}

#[test]
fn each_kind_has_its_name_and_its_words() {
    let json = "application/json";
    for (answer, kind, words) in [
        (
            whole(
                "503 Service Unavailable",
                json,
                r#"{"error":{"message":"no capacity left"}}"#,
            ),
            "status_503",
            "no capacity left",
        ),
        (
            whole(
                "400 Bad Request",
                json,
                r#"{"error":{"message":"This model's maximum context length is 32 tokens. However, your prompt contains 50 input tokens"}}"#,
            ),
            "context_exceeded",
            "maximum context length is 32",
        ),
        (
            format!(
                "{STREAM}{TOKEN}data: {{\"error\":{{\"message\":\"engine died\",\"code\":500}}}}\n\n"
            ),
            "error_in_stream",
            "engine died",
        ),
        (format!("{STREAM}{TOKEN}"), "cut_off", "ended early"),
        (
            format!(
                "{STREAM}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
            ),
            "empty",
            "",
        ),
        (
            whole(
                "200 OK",
                "text/html",
                "<!DOCTYPE html><html><title>Sign in</title></html>",
            ),
            "protocol",
            "",
        ),
    ] {
        let (code, point) = measure(answer);
        assert_eq!(
            (code, &point["validity"]),
            (Some(1), &"void".into()),
            "{kind}: {point:#}"
        );
        let requests = &point["requests"];
        assert_eq!(
            (&requests["ok"], &requests["failed"]),
            (&0.into(), &3.into()),
            "{kind}: {requests}"
        );
        assert_eq!(requests["by_kind"][kind], 3, "{requests}");
        let message = requests["messages"][kind].as_str().unwrap();
        assert!(
            !message.is_empty() && message.contains(words),
            "{kind}: {message}"
        );
        assert!(
            point["reasons"]
                .to_string()
                .contains("all 3 requests failed"),
            "{kind}: {point:#}"
        );
        // Of what failed there is no figure.
        for figure in ["ttft_ms", "tpot_ms", "itl_ms", "chunk_gap_ms", "e2e_ms"] {
            assert_eq!(point[figure]["n"], 0, "{kind}: {figure}");
        }
    }
}
