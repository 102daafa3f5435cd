use super::super::{Known, Outcome, Reader};
use super::*;

fn fed(bytes: &[u8], piece: usize) -> Reader {
    let mut feed = Feed::new(Reader::new(None));
    for part in bytes.chunks(piece.max(1)) {
        feed.push(part).expect("pushed");
    }
    feed.finish().expect("finished")
}

const SGLANG: &str = "[2026-09-02 10:00:01 TP0] Load weight begin. avail mem=47.02 GB\n[2026-09-02 10:01:55] The server is fired up and ready to roll!\n";

#[test]
fn pieces_may_end_anywhere() {
    for piece in [1, 7, 4096] {
        let found = fed(SGLANG.as_bytes(), piece).diagnose(&Known::default());
        assert_eq!(found.outcome, Outcome::Ready, "{piece}");
    }
}

#[test]
fn a_log_whose_last_line_is_cut_is_read() {
    let found = fed(
        b"[2026-09-02 10:00:01 TP0] Load weight begin. avail mem=47.02 GB\n\xff\xfe[2026",
        3,
    );
    assert_eq!(found.diagnose(&Known::default()).outcome, Outcome::Loading);
    assert_eq!(
        fed(b"", 1).diagnose(&Known::default()).outcome,
        Outcome::Loading
    );
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let mut feed = Feed::new(Reader::new(None));
    for _ in 0..64 {
        feed.push(&[b'x'; 16 * 1024]).expect("pushed");
        assert!(feed.held.len() <= LONGEST_LINE);
    }
    feed.push(b"\n").expect("pushed");
    feed.push(SGLANG.as_bytes()).expect("pushed");
    assert_eq!(
        feed.finish()
            .expect("read")
            .diagnose(&Known::default())
            .outcome,
        Outcome::Ready
    );
}

#[test]
fn the_timed_form_is_read_in_its_variants() {
    let line = "[2026-09-02 10:00:01 TP0] Init torch distributed begin.";
    let forms = [
        format!(r#"[{{"t_s": 0.5, "line": "{line}"}}, {{"t_s": 400, "line": "{line}"}}]"#),
        format!(r#"[ [0.5, "{line}"], [400, "{line}"] ]"#),
        format!("{{\n \"lines\": [{{\"t_ms\": 500, \"text\": \"{line}\"}}],\n \"now_s\": 400\n}}"),
    ];
    for form in forms {
        let found = fed(form.as_bytes(), 11).diagnose(&Known::default());
        assert_eq!(found.outcome, Outcome::Stuck, "{form}");
        assert_eq!(found.facts.after_s, Some(399.5), "{form}");
    }
}

#[test]
fn cards_in_the_timed_form_count() {
    let line = "[2026-09-02 10:00:01 TP0] Init torch distributed begin.";
    let with = |util: &str| {
        let log = format!(
            r#"[{{"t_s": 1, "line": "{line}"}}, {{"t_s": 90, "gpus": [{{"util": {util}}}, {{"util": 100}}]}}]"#
        );
        fed(log.as_bytes(), 4096)
            .diagnose(&Known::default())
            .outcome
    };
    assert_eq!(with("100"), Outcome::Stuck);
    assert_eq!(with("35"), Outcome::Loading);
}

#[test]
fn wrapped_lines_are_unwrapped() {
    let log = "{\"log\":\"[2026-09-02 10:01:55] The server is fired up and ready to roll!\\n\",\"stream\":\"stderr\"}\n{\"log\":\"x\"}\n";
    assert_eq!(
        fed(log.as_bytes(), 4096)
            .diagnose(&Known::default())
            .outcome,
        Outcome::Ready
    );
}

#[test]
fn half_a_document_says_so() {
    let mut feed = Feed::new(Reader::new(None));
    feed.push(br#"[{"t_s": 1, "line": "#).expect("pushed");
    assert!(matches!(feed.finish(), Err(FeedError::Broken(_))));
}
