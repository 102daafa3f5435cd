//! What a file is, by its name and its text.

use super::Form;

impl Form {
    /// Guesses; a text that is nothing else is taken for a script.
    pub fn guess(name: &str, bytes: &[u8]) -> Form {
        let text = String::from_utf8_lossy(bytes);
        let base = name.rsplit('/').next().unwrap_or(name);
        let extension = base.rsplit_once('.').map_or("", |(_, extension)| extension);
        let text = text.trim_start_matches('\u{feff}');
        let section = |name: &str| text.lines().any(|line| line.trim() == name);
        match extension {
            "service" | "container" => return Form::Unit,
            "toml" => return Form::Profile,
            "sh" | "bash" => return Form::Script,
            "yml" | "yaml" | "json" => return yaml(text),
            _ => {}
        }
        if bytes.contains(&0) {
            Form::Argv
        } else if text.starts_with("#!") {
            Form::Script
        } else if section("[Service]") || section("[Container]") {
            Form::Unit
        } else if extension == "env" || base.starts_with(".env") || assignments_alone(text) {
            Form::EnvFile
        } else if section("services:") || text.trim_start().starts_with(['[', '{']) {
            yaml(text)
        } else if text.lines().any(|line| line.starts_with("kind:")) {
            Form::Kubernetes
        } else {
            Form::Script
        }
    }

    /// The name used in commands and output.
    pub fn name(self) -> &'static str {
        match self {
            Form::Unit => "unit",
            Form::EnvFile => "env",
            Form::Compose => "compose",
            Form::Kubernetes => "kubernetes",
            Form::Profile => "profile",
            Form::Script => "script",
            Form::Argv => "argv",
        }
    }
}

fn yaml(text: &str) -> Form {
    let top = |key: &str| {
        text.lines().any(|line| {
            let line = line.trim_start_matches(['{', ' ']);
            line.starts_with(key) || line.starts_with(&format!("\"{}\"", key.trim_end_matches(':')))
        })
    };
    let kind = text.lines().any(|line| line.starts_with("kind:"));
    match top("services:") && !kind {
        true => Form::Compose,
        false => Form::Kubernetes,
    }
}

/// Whether every line that says something is `NAME=value`.
fn assignments_alone(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            line.split_once('=').is_some_and(|(name, value)| {
                let bare = !value.trim_start().starts_with(['"', '\'']);
                super::traced::is_name(name.trim().as_bytes())
                    // NAME=value COMMAND is a command.
                    && !(bare && value.contains(" -") && !value.starts_with('-'))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_by_text() {
        let table = [
            ("a.service", "", Form::Unit),
            ("10-x.conf", "[Service]\nExecStart=\n", Form::Unit),
            ("x.conf", "A=1\n# b\nB='x y'\n", Form::EnvFile),
            ("default.env", "A=1\n", Form::EnvFile),
            ("llm", "A=1\n", Form::EnvFile),
            ("llm", "A=-m x -c 1\n", Form::EnvFile),
            (".env", "", Form::EnvFile),
            ("run", "#!/bin/sh\nA=1\n", Form::Script),
            ("run.sh", "A=1\n", Form::Script),
            ("cmd.txt", "llama-server -c 1\n", Form::Script),
            ("cmd", "A=1 llama-server -c 1\n", Form::Script),
            ("cmdline", "llama-server\0-c\0x\0", Form::Argv),
            ("compose.yaml", "# x\nservices:\n  a: {}\n", Form::Compose),
            ("c.json", "{\"services\": {}}", Form::Compose),
            (
                "c.yml",
                "kind: Pod\nspec:\n  services: 1\n",
                Form::Kubernetes,
            ),
            ("argv.json", "[\"a\"]", Form::Kubernetes),
            ("vramp.toml", "", Form::Profile),
        ];
        for (name, text, form) in table {
            assert_eq!(Form::guess(name, text.as_bytes()), form, "{name} {text:?}");
        }
    }
}
