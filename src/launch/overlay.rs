//! A compose service as compose itself resolves it (`docker compose config`): the file that lies over it for a trial, who depends on it.

use super::dialect::Dialect;
use super::edit::{Number, Refused, set};
use super::yaml::{Kind, Node, documents};
use super::{Form, NamedText, Texts};

/// The parts of a service that a number may stand in as part of its words.
const WORDS: [&str; 2] = ["entrypoint", "command"];

/// The one text that compose printed.
pub fn resolved_texts(resolved: &[u8]) -> Texts {
    Texts {
        form: Form::Compose,
        main: vec![NamedText {
            name: "the resolved configuration".to_string(),
            bytes: resolved.to_vec(),
        }],
        beside: Vec::new(),
        unit: None,
    }
}

/// An override file that gives `service` the number: its command in the same form as before (a list or a text), or the one variable of its
/// environment, with the same kind of value. A merge of it gives what an edit of the number in place would give.
///
/// # Errors
/// See [`Refused`].
pub fn compose_override(
    resolved: &[u8],
    service: &str,
    engine: Option<Dialect>,
    number: Number,
    comment: &str,
) -> Result<Vec<u8>, Refused> {
    let edit = set(&resolved_texts(resolved), engine, Some(service), number)?;
    let fixed = |what: &str| Refused::Fixed(what.to_string());
    let read = |bytes: &[u8]| -> Result<Node, Refused> {
        let roots = documents(0, bytes).map_err(Refused::Unreadable)?;
        roots
            .iter()
            .find_map(|root| root.get("services")?.get(service).cloned())
            .ok_or_else(|| fixed("the service is not in the resolved configuration"))
    };
    let (before, after) = (read(resolved)?, read(&edit.bytes)?);
    let mut lines = String::new();
    for key in WORDS {
        let value = |node: &Node| node.get(key).and_then(flow);
        if let Some(new) = value(&after).filter(|new| Some(new) != value(&before).as_ref()) {
            lines.push_str(&format!("    {key}: {new}\n"));
        }
    }
    let environment = |node: &Node, name: &str| node.get("environment")?.get(name)?.shown();
    let names = after.get("environment").map(Node::keys).unwrap_or_default();
    let mut variables = String::new();
    for name in names {
        let Some(new) = environment(&after, &name) else {
            continue;
        };
        if environment(&before, &name).as_ref() == Some(&new) {
            continue;
        }
        // A number written as one stays one: compose tells them apart.
        let opening = edit.span.start.checked_sub(1);
        let sign = opening.and_then(|at| edit.bytes.get(at));
        let bare = edit.new == new && !matches!(sign, Some(b'\'' | b'"'));
        let value = if bare { new } else { text(&new) };
        variables.push_str(&format!("      {}: {value}\n", text(&name)));
    }
    if !variables.is_empty() {
        lines.push_str(&format!("    environment:\n{variables}"));
    }
    if lines.is_empty() {
        return Err(fixed(
            "it stands neither in the service's command nor in its environment",
        ));
    }
    Ok(format!("# {comment}\nservices:\n  {}:\n{lines}", text(service)).into_bytes())
}

/// The services that depend on `service`, directly or through others: by `depends_on`, `links`, or its network.
pub fn compose_dependents(resolved: &[u8], service: &str) -> Vec<String> {
    let roots = documents(0, resolved).unwrap_or_default();
    let Some(services) = roots.iter().find_map(|root| root.get("services")) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![service.to_string()];
    while let Some(on) = open.pop() {
        for name in services.keys() {
            let depends = services
                .get(&name)
                .is_some_and(|node| needs(node).contains(&on));
            if depends && name != service && !found.contains(&name) {
                found.push(name.clone());
                open.push(name);
            }
        }
    }
    found.sort();
    found
}

/// The services that one names as its own needs.
fn needs(node: &Node) -> Vec<String> {
    let list = |key: &str| {
        let node = node.get(key);
        let items = node.map(Node::items).unwrap_or_default();
        let items: Vec<String> = items.iter().filter_map(Node::shown).collect();
        items
    };
    let mut all = list("depends_on");
    all.extend(node.get("depends_on").map(Node::keys).unwrap_or_default());
    let links = list("links");
    all.extend(
        links
            .iter()
            .filter_map(|link| link.split(':').next())
            .map(str::to_string),
    );
    for key in ["network_mode", "ipc", "pid"] {
        let of = node.get(key).and_then(Node::shown);
        let of = of.and_then(|text| text.strip_prefix("service:").map(str::to_string));
        all.extend(of);
    }
    all
}

/// The names of all services.
pub fn compose_services(resolved: &[u8]) -> Vec<String> {
    let roots = documents(0, resolved).unwrap_or_default();
    let services = roots.iter().find_map(|root| root.get("services"));
    services.map(Node::keys).unwrap_or_default()
}

/// The project's name that a compose file gives (`name:`).
pub fn compose_name(bytes: &[u8]) -> Option<String> {
    let roots = documents(0, bytes).ok()?;
    roots.iter().find_map(|root| root.get("name")?.shown())
}

/// In JSON, which is YAML: as a list or a text, as it was.
fn flow(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar(_) => node.shown().map(|shown| text(&shown)),
        Kind::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(flow).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Kind::Null | Kind::Map(_) => None,
    }
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(resolved: &str, service: &str) -> String {
        let bytes = compose_override(
            resolved.as_bytes(),
            service,
            None,
            Number::PerRequest(8192),
            "a trial",
        );
        String::from_utf8(bytes.unwrap()).unwrap()
    }

    #[test]
    fn the_command_keeps_its_form() {
        let list = "services:\n  a.b:\n    command:\n    - --model\n    - \"x$$y\"\n    - --max-model-len\n    - '4096'\n    image: vllm/vllm-openai\n";
        assert_eq!(
            over(list, "a.b"),
            "# a trial\nservices:\n  \"a.b\":\n    command: [\"--model\", \"x$$y\", \"--max-model-len\", \"8192\"]\n"
        );
        let text = "services:\n  llm:\n    command: --model x --max-model-len\n      4096 --seed 1\n    image: vllm/vllm-openai\n";
        assert_eq!(
            over(text, "llm"),
            "# a trial\nservices:\n  \"llm\":\n    command: \"--model x --max-model-len 8192 --seed 1\"\n"
        );
        let entrypoint = "services:\n  llm:\n    entrypoint: [vllm, serve, m, --max-model-len=4096]\n    command: null\n    image: x\n";
        assert!(
            over(entrypoint, "llm").contains(
                "    entrypoint: [\"vllm\", \"serve\", \"m\", \"--max-model-len=8192\"]\n"
            )
        );
    }

    #[test]
    fn a_variable_keeps_its_kind_and_leaves_the_others() {
        for (value, new) in [("'4096'", "\"8192\""), ("4096", "8192")] {
            let resolved = format!(
                "services:\n  llm:\n    command: [--port, '1']\n    environment:\n      LLAMA_ARG_CTX_SIZE: {value}\n      LLAMA_ARG_N_PARALLEL: '1'\n    image: ghcr.io/ggml-org/llama.cpp:server\n"
            );
            assert_eq!(
                over(&resolved, "llm"),
                format!(
                    "# a trial\nservices:\n  \"llm\":\n    environment:\n      \"LLAMA_ARG_CTX_SIZE\": {new}\n"
                )
            );
        }
    }

    #[test]
    fn dependents_are_found_through_others() {
        let resolved = b"services:\n  llm: {image: a}\n  web: {depends_on: [llm]}\n  proxy:\n    depends_on:\n      web: {condition: service_started}\n  side: {network_mode: 'service:llm'}\n  old: {links: ['llm:model']}\n  db: {image: b}\n";
        assert_eq!(
            compose_dependents(resolved, "llm"),
            ["old", "proxy", "side", "web"]
        );
        assert!(compose_dependents(resolved, "db").is_empty());
        assert_eq!(compose_services(resolved).len(), 6);
        assert_eq!(
            compose_name(b"name: rig\nservices: {}\n").as_deref(),
            Some("rig")
        );
    }
}
