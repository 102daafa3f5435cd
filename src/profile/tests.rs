use super::*;
use std::path::Path;

fn parse(text: &str, name: Option<&str>) -> Result<Option<Loaded>, ProfileError> {
    load::parse(Path::new("/etc/v/vramp.toml"), text, name)
}

fn profile(text: &str) -> Profile {
    parse(text, None).unwrap().unwrap().profile
}

fn error(text: &str) -> String {
    parse(text, None).unwrap_err().to_string()
}

#[test]
fn the_shipped_example_reads_as_its_comments_say() {
    let loaded = parse(EXAMPLE, None).unwrap().unwrap();
    assert_eq!(loaded.names, ["llama", "qwen", "unit", "stack", "box"]);
    let llama = loaded.profile;
    assert_eq!(llama.name, "llama");
    assert_eq!(llama.engine, Some(Kind::LlamaCpp));
    assert_eq!(llama.ladder, [8192, 16_384, 32_768, 65_536]);
    assert_eq!(llama.production, Some(16_384));
    assert_eq!(llama.long_context.inputs, [1000, 10_000, 30_000, 60_000]);
    assert_eq!(
        (
            llama.stuck_after_s,
            llama.stop_grace_s,
            llama.release_after_s
        ),
        (300, Some(30), 60)
    );
    let ServiceSpec::Process {
        launch,
        log,
        start_when_absent,
    } = llama.service
    else {
        panic!("no process")
    };
    assert_eq!(launch.slots, 2);
    assert_eq!(
        launch.env,
        [("CUDA_VISIBLE_DEVICES".to_string(), "0".to_string())]
    );
    assert_eq!((log, start_when_absent, launch.cwd), (None, false, None));
    let on_box = parse(EXAMPLE, Some("box")).unwrap().unwrap().profile;
    assert_eq!(on_box.host.open().name(), "root@pve1");
    assert!(matches!(on_box.service, ServiceSpec::Command(_)));
    let qwen = parse(EXAMPLE, Some("qwen")).unwrap().unwrap().profile;
    assert_eq!(qwen.cards, [0, 1]);
    assert_eq!(qwen.throughput, Plan::throughput(false));
    let unit = parse(EXAMPLE, Some("unit")).unwrap().unwrap().profile;
    assert_eq!(
        (unit.confirm_within_s, unit.stop_grace_s),
        (Some(1800), None)
    );
    assert_eq!(
        unit.service,
        ServiceSpec::Systemd {
            unit: "vllm.service".into(),
            user: false,
            sudo: false
        }
    );
    let stack = parse(EXAMPLE, Some("stack")).unwrap().unwrap().profile;
    let ServiceSpec::Compose(compose) = stack.service else {
        panic!("no compose service")
    };
    assert_eq!(compose.command, ["docker", "compose"]);
    assert_eq!(compose.service, "vllm");
    assert_eq!(
        compose.directory.as_deref(),
        Some(std::path::Path::new("/srv/llm"))
    );
}

#[test]
fn a_service_says_what_it_is() {
    let read = |service: &str, more: &str| {
        let text =
            format!("[profile.a]\nurl = \"http://h:1\"\n{more}[profile.a.service]\n{service}");
        parse(&text, None).map(|loaded| loaded.unwrap().profile)
    };
    let read_one = read(
        "kind = \"systemd\"\nunit = \"vllm@big\"\nconfirm_within = 90\n",
        "",
    )
    .unwrap();
    assert_eq!(read_one.confirm_within_s, Some(90));
    assert!(
        matches!(&read_one.service, ServiceSpec::Systemd { unit, .. } if unit == "vllm@big.service")
    );
    for (service, more, word) in [
        ("unit = \"a\"", "", "needs its kind"),
        ("kind = \"sytemd\"", "", "did you mean"),
        ("kind = \"systemd\"", "", "needs its unit"),
        ("kind = \"systemd\"\nunit = \"a;b\"", "", "no unit"),
        ("kind = \"systemd\"\nunit = \"-a\"", "", "no unit"),
        ("kind = \"systemd\"\nunit = \"a@.service\"", "", "no unit"),
        (
            "kind = \"systemd\"\nunit = \"a\"\nconfirm_within = \"soon\"",
            "",
            "a time",
        ),
        (
            "kind = \"systemd\"\nunit = \"a\"\nuser = true\nsudo = true",
            "",
            "needs no sudo",
        ),
        (
            "kind = \"systemd\"\nunit = \"a\"",
            "production = 4096\n",
            "the one in its unit",
        ),
        (
            "kind = \"compose\"\nservice = \"a\"",
            "",
            "needs the command",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker\"]\nservice = \"a\"",
            "",
            "is not compose",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker\", \"compose\"]",
            "",
            "service = ",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker-compose\"]\nservice = \"a b\"",
            "",
            "no name",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker-compose\"]\nservice = \"a\"\nfiles = [\"b.yml\"]",
            "",
            "add directory",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker-compose\"]\nservice = \"a\"\nconfirm_within = 90",
            "",
            "deadline",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker-compose\"]\nservice = \"a\"\ndirectory = \"b\"",
            "host = \"ssh:h\"\n",
            "in full",
        ),
        (
            "kind = \"compose\"\ncommand = [\"docker-compose\"]\nservice = \"a\"",
            "production = 4096\n",
            "in its project's files",
        ),
        (
            "kind = \"systemd\"\nunit = \"a\"",
            "process = { argv = [\"x\", \"{context}\"] }\n",
            "a process and a service",
        ),
    ] {
        let error = read(service, more).unwrap_err().to_string();
        assert!(error.contains(word), "{service}: {error}");
    }
}

#[test]
fn every_entry_that_is_commented_out_in_the_example_is_known() {
    let text: String = EXAMPLE
        .lines()
        .filter(|line| !line.contains("key_file"))
        .map(|line| {
            let plain = line
                .strip_prefix("# ")
                .filter(|rest| rest.contains(" = ") && !rest.contains("Without"));
            format!("{}\n", plain.unwrap_or(line))
        })
        .collect();
    // Read up to the key, which this environment does not have.
    let error = parse(&text, None).unwrap_err().to_string();
    assert!(error.contains("LLAMA_API_KEY"), "{error}");
}

#[test]
fn a_url_alone_is_a_profile_and_paths_count_from_the_file() {
    let plain = profile("[profile.x]\nurl = 'h:8000/v1/'");
    assert_eq!(plain.endpoint.url, "http://h:8000");
    assert_eq!(plain.service, ServiceSpec::None);
    assert_eq!(plain.ladder, LADDER);
    let run = profile(
        "[profile.x]\nurl = 'https://h'\n[profile.x.process]\nargv = ['p', 8, '{context}']\nlog = 'logs/a'\ncwd = '/srv'",
    );
    let ServiceSpec::Process { launch, log, .. } = run.service else {
        panic!("no process")
    };
    assert_eq!(launch.argv, ["p", "8", "{context}"]);
    assert_eq!(log.unwrap(), Path::new("/etc/v/logs/a"));
    assert_eq!(launch.cwd.unwrap(), Path::new("/srv"));
}

#[test]
fn a_wrong_entry_is_shown_where_it_stands() {
    assert_eq!(
        error("# mine\n[profile.x]\nurl = 'http://h'\nprodction = 5\n"),
        "/etc/v/vramp.toml:4:1: unknown entry \"prodction\" in [profile.x]; did you mean \"production\"?\n  |\n4 | prodction = 5\n  | ^^^^^^^^^"
    );
    assert_eq!(
        error("[profile.x]\nurl = 'http://h'\nladder = ['32K', 'lots']\n"),
        "/etc/v/vramp.toml:3:18: ladder: cannot read \"lots\" as a length in tokens: it is not a whole number; write digits, \
         or digits with K or M, for example 65536, 64K or 1M\n  |\n3 | ladder = ['32K', 'lots']\n  |                  ^^^^^^"
    );
}

#[test]
fn every_mistake_says_what_was_expected() {
    let x = |rest: &str| format!("[profile.x]\nurl = 'http://h'\n{rest}");
    let run = |rest: &str| x(&format!("[profile.x.process]\n{rest}"));
    for (text, place, words) in [
        ("[profile.x".to_string(), ":1:", "not TOML"),
        ("defualt = 'x'".into(), ":1:1:", "did you mean \"default\""),
        (
            "default = 'y'\n[profile.x]\nurl = 'http://h'".into(),
            ":1:11:",
            "no profile \"y\"",
        ),
        ("default = 'y'".into(), ":1:11:", "the file has no profile"),
        ("[profile.x]\nengine = 'vllm'".into(), ":1:10:", "needs url"),
        ("[profile.x]\nurl = ''".into(), ":2:7:", "empty"),
        ("[profile.x]\nurl = 'ftp://h'".into(), ":2:7:", "only http"),
        ("profile = 3".into(), ":1:11:", "must be a table"),
        (x("engine = 'vlm'"), ":3:10:", "known are sglang"),
        (x("model = 3"), ":3:9:", "the name that requests use, not 3"),
        (x("ladder = []"), ":3:10:", "at least one"),
        (x("ladder = '32K'"), ":3:10:", "a list of lengths"),
        (x("production = 1.5"), ":3:14:", "a length, for example"),
        (x("production = -4"), ":3:14:", "not a whole number"),
        (x("cards = [0, 0]"), ":3:13:", "named twice"),
        (x("cards = [-1]"), ":3:10:", "whole numbers from 0"),
        (
            x("key_env = 'VRAMP_NO_SUCH_VARIABLE'"),
            ":3:11:",
            "VRAMP_NO_SUCH_VARIABLE",
        ),
        (x("key_file = '/no/such/key'"), ":3:12:", "/no/such/key"),
        (x("key_file = '/dev/null'"), ":3:12:", "gives no key"),
        (
            x("key_env = 'PATH'\nkey_file = '/dev/null'"),
            ":4:12:",
            "keep one",
        ),
        (
            x("[profile.x.throughput]\nconcurrency = [0]"),
            ":4:16:",
            "from 1",
        ),
        (
            x("[profile.x.throughput]\nconcurrency = []"),
            ":4:15:",
            "at least one",
        ),
        (
            x("[profile.x.long_context]\nquick = true"),
            ":4:1:",
            "unknown entry",
        ),
        (run("slots = 1"), ":3:12:", "needs argv"),
        (run("argv = []"), ":4:8:", "empty"),
        (run("argv = ['p', true]"), ":4:14:", "in quotes"),
        (
            run("argv = ['p', '--ctx', '4096']"),
            ":4:8:",
            "no {context}",
        ),
        (
            run("argv = ['p', '{contxt}']"),
            ":4:8:",
            "known are {context}",
        ),
        (
            run("argv = ['p', '{context}']\nslots = 2"),
            ":4:8:",
            "{context_total}",
        ),
        (
            run("argv = ['p', '{context}']\nslots = 0"),
            ":5:9:",
            "from 1 to 4096",
        ),
        (
            run("argv = ['p', '{context}']\nstop_grace = '30s'"),
            ":5:14:",
            "seconds",
        ),
        (
            run("argv = ['p', '{context}']\nenv = { 'A-B' = '1' }"),
            ":4:8:",
            "\"A-B\" is no name",
        ),
        (
            run("argv = ['p', '{context}']\nstart_when_absent = 1"),
            ":5:21:",
            "true or false",
        ),
    ] {
        let error = error(&text);
        assert!(
            error.contains(place) && error.contains(words),
            "{text}\n→ {error}"
        );
    }
}

#[test]
fn the_context_may_stand_in_the_environment_and_json_is_no_placeholder() {
    let text = "[profile.x]\nurl='http://h'\n[profile.x.process]\nargv=['p', '{\"method\":\"mtp\"}', '{{ messages }}']\nenv.CTX = '{context}'";
    assert!(matches!(profile(text).service, ServiceSpec::Process { .. }));
}

#[test]
fn the_choice_of_a_profile_is_never_guessed() {
    let two = "[profile.a]\nurl='http://a'\n[profile.b]\nurl='http://b'";
    assert!(error(two).contains("--profile NAME"));
    assert_eq!(parse(two, Some("b")).unwrap().unwrap().profile.name, "b");
    assert!(
        parse(two, Some("c"))
            .unwrap_err()
            .to_string()
            .contains("known are a, b")
    );
    assert_eq!(profile("[profile.a]\nurl='http://a'").name, "a");
    assert_eq!(parse("# nothing yet\n", None), Ok(None));
    assert!(
        parse("", Some("a"))
            .unwrap_err()
            .to_string()
            .contains("vramp init")
    );
}

#[test]
fn a_named_file_must_be_there_and_readable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vramp.toml");
    let missing = load(Some(&file), None).unwrap_err().to_string();
    assert!(
        missing.contains("cannot read") && missing.contains("--config"),
        "{missing}"
    );
    std::fs::write(&file, b"url = '\xff'").unwrap();
    assert!(
        load(Some(&file), None)
            .unwrap_err()
            .to_string()
            .contains("UTF-8")
    );
    std::fs::write(folder.path().join("key"), "sk-very-secret\n").unwrap();
    std::fs::write(&file, "[profile.a]\nurl='http://a'\nkey_file='key'").unwrap();
    let loaded = load(Some(&file), Some("a")).unwrap().unwrap();
    assert!(!format!("{loaded:?}").contains("secret"));
    assert_eq!(
        loaded.profile.endpoint.key.unwrap().reveal(),
        "sk-very-secret"
    );
}

#[test]
fn only_the_chosen_profile_needs_its_key() {
    let text = "default='a'\n[profile.a]\nurl='http://a'\n[profile.b]\nurl='http://b'\nkey_env='VRAMP_NO_SUCH_VARIABLE'";
    assert_eq!(profile(text).name, "a");
    assert!(parse(text, Some("b")).is_err());
}

#[test]
fn profiles_without_a_file() {
    let bare = attach("localhost:8000/v1").unwrap();
    assert_eq!(
        (bare.endpoint.url.as_str(), bare.file),
        ("http://localhost:8000", None)
    );
    assert!(attach("http://").is_err());
}

#[test]
fn the_demo_s_file_reads_back_whatever_its_paths_are() {
    let text = demo_text(Path::new("/opt/a \"b\"/vramp"), Path::new("/tmp/d'e"), 4000);
    let demo = profile(&text);
    let ServiceSpec::Process {
        launch,
        log,
        start_when_absent: true,
    } = &demo.service
    else {
        panic!("the demo starts its own server")
    };
    assert_eq!(launch.argv[..2], ["/opt/a \"b\"/vramp", "sim"]);
    assert_eq!(launch.argv.last().unwrap(), "/tmp/d'e/rig");
    assert_eq!(log.as_deref(), Some(Path::new("/tmp/d'e/server.log")));
    assert_eq!(demo.endpoint.url, "http://127.0.0.1:4000");
    assert_eq!(
        (demo.production, demo.ladder.as_slice()),
        (Some(32_768), LADDER.as_slice())
    );
    assert_eq!(
        (demo.stuck_after_s, demo.stop_grace_s, demo.release_after_s),
        (30, Some(5), 15)
    );
}

#[test]
fn the_file_to_start_from_is_one() {
    let text = example_for("gpu1:8000/v1").unwrap();
    let first = profile(&text);
    assert_eq!(first.endpoint.url, "http://gpu1:8000");
    assert_eq!(first.service, ServiceSpec::None);
    // What is commented out is right as well.
    let process = text
        .replace("# [profile", "[profile")
        .replace("# argv", "argv");
    assert!(matches!(
        profile(&process).service,
        ServiceSpec::Process { .. }
    ));
    assert!(example_for("ftp://x").is_err());
}

const COMMANDS: &str = "kind = 'command'\nshow = ['ctl', 'show']\nstatus = ['ctl', 'status']\ntrial = ['ctl', 'trial', '{context}']\nrestart = ['ctl', 'restart']\nstop = ['ctl', 'stop']\nconfirm = ['ctl', 'confirm', '{context}']\n";

#[test]
fn a_server_may_run_on_another_host_by_the_operators_commands() {
    let read = profile(&format!(
        "[profile.x]\nurl = 'http://gpu1:8000'\nhost = 'ssh:ada@gpu1:2222'\nssh_config = 'ssh/config'\n[profile.x.service]\n{COMMANDS}logs = ['ctl', 'logs']\ncommand_timeout = 7\n"
    ));
    let HostSpec::Ssh { address, config } = &read.host else {
        panic!("{:?}", read.host)
    };
    assert_eq!(address.to_string(), "ada@gpu1:2222");
    assert_eq!(config.as_deref(), Some(Path::new("/etc/v/ssh/config")));
    assert_eq!(read.host.open().name(), "ada@gpu1:2222");
    let ServiceSpec::Command(commands) = &read.service else {
        panic!("{:?}", read.service)
    };
    assert_eq!(commands.trial, ["ctl", "trial", "{context}"]);
    assert_eq!(commands.logs.as_ref().map(Vec::len), Some(2));
    assert_eq!((commands.discard.as_ref(), commands.slots), (None, 1));
    assert_eq!(commands.limit, std::time::Duration::from_secs(7));
    let here = profile("[profile.x]\nurl = 'http://h'\nhost = 'localhost'");
    assert_eq!(here.host, HostSpec::Local);
}

#[test]
fn mistakes_in_hosts_and_commands_say_what_was_expected() {
    let x = |rest: &str| format!("[profile.x]\nurl = 'http://h'\n{rest}");
    for (text, words) in [
        (x("host = 'gpu1'"), "ssh:USER@HOST"),
        (x("host = 'ssh:-oProxyCommand=x'"), "odd"),
        (x("ssh_config = 'c'"), "which is not there"),
        (
            x("host = 'ssh:gpu1'\n[profile.x.process]\nargv = ['s', '{context}']"),
            "on its own machine alone",
        ),
        (
            x("[profile.x.service]\nkind = 'comand'"),
            "did you mean \"command\"",
        ),
        (x("[profile.x.service]\nkind = 'command'"), "needs show"),
        (
            x(&format!(
                "[profile.x.service]\n{}",
                COMMANDS.replace("'{context}'", "'8192'")
            )),
            "where the context length goes",
        ),
        (
            x(&format!(
                "[profile.x.service]\n{}",
                COMMANDS.replace("['ctl', 'stop']", "[]")
            )),
            "stop is empty",
        ),
        (
            x(&format!(
                "production = 4096\n[profile.x.service]\n{COMMANDS}"
            )),
            "what its show command prints",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(words), "{error}");
    }
}
