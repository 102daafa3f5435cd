use super::tests::{changes, texts};
use super::*;

fn script(text: &str) -> Texts {
    texts(Form::Script, &[("run.sh", text)], &[])
}

/// The script with `old` (its last occurrence of `mark`) changed to the number for `tokens` a request.
#[track_caller]
fn sets(text: &str, tokens: u64, old: &str, new: &str) -> Edit {
    changes(
        &script(text),
        Number::PerRequest(tokens),
        "run.sh",
        old,
        new,
    )
}

#[track_caller]
fn refused(text: &str) -> Refused {
    set(&script(text), None, None, Number::PerRequest(5)).unwrap_err()
}

#[test]
fn a_plain_command() {
    sets("vllm serve m --max-model-len 4096", 8, "4096", "8");
    sets(
        "nohup env A=1 LLAMA_ARG_N_PARALLEL=2 /x/llama-server -c 64 >log 2>&1 &\r\n",
        8,
        "64",
        "16",
    );
    sets(
        "CUDA_VISIBLE_DEVICES=0 exec python3 -m sglang.launch_server \\\n  --context-length='4096' \\\n  --port 1",
        8,
        "4096",
        "8",
    );
    sets("LLAMA_ARG_CTX_SIZE=4096 llama-server", 8, "4096", "8");
}

#[test]
fn a_variable_before_the_program_shares_with_nothing() {
    let texts = script("env LLAMA_ARG_CTX_SIZE=4096 llama-server -np 2 -kvu");
    let server = find(&texts, None).servers.remove(0);
    assert_eq!(server.meaning, Meaning::Shared { slots: 2 });
    assert_eq!(server.in_force().unwrap().notes, Vec::<String>::new());
}

#[test]
fn variables_and_where_they_are_written() {
    sets(
        "CTX=32768\nPORT=8000\nvllm serve m --port $PORT --max-model-len \"$CTX\"",
        8,
        "32768",
        "8",
    );
    sets(
        "CTX=${CTX:-32768}\nvllm serve m --max-model-len ${CTX}",
        8,
        "32768",
        "8",
    );
    sets(
        ": \"${CTX:=32768}\"\nvllm serve m --max-model-len $CTX",
        8,
        "32768",
        "8",
    );
    sets(
        "vllm serve m --max-model-len \"${1:-32768}\"",
        8,
        "32768",
        "8",
    );
    sets(
        "CTX=1\nCTX=2\nvllm serve m --max-model-len $CTX\nCTX=3",
        8,
        "2",
        "8",
    );
    sets(
        "export LLAMA_ARG_CTX_SIZE=4096\nexec llama-server -m x",
        8,
        "4096",
        "8",
    );
    sets(
        "readonly CTX='4096'\nllama-server -c ${CTX}",
        8,
        "4096",
        "8",
    );
    sets(
        "N=4\nCTX=4096 # tokens\nllama-server -c $CTX -np $N",
        8,
        "4096",
        "32",
    );
    assert!(matches!(
        refused("vllm serve m --max-model-len $CTX"),
        Refused::Fixed(_)
    ));
    assert!(matches!(
        refused("vllm serve m --max-model-len $(get ctx)"),
        Refused::Fixed(_)
    ));
}

#[test]
fn arrays_and_texts_of_arguments() {
    sets(
        "ARGS=(\n  --model m # the model\n  --max-model-len 4096\n)\nARGS+=(--port 1)\nexec vllm serve \"${ARGS[@]}\"",
        8,
        "4096",
        "8",
    );
    sets(
        "ARGS=\"--port 1\"\nARGS=\"$ARGS --max-model-len 4096\"\nvllm serve m $ARGS",
        8,
        "4096",
        "8",
    );
    sets(
        "ARGS='-m x'\nARGS+=' -c 4096'\nllama-server $ARGS",
        8,
        "4096",
        "8",
    );
    sets(
        "CMD=\"vllm serve m --max-model-len 4096\"\neval \"$CMD\"",
        8,
        "4096",
        "8",
    );
    sets(
        "set -- --port 1 --max-model-len 4096\nvllm serve m \"$@\"",
        8,
        "4096",
        "8",
    );
}

#[test]
fn functions_and_branches() {
    sets(
        "serve() {\n  vllm serve m --max-model-len \"$1\"\n}\nserve 4096 \"$@\"\n",
        8,
        "4096",
        "8",
    );
    sets(
        "function start {\n  local ctx=4096\n  exec llama-server -c $ctx\n}\n",
        8,
        "4096",
        "8",
    );
    sets(
        "CTX=4096\nif [ -n \"$X\" ]; then\n  vllm serve a --max-model-len $CTX\nelse\n  vllm serve b --max-model-len $CTX\nfi",
        8,
        "4096",
        "8",
    );
    let two = "a() { llama-server -c 1; }\nb() { llama-server -c 2; }\n";
    assert!(
        matches!(refused(two), Refused::Several { names } if names == ["a (line 1)", "b (line 2)"])
    );
    let edit = set(&script(two), None, Some("b"), Number::PerRequest(5)).unwrap();
    assert_eq!((edit.old.as_str(), edit.line), ("2", 2));
    let edit = set(&script(two), None, Some("1"), Number::PerRequest(5)).unwrap();
    assert_eq!(edit.old, "1");
    sets(
        "case $1 in\n  start) llama-server -c 4096 ;;\n  *) echo llama-server -c 1 ;;\nesac",
        8,
        "4096",
        "8",
    );
}

#[test]
fn what_only_looks_like_it_stays() {
    sets(
        "echo \"vllm serve m --max-model-len 1\"\n# vllm serve m --max-model-len 2\ncat <<EOF > x\nvllm serve m --max-model-len 3\nEOF\nvllm serve m --max-model-len 4 --max-num-batched-tokens 4",
        8,
        "4",
        "8",
    );
    sets(
        "bash -c 'sleep 1'\ntaskset -c 0-7 llama-server -m x -c 4096 --ctx-size-draft 512",
        8,
        "4096",
        "8",
    );
    assert!(matches!(
        refused("taskset -c 0-7 sleep 5\nbash -c 5"),
        Refused::NoServer { .. }
    ));
}

#[test]
fn wrappers_inside_one_another() {
    sets(
        "bash -lc 'exec vllm serve \"$M\" --max-model-len 32k 2>&1 | tee -a log'",
        8,
        "32k",
        "8",
    );
    sets(
        "sudo -u llm bash -euo pipefail -c \"llama-server -c 4096 -np 2\"",
        8,
        "4096",
        "16",
    );
    sets(
        "docker run --rm -it --gpus=all -c 512 -p8080:8080 -v /a:/b --name llm ghcr.io/ggml-org/llama.cpp:server-cuda -m x -c 4096 -np 2",
        8,
        "4096",
        "16",
    );
    sets(
        "docker run -d -e LLAMA_ARG_CTX_SIZE=4096 --env LLAMA_ARG_N_PARALLEL=2 ghcr.io/ggml-org/llama.cpp:server",
        8,
        "4096",
        "16",
    );
    sets(
        "podman run --entrypoint bash img -c \"vllm serve m --max-model-len=4096\"",
        8,
        "4096",
        "8",
    );
    sets(
        "CTX=4096\nsudo docker run vllm/vllm-openai:v1 \\\n --model m \\\n --max-model-len $CTX",
        8,
        "4096",
        "8",
    );
    let edit = sets(
        "docker run --gpus all lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path m\n",
        8,
        "",
        " --context-length 8",
    );
    assert!(edit.bytes.ends_with(b" m --context-length 8\n"));
    sets("docker run vllm/vllm-openai", 8, "", " --max-model-len 8");
}

#[test]
fn files_that_a_script_reads() {
    let both = |text: &str, name: &str, file: &str| {
        let texts = texts(Form::Script, &[("run.sh", text)], &[(name, file)]);
        changes(&texts, Number::PerRequest(8), name, "4096", "8");
    };
    both(
        "source /etc/llm.env\nllama-server -c $CTX",
        "/etc/llm.env",
        "CTX=4096\n",
    );
    both(
        ". ./llm.env; vllm serve m --max-model-len $CTX",
        "./llm.env",
        "export CTX=\"4096\"\n",
    );
    both(
        "docker run --env-file llm.env ghcr.io/ggml-org/llama.cpp:server",
        "llm.env",
        "LLAMA_ARG_CTX_SIZE=4096\n",
    );
    both(
        "bash /opt/serve.sh",
        "/opt/serve.sh",
        "vllm serve m --max-model-len 4096",
    );
    let unit = texts(
        Form::Unit,
        &[(
            "a.service",
            "[Service]\nEnvironment=CTX=1\nExecStart=/opt/serve $X 4096\n",
        )],
        &[("/opt/serve", "#!/bin/bash\nexec llama-server -c \"$2\"\n")],
    );
    changes(&unit, Number::PerRequest(8), "a.service", "4096", "8");
}

#[test]
fn a_wrapper_inside_a_unit() {
    let unit = |line: &str| {
        let text = format!("[Service]\nEnvironment=CTX=4096\nExecStart={line}\n");
        texts(Form::Unit, &[("a.service", &text)], &[])
    };
    let sets = |line: &str, old: &str, new: &str| {
        changes(&unit(line), Number::PerRequest(8), "a.service", old, new);
    };
    sets(
        "/bin/bash -c 'exec vllm serve m --max-model-len 32K'",
        "32K",
        "8",
    );
    sets(
        "/bin/bash -c \"exec vllm serve 'a b' --max-model-len \\\"32768\\\"\"",
        "32768",
        "8",
    );
    sets(
        "/bin/bash -c 'exec vllm serve m --max-model-len $CTX'",
        "4096",
        "8",
    );
    sets(
        "/bin/bash -c 'exec vllm serve m --max-model-len $$CTX'",
        "4096",
        "8",
    );
    sets(
        "/bin/bash -c 'exec vllm serve m --max-model-len ${CTX}'",
        "4096",
        "8",
    );
    sets("/bin/bash -c 'exec vllm serve m'", "", " --max-model-len 8");
    sets(
        "/usr/bin/docker run --rm -e LLAMA_ARG_CTX_SIZE=${CTX} llama-server",
        "4096",
        "8",
    );
}

#[test]
fn arithmetic_of_digits_is_read_and_replaced() {
    sets(
        "vllm serve m --max-model-len $((32 * 1024))",
        8,
        "$((32 * 1024))",
        "8",
    );
    sets(
        "CTX=$(( 4 << 10 ))\nllama-server -c $CTX",
        8,
        "$(( 4 << 10 ))",
        "8",
    );
    assert!(matches!(
        refused("llama-server -c $((A * 1024))"),
        Refused::Fixed(_)
    ));
}

#[test]
fn a_length_in_a_branch_is_said_to_be_there() {
    for (text, line) in [
        (
            "#!/bin/bash\nif [ \"$1\" = big ]; then\n  CTX=131072\nelse\n  CTX=32768\nfi\nexec vllm serve /m --max-model-len $CTX\n",
            Some(5),
        ),
        (
            "#!/bin/sh\ncase \"$M\" in\n  a) L=\"--max-model-len 8192\" ;;\n  *) L=\"--max-model-len 4096\" ;;\nesac\nexec vllm serve /m $L\n",
            Some(4),
        ),
        (
            "#!/bin/sh\nif true; then echo hello; fi\nCTX=4096\nexec vllm serve /m --max-model-len $CTX\n",
            None,
        ),
        // A server that is started again and again.
        (
            "#!/bin/sh\nwhile true; do\n  vllm serve /m --max-model-len 4096\ndone\n",
            None,
        ),
    ] {
        let server = find(&script(text), None).servers.remove(0);
        let said = server.notes.iter().any(|note| note.contains("in a branch"));
        assert_eq!(said, line.is_some(), "{text}: {:?}", server.notes);
        if let Some(line) = line {
            let begins = format!("line {line} is in a branch");
            assert!(server.notes[0].starts_with(&begins), "{:?}", server.notes);
        }
    }
}
