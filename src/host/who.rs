//! Who works here, for locks, intents and records.

use crate::units;

/// `user@host` of this process.
pub fn who() -> String {
    let uid = rustix::process::getuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_of(&passwd, uid).map_or_else(|| format!("uid {uid}"), str::to_string);
    let uname = rustix::system::uname();
    units::clean(&format!("{user}@{}", uname.nodename().to_string_lossy()))
}

fn user_of(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_the_one_of_the_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_of(passwd, 1000), Some("ada"));
        assert_eq!(user_of(passwd, 0), Some("root"));
        assert_eq!(user_of(passwd, 7), None);
        assert!(who().contains('@'));
    }
}
