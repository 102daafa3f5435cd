//! The start of the simulated server: what its log says when, and what the cards hold meanwhile.

use super::args::SimArgs;
use super::memory::{GRAPHS, KV_BYTES_PER_TOKEN, POOL_TOKENS, STATE, Stage};
use super::timing::MAX_RUNNING;

/// Where a line appears to come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Printed without a prefix: progress bars, tracebacks.
    Raw(String),
    Front(String),
    Rank(String),
}

/// One step of a start.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Share of the whole start after which it happens, 0..1.
    pub at: f64,
    pub stage: Stage,
    pub lines: Vec<Line>,
}

/// How a start goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Until the port opens.
    pub load: Vec<Step>,
    /// From there to ready.
    pub warm_up: Vec<Step>,
    /// The start fails after the last step, with these words.
    pub failure: Option<String>,
}

const SHARDS: u32 = 12;
const GRAPH_SIZES: [u32; 9] = [48, 40, 32, 24, 16, 8, 4, 2, 1];

fn gb(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / crate::units::GIB)
}

/// The script for these options. `free` is what the tightest card has free before the start, in bytes; `pid` and `port` stand in
/// the log.
pub fn script(args: &SimArgs, free: u64, pid: u32, port: u16) -> Script {
    let context = args.served();
    let total_used = |stage: Stage| {
        stage
            .used(context)
            .saturating_sub(Stage::Weights(0.0).used(context))
    };
    let avail = |stage: Stage| gb(free.saturating_sub(total_used(stage)));
    let mut load = vec![Step {
        at: 0.0,
        stage: Stage::Weights(0.0),
        lines: vec![
            Line::Raw("SIMULATED rig: this is vramp sim, no GPU is used".to_string()),
            Line::Front(format!(
                "server_args=ServerArgs(model_path='Qwen/Qwen3.6-27B', host='{}', port={port}, mem_fraction_static=0.85, max_running_requests={MAX_RUNNING}, context_length={}, chunked_prefill_size=4096, tp_size=2, speculative_algorithm='NEXTN', speculative_num_draft_tokens=4)",
                args.host, args.context_length
            )),
        ],
    }];
    if args.context_length > args.max_context {
        load.push(above_limit(args));
        return Script {
            load,
            warm_up: Vec::new(),
            failure: Some(format!(
                "the context of {} is above the model's limit of {}",
                args.context_length, args.max_context
            )),
        };
    }
    weights(&mut load, args.start_ms, &avail);
    // Whoever starts while the cards are not free runs out of memory here, as the real one does.
    if free < total_used(Stage::Serving) {
        load.push(out_of_memory(0.50, Stage::Weights(1.0), free));
        return Script {
            load,
            warm_up: Vec::new(),
            failure: Some("CUDA out of memory: the cards are not free".to_string()),
        };
    }
    pool(&mut load, &avail);
    if args
        .oom_above
        .is_some_and(|limit| args.context_length > limit)
    {
        let left = free.saturating_sub(total_used(Stage::Graphs(0.3)));
        load.push(out_of_memory(0.66, Stage::Graphs(0.3), left));
        return Script {
            load,
            warm_up: Vec::new(),
            failure: Some("CUDA out of memory".to_string()),
        };
    }
    graphs(&mut load, args.start_ms, &avail);
    load.push(Step {
        at: 0.84,
        stage: Stage::Graphs(1.0),
        lines: vec![Line::Rank(format!(
            "max_total_num_tokens={POOL_TOKENS}, chunked_prefill_size=4096, max_prefill_tokens=16384, max_running_requests={MAX_RUNNING}, context_len={context}, available_gpu_mem={} GB",
            avail(Stage::Serving)
        ))],
    });
    if POOL_TOKENS < context {
        load.push(Step {
            at: 0.84,
            stage: Stage::Graphs(1.0),
            lines: vec![Line::Rank(format!(
                "KV pool holds {POOL_TOKENS} tokens, fewer than --context-length {context}. One full-length request cannot fit, so long requests will be refused or truncated at serving time. Lower --context-length, raise --mem-fraction-static, or free memory taken before the pool is sized."
            ))],
        });
    }
    let front = |texts: &[String]| texts.iter().cloned().map(Line::Front).collect();
    let warm_up = vec![
        Step {
            at: 0.86,
            stage: Stage::WarmUp(0.0),
            lines: front(&[
                format!("INFO:     Started server process [{pid}]"),
                "INFO:     Waiting for application startup.".to_string(),
                "INFO:     Application startup complete.".to_string(),
                format!("INFO:     Uvicorn running on http://{}:{port} (Press CTRL+C to quit)", args.host),
            ]),
        },
        Step {
            at: 0.93,
            stage: Stage::WarmUp(0.5),
            lines: vec![Line::Rank(
                "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ".to_string(),
            )],
        },
    ];
    Script {
        load,
        warm_up,
        failure: None,
    }
}

fn above_limit(args: &SimArgs) -> Step {
    Step {
        at: 0.1,
        stage: Stage::Weights(0.0),
        lines: vec![
            Line::Raw("Traceback (most recent call last):".to_string()),
            Line::Raw(
                "  File \"/opt/sglang/python/sglang/launch_server.py\", line 30, in <module>"
                    .to_string(),
            ),
            Line::Raw("    run_server(server_args)".to_string()),
            Line::Raw(format!(
                "ValueError: Warning: User-specified context_length ({}) is greater than the derived context_length ({}). This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
                args.context_length, args.max_context
            )),
        ],
    }
}

fn weights(load: &mut Vec<Step>, start_ms: u64, avail: &dyn Fn(Stage) -> String) {
    load.push(Step {
        at: 0.08,
        stage: Stage::Weights(0.0),
        lines: vec![
            Line::Rank("Init torch distributed begin.".to_string()),
            Line::Rank("Init torch distributed ends. mem usage=0.60 GB".to_string()),
            Line::Rank(format!(
                "Load weight begin. avail mem={} GB",
                avail(Stage::Weights(0.0))
            )),
        ],
    });
    for shard in 0..=SHARDS {
        let share = f64::from(shard) / f64::from(SHARDS);
        load.push(Step {
            at: 0.10 + 0.38 * share,
            stage: Stage::Weights(share),
            lines: vec![Line::Raw(format!(
                "Loading safetensors checkpoint shards: {:>3}% Completed | {shard}/{SHARDS}",
                shard * 100 / SHARDS
            ))],
        });
    }
    load.push(Step {
        at: 0.49,
        stage: Stage::Weights(1.0),
        lines: vec![Line::Rank(format!(
            "Load weight end. elapsed={:.2} s, type=Qwen3_5ForConditionalGeneration, avail mem={} GB, mem usage=27.00 GB.",
            start_ms as f64 / 1000.0 * 0.41,
            avail(Stage::Weights(1.0))
        ))],
    });
}

fn pool(load: &mut Vec<Step>, avail: &dyn Fn(Stage) -> String) {
    let half = gb(POOL_TOKENS * KV_BYTES_PER_TOKEN / 2);
    load.push(Step {
        at: 0.54,
        stage: Stage::Pool(0.5),
        lines: vec![Line::Rank(format!(
            "Mamba Cache is allocated. max_mamba_cache_size: 40, conv_state size: 0.06GB, ssm_state size: {}GB ",
            gb(STATE)
        ))],
    });
    load.push(Step {
        at: 0.58,
        stage: Stage::Pool(1.0),
        lines: vec![
            Line::Rank(format!(
                "KV Cache is allocated. #tokens: {POOL_TOKENS}, K size: {half} GB, V size: {half} GB"
            )),
            Line::Rank(format!("Memory pool end. avail mem={} GB", avail(Stage::Pool(1.0)))),
        ],
    });
}

fn graphs(load: &mut Vec<Step>, start_ms: u64, avail: &dyn Fn(Stage) -> String) {
    load.push(Step {
        at: 0.60,
        stage: Stage::Graphs(0.0),
        lines: vec![Line::Rank(format!(
            "Capture cuda graph begin. This can take up to several minutes. avail mem={} GB",
            avail(Stage::Pool(1.0))
        ))],
    });
    let sizes = GRAPH_SIZES.len() as u32;
    for (done, size) in (0..).zip(GRAPH_SIZES) {
        let share = f64::from(done) / f64::from(sizes);
        load.push(Step {
            at: 0.61 + 0.21 * share,
            stage: Stage::Graphs(share),
            lines: vec![Line::Raw(format!(
                "Capturing batches (bs={size} avail_mem={} GB): {:>3}%|{}| {done}/{sizes}",
                avail(Stage::Graphs(share)),
                done * 100 / sizes,
                format_args!("{:<10}", "#".repeat((done * 10 / sizes) as usize)),
            ))],
        });
    }
    load.push(Step {
        at: 0.83,
        stage: Stage::Graphs(1.0),
        lines: vec![Line::Rank(format!(
            "Capture cuda graph end. Time elapsed: {:.2} s. mem usage={} GB. avail mem={} GB.",
            start_ms as f64 / 1000.0 * 0.23,
            gb(GRAPHS),
            avail(Stage::Graphs(1.0))
        ))],
    });
}

fn out_of_memory(at: f64, stage: Stage, free: u64) -> Step {
    Step {
        at,
        stage,
        lines: vec![
            Line::Rank("Scheduler hit an exception: Traceback (most recent call last):".to_string()),
            Line::Raw("  File \"/opt/sglang/python/sglang/srt/managers/scheduler.py\", line 3312, in run_scheduler_process".to_string()),
            Line::Raw("    scheduler = Scheduler(".to_string()),
            Line::Raw("  File \"/opt/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py\", line 512, in capture".to_string()),
            Line::Raw("    self.token_to_kv_pool_allocator".to_string()),
            Line::Raw(format!(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 47.99 GiB of which {} GiB is free. Of the allocated memory 44.10 GiB is allocated by PyTorch, with 512.00 MiB allocated in private pools (e.g., CUDA Graphs).",
                gb(free + (free / 4).max(1 << 29)),
                gb(free)
            )),
            Line::Raw(String::new()),
            Line::Front("Received sigquit from a child process. It usually means the child failed.".to_string()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: u64 = 47 << 30;

    fn texts(script: &Script) -> Vec<&str> {
        script
            .load
            .iter()
            .chain(&script.warm_up)
            .flat_map(|step| &step.lines)
            .map(|line| match line {
                Line::Raw(text) | Line::Front(text) | Line::Rank(text) => text.as_str(),
            })
            .collect()
    }

    #[test]
    fn a_good_start_goes_forward_only() {
        let script = script(&SimArgs::default(), FREE, 7, 30000);
        assert_eq!(script.failure, None);
        let times: Vec<f64> = script
            .load
            .iter()
            .chain(&script.warm_up)
            .map(|s| s.at)
            .collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times.iter().all(|at| (0.0..1.0).contains(at)));
        let used: Vec<u64> = script.load.iter().map(|s| s.stage.used(32_768)).collect();
        assert!(used.is_sorted(), "{used:?}");
        assert!(texts(&script)[0].contains("SIMULATED"));
    }

    #[test]
    fn starts_fail_with_real_words() {
        let with = |change: fn(&mut SimArgs)| {
            let mut args = SimArgs {
                context_length: 131_072,
                ..SimArgs::default()
            };
            change(&mut args);
            script(&args, FREE, 7, 30000)
        };
        let memory = with(|args| args.oom_above = Some(65_536));
        assert!(memory.failure.is_some() && memory.warm_up.is_empty());
        assert!(
            texts(&memory)
                .iter()
                .any(|line| line.starts_with("torch.OutOfMemoryError: CUDA out of memory"))
        );
        let limit = with(|args| args.max_context = 65_536);
        assert!(
            texts(&limit)
                .last()
                .expect("line")
                .contains("(131072) is greater than the derived context_length (65536)")
        );
        assert_eq!(with(|args| args.oom_above = Some(131_072)).failure, None);
    }

    #[test]
    fn cards_that_are_not_free_fail_the_start() {
        let occupied = script(&SimArgs::default(), 20 << 30, 7, 30000);
        assert!(occupied.failure.expect("fails").contains("not free"));
    }

    #[test]
    fn a_pool_below_the_context_is_told() {
        let args = SimArgs {
            context_length: 262_144,
            ..SimArgs::default()
        };
        let script = script(&args, FREE, 7, 30000);
        assert!(
            texts(&script)
                .iter()
                .any(|line| line.starts_with("KV pool holds 159744 tokens"))
        );
        assert_eq!(script.failure, None);
    }
}
