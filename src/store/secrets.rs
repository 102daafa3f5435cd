//! Keys, tokens and passwords never reach the disk, wherever an operator may have put them.

use crate::profile::Launch;

const HIDDEN: &str = "***";

/// The URL without user, password, query and fragment. Text that is no URL is kept up to its first blank or `@`.
pub(super) fn url(text: &str) -> String {
    match url::Url::parse(text) {
        Ok(mut url) => {
            // Both fail only for URLs that cannot hold them.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.as_str().trim_end_matches('/').to_string()
        }
        Err(_) => text
            .split([' ', '@', '?'])
            .next()
            .unwrap_or_default()
            .to_string(),
    }
}

/// The launch for the record: values of arguments and variables whose name speaks of a secret are hidden. It is for reading, never for
/// starting a server.
pub fn launch(launch: &Launch) -> Launch {
    let mut next_is_secret = false;
    let argv = launch
        .argv
        .iter()
        .map(|arg| {
            if std::mem::take(&mut next_is_secret) && !arg.starts_with("--") {
                return HIDDEN.to_string();
            }
            match arg.split_once('=') {
                Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
                Some(_) => arg.clone(),
                None => {
                    next_is_secret = arg.starts_with('-') && is_secret(arg);
                    arg.clone()
                }
            }
        })
        .collect();
    let env = launch
        .env
        .iter()
        .map(|(name, value)| {
            let value = if is_secret(name) { HIDDEN } else { value };
            (name.clone(), value.to_string())
        })
        .collect();
    Launch {
        argv,
        env,
        ..launch.clone()
    }
}

/// Whether a name ends like one of a secret: `--api-key`, `HF_TOKEN`; not `--max-tokens`, `--tokenizer` or `--key-cache-dtype`.
fn is_secret(name: &str) -> bool {
    let last = name
        .rsplit(['-', '_'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    matches!(
        last.as_str(),
        "key" | "keys" | "token" | "apikey" | "secret" | "password" | "passwd" | "passphrase"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_loses_what_could_be_a_secret() {
        assert_eq!(
            url("https://me:pw@host:8443/base/?api_key=x#y"),
            "https://host:8443/base"
        );
        assert_eq!(url("http://127.0.0.1:30000"), "http://127.0.0.1:30000");
        assert_eq!(url("no url me:pw@host"), "no");
    }

    #[test]
    fn a_launch_loses_keys_and_nothing_else() {
        let given = Launch {
            argv: [
                "serve",
                "--api-key",
                "sk-1",
                "--max-tokens",
                "5",
                "--hf-token=abc",
                "--tokenizer=x",
            ]
            .map(String::from)
            .to_vec(),
            env: vec![
                ("HF_TOKEN".into(), "abc".into()),
                ("CUDA_VISIBLE_DEVICES".into(), "0,1".into()),
            ],
            cwd: None,
            slots: 1,
        };
        let kept = launch(&given);
        assert_eq!(
            kept.argv,
            [
                "serve",
                "--api-key",
                "***",
                "--max-tokens",
                "5",
                "--hf-token=***",
                "--tokenizer=x"
            ]
        );
        assert_eq!(kept.env[0].1, "***");
        assert_eq!(kept.env[1].1, "0,1");
    }
}
