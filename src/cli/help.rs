//! What the help of each command shows. The options of the cockpit are understood everywhere, before and after a command, and are shown where
//! they do something.

use super::Cli;
use clap::{Command, CommandFactory};

/// Options of the cockpit's look and behaviour.
const LOOK: [&str; 8] = [
    "quick",
    "new",
    "read_only",
    "theme",
    "colours",
    "glyphs",
    "mouse",
    "confirm_within",
];
/// Which profile.
const PROFILE: [&str; 2] = ["config", "profile"];

/// The whole command line, ready to be parsed or printed.
pub fn command() -> Command {
    let mut command = Cli::command();
    // Options that hold everywhere reach the commands only when it is built.
    command.build();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|one| one.get_name().to_string())
        .collect();
    for name in names {
        command = command.mut_subcommand(&name, |one| without(one, &hidden(&name)));
    }
    command
}

/// The options that say nothing to a command.
fn hidden(command: &str) -> Vec<&'static str> {
    let looks: Vec<&'static str> = match command {
        "demo" | "attach" => Vec::new(),
        _ => {
            let own = own(command);
            LOOK.into_iter().filter(|one| !own.contains(one)).collect()
        }
    };
    let profiles = match command {
        "demo" | "attach" | "runs" | "decisions" | "sim" | "keys" | "themes" | "completions"
        | "man" | "estimate" | "diagnose" | "gpus" | "launch" => PROFILE.as_slice(),
        _ => [].as_slice(),
    };
    looks.into_iter().chain(profiles.iter().copied()).collect()
}

/// Options of the cockpit that a command without a screen has as its own.
fn own(command: &str) -> &'static [&'static str] {
    match command {
        "bench" => &["quick"],
        "ramp" => &["quick", "new", "confirm_within"],
        _ => &[],
    }
}

fn without(command: Command, hidden: &[&str]) -> Command {
    let own = own(command.get_name());
    let command = command.mut_args(|option| {
        let id = option.get_id().as_str();
        if own.contains(&id) {
            return option.help_heading("Options");
        }
        let hide = hidden.contains(&id);
        option.hide(hide)
    });
    let names: Vec<String> = command
        .get_subcommands()
        .map(|one| one.get_name().to_string())
        .collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |one| without(one, hidden))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(path: &[&str]) -> String {
        let mut one = command();
        for name in path {
            one = one.find_subcommand(name).expect("a command").clone();
        }
        one.render_long_help().to_string()
    }

    #[test]
    fn options_are_shown_where_they_do_something() {
        for path in [
            &["sim"][..],
            &["init"],
            &["runs"],
            &["runs", "show"],
            &["decisions"],
            &["report"],
        ] {
            let text = help(path);
            for option in ["--theme", "--mouse", "--quick", "The cockpit"] {
                assert!(!text.contains(option), "{path:?}: {option}\n{text}");
            }
        }
        for path in [&[][..], &["demo"], &["attach"]] {
            let text = help(path);
            assert!(
                text.contains("--theme") && text.contains("--read-only"),
                "{text}"
            );
        }
        let bench = help(&["bench"]);
        assert!(
            bench.contains("--quick") && !bench.contains("--mouse"),
            "{bench}"
        );
        let ramp = help(&["ramp"]);
        assert!(
            ramp.contains("--confirm-within") && !ramp.contains("--read-only"),
            "{ramp}"
        );
        assert!(!help(&["sim"]).contains("--profile"));
        assert!(help(&["init"]).contains("--config"));
        command().debug_assert();
    }

    #[test]
    fn what_is_hidden_is_understood_all_the_same() {
        use clap::FromArgMatches;
        for line in [
            &["vramp", "--quick", "demo"][..],
            &["vramp", "demo", "--quick"],
            &["vramp", "runs", "--theme", "nord"],
        ] {
            let matches = command().try_get_matches_from(line).expect("understood");
            let cli = Cli::from_arg_matches(&matches).expect("read");
            assert!(cli.look.quick || cli.look.theme == "nord", "{line:?}");
        }
    }
}
