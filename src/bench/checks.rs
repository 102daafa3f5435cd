//! To be replaced at the merge.
pub fn judge_smoke(text: &str, _output_tokens: u64) -> Result<(), String> {
    if text.is_empty() {
        Err("the answer is empty".into())
    } else {
        Ok(())
    }
}
