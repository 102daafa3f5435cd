//! The real llama-server, where `tests/run` installed it.

use std::path::PathBuf;

/// Program and model, from `LLAMA_SERVER` and `LLAMA_MODEL`.
pub struct Llama {
    pub server: PathBuf,
    pub model: PathBuf,
}

impl Llama {
    /// The server, or `None` after saying that `test` is left out. Under `CI=true` nothing may be left out.
    pub fn find(test: &str) -> Option<Self> {
        let path = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.exists())
        };
        let found = path("LLAMA_SERVER").zip(path("LLAMA_MODEL"));
        if found.is_none() {
            let why = "LLAMA_SERVER and LLAMA_MODEL name no real server; ./tests/run installs it";
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{test}: {why}"
            );
            println!("left out: {test}: {why}");
        }
        found.map(|(server, model)| Llama { server, model })
    }

    /// A profile that runs it on `port` with one slot, `context` as the production value. `more` is added to its arguments.
    pub fn profile(&self, port: u16, context: u64, more: &[&str]) -> String {
        let more: String = more
            .iter()
            .map(|argument| format!(", {argument:?}"))
            .collect();
        format!(
            r#"[profile.small]
url = "http://127.0.0.1:{port}"
engine = "llamacpp"
ladder = ["2K", "4K", "8K"]
production = {context}

[profile.small.process]
argv = [{server:?}, "--model", {model:?}, "--ctx-size", "{{context_total}}", "--parallel", "1",
  "--host", "127.0.0.1", "--port", "{port}", "--metrics", "--threads", "1", "--poll", "0"{more}]
start_when_absent = true
stop_grace = 10

[profile.small.throughput]
inputs = [256]
output = 16
concurrency = [1, 2]

[profile.small.long_context]
inputs = [256, 1000, 2000, 3000]
output = 16
concurrency = [1]
"#,
            server = self.server,
            model = self.model,
        )
    }
}
