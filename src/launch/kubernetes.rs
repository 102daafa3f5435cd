//! Kubernetes manifests, and other YAML that holds containers in the same way (Helm values, KServe, a bare list of arguments).

use super::Reader;
use super::command::{Command, Env, Word};
use super::interpolate::references;
use super::traced::{Text, plain};
use super::yaml::{Kind, Node, documents};

/// The commands of all containers.
///
/// # Errors
/// The file that is no YAML, and why.
pub(super) fn commands(reader: &Reader<'_>) -> Result<Vec<Command>, String> {
    let mut roots = Vec::new();
    for (number, file) in reader.texts.main.iter().enumerate() {
        let read = documents(number, &file.bytes)
            .map_err(|why| format!("{} cannot be read as YAML: {why}", file.name))?;
        roots.extend(read);
    }
    // Objects may be wrapped in a List.
    let objects: Vec<Node> = roots
        .into_iter()
        .flat_map(|root| match root.get("items") {
            Some(items) if root.get("kind").is_some() => items.items().to_vec(),
            _ => vec![root],
        })
        .collect();
    let maps: Vec<&Node> = objects
        .iter()
        .filter(|object| object.get("kind").and_then(Node::shown).as_deref() == Some("ConfigMap"))
        .collect();
    let mut walk = Walk {
        maps,
        out: Vec::new(),
    };
    for object in &objects {
        let name = object
            .get("metadata")
            .and_then(|meta| meta.get("name"))
            .and_then(Node::shown);
        if let Kind::List(items) = &object.kind
            && items.iter().all(|item| item.scalar().is_some())
        {
            walk.out.push(Command {
                words: object.words(),
                ..Command::default()
            });
            continue;
        }
        walk.node(object, name.as_deref());
    }
    Ok(walk.out)
}

struct Walk<'a> {
    maps: Vec<&'a Node>,
    out: Vec<Command>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, object: Option<&str>) {
        if self.container(node, object) {
            return;
        }
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| self.node(item, object)),
            Kind::Map(entries) => {
                for (key, value) in entries {
                    if key.shown().as_deref() != Some("initContainers") {
                        self.node(value, object);
                    }
                }
            }
            _ => {}
        }
    }

    /// A map that has arguments; whether it was one.
    fn container(&mut self, node: &Node, object: Option<&str>) -> bool {
        let list = |key: &str| {
            node.get(key)
                .filter(|value| matches!(value.kind, Kind::List(_)))
        };
        let parts: Vec<&Node> = ["command", "args", "extraArgs"]
            .into_iter()
            .filter_map(list)
            .collect();
        let image = node.get("image").and_then(Node::shown);
        if parts.is_empty() && (image.is_none() || node.get("env").is_none()) {
            return false;
        }
        let env = self.environment(node);
        let words = parts
            .into_iter()
            .flat_map(Node::words)
            .map(|word| Word {
                text: references(&word.text, &env),
                after: word.after,
            })
            .collect();
        let own = node.get("name").and_then(Node::shown);
        self.out.push(Command {
            names: own.into_iter().chain(object.map(str::to_string)).collect(),
            words,
            env,
            image: Some(image.unwrap_or_default()),
            inside: true,
            template: false,
        });
        true
    }

    fn environment(&self, node: &Node) -> Env {
        let mut env = Env::default();
        for from in node.get("envFrom").map(Node::items).unwrap_or_default() {
            let name = from
                .get("configMapRef")
                .and_then(|map| map.get("name"))
                .and_then(Node::shown);
            let data = name.and_then(|name| self.data(&name));
            for key in data.map(Node::keys).unwrap_or_default() {
                if let Some(value) = data.and_then(|data| data.get(&key)).and_then(Node::scalar) {
                    env.set(&key, value.clone());
                }
            }
        }
        for item in node.get("env").map(Node::items).unwrap_or_default() {
            let Some(name) = item.get("name").and_then(Node::shown) else {
                continue;
            };
            let value = item.get("value").and_then(Node::scalar).cloned();
            let value = value.or_else(|| self.map_value(item));
            if let Some(value) = value {
                let value = references(&value, &env);
                env.set(&name, value);
            }
        }
        env
    }

    fn map_value(&self, item: &Node) -> Option<Text> {
        let from = item.get("valueFrom")?.get("configMapKeyRef")?;
        let data = self.data(&from.get("name")?.shown()?)?;
        data.get(&from.get("key")?.shown()?)?.scalar().cloned()
    }

    fn data(&self, name: &str) -> Option<&Node> {
        self.maps
            .iter()
            .find(|map| {
                map.get("metadata")
                    .and_then(|meta| meta.get("name"))
                    .and_then(Node::scalar)
                    .is_some_and(|text| plain(text) == name.as_bytes())
            })?
            .get("data")
    }
}
