//! What ssh complains of, in the operator's terms.

use super::Address;
use crate::units::clean;

/// What happened and what to do about it, from what ssh wrote to standard error.
pub fn explain(stderr: &str, address: &Address) -> String {
    let by_hand = by_hand(address);
    let has = |text: &str| stderr.contains(text);
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return format!(
            "its host key is not the one on record. If the machine was installed anew, remove the old key (ssh-keygen -R {}) and connect once by hand: {by_hand}; else somebody may stand between",
            known_as(address)
        );
    }
    if has("Host key verification failed") || has("host key is known for") {
        return format!(
            "its host key is not known here. Connect once by hand, compare the key and accept it: {by_hand}"
        );
    }
    if has("Permission denied") || has("Too many authentication failures") {
        return format!(
            "it takes none of your keys, and vramp asks for no password. Load the key (ssh-add) or install it there (ssh-copy-id), until this works without a question: ssh -o BatchMode=yes {} true",
            by_hand.trim_start_matches("ssh ")
        );
    }
    if has("Could not resolve hostname") {
        return format!(
            "no address is known for {:?}. Correct the name in the profile or in ~/.ssh/config",
            address.host
        );
    }
    if has("Connection refused") {
        return "nothing takes ssh connections there. Is sshd running, and the port right?"
            .to_string();
    }
    if has("timed out") || has("No route to host") || has("Network is unreachable") {
        return "it does not answer. Is it up, and is a VPN or a jump host needed?".to_string();
    }
    if has("Bad owner or permissions")
        || has("Bad configuration option")
        || has("Can't open user config file")
    {
        return format!("ssh refuses its configuration: {}", last(stderr));
    }
    match last(stderr) {
        line if line.is_empty() => "ssh ended without a word".to_string(),
        line => format!("ssh says: {line}"),
    }
}

/// The command that the operator would type.
fn by_hand(address: &Address) -> String {
    let port = address.port.map(|port| format!("-p {port} "));
    let user = address.user.as_ref().map(|user| format!("{user}@"));
    format!(
        "ssh {}{}{}",
        port.unwrap_or_default(),
        user.unwrap_or_default(),
        address.host
    )
}

/// The name under which the key is kept.
fn known_as(address: &Address) -> String {
    match address.port {
        Some(port) if port != 22 => format!("'[{}]:{port}'", address.host),
        _ => address.host.clone(),
    }
}

fn last(stderr: &str) -> String {
    let mut lines = stderr.lines().rev().map(clean);
    lines
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_complaint_says_what_to_do() {
        let address: Address = "ssh:ada@gpu1:2222".parse().unwrap();
        for (stderr, words) in [
            (
                "@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.\n",
                "ssh-keygen -R '[gpu1]:2222'",
            ),
            (
                "Host key verification failed.\n",
                "by hand, compare the key and accept it: ssh -p 2222 ada@gpu1",
            ),
            (
                "ada@gpu1: Permission denied (publickey,password).\n",
                "ssh -o BatchMode=yes -p 2222 ada@gpu1 true",
            ),
            (
                "ssh: Could not resolve hostname gpu1: Name or service not known\n",
                "\"gpu1\"",
            ),
            (
                "ssh: connect to host gpu1 port 2222: Connection refused\n",
                "sshd running",
            ),
            (
                "ssh: connect to host gpu1 port 2222: Connection timed out\n",
                "does not answer",
            ),
            (
                "Bad owner or permissions on /home/ada/.ssh/config\n",
                "/home/ada/.ssh/config",
            ),
            (
                "kex_exchange_identification: \u{1b}[31mread\n\n",
                "ssh says: kex_exchange_identification: read",
            ),
            ("", "without a word"),
        ] {
            let text = explain(stderr, &address);
            assert!(text.contains(words), "{text}");
        }
    }
}
