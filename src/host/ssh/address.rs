//! `ssh:USER@HOST[:PORT]`.

use std::fmt;
use std::str::FromStr;

/// Where ssh is to go. HOST may be any name that ssh itself knows, of `~/.ssh/config` too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

impl FromStr for Address {
    type Err = String;

    /// Reads `ssh:HOST`, `ssh:USER@HOST`, `ssh:USER@HOST:PORT`, `ssh:USER@[::1]:PORT`; `ssh://` is taken as well.
    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = |what: &str| {
            Err(format!(
                "{what} in {text:?}; a host is written ssh:USER@HOST or ssh:USER@HOST:PORT"
            ))
        };
        let Some(rest) = text.strip_prefix("ssh:") else {
            return wrong("there is no \"ssh:\"");
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, after)) => match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return wrong("something odd follows the bracket"),
            },
            // More than one colon is an address of version 6 without brackets.
            None => match rest.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (rest, None),
            },
        };
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return wrong("the port is no number from 1 to 65535"),
        };
        // A leading dash would be an option to ssh.
        let odd = |name: &str| {
            name.is_empty()
                || name.starts_with('-')
                || name
                    .chars()
                    .any(|c| c.is_whitespace() || c.is_control() || "'\"`$;&|<>(){}\\".contains(c))
        };
        if odd(host) {
            return wrong("the name of the host is missing or odd");
        }
        if user.is_some_and(odd) {
            return wrong("the name of the user is missing or odd");
        }
        Ok(Address {
            user: user.map(str::to_string),
            host: host.to_string(),
            port,
        })
    }
}

impl fmt::Display for Address {
    /// `user@host:port`, as far as given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match (self.host.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.host),
            (false, Some(port)) => write!(f, "{}:{port}", self.host),
            (_, None) => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<String>, String, Option<u16>), String> {
        text.parse::<Address>()
            .map(|address| (address.user, address.host, address.port))
    }

    #[test]
    fn addresses_as_people_write_them() {
        let some = |text: &str| Some(text.to_string());
        for (text, user, host, port) in [
            ("ssh:gpu1", None, "gpu1", None),
            ("ssh:ada@gpu1", some("ada"), "gpu1", None),
            ("ssh:ada@gpu1:2222", some("ada"), "gpu1", Some(2222)),
            ("ssh://ada@gpu1:22", some("ada"), "gpu1", Some(22)),
            ("ssh:ada@dom@gpu1", some("ada@dom"), "gpu1", None),
            ("ssh:ada@[::1]:22", some("ada"), "::1", Some(22)),
            ("ssh:[fe80::1]", None, "fe80::1", None),
            ("ssh:fe80::1", None, "fe80::1", None),
        ] {
            assert_eq!(read(text), Ok((user, host.to_string(), port)), "{text}");
        }
        for text in [
            "gpu1",
            "ssh:",
            "ssh:ada@",
            "ssh:@gpu1",
            "ssh:-oProxyCommand=x",
            "ssh:-l@gpu1",
            "ssh:gpu1:",
            "ssh:gpu1:0",
            "ssh:gpu1:70000",
            "ssh:a b",
            "ssh:[::1]x",
            "ssh:a;b",
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("ssh:USER@HOST"), "{error}");
        }
    }

    #[test]
    fn an_address_is_shown_as_it_was_given() {
        for text in ["gpu1", "ada@gpu1", "ada@gpu1:2222", "ada@[::1]:22", "::1"] {
            let address: Address = format!("ssh:{text}").parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
    }
}
