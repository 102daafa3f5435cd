//! Which of the words of a command are a server's arguments, and whose.

use super::command::{Command, Env, Word};
use super::dialect::{ALL, Dialect};
use super::traced::{is_name, plain, split_assignment};

/// A command that starts a server, or may do so.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub names: Vec<String>,
    pub dialect: Option<Dialect>,
    pub words: Vec<Word>,
    /// Where the server's own arguments start in `words`.
    pub first: usize,
    pub env: Env,
    /// Whether the program or the image says so; otherwise only the arguments look like it.
    pub sure: bool,
    pub template: bool,
}

/// Programs that start the program named behind them.
const STARTERS: [&str; 55] = [
    "sudo",
    "doas",
    "env",
    "nohup",
    "nice",
    "ionice",
    "taskset",
    "numactl",
    "stdbuf",
    "timeout",
    "time",
    "setsid",
    "exec",
    "command",
    "chrt",
    "flock",
    "unshare",
    "nsenter",
    "systemd-run",
    "systemd-inhibit",
    "runuser",
    "su",
    "gosu",
    "su-exec",
    "setpriv",
    "tini",
    "dumb-init",
    "catchsegv",
    "xvfb-run",
    "mpirun",
    "mpiexec",
    "srun",
    "uv",
    "uvx",
    "poetry",
    "pipenv",
    "pipx",
    "conda",
    "micromamba",
    "pct",
    "lxc-attach",
    "chroot",
    "prlimit",
    "ssh",
    "screen",
    "tmux",
    "start-stop-daemon",
    "kubectl",
    "nsys",
    "strace",
    "gdb",
    "trtllm-llmapi-launch",
    "unbuffer",
    "hatch",
    "cgexec",
];

/// Programs whose arguments only look like a server's.
const TALKERS: [&str; 16] = [
    "echo", "printf", "grep", "egrep", "sed", "awk", "test", "[", "[[", "logger", "curl", "pkill",
    "pgrep", "cat", "die", "log",
];

/// The server that `command` starts: what the image or the program says, else what the arguments look like.
pub(super) fn candidate(command: Command, asked: Option<Dialect>) -> Option<Candidate> {
    let Command {
        names,
        words,
        mut env,
        image,
        inside: _,
        template,
    } = command;
    let found = program(&words);
    let (dialect, first, sure) = match (found, &image) {
        (Some((dialect, first)), _) => (Some(dialect), first, true),
        (None, Some(image)) => {
            let dialect = of_image(image);
            (dialect, 0, dialect.is_some())
        }
        (None, None) => {
            let base = words.first()?.base();
            if TALKERS.contains(&base.as_str()) {
                return None;
            }
            (None, 1, false)
        }
    };
    for word in words.iter().take(if sure { first } else { 0 }) {
        preset(word, &mut env);
    }
    let args = words.get(first..).unwrap_or_default();
    let dialect = dialect.or(asked).or_else(|| by_arguments(args, &env));
    // Without a program that is known, an argument of that name has to be there.
    let shaped = |dialect: Dialect| {
        let has = |word: &Word| dialect.context(&word.shown()).is_some();
        args.iter().any(has) || dialect.variable().is_some_and(|v| env.get(v).is_some())
    };
    if !sure && !dialect.is_some_and(shaped) {
        return None;
    }
    Some(Candidate {
        names,
        dialect,
        words,
        first,
        env,
        sure,
        template,
    })
}

/// Whether the program starts the one named behind it.
pub(super) fn starts_others(base: &str) -> bool {
    STARTERS.contains(&base)
}

/// Whether the words start a server that is known.
pub(super) fn is_program(words: &[Word]) -> bool {
    program(words).is_some()
}

/// Words that are arguments alone, without a program.
pub(super) fn of_arguments(command: Command, asked: Option<Dialect>) -> Option<Candidate> {
    let dialect = asked.or_else(|| by_arguments(&command.words, &command.env))?;
    let has = |word: &Word| dialect.context(&word.shown()).is_some();
    let given = command.words.iter().any(has)
        || dialect
            .variable()
            .is_some_and(|name| command.env.get(name).is_some());
    if !given {
        return None;
    }
    Some(Candidate {
        names: command.names,
        dialect: Some(dialect),
        words: command.words,
        first: 0,
        env: command.env,
        sure: false,
        template: false,
    })
}

/// `NAME=value` before the program (`env`, `sudo`), also behind `--setenv=` and `-E`.
pub(super) fn preset(word: &Word, env: &mut Env) {
    let text = word
        .shown()
        .find("--setenv=")
        .filter(|at| *at == 0)
        .and_then(|_| word.text.get(9..))
        .unwrap_or(&word.text);
    if let Some((name, value)) = split_assignment(text) {
        let name = plain(name);
        if is_name(&name) {
            env.set(&String::from_utf8_lossy(&name), value.to_vec());
        }
    }
}

/// The program among the words, and where its arguments start.
fn program(words: &[Word]) -> Option<(Dialect, usize)> {
    let base = words.first()?.base();
    let starter = STARTERS.contains(&base.as_str());
    let range = 0..if starter { words.len() } else { 1 };
    range
        .into_iter()
        .find_map(|at| program_at(words.get(at..)?).map(|(dialect, n)| (dialect, at + n)))
}

fn program_at(words: &[Word]) -> Option<(Dialect, usize)> {
    let first = words.first()?;
    let base = first.base();
    let follows = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    match base.as_str() {
        "vllm" if follows(1, "serve") => Some((Dialect::Vllm, 2)),
        "sglang" if follows(1, "serve") => Some((Dialect::Sglang, 2)),
        "lmdeploy" if follows(1, "serve") && follows(2, "api_server") => {
            Some((Dialect::LmDeploy, 3))
        }
        "trtllm-serve" => Some((Dialect::TensorRtLlm, 1)),
        "llamafile" => Some((Dialect::LlamaCpp, 1)),
        "llama" if follows(1, "serve") => Some((Dialect::LlamaCpp, 2)),
        "server" if first.shown().contains("llama") => Some((Dialect::LlamaCpp, 1)),
        name if name.starts_with("llama-server") => Some((Dialect::LlamaCpp, 1)),
        name if name.starts_with("python") || name == "torchrun" => python(words),
        "-m" => module(&words.get(1)?.shown()).map(|dialect| (dialect, 2)),
        name if name.ends_with(".py") => script(&first.shown()).map(|dialect| (dialect, 1)),
        _ => None,
    }
}

/// `python OPTIONS -m MODULE` or `python OPTIONS SCRIPT`.
fn python(words: &[Word]) -> Option<(Dialect, usize)> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.shown().as_str() {
            "-m" => return program_at(words.get(at..)?).map(|(dialect, n)| (dialect, at + n)),
            "-X" | "-W" => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return program_at(words.get(at..)?).map(|(dialect, n)| (dialect, at + n)),
        }
    }
    None
}

fn module(name: &str) -> Option<Dialect> {
    let starts = [
        ("vllm.entrypoints.", Dialect::Vllm),
        ("sglang.launch_server", Dialect::Sglang),
        ("sglang_router.launch_server", Dialect::Sglang),
        ("sglang.srt.", Dialect::Sglang),
        ("llama_cpp.server", Dialect::LlamaCpp),
        ("lmdeploy.serve", Dialect::LmDeploy),
        ("tensorrt_llm.commands.serve", Dialect::TensorRtLlm),
    ];
    starts
        .into_iter()
        .find(|(start, _)| name.starts_with(start))
        .map(|(_, dialect)| dialect)
}

fn script(path: &str) -> Option<Dialect> {
    if path.contains("vllm/entrypoints/") {
        Some(Dialect::Vllm)
    } else if path.ends_with("sglang/launch_server.py") {
        Some(Dialect::Sglang)
    } else {
        None
    }
}

fn of_image(image: &str) -> Option<Dialect> {
    let image = image.to_ascii_lowercase();
    let has = |names: &[&str]| names.iter().any(|name| image.contains(name));
    if has(&["sglang"]) {
        Some(Dialect::Sglang)
    } else if has(&["vllm"]) {
        Some(Dialect::Vllm)
    } else if has(&[
        "llama.cpp",
        "llama-cpp",
        "llamacpp",
        "llama_cpp",
        "llama-server",
        "llama_server",
    ]) {
        Some(Dialect::LlamaCpp)
    } else if has(&["tensorrt-llm", "tensorrt_llm", "trtllm", "trt-llm"]) {
        Some(Dialect::TensorRtLlm)
    } else if has(&["lmdeploy"]) {
        Some(Dialect::LmDeploy)
    } else {
        None
    }
}

/// The one engine whose context argument is among the words; `-c` alone is no evidence, but llama.cpp has other short names.
fn by_arguments(args: &[Word], env: &Env) -> Option<Dialect> {
    let fits = |dialect: &Dialect| {
        let long = |word: &Word| {
            let text = word.shown();
            text.starts_with("--") && dialect.context(&text).is_some()
        };
        args.iter().any(long)
            || dialect
                .variable()
                .is_some_and(|name| env.get(name).is_some())
    };
    let mut fitting = ALL.into_iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Some(one),
        (None, _) if args.iter().any(of_llama) => Some(Dialect::LlamaCpp),
        _ => None,
    }
}

fn of_llama(word: &Word) -> bool {
    let text = word.shown();
    [
        "-ngl",
        "--n-gpu-layers",
        "-np",
        "-kvu",
        "-hf",
        "-ctk",
        "-ctv",
    ]
    .contains(&text.as_str())
        || text.ends_with(".gguf")
}
