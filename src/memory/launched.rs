//! What the words of a launch say about memory.

use super::bytes::Split;
use super::deployment::Deployment;
use super::types::KvTypes;
use crate::engine::Kind;
use std::str::FromStr;

/// vLLM's share of a card where nothing is said.
const VLLM_FRACTION: f64 = 0.9;

/// How llama.cpp is told the number of its slots.
const SLOTS: [&str; 3] = ["-np", "--parallel", "LLAMA_ARG_N_PARALLEL"];

/// The deployment that a launch with these words and this environment makes. What is not said, or said in a way that is not
/// understood, is the engine's own choice.
pub fn deployment(kind: Kind, argv: &[String], env: &[(String, String)]) -> Deployment {
    let words = Words { argv, env };
    let own = Deployment::new(kind);
    match kind {
        Kind::Sglang => {
            let replicas = words.has(&["--enable-dp-attention"]);
            let dp = words.number(&["--dp-size", "--data-parallel-size", "--dp"]);
            Deployment {
                split: split(
                    words.number(&["--tp-size", "--tensor-parallel-size", "--tp"]),
                    dp.filter(|_| replicas),
                    words.number(&["--pp-size", "--pipeline-parallel-size", "--pp"]),
                ),
                kv: words.read(&["--kv-cache-dtype"]).unwrap_or(own.kv),
                requests: words.number(&["--max-running-requests"]),
                draft_tokens: words.number(&["--speculative-num-draft-tokens"]),
                state_slots: words.number(&["--max-mamba-cache-size"]),
                fraction: words.read(&["--mem-fraction-static"]),
                ..own
            }
        }
        Kind::Vllm => Deployment {
            split: split(
                words.number(&["--tensor-parallel-size", "-tp"]),
                None,
                words.number(&["--pipeline-parallel-size", "-pp"]),
            ),
            kv: words.read(&["--kv-cache-dtype"]).unwrap_or(own.kv),
            requests: words.number(&["--max-num-seqs"]),
            engines: words.number(&["--data-parallel-size", "-dp"]),
            fraction: words
                .read(&["--gpu-memory-utilization"])
                .or(Some(VLLM_FRACTION)),
            ..own
        },
        Kind::LlamaCpp => {
            let half = |names: &[&str]| {
                let types: Option<KvTypes> = words.read(names);
                types.map(|types| types.key)
            };
            Deployment {
                kv: KvTypes {
                    key: half(&["-ctk", "--cache-type-k", "LLAMA_ARG_CACHE_TYPE_K"])
                        .unwrap_or(own.kv.key),
                    value: half(&["-ctv", "--cache-type-v", "LLAMA_ARG_CACHE_TYPE_V"])
                        .unwrap_or(own.kv.value),
                },
                requests: words.number(&SLOTS),
                ubatch: words
                    .number(&["-ub", "--ubatch-size", "LLAMA_ARG_UBATCH"])
                    .unwrap_or(own.ubatch),
                shared_cache: shared_cache(argv, env).unwrap_or(false),
                off_cards: words.off_cards(),
                ..own
            }
        }
        Kind::OpenAi => own,
    }
}

/// Whether llama.cpp's slots share one cache: as the words say, else where the number of slots is left to the server. `None` where they
/// are not its own, which name a model: those of a script, or of the operator's command, say nothing of how the server runs.
pub fn shared_cache(argv: &[String], env: &[(String, String)]) -> Option<bool> {
    let words = Words { argv, env };
    let fetched = ["-hf", "-hfr", "--hf-repo", "LLAMA_ARG_HF_REPO"];
    let own = model(Kind::LlamaCpp, argv, env).is_some() || words.value(&fetched).is_some();
    let slots = words.number(&SLOTS);
    words.unified().or(own.then_some(slots.is_none()))
}

/// The model that a launch names: a path, or a name of the Hugging Face hub.
pub fn model(kind: Kind, argv: &[String], env: &[(String, String)]) -> Option<String> {
    let words = Words { argv, env };
    let said = match kind {
        Kind::Sglang => words.value(&["--model-path", "--model"]),
        Kind::Vllm => words.value(&["--model"]).or_else(|| {
            // `vllm serve MODEL`.
            let serve = argv.iter().position(|word| word == "serve")?;
            argv.get(serve + 1)
                .filter(|word| !word.starts_with('-'))
                .map(String::as_str)
        }),
        Kind::LlamaCpp => words.value(&["-m", "--model", "LLAMA_ARG_MODEL"]),
        Kind::OpenAi => None,
    };
    said.map(str::to_string)
}

fn split(tp: Option<u64>, dp: Option<u64>, pp: Option<u64>) -> Split {
    Split::checked(tp.unwrap_or(1), dp.unwrap_or(1), pp.unwrap_or(1)).unwrap_or_default()
}

/// Arguments and environment of a launch.
struct Words<'a> {
    argv: &'a [String],
    env: &'a [(String, String)],
}

impl<'a> Words<'a> {
    /// The last value of an argument of one of these names, `--name value` or `--name=value`; else of a variable.
    fn value(&self, names: &[&str]) -> Option<&'a str> {
        let named = |word: &str| names.contains(&word.replace('_', "-").as_str());
        let argument = self.argv.iter().enumerate().rev().find_map(|(at, word)| {
            if !word.starts_with('-') {
                return None;
            }
            match word.split_once('=') {
                Some((name, value)) => named(name).then_some(value),
                None if named(word) => self.argv.get(at + 1).map(String::as_str),
                None => None,
            }
        });
        let variable = || {
            let of = |(name, value): &'a (String, String)| {
                names.contains(&name.as_str()).then_some(value.as_str())
            };
            self.env.iter().rev().find_map(of)
        };
        argument.or_else(variable)
    }

    fn read<T: FromStr>(&self, names: &[&str]) -> Option<T> {
        self.value(names)?.parse().ok()
    }

    fn number(&self, names: &[&str]) -> Option<u64> {
        self.read(names).filter(|n| *n > 0)
    }

    /// Whether llama.cpp's slots share one cache, where that is said.
    fn unified(&self) -> Option<bool> {
        let said = self.argv.iter().rev().find_map(|word| match word.as_str() {
            "-kvu" | "--kv-unified" => Some(true),
            "-no-kvu" | "--no-kv-unified" => Some(false),
            _ => None,
        });
        said.or_else(|| {
            let value = self.value(&["LLAMA_ARG_KV_UNIFIED"])?;
            Some(matches!(value, "1" | "true" | "on" | "enabled"))
        })
    }

    /// Whether llama.cpp is kept from putting its cache on a card: no layer there, no device, none to be seen, or the cache alone kept off.
    fn off_cards(&self) -> bool {
        let layers = self.read::<u64>(&[
            "-ngl",
            "--gpu-layers",
            "--n-gpu-layers",
            "LLAMA_ARG_N_GPU_LAYERS",
        ]);
        let devices = self.value(&["-dev", "--device", "LLAMA_ARG_DEVICE"]);
        let seen = |(name, list): &(String, String)| {
            name == "CUDA_VISIBLE_DEVICES" && matches!(list.trim(), "" | "-1")
        };
        layers == Some(0)
            || devices == Some("none")
            || self.env.iter().any(seen)
            || self.has(&["-nkvo", "--no-kv-offload"])
    }

    fn has(&self, names: &[&str]) -> bool {
        self.argv.iter().any(|word| names.contains(&word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn an_sglang_launch_says_its_layout_and_limits() {
        let argv = words(
            "python3 -m sglang.launch_server --model-path /models/q --tp 4 --dp=2 --enable-dp-attention --kv-cache-dtype fp8_e4m3 \
             --max-running-requests 16 --speculative-num-draft-tokens 4 --mem-fraction-static 0.85",
        );
        let d = deployment(Kind::Sglang, &argv, &[]);
        assert_eq!((d.split.tp, d.split.dp, d.split.pp), (4, 2, 1));
        assert_eq!(d.kv.to_string(), "fp8");
        assert_eq!(d.requests, Some(16));
        assert_eq!(d.draft_tokens, Some(4));
        assert_eq!(d.fraction, Some(0.85));
        assert_eq!(
            model(Kind::Sglang, &argv, &[]).as_deref(),
            Some("/models/q")
        );
        // Replicas of the whole server do not share its ranks.
        let plain = words("sglang --tp 4 --dp 2");
        assert_eq!(deployment(Kind::Sglang, &plain, &[]).split.dp, 1);
    }

    #[test]
    fn a_vllm_launch_names_its_model_behind_serve() {
        let argv = words("vllm serve org/name --max_num_seqs=8 -tp 2 --data-parallel-size 4");
        let d = deployment(Kind::Vllm, &argv, &[]);
        assert_eq!((d.requests, d.split.tp, d.engines), (Some(8), 2, Some(4)));
        assert_eq!(d.fraction, Some(VLLM_FRACTION));
        assert_eq!(model(Kind::Vllm, &argv, &[]).as_deref(), Some("org/name"));
        let none = words("vllm serve --config file");
        assert_eq!(model(Kind::Vllm, &none, &[]), None);
    }

    #[test]
    fn llama_cpp_takes_variables_too_and_an_argument_counts_more() {
        let env = [
            ("LLAMA_ARG_MODEL".to_string(), "/m/a.gguf".to_string()),
            ("LLAMA_ARG_N_PARALLEL".to_string(), "8".to_string()),
        ];
        let argv = words("llama-server -np 2 -ctk q8_0 -ub 256 --kv-unified");
        let d = deployment(Kind::LlamaCpp, &argv, &env);
        assert_eq!((d.requests, d.ubatch, d.shared_cache), (Some(2), 256, true));
        assert_eq!(d.kv.to_string(), "k=q8_0,v=fp16");
        assert_eq!(
            model(Kind::LlamaCpp, &argv, &env).as_deref(),
            Some("/m/a.gguf")
        );
        let without = words("llama-server");
        assert_eq!(deployment(Kind::LlamaCpp, &without, &env).requests, Some(8));
    }

    #[test]
    fn llama_cpp_s_cache_lies_beside_the_cards_where_the_launch_says_so() {
        let off = |text: &str| deployment(Kind::LlamaCpp, &words(text), &[]).off_cards;
        for text in [
            "llama-server -m a.gguf -ngl 0",
            "llama-server --n-gpu-layers=0",
            "llama-server -ngl 99 -nkvo",
            "llama-server --device none",
        ] {
            assert!(off(text), "{text}");
        }
        for text in ["llama-server -m a.gguf", "llama-server -ngl 99 -dev CUDA0"] {
            assert!(!off(text), "{text}");
        }
        let seen = |list: &str| {
            let env = [("CUDA_VISIBLE_DEVICES".to_string(), list.to_string())];
            deployment(Kind::LlamaCpp, &words("llama-server"), &env).off_cards
        };
        assert_eq!([seen(""), seen("-1"), seen("0")], [true, true, false]);
    }

    #[test]
    fn llama_cpp_s_slots_share_one_cache_where_their_number_is_left_to_it() {
        let shared = |text: &str| shared_cache(&words(text), &[]);
        assert_eq!(shared("numactl -N 0 llama-server -m a.gguf"), Some(true));
        assert_eq!(shared("llama-server -hf org/name -np -1"), Some(true));
        assert_eq!(shared("llama-server -m a.gguf -np 4"), Some(false));
        assert_eq!(shared("llama-server -np 4 -no-kvu -kvu"), Some(true));
        assert_eq!(shared("-m a.gguf --no-kv-unified"), Some(false));
        let said = ("LLAMA_ARG_KV_UNIFIED".to_string(), "true".to_string());
        assert_eq!(shared_cache(&words("llama-server"), &[said]), Some(true));
        // A script may start it in any way.
        assert_eq!(shared("/root/ctl trial 4096"), None);
        let script = ["sh", "-c", "exec llama-server -m a.gguf -np 4"].map(String::from);
        assert_eq!(shared_cache(&script, &[]), None);
    }
}
