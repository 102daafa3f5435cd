use super::tests::{changes, texts};
use super::*;

fn compose(text: &str) -> Texts {
    texts(Form::Compose, &[("compose.yaml", text)], &[])
}

/// Sets 8 tokens a request in the only server.
#[track_caller]
fn sets(text: &str, old: &str, new: &str) -> Edit {
    changes(
        &compose(text),
        Number::PerRequest(8),
        "compose.yaml",
        old,
        new,
    )
}

#[track_caller]
fn service(body: &str, old: &str, new: &str) -> Edit {
    sets(
        &format!("services:\n  llm:\n    image: vllm/vllm-openai:v1\n{body}"),
        old,
        new,
    )
}

#[test]
fn a_command_in_every_form() {
    service(
        "    command: --model m --max-model-len 4096 # tokens\n",
        "4096",
        "8",
    );
    service(
        "    command: \"--model 'a b' --max-model-len=32K\"\n",
        "32K",
        "8",
    );
    service("    command: '--max-model-len 4096'\n", "4096", "8");
    service(
        "    command: [\"--max-model-len\", \"4096\"]\n",
        "4096",
        "8",
    );
    service("    command: [--max-model-len, 4096]\n", "4096", "8");
    service(
        "    command: ['--max-model-len=4096', # x\n      '--port']\n",
        "4096",
        "8",
    );
    service(
        "    command:\n    - --max-model-len # tokens\n    - '4096' # was 1\n    - --port=1\n",
        "4096",
        "8",
    );
    service(
        "    command:\r\n      - --max-model-len\r\n      - 4096\r\n",
        "4096",
        "8",
    );
    service(
        "    command: >\n      --model m\n      --max-model-len 4096\n      --port 1\n",
        "4096",
        "8",
    );
    service(
        "    command: |\n      --model m \\\n      --max-model-len 4096\n",
        "4096",
        "8",
    );
    service(
        "    command: --model m\n      --max-model-len 4096\n",
        "4096",
        "8",
    );
    service(
        "    entrypoint: [\"vllm\", \"serve\"]\n    command: [\"m\", \"--max-model-len\", \"4096\"]\n",
        "4096",
        "8",
    );
    service(
        "    command: bash -c \"vllm serve m --max-model-len 4096 | tee log\"\n",
        "4096",
        "8",
    );
    service(
        "    entrypoint: bash -c\n    command:\n      - |\n        export X=1\n        exec vllm serve m \\\n          --max-model-len 4096\n",
        "4096",
        "8",
    );
}

#[test]
fn an_argument_more_in_every_form() {
    let added = |body: &str, new: &str, expected: &str| {
        let edit = service(body, "", new);
        let text = String::from_utf8(edit.bytes).unwrap();
        assert!(text.ends_with(expected), "{text}");
    };
    added(
        "    command: --model m # x\n",
        " --max-model-len 8",
        "--model m --max-model-len 8 # x\n",
    );
    added(
        "    command: [\"--model\", \"m\"] # x\n",
        ", \"--max-model-len\", \"8\"",
        "[\"--model\", \"m\", \"--max-model-len\", \"8\"] # x\n",
    );
    added(
        "    command: [--model, m]",
        ", --max-model-len, \"8\"",
        "[--model, m, --max-model-len, \"8\"]",
    );
    added(
        "    command:\n      - --model=m   # x\n    ports: []\n",
        "\n      - --max-model-len\n      - \"8\"",
        "- --model=m   # x\n      - --max-model-len\n      - \"8\"\n    ports: []\n",
    );
    added(
        "    command:\n    - '--model=m'",
        "\n    - '--max-model-len'\n    - '8'",
        "'8'",
    );
    added(
        "    command:\r\n      - --model=m\r\n",
        "\r\n      - --max-model-len\r\n      - \"8\"",
        "\"8\"\r\n",
    );
    added(
        "    command: >-\n      --model m\n      --port 1\n    ports: []\n",
        " --max-model-len 8",
        "--port 1 --max-model-len 8\n    ports: []\n",
    );
    let text = "services: {llm: {image: vllm/vllm-openai}}\n";
    let refused = set(&compose(text), None, None, Number::PerRequest(8)).unwrap_err();
    assert!(matches!(refused, Refused::NoPlace(why) if why.contains("no command of its own")));
}

#[test]
fn variables_defaults_and_env_files() {
    service("    command: --max-model-len ${CTX:-4096}\n", "4096", "8");
    let text = "services:\n  llm:\n    image: ghcr.io/ggml-org/llama.cpp:server\n    command: [\"-c\", \"${CTX:-1}\", \"-np\", \"${NP}\"]\n";
    let with = texts(
        Form::Compose,
        &[("c.yaml", text)],
        &[(".env", "NP=2\nCTX=4096 # tokens\n")],
    );
    changes(&with, Number::PerRequest(8), ".env", "4096", "16");
    assert_eq!(find(&compose(text), None).wanted[0].path, ".env");
    let image = "services:\n  llm:\n    image: ghcr.io/ggml-org/llama.cpp:server\n";
    sets(
        &format!(
            "{image}    environment:\n      LLAMA_ARG_CTX_SIZE: 4096\n      LLAMA_ARG_N_PARALLEL: \"2\"\n"
        ),
        "4096",
        "16",
    );
    sets(
        &format!("{image}    environment:\n      - LLAMA_ARG_CTX_SIZE=4096\n"),
        "4096",
        "8",
    );
    sets(
        &format!("{image}    environment:\n      - \"LLAMA_ARG_CTX_SIZE=${{CTX:-4096}}\"\n"),
        "4096",
        "8",
    );
    let text = format!("{image}    env_file:\n      - path: ./llm.env\n        required: false\n");
    let with = texts(
        Form::Compose,
        &[("c.yaml", &text)],
        &[("./llm.env", "LLAMA_ARG_CTX_SIZE='4096'\n")],
    );
    changes(&with, Number::PerRequest(8), "./llm.env", "4096", "8");
    service(
        "    environment:\n      CTX: 4096\n    command: sh -c 'vllm serve m --max-model-len $$CTX'\n",
        "4096",
        "8",
    );
}

#[test]
fn anchors_and_merge_keys() {
    sets(
        "x-llm: &llm\n  image: vllm/vllm-openai\n  command: &cmd\n    - --max-model-len\n    - \"4096\"\nservices:\n  llm:\n    <<: *llm\n    restart: always\n",
        "4096",
        "8",
    );
    sets(
        "x-a: &a [--max-model-len, &n \"4096\"]\nservices:\n  llm:\n    image: vllm/vllm-openai\n    command: *a\n",
        "4096",
        "8",
    );
    sets(
        "x-n: &n \"4096\"\nservices:\n  llm:\n    image: vllm/vllm-openai\n    command: [--max-model-len, *n]\n",
        "4096",
        "8",
    );
    let two = "x: &x\n  image: vllm/vllm-openai\n  command: [--max-model-len, \"4096\"]\nservices:\n  a: *x\n  b:\n    <<: [*x]\n";
    let edit = set(&compose(two), None, Some("b"), Number::PerRequest(8)).unwrap();
    assert_eq!(edit.old, "4096");
    assert!(
        edit.server.notes[0].starts_with("a takes"),
        "{:?}",
        edit.server.notes
    );
}

#[test]
fn several_services_and_several_files() {
    let two = "services:\n  a:\n    image: vllm/vllm-openai\n    command: --max-model-len 4096\n  b:\n    image: lmsysorg/sglang\n    container_name: bee\n    command: python3 -m sglang.launch_server --context-length 4096\n";
    let several = set(&compose(two), None, None, Number::PerRequest(8)).unwrap_err();
    assert_eq!(
        several,
        Refused::Several {
            names: vec!["a (line 4)".into(), "b (line 8)".into()]
        }
    );
    let edit = set(&compose(two), None, Some("bee"), Number::PerRequest(8)).unwrap();
    assert_eq!(edit.line, 8);
    assert!(matches!(
        set(&compose(two), None, Some("c"), Number::PerRequest(8)),
        Err(Refused::Unnamed { .. })
    ));
    let base = "services:\n  a:\n    image: vllm/vllm-openai\n    command: --max-model-len 1\n";
    let over = "services:\n  a:\n    command: --max-model-len 4096\n";
    let files = texts(
        Form::Compose,
        &[("base.yaml", base), ("over.yaml", over)],
        &[],
    );
    changes(&files, Number::PerRequest(8), "over.yaml", "4096", "8");
    sets(
        "services:\n  base:\n    image: x\n    command: [vllm, serve, m, --max-model-len=4096]\n  llm:\n    extends: {service: base}\n",
        "4096",
        "8",
    );
}

#[test]
fn what_is_no_yaml_says_where() {
    let refused = set(
        &compose("services:\n  a: 'open\n  b: 2\n"),
        None,
        None,
        Number::PerRequest(8),
    );
    let why = refused.unwrap_err().to_string();
    assert!(
        why.starts_with("compose.yaml cannot be read as YAML: line "),
        "{why}"
    );
}

fn kubernetes(text: &str, old: &str, new: &str) -> Edit {
    let texts = texts(Form::Kubernetes, &[("pod.yaml", text)], &[]);
    changes(&texts, Number::PerRequest(8), "pod.yaml", old, new)
}

#[test]
fn containers_of_kubernetes() {
    let pod = |container: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: llm\nspec:\n  template:\n    spec:\n      initContainers:\n        - name: pull\n          image: vllm/x\n          args: [--max-model-len, \"1\"]\n      containers:\n        - name: vllm\n          image: vllm/vllm-openai:v1\n{container}"
        )
    };
    kubernetes(
        &pod("          args: [\"--model\", \"m\", \"--max-model-len\", \"4096\"]\n"),
        "4096",
        "8",
    );
    kubernetes(
        &pod("          args:\n            - --model=m\n            - --max-model-len=4096 # x\n"),
        "4096",
        "8",
    );
    kubernetes(
        &pod(
            "          command: [\"/bin/sh\", \"-c\"]\n          args:\n            - |\n              exec vllm serve m \\\n                --max-model-len 4096\n",
        ),
        "4096",
        "8",
    );
    kubernetes(
        &pod(
            "          command: [vllm, serve, m]\n          args: [--max-model-len, $(CTX)]\n          env:\n            - name: CTX\n              value: \"4096\"\n",
        ),
        "4096",
        "8",
    );
    kubernetes(
        &pod("          args:\n          - --model=m\n"),
        "",
        "\n          - --max-model-len\n          - \"8\"",
    );
    let config = "          args: [--max-model-len, $(CTX)]\n          env:\n            - name: CTX\n              valueFrom:\n                configMapKeyRef: {name: c, key: ctx}\n---\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  ctx: \"4096\"\n";
    let edit = kubernetes(&pod(config), "4096", "8");
    assert_eq!(edit.server.names, ["vllm", "llm"]);
    assert_eq!(
        edit.server.in_force().unwrap().variable.as_deref(),
        Some("CTX")
    );
}

#[test]
fn other_yaml_with_arguments() {
    kubernetes(
        "[\"llama-server\", \"-c\", \"4096\", \"-np\", \"2\"]\n",
        "4096",
        "16",
    );
    kubernetes(
        "kind: InferenceService\nspec:\n  predictor:\n    model:\n      args:\n        - --max_model_len=4096\n",
        "4096",
        "8",
    );
    kubernetes(
        "image:\n  repository: vllm/vllm-openai\nextraArgs:\n  - \"--max-model-len\"\n  - \"4096\"\n",
        "4096",
        "8",
    );
}
