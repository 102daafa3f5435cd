//! The figures of starts that go well, in the forms of several releases.

use super::up_to::*;
use super::*;

#[test]
fn progress_is_read_from_every_kind_of_bar() {
    for (kind, line, phase, percent, parts) in [
        (
            Kind::Sglang,
            "\rMulti-thread loading shards:  50% Completed | 6/12 [00:00<00:00, 5.15it/s]",
            Phase::LoadingWeights,
            Some(50),
            Some((6, 12)),
        ),
        (
            Kind::Sglang,
            "Capturing batches (bs=24 avail_mem=7.02 GB):  36%|###6      | 10/28",
            Phase::CapturingGraphs,
            Some(36),
            Some((10, 28)),
        ),
        (
            Kind::Vllm,
            "\u{1b}[0;36m(Worker_TP0 pid=9)\u{1b}[0;0m Loading safetensors checkpoint shards:  71% Completed | 12/17 [00:50<00:20,  4.1s/it]",
            Phase::LoadingWeights,
            Some(71),
            Some((12, 17)),
        ),
        (
            Kind::Vllm,
            "Capturing CUDA graphs (decode, FULL):  34%|███▍      | 12/35 [00:01<00:02, 8.7it/s]",
            Phase::CapturingGraphs,
            Some(34),
            Some((12, 35)),
        ),
        (
            Kind::LlamaCpp,
            "0.00.239.812 I load_tensors: offloading output layer to GPU",
            Phase::LoadingWeights,
            None,
            None,
        ),
        (
            Kind::LlamaCpp,
            "srv    load_model: loading model '/m.gguf'",
            Phase::LoadingWeights,
            None,
            None,
        ),
        (
            Kind::Vllm,
            "Fetching 17 files:  41%|████      | 7/17 [02:00<03:00, 18.1s/it]",
            Phase::Downloading,
            Some(41),
            Some((7, 17)),
        ),
        (
            Kind::Sglang,
            "model-00001-of-00017.safetensors:  34%|███▍      | 1.70G/4.97G [00:12<00:24, 134MB/s]",
            Phase::Downloading,
            Some(34),
            None,
        ),
    ] {
        let mut reader = Reader::new(Some(kind));
        let change = reader.read(line);
        let (found, progress) = change.phase.expect(line);
        assert_eq!(
            (found, progress.percent, progress.parts),
            (phase, percent, parts),
            "{line}"
        );
    }
}

#[test]
fn one_line_of_many_states_ends_at_the_last() {
    let mut reader = Reader::new(Some(Kind::Vllm));
    let line = "\rLoading safetensors checkpoint shards:   0% Completed | 0/2\rLoading safetensors checkpoint shards: 100% Completed | 2/2";
    let change = reader.read(line);
    assert_eq!(
        change.phase.map(|(_, progress)| progress.percent),
        Some(Some(100))
    );
    assert!(!reader.read(line).progress || reader.phase().is_some());
}

#[test]
fn ranks_are_not_added() {
    let rank = |n: u32| {
        format!(
            "[2026-09-02 10:01:13 TP{n}] KV Cache is allocated. #tokens: 212992, K size: 3.25 GB, V size: 3.25 GB\n[2026-09-02 10:01:13 TP{n}] Memory pool end. avail mem=8.11 GB\n[2026-09-02 10:01:20 TP{n}] KV Cache is allocated. #tokens: 212992, K size: 0.20 GB, V size: 0.20 GB\n"
        )
    };
    let mixed: String = rank(0)
        .lines()
        .zip(rank(1).lines())
        .map(|(a, b)| format!("{b}\n{a}\n"))
        .collect();
    let facts = read(&mixed).facts;
    assert_eq!(facts.kv_pool_gib_per_gpu, Some(6.5));
    assert_eq!(facts.draft_kv_gib_per_gpu, Some(0.4));
    assert_eq!(facts.kv_pool_tokens, Some(212_992));
}

#[test]
fn pools_of_other_shapes_are_read() {
    let latent = read(
        "[2026-09-02 10:01:13 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 400000, KV size: 25.14 GB\n",
    );
    assert_eq!(latent.facts.kv_pool_gib_per_gpu, Some(25.14));
    // Layers with a window have a pool of their own, of fewer tokens.
    let windowed = read(
        "[2026-09-02 10:01:13 TP0] KV Cache is allocated. #tokens: 300000, K size: 2.00 GB, V size: 2.00 GB\n[2026-09-02 10:01:13 TP0] KV Cache is allocated. #tokens: 240000, K size: 1.50 GB, V size: 1.50 GB\n[2026-09-02 10:01:13 TP0] Memory pool end. avail mem=8.11 GB\n",
    );
    assert_eq!(windowed.facts.kv_pool_gib_per_gpu, Some(7.0));
    assert_eq!(windowed.facts.draft_kv_gib_per_gpu, None);
    assert_eq!(windowed.facts.kv_pool_tokens, Some(300_000));
    let llama = read(
        "llama_context: n_ctx         = 32768\nllama_kv_cache_iswa: creating non-SWA KV cache, size = 32768 cells\nllama_kv_cache: size =  640.00 MiB ( 32768 cells,  10 layers,  1/1 seqs), K (f16):  320.00 MiB, V (f16):  320.00 MiB\nllama_kv_cache_iswa: creating     SWA KV cache, size = 1536 cells\nllama_kv_cache: size =  384.00 MiB (  1536 cells,  52 layers,  1/1 seqs), K (f16):  192.00 MiB, V (f16):  192.00 MiB\n",
    );
    assert_eq!(llama.facts.kv_gib, Some(1.0));
    assert_eq!(llama.facts.kv_pool_tokens, Some(32_768));
}

#[test]
fn vllm_starts_state_their_figures() {
    let facts = read(&format!("{VLLM_ARGS}{VLLM_POOL}")).facts;
    assert_eq!(facts.requested_context, Some(131_072));
    assert_eq!(facts.kv_pool_tokens, Some(150_745));
    assert_eq!(facts.available_gib, Some(2.97));
    assert_eq!(facts.fraction, Some(0.92));
    assert_eq!(facts.max_running_requests, Some(64));
    assert_eq!(facts.port, Some(8000));
    assert_eq!(
        facts.effective_context_per_request, None,
        "it does not serve yet"
    );
    let fitted = read(&format!(
        "{VLLM_ARGS}{VLLM_WEIGHTS}(EngineCore pid=8) INFO 09-18 08:01:11 [kv_cache_utils.py:1] Auto-fit max_model_len: reduced from 262144 to 34736 to fit in available GPU memory (3.18 GiB available for KV cache)\nINFO:     Application startup complete.\n"
    ));
    assert_eq!(fitted.outcome, Outcome::Ready);
    assert_eq!(fitted.facts.effective_context_per_request, Some(34_736));
}

#[test]
fn the_pool_of_a_hybrid_model_is_counted_in_whole_requests() {
    let log = format!(
        "{VLLM_ARGS}(EngineCore pid=8) INFO 09-18 08:01:11 [kv_cache_utils.py:1319] GPU KV cache size: 50,000 tokens\n(EngineCore pid=8) INFO 09-18 08:01:11 [kv_cache_utils.py:1324] Maximum concurrency for 131,072 tokens per request: 3.20x\nINFO:     Application startup complete.\n"
    );
    let found = read(&log);
    assert_eq!(found.facts.kv_pool_tokens, Some(419_430));
    assert_eq!(found.facts.effective_context_per_request, Some(131_072));
    assert_eq!(found.suggested_context, None);
    assert!(found.advice.expect("told").contains("50,000"));
}

#[test]
fn weights_and_graphs_are_known_beside_the_pool() {
    let sglang = read(include_str!(
        "../../../../tests/fixtures/startup/cases/start-01.log"
    ));
    assert_eq!(sglang.taken.weights_gib, Some(26.71));
    assert_eq!(sglang.taken.graphs_gib, Some(0.86));
    let vllm = read(&format!(
        "{VLLM_WEIGHTS}(Worker pid=9) INFO 09-18 08:00:40 [gpu_model_runner.py:3] Model loading took 14.99 GiB and 3.2 seconds\n(Worker pid=9) INFO 09-18 08:01:40 [gpu_model_runner.py:4] Graph capturing finished in 20 secs, took 0.50 GiB\n"
    ));
    assert_eq!(vllm.taken.weights_gib, Some(14.99));
    assert_eq!(vllm.taken.graphs_gib, Some(0.5));
}

#[test]
fn layers_on_the_processor_are_ready_and_marked() {
    let ready = "main: server is listening on http://127.0.0.1:8080 - starting the main loop\n";
    let some = read(&format!(
        "load_tensors: offloaded 20/65 layers to GPU\n{ready}"
    ));
    assert_eq!(some.outcome, Outcome::Ready);
    assert!(
        some.advice
            .expect("marked")
            .contains("45 of 65 layers run on the CPU")
    );
    let none = read(&format!(
        "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version\nload_tensors: offloaded 65/65 layers to GPU\n{ready}"
    ));
    assert_eq!(none.outcome, Outcome::Ready);
    assert!(
        none.advice
            .expect("marked")
            .contains("no card could be used")
    );
    let all = read(&format!(
        "load_tensors: offloaded 65/65 layers to GPU\n{ready}"
    ));
    assert_eq!(all.advice, None);
}

#[test]
fn a_retry_that_works_is_no_failure() {
    let log = "1.06.520.077 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 51748.72 MiB on device 1: cudaMalloc failed: out of memory\n1.06.520.084 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 54262464512\n1.06.520.086 E graph_reserve: failed to allocate compute buffers\n1.06.520.107 W sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n";
    assert_eq!(read(log).outcome, Outcome::Loading);
    let on = format!(
        "{log}1.07.304.130 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 50176, kv_unified = 'false'\n1.07.310.000 I srv  llama_server: listening on http://127.0.0.1:8080\n"
    );
    let found = read(&on);
    assert_eq!(found.outcome, Outcome::Ready, "{found:#?}");
    assert_eq!(found.facts.effective_context_per_request, Some(50_176));
}

#[test]
fn the_last_of_several_starts_counts_and_says_so() {
    let failed = format!(
        "{SGLANG_WEIGHTS}RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    );
    let again = format!("{failed}{failed}{SGLANG_WEIGHTS}");
    let found = read(&again);
    assert_eq!(found.outcome, Outcome::Loading);
    let advice = found.advice.expect("advice");
    assert!(
        advice.contains("3 starts") && advice.contains("no card memory left"),
        "{advice}"
    );
    let llama = "0.00.006.672 I srv    load_model: loading model '/a.gguf'\n0.01.000.000 I srv  llama_server: listening on http://127.0.0.1:1\n0.00.005.000 I srv    load_model: loading model '/a.gguf'\n";
    let found = read(llama);
    assert_eq!(found.outcome, Outcome::Loading);
    assert!(found.advice.expect("advice").contains("2 starts"));
}

#[test]
fn what_others_put_before_a_line_does_not_matter() {
    let plain = include_str!("../../../../tests/fixtures/startup/cases/start-01.log");
    let expected = read(plain);
    let prefixes: [fn(&str) -> String; 5] = [
        |line| format!("sglang-1  | {line}"),
        |line| format!("Sep 02 10:00:01 gpu1 python3[812]: {line}"),
        |line| format!("2026-09-02T10:00:01.123456789Z stdout F {line}"),
        |line| format!("\u{1b}[32m{line}\u{1b}[0m\r"),
        |line| format!("2026-09-02T10:00:01+0000 {line}"),
    ];
    for prefix in prefixes {
        let log: String = plain.lines().map(|line| prefix(line) + "\n").collect();
        let found = read(&log);
        assert_eq!(
            found.facts,
            expected.facts,
            "{}",
            log.lines().next().unwrap_or_default()
        );
        assert_eq!(
            (found.engine, found.outcome),
            (expected.engine, expected.outcome)
        );
    }
}
