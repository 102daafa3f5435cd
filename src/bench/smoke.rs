//! The smoke test: does the model say anything, and is it no loop?

use super::validity::looks_like_a_loop;

/// Judges the answer to a short question. `output_tokens` is the server's count.
///
/// The error says in a sentence what is wrong.
pub fn judge_smoke(text: &str, output_tokens: u64) -> Result<(), String> {
    if output_tokens == 0 {
        return Err("the model gave no token".to_string());
    }
    if text.trim().is_empty() {
        return Err(format!(
            "the model's answer is empty although it counts {output_tokens} tokens"
        ));
    }
    match looks_like_a_loop(text) {
        Some(unit) => Err(format!(
            "the answer is a loop: {unit:?} over and over. Fast, and worth nothing; look at the engine's version, the chat template \
             and the context extension"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_looping_answers_fail_with_words() {
        assert_eq!(judge_smoke("Hello there!", 4), Ok(()));
        let words = |text, n| judge_smoke(text, n).unwrap_err();
        assert!(words("", 0).contains("no token"));
        assert!(words(" \n", 3).contains("empty"));
        assert!(words("lambda lambda lambda", 3).contains("\"lambda\""));
    }
}
