//! The command line. Each command is a small file; none has logic of its own.

mod bench;
mod cockpit;
mod demo;
mod diagnose;
mod doctor;
mod estimate;
mod gpus;
mod help;
mod init;
mod launch;
mod print;
mod ramp;
mod records;
mod rig;
mod runs;
mod status;

use crate::engine::Key;
use crate::places::Places;
use crate::sim::SimArgs;
use clap::{FromArgMatches, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;

/// Wrong use.
pub const WRONG_USE: i32 = 2;
/// The thing asked for failed.
pub const FAILED: i32 = 1;

/// Interrupted; what was done until then is kept.
pub const INTERRUPTED: i32 = 130;

/// A terminal cockpit that measures an inference server, raises its context length and keeps the evidence.
///
/// Without a command it opens the cockpit on the default profile.
#[derive(Debug, Parser)]
#[command(name = "vramp", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub look: Look,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command understands.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Profiles to read instead of ~/.config/vramp/vramp.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Profile to use instead of the default one
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
}

/// How the cockpit looks and behaves.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The cockpit")]
pub struct Look {
    /// Less work in every plan, for a first look
    #[arg(long, global = true)]
    pub quick: bool,
    /// Begin a new session instead of going on with the last one
    #[arg(long, global = true)]
    pub new: bool,
    /// Restart nothing and write no production value
    #[arg(long, global = true)]
    pub read_only: bool,
    /// Take a trial back that is not kept within this time (90s, 30m, 2h), also when the cockpit is gone
    #[arg(long, global = true, value_name = "TIME", value_parser = crate::units::parse_seconds)]
    pub confirm_within: Option<u64>,
    /// Theme: default-dark, default-light, high-contrast, mono, colour-blind, catppuccin-mocha, gruvbox, nord, or one of your own
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "VRAMP_THEME",
        default_value = "default-dark"
    )]
    pub theme: String,
    /// Colours: auto, truecolor, 256, 16, none
    #[arg(
        long,
        global = true,
        value_name = "WHICH",
        env = "VRAMP_COLOURS",
        default_value = "auto"
    )]
    pub colours: String,
    /// Signs: auto, unicode, ascii
    #[arg(
        long,
        global = true,
        value_name = "WHICH",
        env = "VRAMP_GLYPHS",
        default_value = "auto"
    )]
    pub glyphs: String,
    /// Take mouse clicks and the wheel (selecting text then needs Shift)
    #[arg(long, global = true)]
    pub mouse: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try the cockpit on a simulated rig: no GPU, no server, no set-up
    Demo,
    /// Open the cockpit on any OpenAI-compatible URL; nothing to configure, no restarts
    Attach {
        /// Base URL, for example http://127.0.0.1:30000
        url: String,
        /// Environment variable with the API key
        #[arg(long, value_name = "NAME")]
        key_env: Option<String>,
    },
    Init(init::InitArgs),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    Ramp(Box<ramp::RampArgs>),
    Bench(Box<bench::BenchArgs>),
    Runs(runs::RunsArgs),
    Launch(launch::LaunchArgs),
    Estimate(Box<estimate::EstimateArgs>),
    Gpus(gpus::GpusArgs),
    /// List decisions about production values
    Decisions(#[command(flatten)] Listing),
    /// Write the report of the last session of the profile
    Report {
        /// The demo's last session
        #[arg(long)]
        demo: bool,
        /// Print it instead of writing a file
        #[arg(long)]
        stdout: bool,
    },
    Diagnose(diagnose::DiagnoseArgs),
    /// Run the simulated rig as a plain server
    Sim(Box<SimArgs>),
    /// Print the keys as a file to start your own from
    Keys,
    /// List the themes, or print one as a file to start your own from
    Themes {
        name: Option<String>,
    },
    /// Print the example of a profile file, or where the profile file is looked for
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Print completions for a shell
    Completions {
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Where the profiles are read from
    Path,
    /// A commented example
    Example,
    /// Read the profiles and say what is wrong with them
    Check,
}

/// What a list shows.
#[derive(Debug, Clone, clap::Args)]
pub struct Listing {
    /// At most so many, the newest first
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// As JSON; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Those of the demo
    #[arg(long)]
    pub demo: bool,
}

/// A command that did not do what was asked: the text for standard error and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    pub code: i32,
}

impl Failure {
    /// The thing asked for failed.
    pub fn new(text: impl std::fmt::Display) -> Self {
        Failure {
            text: text.to_string(),
            code: FAILED,
        }
    }

    /// It was asked for in a wrong way.
    pub fn wrong_use(text: impl std::fmt::Display) -> Self {
        Failure {
            text: text.to_string(),
            code: WRONG_USE,
        }
    }
}

/// Reads the command line and carries it out; gives the exit code.
pub fn main() -> i32 {
    let matches = help::command().get_matches();
    // What the derived command line accepts, its types take.
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match carry_out(cli) {
        Ok(code) => code,
        Err(failure) => {
            // Where the terminal is gone, standard error is gone with it, and there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "vramp: {}", failure.text);
            failure.code
        }
    }
}

fn carry_out(cli: Cli) -> Result<i32, Failure> {
    let common = cli.common;
    let look = cli.look;
    let Some(command) = cli.command else {
        return cockpit::open(&common, &look);
    };
    match command {
        Command::Demo => demo::open(&look),
        Command::Attach { url, key_env } => cockpit::attach(&url, key_env.as_deref(), &look),
        Command::Init(args) => init::init(&common, &args),
        Command::Ramp(args) => ramp::ramp(&common, &look, &args),
        Command::Doctor(args) => doctor::doctor(&common, &args),
        Command::Status(args) => status::status(&common, &args),
        Command::Bench(args) => bench::bench(&common, look.quick, &args),
        Command::Runs(args) => runs::runs(&args),
        Command::Launch(args) => launch::launch(&args),
        Command::Estimate(args) => estimate::estimate(&args),
        Command::Gpus(args) => gpus::gpus(&args),
        Command::Decisions(listing) => records::decisions(&listing),
        Command::Report { demo, stdout } => records::report(&common, demo, stdout),
        Command::Diagnose(args) => diagnose::diagnose(&args),
        Command::Sim(args) => crate::sim::run(*args).map(|()| 0).map_err(Failure::new),
        Command::Keys => print::text(crate::keymap::DEFAULT),
        Command::Themes { name } => print::themes(name.as_deref()),
        Command::Config { what } => print::config(&common, &what),
        Command::Completions { shell } => print::completions(shell),
        Command::Man => print::man(),
    }
}

/// The API key in the variable that `--key-env` names.
fn key_from(variable: &str) -> Result<Key, Failure> {
    let secret = std::env::var(variable).map_err(|_| {
        Failure::wrong_use(format!(
            "--key-env {variable}: there is no such variable in the environment"
        ))
    })?;
    Ok(Key::new(secret))
}

fn places() -> Result<Places, Failure> {
    Places::xdg().map_err(Failure::new)
}
