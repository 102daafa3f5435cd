//! The words by which failures are known, of the engines, of PyTorch, of the kernel and of service managers.

use super::Cause;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Words that name a cause. The first that a line has counts: the more special ones stand first.
const KNOWN: &[(&str, Cause)] = &[
    (
        "To serve at least one request with the model",
        Cause::KvPoolBelowOneRequest,
    ),
    (
        "maximum number of tokens that can be stored in KV cache",
        Cause::KvPoolBelowOneRequest,
    ),
    (
        "To allow overriding this maximum, set the env var",
        Cause::ContextAboveModelLimit,
    ),
    (
        "on startup is less than desired GPU memory utilization",
        Cause::GpuNotFree,
    ),
    ("Error in memory profiling", Cause::GpuNotFree),
    (
        "Not enough memory. Please try to increase",
        Cause::NoRoomForPool,
    ),
    ("Loaded weights leave no GPU memory", Cause::NoRoomForPool),
    (
        "Not enough GPU memory for hybrid state cache",
        Cause::NoRoomForPool,
    ),
    (
        "state cache is too small to serve any requests",
        Cause::NoRoomForPool,
    ),
    ("exceeds available Mamba cache blocks", Cause::NoRoomForPool),
    (
        "No available memory for the cache blocks",
        Cause::NoRoomForPool,
    ),
    ("ggml_aligned_malloc: insufficient memory", Cause::OomHost),
    ("failed to allocate CPU buffer", Cause::OomHost),
    ("unable to allocate CPU buffer", Cause::OomHost),
    ("DefaultCPUAllocator: ", Cause::OomHost),
    ("Not enough host memory", Cause::OomHost),
    ("std::bad_alloc", Cause::OomHost),
    ("[Errno 12] Cannot allocate memory", Cause::OomHost),
    ("Out of memory: Killed process", Cause::OomHost),
    ("emory cgroup out of memory: Killed", Cause::OomHost),
    ("killed by the OOM killer", Cause::OomHost),
    ("OOM killer killed some processes", Cause::OomHost),
    ("Failed with result 'oom-kill'", Cause::OomHost),
    ("OOMKilled", Cause::OomHost),
    ("out of shared memory", Cause::OomHost),
    ("shared memory segment /dev/shm", Cause::OomHost),
    (
        "NVIDIA driver on your system is too old",
        Cause::DriverMismatch,
    ),
    ("Driver/library version mismatch", Cause::DriverMismatch),
    ("LibRmVersionMismatch", Cause::DriverMismatch),
    (
        "unsupported display driver / cuda driver combination",
        Cause::DriverMismatch,
    ),
    (
        "driver version is insufficient for CUDA runtime",
        Cause::DriverMismatch,
    ),
    (
        "forward compatibility was attempted on non supported HW",
        Cause::DriverMismatch,
    ),
    (
        "compiled with an unsupported toolchain",
        Cause::DriverMismatch,
    ),
    (
        "no kernel image is available for execution",
        Cause::DriverMismatch,
    ),
    (
        "requirement error: unsatisfied condition: cuda",
        Cause::DriverMismatch,
    ),
    (
        "Found no NVIDIA driver on your system",
        Cause::DriverMismatch,
    ),
    (
        "couldn't communicate with the NVIDIA driver",
        Cause::DriverMismatch,
    ),
    ("could not select device driver", Cause::DriverMismatch),
    ("No CUDA GPUs are available", Cause::DriverMismatch),
    ("Failed to infer device type", Cause::DriverMismatch),
    ("couldn't bind HTTP server socket", Cause::PortInUse),
    ("couldn't bind to server socket", Cause::PortInUse),
    (
        "error while attempting to bind on address",
        Cause::PortInUse,
    ),
    ("ddress already in use", Cause::PortInUse),
    ("EADDRINUSE", Cause::PortInUse),
    ("port is already allocated", Cause::PortInUse),
    ("is used by a process already", Cause::PortInUse),
    ("port is not available in ", Cause::PortInUse),
    (
        "Watchdog caught collective operation timeout",
        Cause::StalledInCollectives,
    ),
    (
        "watchdog timeout (self.watchdog_timeout=",
        Cause::StalledInCollectives,
    ),
    (
        "mismatch between collectives on ranks",
        Cause::StalledInCollectives,
    ),
    ("DistBackendError: ", Cause::StalledInCollectives),
    ("DistStoreError: ", Cause::StalledInCollectives),
    ("DistNetworkError: ", Cause::StalledInCollectives),
    ("NCCL error: ", Cause::StalledInCollectives),
    ("NCCL Error ", Cause::StalledInCollectives),
    (
        "NCCL operations have failed or timed out",
        Cause::StalledInCollectives,
    ),
    ("execute_model timed out", Cause::StalledInCollectives),
    ("sample_tokens timed out", Cause::StalledInCollectives),
];

/// Lines that only say that something failed before them.
const AFTERMATH: &[&str] = &[
    "Received sigquit from a child process",
    "SIGQUIT received",
    "Engine core initialization failed",
    "EngineCore failed to start",
    "EngineCore encountered a fatal error",
    "EngineDeadError",
    "Engine process failed to start",
    "WorkerProc initialization failed",
    "Scheduler hit an exception",
    "Client hit an exception",
    "died unexpectedly",
    "scheduler is dead",
    "scheduler died",
    "Initialization failed. Please see",
    "include_parent=True",
    "failed to load model",
    "failed to create context with model",
    "exiting due to ",
    "Exiting due to ",
];

/// One search for each of some words; a log may have millions of lines.
pub(super) struct Words(Vec<Finder<'static>>);

impl Words {
    pub fn new(words: &[&'static str]) -> Words {
        Words(words.iter().map(|word| Finder::new(*word)).collect())
    }

    /// Which of them stands in the text, the first of the list.
    pub fn first_in(&self, text: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|finder| finder.find(text.as_bytes()).is_some())
    }
}

static KNOWN_WORDS: LazyLock<Words> =
    LazyLock::new(|| Words::new(&KNOWN.iter().map(|(words, _)| *words).collect::<Vec<_>>()));
pub(super) static AFTERMATH_WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(AFTERMATH));
pub(super) static CRASHED_WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(CRASHED));

/// The end of a process in the words of the C library, CUDA and ggml.
const CRASHED: &[&str] = &[
    "GGML_ASSERT(",
    "Fatal Python error: ",
    "terminate called ",
    "Segfault encountered",
    "an illegal memory access was encountered",
    "device-side assert triggered",
    "unspecified launch failure",
    "uncorrectable ECC error",
];

/// The cause that the text names, if it does.
pub(super) fn known(text: &str) -> Option<Cause> {
    let at = KNOWN_WORDS.first_in(text)?;
    KNOWN.get(at).map(|(_, cause)| *cause)
}
