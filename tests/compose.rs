//! Services of compose projects through the cockpit: raised, kept, rolled back, on a real engine.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use support::docker::Docker;
use support::http::{free_port, json};
use support::llama::Llama;
use support::place::Place;
use support::term::{Term, key};
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

/// A project that runs a server, a home with a profile for it, and the engine that has it.
struct Bench {
    docker: Docker,
    place: Place,
    port: u16,
    folder: PathBuf,
}

impl Bench {
    fn new(test: &str) -> Option<Bench> {
        let docker = Docker::up(test)?;
        let (place, port) = (Place::new(), free_port());
        let folder = place.path().join("stack");
        std::fs::create_dir_all(&folder).unwrap();
        Some(Bench {
            docker,
            place,
            port,
            folder,
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("docker-compose.yml")
    }

    /// Whether a trial lies in the project's folder.
    fn tried(&self) -> bool {
        let files = std::fs::read_dir(&self.folder).unwrap().flatten();
        let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with("vramp-"))
    }

    fn profile(&self, engine: &str) {
        self.place.profile(&format!(
            r#"[profile.stack]
url = "http://127.0.0.1:{}"
engine = "{engine}"
ladder = ["4K", "8K", "16K"]

[profile.stack.service]
kind = "compose"
command = ["docker-compose"]
service = "llm"
directory = {:?}
release_after = 5
stuck_after = 30
"#,
            self.port, self.folder
        ));
    }

    /// What a service needs to run programs of this machine.
    fn volumes(&self, folder: &Path) -> String {
        let folder = folder.display();
        format!("volumes: [\"/usr:/usr:ro\", \"{folder}:{folder}:ro\"]")
    }

    fn program(&self) -> String {
        self.volumes(Path::new(VRAMP).parent().unwrap())
    }

    fn start(&self) {
        self.docker.compose(&self.folder, &["up", "-d", "llm"]);
        self.serves(4096);
    }

    fn served(&self) -> Option<u64> {
        let page =
            json(self.port, "/get_server_info").or_else(|| json(self.port, "/server_info"))?;
        page.get("context_length")?.as_u64()
    }

    fn serves(&self, context: u64) {
        until(&format!("{context} is served"), secs(60), || {
            (self.served() == Some(context)).then_some(())
        });
    }

    fn cockpit(&self) -> Term {
        let term = self.docker.cockpit(&self.place, &["--quick"]);
        term.wait_for("attached: ", secs(60));
        assert!(term.screen().contains("compose llm"), "{}", term.screen());
        term
    }

    /// Raises to 8,192 and leaves the question open.
    fn raise(&self, term: &Term) {
        term.set_context("8K");
        term.restart_at("8,192", secs(20));
        term.answer("The server is running at 8,192", key::ESC, secs(120));
        assert!(self.tried());
    }

    fn keep(&self, term: &Term) {
        term.run_task("Decide");
        term.answer("The server is running at 8,192", "y", secs(20));
        term.wait_for("8,192 is the production value now", secs(60));
        assert!(!self.tried());
    }

    fn roll_back(&self, term: &Term) {
        term.run_task("Decide");
        term.answer("The server is running at 8,192", "r", secs(20));
        term.answer("production value of 4,096 tokens", "y", secs(20));
        term.wait_for("4,096 answered its first token", secs(120));
        assert!(!self.tried());
    }

    /// Raised and rolled back, then raised and kept, with `brings` looking at the files each time. What compose would do then is nothing.
    fn there_and_back(&self, brings: impl Fn(&str)) {
        self.start();
        let first = self.docker.container("llm");
        let mut term = self.cockpit();
        self.raise(&term);
        self.serves(8192);
        brings("4096");
        assert_ne!(self.docker.container("llm"), first);
        self.roll_back(&term);
        self.serves(4096);
        brings("4096");
        self.raise(&term);
        let trial = self.docker.container("llm");
        self.keep(&term);
        brings("8192");
        assert_eq!(
            self.docker.container("llm"),
            trial,
            "keeping restarts nothing"
        );
        assert_eq!(term.leave().exit_code(), 0);
        self.docker.compose(&self.folder, &["up", "-d"]);
        assert_eq!(
            self.docker.container("llm"),
            trial,
            "compose has nothing to change"
        );
        self.serves(8192);
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_command_as_a_list_is_raised_and_kept_and_the_file_keeps_every_other_byte() {
    let Some(bench) = Bench::new("a compose service raised and kept") else {
        return;
    };
    let text = |context: &str| {
        format!(
            r#"# the stack
version: "3.7"

x-common: &common            # an anchor
  restart: unless-stopped
  network_mode: host

services:
  llm:
    <<: *common
    image: vramp-test:1
    {}
    stop_grace_period: 3s
    command:
      - {VRAMP}
      - 'sim'
      - --start-ms
      - "300"
      - --port
      - "{}"
      - --context-length
      - "{context}"     # what production serves

  # nothing of vramp's
  other:
    <<: *common
    image: vramp-test:1
    volumes: ["/usr:/usr:ro"]
    command: ["sleep", "4096"]
"#,
            bench.program(),
            bench.port
        )
    };
    std::fs::write(bench.file(), text("4096")).unwrap();
    bench.profile("sglang");
    bench.docker.compose(&bench.folder, &["up", "-d"]);
    let other = bench.docker.container("other");
    bench.there_and_back(|context| assert_eq!(read(&bench.file()), text(context)));
    assert_eq!(bench.docker.container("other"), other);
}

#[test]
fn a_command_as_a_text_with_its_number_in_the_env_file_is_raised_there() {
    let Some(bench) = Bench::new("a compose service with a number in .env") else {
        return;
    };
    let text = format!(
        "services:\n  llm:\n    image: vramp-test:1\n    network_mode: host\n    stop_grace_period: 3s\n    {}\n    \
command: {VRAMP} sim --start-ms 300 --port {} --context-length ${{CTX:-1024}}\n",
        bench.program(),
        bench.port
    );
    let env = |context: &str| format!("# tuned\r\nA=4096\r\nCTX=\"{context}\"   # here\r\n");
    std::fs::write(bench.file(), &text).unwrap();
    std::fs::write(bench.folder.join(".env"), env("4096")).unwrap();
    bench.profile("sglang");
    bench.there_and_back(|context| {
        assert_eq!(read(&bench.folder.join(".env")), env(context));
        assert_eq!(read(&bench.file()), text);
    });
}

#[test]
fn a_crash_that_the_restart_policy_would_repeat_is_stopped_and_what_fell_comes_back() {
    let Some(bench) = Bench::new("a crash loop of a compose service") else {
        return;
    };
    let (program, port) = (bench.program(), bench.port);
    let text = format!(
        r#"services:
  llm:
    image: vramp-test:1
    network_mode: host
    restart: always
    {program}
    stop_grace_period: 3s
    command: [{VRAMP}, sim, --start-ms, "300", --port, "{port}", --context-length, "4096", --oom-above, "6000"]
  web:
    image: vramp-test:1
    network_mode: host
    volumes: ["/usr:/usr:ro"]
    depends_on: [llm]
    command: ["bash", "-c", "while (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.2; done"]
"#
    );
    std::fs::write(bench.file(), &text).unwrap();
    bench.profile("sglang");
    bench.start();
    bench.docker.compose(&bench.folder, &["up", "-d", "web"]);
    let running = || bench.docker.property("web", "{{.State.Running}}") == "true";
    assert!(running());
    let term = bench.cockpit();
    term.set_context("8K");
    term.restart_at("8,192", secs(20));
    term.wait_for("8,192 failed, 4,096 (", secs(120));
    let screen = term.screen();
    assert!(screen.contains("is back in service"), "{screen}");
    bench.serves(4096);
    assert!(!bench.tried());
    let restarts = bench.docker.property("llm", "{{.RestartCount}}");
    assert_eq!(restarts, "0");
    until("web is back", secs(20), || running().then_some(()));
    assert_eq!(read(&bench.file()), text);

    // Files that compose does not accept are refused while the server still serves.
    std::fs::write(bench.file(), format!("{text}  - broken: [\n")).unwrap();
    let before = bench.docker.container("llm");
    term.keys(key::ESC);
    term.settle(secs(1));
    term.set_context("5K");
    term.restart_at("5,120", secs(20));
    term.wait_for("docker-compose.yml", secs(60));
    assert_eq!(bench.docker.container("llm"), before);
    bench.serves(4096);
}

/// Where the model lies in the container, and nowhere else.
const MODEL: &str = "/models/small.gguf";

#[test]
fn a_real_llama_server_with_its_number_in_the_environment() {
    let test = "a real llama-server run by compose";
    let Some(llama) = Llama::find(test) else {
        return;
    };
    let Some(bench) = Bench::new(test) else {
        return;
    };
    let text = |context: &str| {
        format!(
            r#"services:
  llm:
    image: vramp-test:1
    network_mode: host
    restart: unless-stopped
    volumes: ["/usr:/usr:ro", "{cache}:{cache}:ro", {mount:?}]
    environment:
      LLAMA_ARG_CTX_SIZE: {context}   # all slots together
      LLAMA_ARG_N_PARALLEL: "1"
    command: [{server:?}, --model, {MODEL}, --host, 127.0.0.1, --port, "{port}", --metrics, --threads, "1", --poll, "0"]
"#,
            cache = common(&llama.server, &llama.model).display(),
            mount = format!("{}:{MODEL}:ro", llama.model.display()),
            server = llama.server,
            port = bench.port,
        )
    };
    std::fs::write(bench.file(), text("4096")).unwrap();
    bench.profile("llamacpp");
    let served = || {
        json(bench.port, "/props")?
            .pointer("/default_generation_settings/n_ctx")?
            .as_u64()
    };
    let serves = |context| {
        until("llama-server serves", secs(120), || {
            (served() == Some(context)).then_some(())
        });
    };
    bench.docker.compose(&bench.folder, &["up", "-d"]);
    serves(4096);
    let term = bench.cockpit();
    // The model's file is read inside the container: without it nothing is said of the effective context.
    term.set_context("8K");
    term.wait_for("effective context: 8,192", secs(20));
    term.keys(key::ESC);
    bench.raise(&term);
    serves(8192);
    bench.roll_back(&term);
    serves(4096);
    bench.raise(&term);
    let trial = bench.docker.container("llm");
    bench.keep(&term);
    assert_eq!(read(&bench.file()), text("8192"));
    bench.docker.compose(&bench.folder, &["up", "-d"]);
    assert_eq!(bench.docker.container("llm"), trial);
    serves(8192);
}

/// The folder that holds both.
fn common(one: &Path, other: &Path) -> PathBuf {
    let mut folders = one.ancestors().skip(1);
    let holds = folders.find(|folder| other.starts_with(folder));
    holds.unwrap().to_path_buf()
}
