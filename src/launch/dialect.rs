//! How each server names its context argument and reads the number behind it.

use crate::engine::Kind;
use std::fmt;

/// The servers whose command lines are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sglang,
    Vllm,
    LlamaCpp,
    TensorRtLlm,
    LmDeploy,
}

pub(super) const ALL: [Dialect; 5] = [
    Dialect::Sglang,
    Dialect::Vllm,
    Dialect::LlamaCpp,
    Dialect::TensorRtLlm,
    Dialect::LmDeploy,
];

/// What a written length means to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Tokens(u64),
    /// The engine takes what the model or the memory allows (`0`, `-1`, `auto`).
    Automatic,
    /// The engine would refuse it, or it is known only on the running system.
    Unknown,
}

impl Length {
    pub fn tokens(self) -> Option<u64> {
        match self {
            Length::Tokens(n) => Some(n),
            _ => None,
        }
    }
}

/// The name of an argument, and where in the word its value starts if it is in the same word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    pub name: String,
    pub value_at: Option<usize>,
}

impl From<Kind> for Option<Dialect> {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Sglang => Some(Dialect::Sglang),
            Kind::Vllm => Some(Dialect::Vllm),
            Kind::LlamaCpp => Some(Dialect::LlamaCpp),
            Kind::OpenAi => None,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "sglang" => Ok(Dialect::Sglang),
            "vllm" => Ok(Dialect::Vllm),
            "llamacpp" | "llama.cpp" => Ok(Dialect::LlamaCpp),
            "tensorrt-llm" | "trtllm" => Ok(Dialect::TensorRtLlm),
            "lmdeploy" => Ok(Dialect::LmDeploy),
            _ => Err(format!(
                "unknown engine {text:?}; known are sglang, vllm, llamacpp (or llama.cpp), tensorrt-llm and lmdeploy"
            )),
        }
    }
}

impl Dialect {
    /// The name used in commands and output; the first three as [`Kind::name`] has them.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Sglang => "sglang",
            Dialect::Vllm => "vllm",
            Dialect::LlamaCpp => "llamacpp",
            Dialect::TensorRtLlm => "tensorrt-llm",
            Dialect::LmDeploy => "lmdeploy",
        }
    }

    /// The argument as it is written where there is none yet.
    pub fn flag(self) -> &'static str {
        match self {
            Dialect::Sglang => "--context-length",
            Dialect::Vllm => "--max-model-len",
            Dialect::LlamaCpp => "--ctx-size",
            Dialect::TensorRtLlm => "--max_seq_len",
            Dialect::LmDeploy => "--session-len",
        }
    }

    /// The environment variable that stands for the argument; an argument overrides it.
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Dialect::LlamaCpp => Some("LLAMA_ARG_CTX_SIZE"),
            _ => None,
        }
    }

    /// Whether `word` is the context argument.
    pub(super) fn context(self, word: &str) -> Option<Match> {
        match self {
            // argparse takes every beginning of a name that fits one argument alone; these fit no other of the engine's.
            Dialect::Sglang => argument(word, |name| begins(name, "--context-length", "--cont")),
            Dialect::Vllm => argument(word, |name| {
                begins(&dashes(name), "--max-model-len", "--max-mo")
            }),
            Dialect::LlamaCpp => argument(word, |name| {
                // --n_ctx is the name in llama-cpp-python's server.
                name == "-c" || ["--ctx-size", "--n-ctx"].contains(&dashes(name).as_str())
            }),
            Dialect::TensorRtLlm => argument(word, |name| dashes(name) == "--max-seq-len"),
            Dialect::LmDeploy => {
                argument(word, |name| begins(name, "--session-len", "--session-l"))
            }
        }
    }

    /// The number as the engine reads it.
    pub fn read(self, text: &str) -> Length {
        let text = text.trim();
        match self {
            Dialect::Vllm => human_readable(text),
            // std::stoi reads the digits at the start and stops at the first other character.
            Dialect::LlamaCpp => {
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                match text.get(..digits).and_then(|d| d.parse().ok()) {
                    Some(0) => Length::Automatic,
                    Some(n) => Length::Tokens(n),
                    None => Length::Unknown,
                }
            }
            _ => integer(text).map_or(Length::Unknown, Length::Tokens),
        }
    }
}

/// `--parallel` of llama.cpp.
pub(super) fn parallel(word: &str) -> Option<Match> {
    argument(word, |name| name == "-np" || dashes(name) == "--parallel")
}

/// Whether `word` switches llama.cpp's shared cache on or off.
pub(super) fn unified(word: &str) -> Option<bool> {
    match dashes(word).as_str() {
        "-kvu" | "--kv-unified" => Some(true),
        "-no-kvu" | "--no-kv-unified" => Some(false),
        _ => None,
    }
}

fn argument(word: &str, fits: impl Fn(&str) -> bool) -> Option<Match> {
    let (name, value_at) = match word.split_once('=') {
        Some((name, _)) => (name, Some(name.len() + 1)),
        None => (word, None),
    };
    fits(name).then(|| Match {
        name: name.to_string(),
        value_at,
    })
}

/// Whether `name` is a beginning of `full` that has at least `least`.
fn begins(name: &str, full: &str, least: &str) -> bool {
    full.starts_with(name) && name.starts_with(least)
}

fn dashes(name: &str) -> String {
    name.replace('_', "-")
}

/// Python's `int()` for what people write: digits, grouped by single underscores.
fn integer(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let grouped = text.split('_').all(|group| !group.is_empty());
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    (grouped && digits.bytes().all(|c| c.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

/// vLLM's `human_readable_int_or_auto`: small letters are decimal and take fractions, capital ones binary and do not.
fn human_readable(text: &str) -> Length {
    if text == "-1" || text.eq_ignore_ascii_case("auto") {
        return Length::Automatic;
    }
    let scaled = text.char_indices().next_back().and_then(|(at, letter)| {
        let power = "kmgt".find(letter.to_ascii_lowercase())? as u32 + 1;
        Some((text.get(..at)?, letter.is_ascii_uppercase(), power))
    });
    let tokens = match scaled {
        Some((number, true, power)) => integer(number)
            .filter(|_| !number.contains(['_', '+']))
            .and_then(|n| n.checked_mul(1024_u64.checked_pow(power)?)),
        Some((number, false, power)) => fraction(number)
            .map(|n| n * 1000_f64.powi(power as i32))
            .filter(|n| *n < 9e15)
            .map(|n| n as u64),
        None => integer(text),
    };
    tokens.map_or(Length::Unknown, Length::Tokens)
}

/// Digits, with or without a decimal fraction.
fn fraction(text: &str) -> Option<f64> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let fits = match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(text),
    };
    fits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_reads_lengths_in_its_own_way() {
        let table = [
            (Dialect::Vllm, "32k", Length::Tokens(32_000)),
            (Dialect::Vllm, "32K", Length::Tokens(32_768)),
            (Dialect::Vllm, "25.6k", Length::Tokens(25_600)),
            (Dialect::Vllm, "25.6K", Length::Unknown),
            (Dialect::Vllm, "1m", Length::Tokens(1_000_000)),
            (Dialect::Vllm, "1M", Length::Tokens(1_048_576)),
            (Dialect::Vllm, "auto", Length::Automatic),
            (Dialect::Vllm, "-1", Length::Automatic),
            (Dialect::Vllm, "32_768", Length::Tokens(32_768)),
            (Dialect::Vllm, "", Length::Unknown),
            (Dialect::Vllm, "99999999999999999999K", Length::Unknown),
            (Dialect::Sglang, "32768", Length::Tokens(32_768)),
            (Dialect::Sglang, "32K", Length::Unknown),
            (Dialect::Sglang, "1__0", Length::Unknown),
            (Dialect::LlamaCpp, "8192", Length::Tokens(8192)),
            (Dialect::LlamaCpp, "32k", Length::Tokens(32)),
            (Dialect::LlamaCpp, "0", Length::Automatic),
            (Dialect::LlamaCpp, "x", Length::Unknown),
        ];
        for (dialect, text, length) in table {
            assert_eq!(dialect.read(text), length, "{dialect} {text:?}");
        }
    }

    #[test]
    fn look_alikes_are_not_the_argument() {
        let yes = [
            (Dialect::Sglang, "--context-length"),
            (Dialect::Sglang, "--context-len=1"),
            (Dialect::Sglang, "--context"),
            (Dialect::Vllm, "--max-model-len"),
            (Dialect::Vllm, "--max_model_len=5"),
            (Dialect::Vllm, "--max-model"),
            (Dialect::LlamaCpp, "-c"),
            (Dialect::LlamaCpp, "--ctx_size"),
            (Dialect::TensorRtLlm, "--max-seq-len"),
            (Dialect::LmDeploy, "--session-len"),
        ];
        for (dialect, word) in yes {
            assert!(dialect.context(word).is_some(), "{dialect} {word}");
        }
        let no = [
            (Dialect::Sglang, "--con"),
            (Dialect::Sglang, "--config"),
            (Dialect::Sglang, "--context-length-x"),
            (Dialect::Sglang, "--max-total-tokens"),
            (Dialect::Sglang, "--context_length"),
            (Dialect::Vllm, "--max-num-batched-tokens=32768"),
            (Dialect::Vllm, "--max-m"),
            (Dialect::Vllm, "max-model-len"),
            (Dialect::LlamaCpp, "--ctx-size-draft"),
            (Dialect::LlamaCpp, "-cd"),
            (Dialect::LlamaCpp, "-C"),
            (Dialect::LlamaCpp, "--ctx-checkpoints"),
            (Dialect::LmDeploy, "--session"),
        ];
        for (dialect, word) in no {
            assert!(dialect.context(word).is_none(), "{dialect} {word}");
        }
    }
}
