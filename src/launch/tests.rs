use super::*;

pub(super) fn named(name: &str, text: &str) -> NamedText {
    NamedText {
        name: name.to_string(),
        bytes: text.as_bytes().to_vec(),
    }
}

pub(super) fn texts(form: Form, main: &[(&str, &str)], beside: &[(&str, &str)]) -> Texts {
    let all = |files: &[(&str, &str)]| files.iter().map(|(n, t)| named(n, t)).collect();
    Texts {
        form,
        main: all(main),
        beside: all(beside),
        unit: None,
    }
}

fn unit(main: &[&str], beside: &[(&str, &str)]) -> Texts {
    let names = ["llm.service", "10-a.conf", "20-b.conf"];
    let main: Vec<(&str, &str)> = names.into_iter().zip(main.iter().copied()).collect();
    texts(Form::Unit, &main, beside)
}

/// Sets `number`, and checks that the edit is `old` to `new` in `file` and nothing else.
#[track_caller]
pub(super) fn changes(texts: &Texts, number: Number, file: &str, old: &str, new: &str) -> Edit {
    let edit = set(texts, None, None, number).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(
        (edit.file.as_str(), edit.old.as_str(), edit.new.as_str()),
        (file, old, new)
    );
    let before = texts
        .main
        .iter()
        .chain(&texts.beside)
        .find(|f| f.name == file)
        .unwrap();
    let expected = [
        &before.bytes[..edit.span.start],
        new.as_bytes(),
        &before.bytes[edit.span.end..],
    ]
    .concat();
    assert_eq!(edit.bytes, expected);
    edit
}

fn in_force(texts: &Texts) -> Found {
    let launches = find(texts, None);
    launches.choose(None).unwrap().in_force().unwrap().clone()
}

#[test]
fn a_number_in_a_unit() {
    let texts = unit(
        &[
            "[Service]\nExecStart=/usr/bin/vllm serve m \\\n  # 1\n  --max_model_len '32K' \\\n  --port 1\n",
        ],
        &[],
    );
    let found = in_force(&texts);
    assert_eq!(found.value, Length::Tokens(32_768));
    assert_eq!(found.place.as_ref().unwrap().line, 4);
    assert!(found.notes[0].contains("32,768"), "{:?}", found.notes);
    changes(
        &texts,
        Number::PerRequest(65_536),
        "llm.service",
        "32K",
        "65536",
    );
}

#[test]
fn drop_ins_override_in_their_order() {
    let base = "[Service]\nExecStart=/x/llama-server -c 2048\n";
    let reset = "[Service]\nExecStart=\nExecStart=-/x/llama-server -m a.gguf -c 4096 -np 2\n";
    let env = "[Service]\nEnvironment=LLAMA_ARG_N_PARALLEL=9\n";
    let texts = unit(&[base, reset, env], &[]);
    let found = in_force(&texts);
    assert_eq!(found.meaning, Meaning::Total { slots: 2 });
    assert_eq!(found.per_request, Some(2048));
    changes(
        &texts,
        Number::PerRequest(8192),
        "10-a.conf",
        "4096",
        "16384",
    );
    changes(&texts, Number::Argument(8192), "10-a.conf", "4096", "8192");
    assert_eq!(
        exec_start(&texts.main),
        [b"-/x/llama-server -m a.gguf -c 4096 -np 2".to_vec()]
    );
}

#[test]
fn the_last_environment_file_wins_over_the_unit() {
    let text = "[Service]\nEnvironment=CTX=1024 \"NP=4\"\nEnvironmentFile=-/etc/default/llm\nEnvironmentFile=/etc/llm.env\nExecStart=/x/llama-server -c ${CTX} --parallel=$NP -np ${NP}\n";
    let alone = unit(&[text], &[]);
    assert_eq!(
        find(&alone, None).wanted,
        [
            Wanted {
                path: "/etc/default/llm".into(),
                optional: true,
                script: false,
            },
            Wanted {
                path: "/etc/llm.env".into(),
                optional: false,
                script: false,
            }
        ]
    );
    changes(
        &alone,
        Number::PerRequest(512),
        "llm.service",
        "1024",
        "2048",
    );
    let files = [
        ("/etc/llm.env", "CTX='4096'\n"),
        ("/etc/default/llm", "CTX=2048\nNP=2\n"),
    ];
    let texts = unit(&[text], &files);
    let edit = changes(
        &texts,
        Number::PerRequest(4096),
        "/etc/llm.env",
        "4096",
        "8192",
    );
    assert_eq!(
        edit.server.in_force().unwrap().variable.as_deref(),
        Some("CTX")
    );
    assert_eq!(edit.per_request, Some(4096));
}

#[test]
fn the_engines_own_variable_loses_to_an_argument() {
    let text = "[Service]\nEnvironment=\"LLAMA_ARG_CTX_SIZE=8192\"\nExecStart=/x/llama-server\n";
    changes(
        &unit(&[text], &[]),
        Number::PerRequest(4096),
        "llm.service",
        "8192",
        "4096",
    );
    let both = text.replace("/x/llama-server", "/x/llama-server -c 2048");
    let texts = unit(&[&both], &[]);
    let server = find(&texts, None).servers.remove(0);
    assert_eq!(server.found.len(), 2);
    assert_eq!(server.per_request(), Some(2048));
    assert!(server.notes[0].contains("LLAMA_ARG_CTX_SIZE"));
}

#[test]
fn a_duplicate_is_told_and_the_last_one_changes() {
    let texts = unit(
        &[
            "[Service]\nExecStart=/x/python3 -u -m sglang.launch_server --context-length 1 --context-len=2\n",
        ],
        &[],
    );
    let edit = changes(&texts, Number::PerRequest(3), "llm.service", "2", "3");
    assert!(edit.server.notes[0].starts_with("duplicate"));
    assert!(edit.bytes.windows(18).any(|w| w == b"--context-length 1"));
}

#[test]
fn what_is_missing_is_put_in_behind_the_last_word() {
    let texts = unit(
        &["\u{feff}[Service]\r\nExecStart=/x/vllm serve \"my model\"\r\nRestart=always"],
        &[],
    );
    let edit = changes(
        &texts,
        Number::PerRequest(65_536),
        "llm.service",
        "",
        " --max-model-len 65536",
    );
    assert!(edit.inserted());
    assert!(
        String::from_utf8(edit.bytes)
            .unwrap()
            .contains("\"my model\" --max-model-len 65536\r\n")
    );
}

#[test]
fn what_cannot_be_changed_says_why() {
    let refused = |line: &str, number| {
        let text = format!("[Service]\nExecStart={line}\n");
        set(&unit(&[&text], &[]), None, None, number).unwrap_err()
    };
    let one = Number::PerRequest(1);
    assert!(
        matches!(refused("/x/llama-server -c ${CTX}", one), Refused::Fixed(why) if why.contains("${CTX}"))
    );
    assert!(matches!(
        refused("/x/llama-server -c \"1\"0", one),
        Refused::Fixed(_)
    ));
    assert!(
        matches!(refused("/x/llama-server -c \\x31", one), Refused::Fixed(why) if why.contains("escapes"))
    );
    assert!(matches!(
        refused("/x/llama-server -c", one),
        Refused::Fixed(_)
    ));
    assert!(matches!(
        refused("/x/llama-server -c 5 -np %i", one),
        Refused::Slots
    ));
    assert!(matches!(
        refused("/bin/sleep -c 5", one),
        Refused::NoServer { .. }
    ));
    assert!(matches!(
        refused("/x/llama-server -c 5 -np 2", Number::PerRequest(u64::MAX)),
        Refused::Number(_)
    ));
    assert!(matches!(
        refused("/x/vllm serve m --max-model-len 5", Number::PerRequest(0)),
        Refused::Number(0)
    ));
}

#[test]
fn the_instance_of_a_template_is_known_but_not_written() {
    let mut texts = unit(&["[Service]\nExecStart=/x/llama-server -c %i\n"], &[]);
    texts.unit = Some("llm@4096.service".into());
    assert_eq!(in_force(&texts).per_request, Some(4096));
    let refused = set(&texts, None, None, Number::PerRequest(1)).unwrap_err();
    assert!(matches!(refused, Refused::Fixed(why) if why.contains("name of the unit")));
}

#[test]
fn digits_that_several_arguments_share_are_told() {
    let texts = unit(
        &[
            "[Service]\nEnvironment=CTX=4096\nExecStart=/x/python -m sglang.launch_server --context-length ${CTX} --max-total-tokens $CTX\n",
        ],
        &[],
    );
    let notes = in_force(&texts).notes;
    assert!(notes[0].contains("--max-total-tokens"), "{notes:?}");
}

#[test]
fn an_environment_file_by_itself() {
    let file = |text: &str| texts(Form::EnvFile, &[("llm.env", text)], &[]);
    changes(
        &file("PORT=8080\nCTX=\"32768\"  \n#CTX=1\n"),
        Number::Argument(65_536),
        "llm.env",
        "32768",
        "65536",
    );
    changes(
        &file("export MAX_MODEL_LEN=32768 # tokens\n"),
        Number::Argument(5),
        "llm.env",
        "32768",
        "5",
    );
    changes(
        &file("LLAMA_ARG_CTX_SIZE=8192\nLLAMA_ARG_N_PARALLEL=2\nCTX=1\n"),
        Number::PerRequest(8192),
        "llm.env",
        "8192",
        "16384",
    );
    changes(
        &file("OPTS=\"-m x.gguf -c 4096 -np 2\"\n"),
        Number::PerRequest(4096),
        "llm.env",
        "4096",
        "8192",
    );
    assert!(matches!(
        set(&file("A_CTX=1\nB_CTX=2\n"), None, None, Number::Argument(5)).unwrap_err(),
        Refused::Several { .. }
    ));
    assert!(matches!(
        set(&file("CTX=1\n"), None, None, Number::PerRequest(5)).unwrap_err(),
        Refused::Slots
    ));
    assert!(matches!(
        set(
            &file("DRAFT_CTX=1\nPORT=4\n"),
            None,
            None,
            Number::Argument(5)
        )
        .unwrap_err(),
        Refused::NoServer { .. }
    ));
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

#[test]
fn an_argument_vector() {
    let argv = strings(&["llama-server", "-c", "4096", "-np", "4"]);
    let server = find_in_argv(&argv, &[], None).unwrap();
    assert_eq!(server.per_request(), Some(1024));
    let edit = set_in_argv(&argv, &[], None, Number::PerRequest(2048)).unwrap();
    assert_eq!(
        edit.argv,
        strings(&["llama-server", "-c", "8192", "-np", "4"])
    );
    let argv = strings(&["vllm", "serve", "m", "--max-model-len=32k"]);
    let edit = set_in_argv(&argv, &[], None, Number::PerRequest(32_768)).unwrap();
    assert_eq!(edit.argv[3], "--max-model-len=32768");
    let env = [("LLAMA_ARG_CTX_SIZE".to_string(), "1024".to_string())];
    let edit = set_in_argv(
        &strings(&["llama-server"]),
        &env,
        None,
        Number::PerRequest(2048),
    )
    .unwrap();
    assert_eq!(edit.env[0].1, "2048");
    let argv = strings(&["run-it", "--port", "1"]);
    assert!(find_in_argv(&argv, &[], None).is_none());
    let argv = strings(&["python", "-m", "sglang.launch_server", "--model-path", "m"]);
    let edit = set_in_argv(&argv, &[], None, Number::PerRequest(7)).unwrap();
    assert_eq!(edit.argv[5..], ["--context-length", "7"]);
}
