//! What holds for every text: nothing outside the number changes, twice is once, and the way back leads home.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use vramp::launch::{Form, NamedText, Number, Texts, find, set};

fn texts(form: Form, name: &str, text: &[u8], beside: &[(&str, &str)]) -> Texts {
    Texts {
        form,
        main: vec![NamedText {
            name: name.to_string(),
            bytes: text.to_vec(),
        }],
        beside: beside
            .iter()
            .map(|(name, text)| NamedText {
                name: name.to_string(),
                bytes: text.as_bytes().to_vec(),
            })
            .collect(),
        unit: Some("llm@7.service".to_string()),
    }
}

/// All three properties, where the text has a number that can be changed.
fn holds(texts: &Texts, number: u64) -> Result<bool, TestCaseError> {
    let launches = find(texts, None);
    let Ok(edit) = set(texts, None, None, Number::Argument(number)) else {
        return Ok(false);
    };
    let old = texts
        .main
        .iter()
        .chain(&texts.beside)
        .find(|file| file.name == edit.file)
        .unwrap();
    prop_assert_eq!(
        &edit.bytes[..edit.span.start],
        &old.bytes[..edit.span.start]
    );
    let behind = edit.span.start + edit.new.len();
    prop_assert_eq!(&edit.bytes[behind..], &old.bytes[edit.span.end..]);
    let mut changed = texts.clone();
    for file in changed.main.iter_mut().chain(&mut changed.beside) {
        if file.name == edit.file {
            file.bytes.clone_from(&edit.bytes);
        }
    }
    let again = set(&changed, None, None, Number::Argument(number)).unwrap();
    prop_assert!(again.changes_nothing());
    prop_assert_eq!(&again.bytes, &edit.bytes);
    let server = launches.choose(None).unwrap();
    let before = server.in_force().and_then(|found| found.value.tokens());
    if let Some(before) = before.filter(|n| edit.old == n.to_string()) {
        let back = set(&changed, None, None, Number::Argument(before)).unwrap();
        prop_assert_eq!(&back.bytes, &old.bytes);
    }
    Ok(true)
}

const COMMANDS: [&str; 7] = [
    "/x/vllm serve m --max-model-len N --port 1",
    "/x/vllm serve m --max_model_len=N",
    "/x/python3 -m sglang.launch_server --context-length N --tp 2",
    "/x/llama-server -m a.gguf -c N -np 4",
    "/x/llama-server --ctx-size N --kv-unified",
    "/usr/bin/docker run --rm -p 1:1 vllm/vllm-openai --max-model-len N",
    "/bin/bash -c 'exec vllm serve m --max-model-len N 2>&1'",
];

fn command() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (1_u64..1_000_000).prop_map(|n| n.to_string()),
        Just("32K".to_string()),
        Just("\"4096\"".to_string()),
        Just("${CTX}".to_string()),
    ];
    (prop::sample::select(&COMMANDS[..]), number)
        .prop_map(|(command, number)| command.replace('N', &number))
}

fn lines(more: &'static str) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(more, 0..4)
}

proptest! {
    #[test]
    fn units(command in command(), before in lines("(# [ -~]{0,20}|[A-Z][a-z]{1,8}=[ -~]{0,20})"), end in "(\r\n|\n)", n in 1_u64..10_000_000) {
        let mut text = format!("[Service]{end}Environment=CTX=2048{end}");
        for line in before.iter().filter(|l| !l.ends_with('\\') && !l.starts_with("Exec") && !l.starts_with("Env") && !l.starts_with("Unset")) {
            text.push_str(line);
            text.push_str(&end);
        }
        // Split over lines at blanks, outside of quotes.
        let command = match command.contains('\'') {
            true => command,
            false => command.replace(" -", &format!(" \\{end}  -")),
        };
        text.push_str(&format!("ExecStart={command}{end}Restart=always"));
        prop_assert!(holds(&texts(Form::Unit, "llm.service", text.as_bytes(), &[]), n)?, "{}", text);
    }

    #[test]
    fn scripts(command in command(), before in lines("(# [ -~]{0,20}|[A-Z]{1,3}=[a-z0-9]{0,5}|echo '[a-z -]{0,20}')"), n in 1_u64..10_000_000) {
        let text = format!("#!/bin/sh\n{}\nexport CTX=2048\nexec {command}\n", before.join("\n"));
        prop_assert!(holds(&texts(Form::Script, "run.sh", text.as_bytes(), &[]), n)?, "{}", text);
    }

    #[test]
    fn compose_files(command in command(), indent in 2_usize..6, list in any::<bool>(), comment in "( # [ -~]{0,20})?", n in 1_u64..10_000_000) {
        let pad = " ".repeat(indent);
        let command = command.replace("2>&1", "");
        let body = match list && !command.contains(['\'', '"']) {
            true => command
                .split(' ')
                .map(|word| format!("\n{pad}{pad}  - \"{word}\"{comment}"))
                .collect::<String>(),
            false => format!(" >-\n{pad}{pad}  {command}"),
        };
        let text = format!("services:\n{pad}llm:\n{pad}{pad}image: x\n{pad}{pad}command:{body}\n{pad}{pad}restart: always\n");
        let inside = command.contains("docker");
        let done = holds(&texts(Form::Compose, "c.yaml", text.as_bytes(), &[(".env", "CTX=2048\n")]), n)?;
        prop_assert!(done || inside, "{}", text);
    }

    #[test]
    fn environment_files(name in "(CTX|LLM_CTX|MAX_MODEL_LEN|LLAMA_ARG_CTX_SIZE)", quote in "['\"]?", blanks in "[ \t]{0,3}", before in lines("(#[ -~]{0,20}|[A-Z]{1,2}=[a-z0-9\"' ]{0,8})"), n in 1_u64..10_000_000) {
        let open = |line: &String| line.matches(['\'', '"']).count() > 0;
        let before: Vec<String> = before.into_iter().filter(|line| !open(line)).collect();
        let text = format!("{}\n{name}={quote}4096{quote}{blanks}\n", before.join("\n"));
        prop_assert!(holds(&texts(Form::EnvFile, "llm.env", text.as_bytes(), &[]), n)?, "{}", text);
    }

    #[test]
    fn no_text_makes_it_panic(
        pieces in prop::collection::vec(prop_oneof![
            Just("[Service]\n".to_string()),
            Just("ExecStart=".to_string()),
            Just("Environment=".to_string()),
            Just("services:\n a:\n  image: vllm\n  command: ".to_string()),
            Just("vllm serve m --max-model-len ".to_string()),
            Just("llama-server -c ".to_string()),
            Just("docker run -it -e A=".to_string()),
            Just("bash -c \"".to_string()),
            Just("f() {\n".to_string()),
            Just("A=(".to_string()),
            Just("- &a ".to_string()),
            Just("*a".to_string()),
            "[-'\"\\\\${}()\\[\\]|>&;#:=%@!*,\r\n\t a-z0-9A-Zé]{0,12}",
        ], 0..14),
        n in 1_u64..100_000,
    ) {
        let text = pieces.concat();
        for form in [Form::Unit, Form::EnvFile, Form::Script, Form::Compose, Form::Kubernetes, Form::Profile, Form::Argv] {
            holds(&texts(form, "x", text.as_bytes(), &[(".env", &text)]), n)?;
        }
        let _ = Form::guess("x", text.as_bytes());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for form in [Form::Unit, Form::EnvFile, Form::Script, Form::Compose, Form::Kubernetes, Form::Profile, Form::Argv] {
            holds(&texts(form, "x", &bytes, &[]), 5)?;
        }
    }
}
