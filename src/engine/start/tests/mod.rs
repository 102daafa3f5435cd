//! What the engines print, and what must be read from it.

mod causes;
mod facts;
mod run_time;
mod sturdy;

use super::*;

/// What is read from a log, the engine found out from its lines.
fn read(log: &str) -> Diagnosis {
    read_as(None, log)
}

fn read_as(kind: Option<Kind>, log: &str) -> Diagnosis {
    reader(kind, log).diagnose(&Known::default())
}

fn reader(kind: Option<Kind>, log: &str) -> Reader {
    let mut reader = Reader::new(kind);
    for line in log.lines() {
        reader.read(line);
    }
    reader
}

/// Beginnings of starts, up to the phase that the name says.
mod up_to {
    pub const SGLANG_ARGS: &str = "[2026-09-02 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3.6-27B', host='0.0.0.0', port=30000, mem_fraction_static=0.85, max_running_requests=None, context_length=131072, tp_size=2)\n";
    pub const SGLANG_WEIGHTS: &str = "[2026-09-02 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3.6-27B', host='0.0.0.0', port=30000, mem_fraction_static=0.85, max_running_requests=None, context_length=131072, tp_size=2)\n[2026-09-02 10:00:05 TP0] Init torch distributed begin.\n[2026-09-02 10:00:07 TP0] Init torch distributed ends. mem usage=0.60 GB\n[2026-09-02 10:00:08 TP0] Load weight begin. avail mem=47.02 GB\nLoading safetensors checkpoint shards:  71% Completed | 12/17 [00:50<00:20,  4.1s/it]\n";
    pub const SGLANG_POOL: &str = "[2026-09-02 10:00:08 TP0] Load weight begin. avail mem=47.02 GB\n[2026-09-02 10:01:12 TP0] Load weight end. elapsed=64.04 s, type=Qwen3ForCausalLM, avail mem=20.31 GB, mem usage=26.71 GB.\n[2026-09-02 10:01:13 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 212992, K size: 6.50 GB, V size: 6.50 GB\n[2026-09-02 10:01:13 TP0] Memory pool end. avail mem=7.11 GB\n";
    pub const VLLM_ARGS: &str = "(APIServer pid=7) INFO 09-18 08:00:01 [utils.py:233] non-default args: {'model_tag': '/m', 'port': 8000, 'model': '/m', 'max_model_len': 131072, 'gpu_memory_utilization': 0.92, 'max_num_seqs': 64}\n(APIServer pid=7) INFO 09-18 08:00:02 [model.py:733] Using max model len 131072\n";
    pub const VLLM_WEIGHTS: &str = "(Worker pid=9) INFO 09-18 08:00:10 [gpu_model_runner.py:68] Starting to load model /m...\nLoading safetensors checkpoint shards:  40% Completed | 2/5 [00:10<00:15,  5.0s/it]\n";
    pub const VLLM_POOL: &str = "(Worker pid=9) INFO 09-18 08:00:10 [gpu_model_runner.py:68] Starting to load model /m...\n(Worker pid=9) INFO 09-18 08:01:10 [gpu_worker.py:642] Available KV cache memory: 2.97 GiB\n(EngineCore pid=8) INFO 09-18 08:01:11 [kv_cache_utils.py:1319] GPU KV cache size: 150,745 tokens\n(EngineCore pid=8) INFO 09-18 08:01:11 [kv_cache_utils.py:1324] Maximum concurrency for 131,072 tokens per request: 1.15x\n";
    pub const LLAMA_WEIGHTS: &str = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA RTX A6000) - 47883 MiB free\nload_tensors: loading model tensors, this can take a while... (mmap = true)\n";
    pub const LLAMA_POOL: &str = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA RTX A6000) - 40960 MiB free\nload_tensors: loading model tensors, this can take a while... (mmap = true)\nload_tensors: offloaded 65/65 layers to GPU\nload_tensors:        CUDA0 model buffer size = 16384.00 MiB\nload_tensors:   CPU_Mapped model buffer size =   700.00 MiB\nllama_context: constructing llama_context\nllama_context: n_seq_max     = 1\nllama_context: n_ctx         = 524288\nllama_context: n_ctx_seq     = 524288\n";
}
