//! Failures in the words of Python, argparse, pydantic, Hugging Face and GGUF.

use super::super::text::number_after;
use super::words::Words;
use std::sync::LazyLock;

/// `ValueError: …`, `torch.OutOfMemoryError: …`: a dotted name that ends in `Error` or `Exception`, at the start of the message. A
/// validation error is that of one request; where it is that of the configuration, the next line gives the cause.
pub(super) fn ends_traceback(text: &str) -> bool {
    let Some((name, _)) = text.split_once(": ") else {
        return false;
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    (last.ends_with("Error") || last.ends_with("Exception"))
        && !last.ends_with("ValidationError")
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'))
}

/// An argument that the program does not take, or not with this value.
const WRONG_ARGUMENT: &[&str] = &[
    "error: unrecognized arguments: ",
    "error: argument ",
    "error: ambiguous option: ",
    "error: the following arguments are required: ",
    "error: invalid argument: ",
    "error: unknown argument: ",
    "error: invalid choice: ",
    "error: unexpected argument ",
    "error while handling argument ",
    "error while handling environment variable ",
    "error: invalid parameter for argument: ",
    "No such option: ",
    "unrecognized option ",
];

static WRONG_WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(WRONG_ARGUMENT));
static MISSING_WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(MISSING_MODEL));

pub(super) fn wrong_argument(text: &str) -> bool {
    WRONG_WORDS.first_in(text).is_some()
}

/// A model that is not there, not whole, or not for us.
const MISSING_MODEL: &[&str] = &[
    "is not a local folder and is not a valid model identifier",
    "does not appear to have a file named config.json",
    "Cannot find any model weights",
    "Invalid repository ID or local directory specified",
    "RepositoryNotFoundError",
    "GatedRepoError",
    "RevisionNotFoundError",
    "EntryNotFoundError",
    "HFValidationError: ",
    "You are trying to access a gated repo",
    "Can't load the configuration of ",
    "Can't load tokenizer for ",
    "is not the path to a directory containing",
    "outgoing traffic has been disabled",
    "couldn't connect to 'https://huggingface.co'",
    "MetadataIncompleteBuffer",
    "InvalidHeaderDeserialization",
    "Error while deserializing header",
    "failed to open GGUF file",
    "gguf_init_from_file: failed to ",
    "gguf_init_from_file_impl: ",
    "invalid magic",
    "corrupted or incomplete",
    "failed to get manifest",
];

pub(super) fn missing_model(text: &str) -> bool {
    let gguf = text.contains("error loading model: ") && text.contains("No such file");
    let file = text.starts_with("FileNotFoundError: ")
        && [".safetensors", ".gguf", ".json", "model", "tokenizer"]
            .iter()
            .any(|part| text.contains(part));
    gguf || file || MISSING_WORDS.first_in(text).is_some()
}

/// A progress bar of a download from a hub.
pub(super) fn downloads(text: &str) -> bool {
    let bar = text.contains("%|");
    let file = [".safetensors:", ".bin:", ".gguf:"]
        .iter()
        .any(|end| text.contains(end));
    (bar && (file || text.starts_with("Fetching ") || text.starts_with("Downloading ")))
        || text.starts_with("Downloading shards:")
}

/// A configuration that the engine itself refuses.
const REFUSED: &[&str] = &[
    "must be divisible by",
    "is not divisible by",
    "cannot be larger than the number of available GPUs",
    "is smaller than max_model_len",
    "invalid literal for int()",
];

pub(super) fn refused_configuration(text: &str) -> bool {
    let refused = || REFUSED.iter().any(|words| text.contains(words));
    text.starts_with("Value error, ") || (ends_traceback(text) && refused())
}

/// The limit that an engine derives from the model: `derived context_length (32768)`, `(max_position_embeddings=524288.0 or …)`,
/// `(sliding_window=4096 …)`, `derived max_model_len (None=8192 …)`.
pub(super) fn derived_limit(text: &str) -> Option<u64> {
    let (_, derived) = text.split_once("greater than the derived ")?;
    number_after(derived, "context_length (")
        .or_else(|| number_after(derived, "="))
        .or_else(|| number_after(derived, "("))
        .filter(|limit| *limit > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_traceback_is_told_from_the_rest_of_it() {
        assert!(ends_traceback(
            "torch.OutOfMemoryError: CUDA out of memory. Tried"
        ));
        assert!(ends_traceback("ModuleNotFoundError: No module named 'x'"));
        for other in [
            "Ignore import error when loading x: cannot import name 'y'",
            "    raise ValueError(",
            "vllm.exceptions.VLLMValidationError: Token id 398 is out of vocabulary",
            "Triton Error handling: on",
            "INFO:     Waiting for application startup.",
        ] {
            assert!(!ends_traceback(other), "{other}");
        }
    }

    #[test]
    fn limits_are_read_in_both_forms() {
        let vllm = "User-specified max_model_len (1000000) is greater than the derived max_model_len (max_position_embeddings=524288.0 or model_max_length=None in model's config.json).";
        assert_eq!(derived_limit(vllm), Some(524_288));
        assert_eq!(
            derived_limit("is greater than the derived context_length (32768)."),
            Some(32_768)
        );
        assert_eq!(derived_limit("nothing"), None);
    }
}
