//! Each cause in the words of each engine that prints it.

use super::up_to::*;
use super::*;

const TORCH: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 1 has a total capacity of 47.40 GiB of which 200.00 MiB is free. Including non-PyTorch memory, this process has 47.10 GiB memory in use. Of the allocated memory 46.00 GiB is allocated by PyTorch\n";

/// The cause, and with it that a failed start says its line and what to do.
fn cause(log: &str) -> Option<Cause> {
    let found = read(log);
    assert_eq!(found.outcome, Outcome::Failed, "{log}\n{found:#?}");
    assert!(
        !found.evidence.is_empty() && found.advice.is_some(),
        "{log}\n{found:#?}"
    );
    found.cause
}

#[test]
fn card_memory_is_named_by_what_it_was_for() {
    for (before, words, expected) in [
        (SGLANG_WEIGHTS, TORCH, Cause::OomWeights),
        (VLLM_WEIGHTS, TORCH, Cause::OomWeights),
        (
            VLLM_WEIGHTS,
            "(Worker_TP1 pid=9) ERROR 09-18 08:00:20 [multiproc_executor.py:597] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 22.10 GiB already allocated; 120.88 MiB free; 22.20 GiB reserved in total by PyTorch)\n",
            Cause::OomWeights,
        ),
        (
            LLAMA_WEIGHTS,
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\nllama_model_load_from_file_impl: failed to load model\nsrv    load_model: failed to load model, '/m.gguf'\nmain: exiting due to model loading error\n",
            Cause::OomWeights,
        ),
        (SGLANG_POOL, TORCH, Cause::NoRoomForPool),
        (
            LLAMA_POOL,
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 32768.00 MiB on device 0: cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of size 34359738368\nllama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n",
            Cause::NoRoomForPool,
        ),
        (
            LLAMA_WEIGHTS,
            "3.02.199.202 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4480.00 MiB on device 3: cudaMalloc failed: out of memory\n3.02.199.205 E llama_kv_cache_init: failed to allocate buffer for kv cache\n",
            Cause::NoRoomForPool,
        ),
        (
            SGLANG_POOL,
            "[2026-09-02 10:01:20 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=7.41 GB\nCapturing batches (bs=24 avail_mem=0.52 GB):  36%|###6      | 10/28\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 47.40 GiB of which 512.00 MiB is free.\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n",
            Cause::OomGraphCapture,
        ),
        (
            VLLM_POOL,
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  48%|████▊     | 32/67 [00:02<00:02, 14.5it/s]\n(EngineCore pid=8) ERROR 09-18 08:01:30 [core.py:866] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a total capacity of 22.36 GiB of which 120.88 MiB is free.\n",
            Cause::OomGraphCapture,
        ),
        (
            VLLM_POOL,
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.\n",
            Cause::OomPrefill,
        ),
        (
            LLAMA_POOL,
            "llama_kv_cache: size = 8192.00 MiB ( 32768 cells,  16 layers,  4/4 seqs), K (f16): 4096.00 MiB, V (f16): 4096.00 MiB\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 8900.01 MiB on device 0: cudaMalloc failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 9332334592\ngraph_reserve: failed to allocate compute buffers\nllama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers\n",
            Cause::OomPrefill,
        ),
    ] {
        let log = format!("{before}{words}");
        assert_eq!(cause(&log), Some(expected), "{log}");
    }
}

#[test]
fn the_advice_turns_the_fraction_by_what_was_missing() {
    let log = format!(
        "{SGLANG_ARGS}{SGLANG_POOL}[2026-09-02 10:01:20 TP0] Capture cuda graph begin.\n{TORCH}"
    );
    let found = read(&log);
    // 1.2 GiB less 0.2 that were free, and half a GiB, are 0.032 of 47.4.
    let advice = found.advice.expect("advice");
    assert!(
        advice.contains("lower --mem-fraction-static from 0.85 to 0.81"),
        "{advice}"
    );
    assert_eq!(found.facts.needed_gib, Some(1.2));
    assert_eq!(found.facts.free_gib, Some(0.1953));
    assert_eq!(found.facts.total_gib, Some(47.4));
    assert_eq!(found.facts.device.as_deref(), Some("cuda:1"));
    let older = read(
        "Load weight begin.\nserver_args=\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 22.10 GiB already allocated; 120.88 MiB free; 22.20 GiB reserved)\n",
    );
    assert_eq!(
        (older.facts.total_gib, older.facts.free_gib),
        (Some(23.69), Some(0.118))
    );
}

#[test]
fn a_pool_that_was_sized_and_does_not_fit_wants_less_of_the_memory() {
    let found = read(&format!("{SGLANG_ARGS}{SGLANG_POOL}{TORCH}"));
    assert_eq!(found.cause, Some(Cause::NoRoomForPool));
    let advice = found.advice.expect("advice");
    assert!(
        advice.contains("lower --mem-fraction-static from 0.85 to 0.81"),
        "{advice}"
    );
}

#[test]
fn a_pool_without_room_wants_more_of_the_memory() {
    for (log, words) in [
        (
            format!(
                "{SGLANG_WEIGHTS}RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.7\n"
            ),
            "raise --mem-fraction-static from 0.7 to 0.75",
        ),
        (
            format!(
                "{SGLANG_WEIGHTS}ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6. Raise --mem-fraction-static above 0.713 (minimum viable = 1 - available/pre = 0.7123). If using speculative decoding, draft weights are now counted.\n"
            ),
            "raise --mem-fraction-static above 0.713",
        ),
        (
            format!(
                "{SGLANG_WEIGHTS}RuntimeError: Not enough GPU memory for hybrid state cache. total_rest_memory=0.41 GB\n"
            ),
            "raise --mem-fraction-static",
        ),
        (
            format!(
                "{VLLM_ARGS}{VLLM_WEIGHTS}(Worker pid=9) INFO 09-18 08:01:10 [gpu_worker.py:642] Available KV cache memory: -0.30 GiB\n(EngineCore pid=8) ERROR 09-18 08:01:11 [core.py:866] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
            ),
            "raise --gpu-memory-utilization from 0.92 to 0.95",
        ),
    ] {
        assert_eq!(cause(&log), Some(Cause::NoRoomForPool), "{log}");
        let advice = read(&log).advice.expect("advice");
        assert!(advice.contains(words), "{advice}");
    }
    let below_nothing = read(
        "INFO 09-18 08:01:10 [gpu_worker.py:642] Available KV cache memory: -0.30 GiB\nValueError: No available memory for the cache blocks. Try increasing\n",
    );
    assert_eq!(below_nothing.facts.available_gib, Some(-0.3));
    assert_eq!(below_nothing.facts.kv_pool_gib_per_gpu, None);
}

#[test]
fn a_pool_below_one_request_offers_what_fits() {
    for (line, needed, available, suggested) in [
        (
            "ValueError: To serve at least one request with the models's max seq len (32768), (8.00 GiB KV cache is needed, which is larger than the available KV cache memory (3.31 GiB). Based on the available memory, the estimated maximum model length is 13552. Try increasing `gpu_memory_utilization`",
            Some(8.0),
            Some(3.31),
            Some(13_552),
        ),
        // Without an estimate of the engine's own, and without the bracket of older releases.
        (
            "ValueError: To serve at least one request with the model's max seq len (1645057), 87.86 GiB KV cache is needed, which is larger than the available KV cache memory (71.03 GiB). Try increasing",
            Some(87.86),
            Some(71.03),
            Some(1_329_920),
        ),
        (
            "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (93936). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
            None,
            None,
            Some(93_936),
        ),
    ] {
        let found = read(&format!("{VLLM_WEIGHTS}{line}\n"));
        assert_eq!(
            found.cause,
            Some(Cause::KvPoolBelowOneRequest),
            "{found:#?}"
        );
        assert_eq!(found.facts.needed_gib, needed);
        assert_eq!(found.facts.available_gib, available);
        assert_eq!(found.suggested_context, suggested);
    }
}

#[test]
fn llamacpp_implies_a_context_that_fits() {
    let log = format!(
        "{LLAMA_POOL}ggml_backend_cuda_buffer_type_alloc_buffer: allocating 32768.00 MiB on device 0: cudaMalloc failed: out of memory\nllama_kv_cache: failed to allocate buffer for kv cache\n"
    );
    let found = read(&log);
    assert_eq!(found.facts.needed_gib, Some(32.0));
    // 40 GiB free, 16 of weights, 1 to spare: 23 of the 32 that 524,288 tokens take.
    assert_eq!(found.suggested_context, Some(376_832));
    assert_eq!(found.facts.requested_context, Some(524_288));
}

#[test]
fn above_the_limit_names_the_limit() {
    for (line, limit) in [
        (
            "  Value error, User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768 or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
            32_768,
        ),
        (
            "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len (sliding_window=4096 or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
            4096,
        ),
        (
            "ValueError: Warning: User-specified context_length (65536) is greater than the derived context_length (40960). This may lead to incorrect model outputs or CUDA errors. To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
            40_960,
        ),
    ] {
        let found = read(line);
        assert_eq!(
            found.cause,
            Some(Cause::ContextAboveModelLimit),
            "{found:#?}"
        );
        assert_eq!(found.suggested_context, Some(limit));
        assert_eq!(found.facts.requested_context, Some(65_536));
        assert!(
            found
                .advice
                .expect("advice")
                .contains("memory is not the reason")
        );
    }
    // Overridden, it is a warning and the start goes on.
    let log = format!(
        "{SGLANG_WEIGHTS}[2026-09-02 10:00:09] Warning: User-specified context_length (65536) is greater than the derived context_length (40960). This may lead to incorrect model outputs or CUDA errors.\n[2026-09-02 10:01:55] The server is fired up and ready to roll!\n"
    );
    let found = read(&log);
    assert_eq!((found.outcome, found.cause), (Outcome::Ready, None));
    assert!(found.advice.expect("advice").contains("nonsense"));
}

#[test]
fn cards_that_are_not_free_are_told_from_models_that_do_not_fit() {
    let vllm = read(&format!(
        "{VLLM_ARGS}(EngineCore pid=253) ERROR 09-18 08:00:09 [core.py:866] ValueError: Free memory on device cuda:0 (12.18/23.56 GiB) on startup is less than desired GPU memory utilization (0.92, 21.67 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
    ));
    assert_eq!(vllm.cause, Some(Cause::GpuNotFree));
    let facts = &vllm.facts;
    assert_eq!(facts.device.as_deref(), Some("cuda:0"));
    assert_eq!(
        (facts.free_gib, facts.total_gib),
        (Some(12.18), Some(23.56))
    );
    assert_eq!(
        (facts.fraction, facts.needed_gib),
        (Some(0.92), Some(21.67))
    );
    assert!(vllm.advice.expect("advice").contains("to 0.50"));
    let older = read(
        "ValueError: Free memory on device (61.05/119.7 GiB) on startup is less than desired GPU memory utilization (0.52, 62.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
    );
    assert_eq!(older.cause, Some(Cause::GpuNotFree));
    assert_eq!(
        (older.facts.device, older.facts.needed_gib),
        (None, Some(62.24))
    );
    let sglang = read(&format!(
        "{SGLANG_ARGS}RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=16.28, local_gpu_memory=46.81, local_gpu_memory * 0.9=42.13\n"
    ));
    assert_eq!(sglang.cause, Some(Cause::GpuNotFree));
    assert_eq!(sglang.facts.free_gib, Some(16.28));
    // Before the first weight a card can only be full of something else.
    let early = format!("{SGLANG_ARGS}torch.AcceleratorError: CUDA error: out of memory\n");
    assert_eq!(cause(&early), Some(Cause::GpuNotFree));
    // Another process is named in PyTorch's own line.
    let others = format!(
        "{SGLANG_WEIGHTS}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 47.40 GiB of which 100.00 MiB is free. Process 4127 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 7.20 GiB memory in use.\n"
    );
    assert_eq!(cause(&others), Some(Cause::GpuNotFree));
}

#[test]
fn a_taken_port_is_named() {
    for (log, port) in [
        (
            "[2026-09-02 12:00:44] ERROR:    [Errno 98] error while attempting to bind on address ('::', 30000, 0, 0): address already in use\n",
            Some(30_000),
        ),
        (
            "srv  start: couldn't bind HTTP server socket, hostname: 0.0.0.0, port: 8080\nmain: exiting due to HTTP server error\n",
            Some(8080),
        ),
        (
            "(APIServer pid=7) INFO 09-18 08:00:01 [utils.py:233] non-default args: {'port': 8001}\nOSError: [Errno 98] Address already in use\n",
            Some(8001),
        ),
        (
            "[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n",
            Some(29_500),
        ),
        (
            "Error response from daemon: driver failed programming external connectivity: Bind for 0.0.0.0:8000 failed: port is already allocated\n",
            Some(8000),
        ),
        ("OSError: [Errno 98] Address already in use\n", None),
    ] {
        let found = read(log);
        assert_eq!(
            (found.outcome, found.cause),
            (Outcome::Failed, Some(Cause::PortInUse)),
            "{log}"
        );
        assert_eq!(found.facts.port, port, "{log}");
    }
    // What NCCL says of a port that it then does not take.
    let chatter = "gpu1:175:175 [0] NCCL INFO x\nmisc/socket.cc:431 NCCL WARN Call to bind failed: Address already in use\n";
    assert_eq!(read(chatter).outcome, Outcome::Loading);
}

#[test]
fn wrong_arguments_are_known() {
    for line in [
        "vllm: error: unrecognized arguments: --max-model-length 8192",
        "launch_server.py: error: argument --context-length: invalid int value: '64K'",
        "api_server.py: error: argument --max-model-len: expected one argument",
        "launch_server.py: error: the following arguments are required: --model-path/--model",
        "error: invalid argument: --ctx-sizes",
        "error while handling argument \"-c\": stoi",
        "  Value error, Total number of attention heads (40) must be divisible by tensor parallel size (3).",
        "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively limits the maximum sequence length",
    ] {
        assert_eq!(cause(line), Some(Cause::BadArgument), "{line}");
    }
}

#[test]
fn missing_models_are_known() {
    for line in [
        "OSError: Qwen/Qwen9 is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1)",
        "huggingface_hub.errors.GatedRepoError: 403 Client Error.",
        "OSError: You are trying to access a gated repo.",
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/none'. Use `repo_type` argument if needed.",
        "RuntimeError: Cannot find any model weights with `/models/empty`",
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        "FileNotFoundError: [Errno 2] No such file or directory: '/models/q/model-00003-of-00017.safetensors'",
        "llama_model_load: error loading model: llama_model_loader: failed to load model from /m.gguf: No such file or directory",
        "gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)",
        "llama_model_load: error loading model: tensor 'output.weight' data is not within the file bounds, model is corrupted or incomplete",
        "gguf_init_from_file_impl: invalid magic characters: 'vers', expected 'GGUF'",
    ] {
        assert_eq!(cause(line), Some(Cause::ModelMissing), "{line}");
    }
}

#[test]
fn drivers_that_do_not_fit_are_known() {
    for line in [
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination",
        "torch.AcceleratorError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9, please update your driver",
        "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "RuntimeError: No CUDA GPUs are available",
    ] {
        assert_eq!(cause(line), Some(Cause::DriverMismatch), "{line}");
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_stuck_or_were_ended() {
    let timeout = format!(
        "{SGLANG_ARGS}[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, NumelOut=131072000, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.\n"
    );
    assert_eq!(cause(&timeout), Some(Cause::StalledInCollectives));
    assert_eq!(read(&timeout).facts.after_s, Some(600.081));
    for line in [
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:331, unhandled system error",
        "[2026-09-02 10:05:00 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        "Exception: Capture cuda graph failed: Detected mismatch between collectives on ranks. Rank 3 is running collective: SequenceNumber=18",
    ] {
        assert_eq!(cause(line), Some(Cause::StalledInCollectives), "{line}");
    }
    let wait = "(EngineCore_DP0 pid=8) INFO 09-18 08:05:03 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation).\n";
    let meeting = format!(
        "{VLLM_ARGS}(Worker_TP0 pid=9) INFO 09-18 08:00:05 [pynccl.py:103] vLLM is using nccl==2.27.3\n"
    );
    assert_eq!(read(&meeting).outcome, Outcome::Loading);
    let stuck = read(&format!(
        "{meeting}{wait}{}",
        wait.replace("08:05", "08:06")
    ));
    assert_eq!(
        (stuck.outcome, stuck.cause),
        (Outcome::Stuck, Some(Cause::StalledInCollectives))
    );
    assert_eq!(stuck.facts.after_s, Some(358.0));
    // Compiling takes its time too.
    let compiling = format!("{VLLM_POOL}{}", wait.replace("08:05", "08:02"));
    assert_eq!(read(&compiling).outcome, Outcome::Loading);
}

#[test]
fn ends_by_the_system_are_told_apart() {
    let with = |words: &str| cause(&format!("{SGLANG_WEIGHTS}{words}\n"));
    for line in [
        "Sep 02 10:02:00 gpu1 kernel: Out of memory: Killed process 812 (python3) total-vm:32000000kB, anon-rss:25000000kB",
        "Sep 02 10:02:00 gpu1 systemd[1]: sglang.service: A process of this unit has been killed by the OOM killer.",
        "Memory cgroup out of memory: Killed process 812 (python3)",
        "std::bad_alloc",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
        "ValueError: Not enough host memory for the KV cache. Requesting 120.00 GB plus 10.00 GB reserve, but only 64.00 GB is available from /proc/meminfo. Please reduce the size of the hierarchical cache.",
    ] {
        assert_eq!(with(line), Some(Cause::OomHost), "{line}");
    }
    for line in [
        "Killed",
        "Sep 02 10:02:00 gpu1 systemd[1]: sglang.service: Main process exited, code=killed, status=9/KILL",
        "sglang-1 exited with code 137",
        "[2026-09-02 10:02:00] Rank 0 scheduler died (exit code: -9)",
        "Sep 02 10:02:00 gpu1 systemd[1]: sglang.service: start operation timed out. Terminating.",
    ] {
        assert_eq!(with(line), Some(Cause::Killed), "{line}");
    }
    for line in [
        "Segmentation fault (core dumped)",
        "Fatal Python error: Segmentation fault",
        "GGML_ASSERT(n_tokens > 0) failed",
        "Sep 02 10:02:00 gpu1 systemd[1]: sglang.service: Main process exited, code=dumped, status=6/ABRT",
        "Sep 02 10:02:00 gpu1 systemd[1]: sglang.service: Main process exited, code=exited, status=1/FAILURE",
        "[2026-09-02 10:02:00] Received sigquit from a child process. It usually means the child failed.",
    ] {
        assert_eq!(with(line), Some(Cause::Crashed), "{line}");
    }
    let slow = read(&format!(
        "{SGLANG_WEIGHTS}systemd[1]: x.service: start operation timed out. Terminating.\n"
    ));
    assert!(slow.advice.expect("advice").contains("TimeoutStartSec"));
}

#[test]
fn words_that_are_not_known_are_shown_as_they_are() {
    let found = read(&format!(
        "{SGLANG_WEIGHTS}ValueError: Model architectures ['Qwen9'] are not supported for now.\n[2026-09-02 10:00:20] Received sigquit from a child process. It usually means the child failed.\n"
    ));
    assert_eq!(
        (found.outcome, found.cause),
        (Outcome::Failed, Some(Cause::Unknown))
    );
    assert_eq!(
        found.evidence,
        ["ValueError: Model architectures ['Qwen9'] are not supported for now."]
    );
}

#[test]
fn the_cause_is_not_what_follows_from_it() {
    let log = format!(
        "{SGLANG_POOL}[2026-09-02 10:01:20 TP0] Capture cuda graph begin.\n[2026-09-02 10:01:25 TP1] Scheduler hit an exception: Traceback (most recent call last):\n{TORCH}\n[2026-09-02 10:01:26 TP0] Capture cuda graph end. Time elapsed: 5.61 s. mem usage=0.86 GB. avail mem=6.55 GB.\n[2026-09-02 10:01:27] Received sigquit from a child process.\n[2026-09-02 10:01:27] kill_process_tree called: parent_pid=1, include_parent=True, pid=1\nKilled\n"
    );
    let found = read(&log);
    assert_eq!(
        found.cause,
        Some(Cause::OomGraphCapture),
        "another rank went on: {found:#?}"
    );
    assert!(found.evidence[0].starts_with("torch.OutOfMemoryError"));
}
