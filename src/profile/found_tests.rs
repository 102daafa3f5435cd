use super::*;
use crate::discover::{Container, Unit};
use crate::engine::EngineError;
use crate::profile::{ServiceSpec, parse};
use std::path::{Path, PathBuf};

fn server(url: &str, argv: &[&str], home: Home) -> Discovered {
    let argv: Vec<String> = argv.iter().map(|word| word.to_string()).collect();
    Discovered {
        candidate: Candidate {
            url: url.to_string(),
            server: launch::find_in_argv(&argv, &[], None),
            argv,
            pid: Some(42),
            home,
            answer: Err(EngineError::Loading),
        },
        surroundings: Surroundings {
            directory: Some(PathBuf::from("/srv/llm")),
            home: None,
            env: vec![("CUDA_VISIBLE_DEVICES".into(), "0,1".into())],
        },
        host: None,
        uid: Some(1000),
    }
}

fn read(text: &str, name: &str) -> crate::profile::Profile {
    parse(Path::new("/c/vramp.toml"), text, Some(name))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .unwrap()
        .profile
}

#[test]
fn a_process_of_another_host_is_looked_at_alone() {
    let argv = ["vllm", "serve", "m", "--max-model-len", "32768"];
    let mut there = server("http://gpu1:8000", &argv, Home::Loose);
    there.host = Some("ssh:ada@gpu1".into());
    let text = found_text(&[there], "today");
    let profile = read(&text, "vllm");
    assert_eq!(profile.service, ServiceSpec::None, "{text}");
    assert_ne!(profile.host, crate::profile::HostSpec::Local);
}

#[test]
fn a_unit_is_written_with_nothing_left_to_fill_in() {
    let unit = |user| {
        Home::Unit(Unit {
            name: "sglang-qwen.service".into(),
            user,
        })
    };
    let argv = [
        "python",
        "-m",
        "sglang.launch_server",
        "--context-length",
        "32768",
    ];
    let text = found_text(
        &[server("http://127.0.0.1:30000", &argv, unit(None))],
        "today",
    );
    let profile = read(&text, "sglang-qwen");
    assert_eq!(
        profile.service,
        ServiceSpec::Systemd {
            unit: "sglang-qwen.service".into(),
            user: false,
            sudo: true
        }
    );
    assert_eq!(profile.engine, Some(Kind::Sglang));
    assert_eq!(profile.ladder, [32_768, 65_536, 131_072, 262_144, 524_288]);
    let text = found_text(
        &[server("http://127.0.0.1:30000", &argv, unit(Some(1000)))],
        "today",
    );
    assert!(matches!(
        read(&text, "sglang-qwen").service,
        ServiceSpec::Systemd {
            user: true,
            sudo: false,
            ..
        }
    ));
    let text = found_text(
        &[server("http://127.0.0.1:30000", &argv, unit(Some(7)))],
        "today",
    );
    assert_eq!(read(&text, "sglang-qwen").service, ServiceSpec::None);
}

#[test]
fn a_process_started_by_hand_becomes_a_template_of_itself() {
    let argv = [
        "/opt/llama-server",
        "-m",
        "/models/a b.gguf",
        "-c",
        "16384",
        "-np",
        "4",
        "--port",
        "8080",
    ];
    let text = found_text(
        &[server("http://127.0.0.1:8080", &argv, Home::Loose)],
        "today",
    );
    let profile = read(&text, "llamacpp");
    assert_eq!(profile.production, Some(4096));
    let lines: Vec<&str> = text.lines().collect();
    let ladder = lines.iter().position(|line| line.starts_with("ladder = "));
    assert!(
        lines[ladder.unwrap() - 1].starts_with("# The context lengths to offer"),
        "{text}"
    );
    let ServiceSpec::Process { launch, .. } = profile.service else {
        panic!("{text}")
    };
    assert_eq!(launch.slots, 4);
    assert_eq!(launch.argv[4], "{context_total}");
    assert_eq!(launch.argv[2], "/models/a b.gguf");
    assert_eq!(launch.cwd, Some(PathBuf::from("/srv/llm")));
    assert_eq!(
        launch.env,
        [("CUDA_VISIBLE_DEVICES".to_string(), "0,1".to_string())]
    );
}

#[test]
fn a_context_that_is_not_given_gets_its_argument() {
    let argv = ["vllm", "serve", "m"];
    let text = found_text(
        &[server("http://127.0.0.1:8000", &argv, Home::Loose)],
        "today",
    );
    let ServiceSpec::Process { launch, .. } = read(&text, "vllm").service else {
        panic!("{text}")
    };
    assert_eq!(
        launch.argv,
        ["vllm", "serve", "m", "--max-model-len", "{context}"]
    );
}

#[test]
fn servers_of_one_name_are_told_apart() {
    let argv = ["vllm", "serve", "m", "--max-model-len", "9000"];
    let text = found_text(
        &[
            server("http://127.0.0.1:8000", &argv, Home::Unknown),
            server("http://127.0.0.1:8001", &argv, Home::Unknown),
        ],
        "today",
    );
    assert_eq!(
        read(&text, "vllm-8001").endpoint.url,
        "http://127.0.0.1:8001"
    );
    assert_eq!(read(&text, "vllm-8000").ladder[0], 9000);
}

#[test]
fn a_compose_service_is_written_with_the_command_that_made_it() {
    let container = |version: &str| {
        Home::Container(Box::new(Container {
            engine: "docker",
            id: "ab".into(),
            name: "llm_vllm_1".into(),
            image: "vllm/vllm-openai".into(),
            pid: 42,
            argv: Vec::new(),
            ports: vec![8000],
            compose: Some(Compose {
                project: "llm".into(),
                service: "vllm".into(),
                directory: "/srv/llm".into(),
                files: vec!["/srv/llm/compose.yaml".into()],
                version: Some(version.into()),
            }),
        }))
    };
    let argv = ["vllm", "serve", "m", "--max-model-len", "8192"];
    for (version, command) in [
        ("1.29.2", vec!["docker-compose"]),
        ("2.26.1", vec!["docker", "compose"]),
    ] {
        let text = found_text(
            &[server("http://127.0.0.1:8000", &argv, container(version))],
            "today",
        );
        let ServiceSpec::Compose(compose) = read(&text, "vllm").service else {
            panic!("{text}")
        };
        assert_eq!(compose.command, command);
        assert_eq!(compose.project.as_deref(), Some("llm"));
        assert_eq!(compose.directory, Some(PathBuf::from("/srv/llm")));
    }
}
