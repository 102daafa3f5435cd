//! `vramp launch`: where a launch has its context length, and how it is changed in place.

mod files;
mod show;
mod write;

pub use show::length;

use super::{Failure, print};
use crate::launch::{Dialect, Edit, Form, Launches, Meaning, Number, Refused, find, set};
use crate::units::{clean, parse_context, thousands};
use files::Files;
use std::path::PathBuf;

/// Find and change the context length in a unit, environment file, script, compose file or manifest
#[derive(Debug, Clone, clap::Args)]
pub struct LaunchArgs {
    #[command(subcommand)]
    pub what: LaunchCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum LaunchCommand {
    /// Say where the context length is written, what the number means there, and which of several is in force
    Show {
        #[command(flatten)]
        text: TextArgs,
        /// As JSON; to FILE, or to standard output without one
        #[arg(long, value_name = "JSON", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
    },
    /// Change the number and no other byte; without --write only the diff is shown
    ///
    /// Where there is no such argument, one is put in behind the last. The number is written in plain digits. With --write
    /// the old file is kept beside the new one, whose mode and owner stay.
    Set {
        #[command(flatten)]
        text: TextArgs,
        /// The new number, for example 65536 or 64K (65,536); as the argument has it, unless --per-request is given
        #[arg(value_name = "N", value_parser = context)]
        number: u64,
        /// N is for one request: where the argument is a total over slots (llama.cpp), it is multiplied by them
        #[arg(long)]
        per_request: bool,
        /// Write the file; a backup stays beside it
        #[arg(long)]
        write: bool,
        /// Print the changed file alone, and write nothing
        #[arg(long, conflicts_with = "write")]
        stdout: bool,
    },
}

/// Which text, and how it is to be read.
#[derive(Debug, Clone, clap::Args)]
pub struct TextArgs {
    /// The file; - is standard input
    pub file: PathBuf,
    /// Service, container, function or line of the command, where FILE starts several servers
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// sglang, vllm, llamacpp, tensorrt-llm or lmdeploy, where the command does not tell
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Dialect>,
    /// What FILE is, where its name and text do not tell
    #[arg(long = "as", value_name = "FORM")]
    pub form: Option<FormName>,
    /// A file merged over FILE (a drop-in, a further compose file); several in their order
    #[arg(long, value_name = "FILE")]
    pub over: Vec<PathBuf>,
    /// Read FILE where the text says PATH (an environment file)
    #[arg(long, value_name = "PATH=FILE", value_parser = pair)]
    pub map: Vec<(String, PathBuf)>,
    /// Look for the absolute paths of the text under DIR
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FormName {
    Unit,
    Env,
    Compose,
    Kubernetes,
    Profile,
    Script,
    Argv,
}

impl From<FormName> for Form {
    fn from(name: FormName) -> Form {
        match name {
            FormName::Unit => Form::Unit,
            FormName::Env => Form::EnvFile,
            FormName::Compose => Form::Compose,
            FormName::Kubernetes => Form::Kubernetes,
            FormName::Profile => Form::Profile,
            FormName::Script => Form::Script,
            FormName::Argv => Form::Argv,
        }
    }
}

fn context(text: &str) -> Result<u64, String> {
    parse_context(text).map_err(|error| error.to_string())
}

fn pair(text: &str) -> Result<(String, PathBuf), String> {
    text.split_once('=')
        .map(|(path, file)| (path.to_string(), PathBuf::from(file)))
        .ok_or_else(|| "write it as PATH=FILE".to_string())
}

/// Carries one out.
pub fn launch(args: &LaunchArgs) -> Result<i32, Failure> {
    match &args.what {
        LaunchCommand::Show { text, json } => {
            let (files, launches) = read(text)?;
            show::show(text, &files, &launches, json.as_deref())
        }
        LaunchCommand::Set {
            text,
            number,
            per_request,
            write,
            stdout,
        } => {
            let (files, launches) = read(text)?;
            let number = match per_request {
                true => Number::PerRequest(*number),
                false => Number::Argument(*number),
            };
            let edit = set(&files.texts, text.engine, text.service.as_deref(), number)
                .map_err(|why| refused(text, &launches, &why))?;
            if *stdout {
                return write::bytes(&edit.bytes);
            }
            report(&files, &edit, *write)
        }
    }
}

/// Reads FILE and what it refers to.
fn read(args: &TextArgs) -> Result<(Files, Launches), Failure> {
    let mut files = Files::read(args)?;
    // A file that is read may name the next one.
    for _ in 0..4 {
        let launches = find(&files.texts, args.engine);
        if !files.add(&launches.wanted, args)? {
            return Ok((files, launches));
        }
    }
    let launches = find(&files.texts, args.engine);
    Ok((files, launches))
}

/// The reason for the operator, with what to do next.
fn refused(args: &TextArgs, launches: &Launches, why: &Refused) -> Failure {
    let file = clean(&args.file.display().to_string());
    let next = match why {
        Refused::Several { .. } | Refused::Unnamed { .. } => {
            return Failure::wrong_use(format!("{file}: {why}; name it with --service"));
        }
        Refused::NoServer { .. } if args.engine.is_none() => {
            "; where the program's name does not tell the engine, --engine does"
        }
        Refused::Fixed(_) if !launches.wanted.is_empty() => {
            "; --map PATH=FILE or --root DIR says where the files are that the text refers to"
        }
        Refused::NoPlace(_) if args.engine.is_none() => "; --engine names the engine",
        Refused::Slots => "; leave --per-request out",
        _ => "",
    };
    let missing: Vec<String> = launches
        .wanted
        .iter()
        .map(|wanted| format!("\n  not read: {}", wanted.path))
        .collect();
    Failure::new(clean_lines(&format!(
        "{file}: {why}{next}{}",
        missing.concat()
    )))
}

fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// The diff, what it comes to, and the writing if it is asked for.
fn report(files: &Files, edit: &Edit, write: bool) -> Result<i32, Failure> {
    let path = files.path(&edit.file);
    let name = clean(&path.display().to_string());
    let old = files.bytes(&edit.file);
    let mut out = String::new();
    if edit.changes_nothing() {
        out.push_str(&format!("{name}:{}: it is so already\n", edit.line));
    } else {
        out.push_str(&write::diff(&name, old, &edit.bytes));
    }
    out.push_str(&format!("{}\n", meaning(edit)));
    if edit.inserted() {
        out.push_str("the argument was not there; it is put in behind the last one\n");
    }
    for note in files.notes.iter().cloned().chain(show::notes(&edit.server)) {
        out.push_str(&format!("note: {}\n", clean(&note)));
    }
    if edit.changes_nothing() {
        return print::text(&out);
    }
    if write {
        let backup = write::write(&path, old, &edit.bytes)?;
        out.push_str(&format!(
            "written: {name}\nbackup: {}\n",
            clean(&backup.display().to_string())
        ));
        if let Some(next) = next(files.texts.form) {
            out.push_str(next);
        }
    } else {
        out.push_str("nothing is written; --write writes it\n");
    }
    print::text(&out)
}

/// The new number in words, with its full digits.
fn meaning(edit: &Edit) -> String {
    let number = thousands(edit.number);
    let engine = edit.server.engine.map_or("the server", Dialect::name);
    match edit.server.meaning {
        Meaning::PerRequest => format!("{engine}: {number} tokens a request"),
        Meaning::Shared { slots } => format!(
            "{engine}: {number} tokens a request, out of a cache of {number} that {slots} slots share"
        ),
        Meaning::Total { slots } => format!(
            "{engine}: {number} tokens in all, {slots} slots x {} tokens a request",
            edit.per_request.map_or("?".to_string(), thousands)
        ),
        Meaning::UnknownSlots => format!(
            "{engine}: {number}; whether that is for one request or for all slots together is not written here"
        ),
    }
}

fn next(form: Form) -> Option<&'static str> {
    match form {
        Form::Unit | Form::EnvFile => {
            Some("in force after: systemctl daemon-reload, and a restart of the unit\n")
        }
        Form::Compose => Some("in force after: docker compose up -d\n"),
        Form::Kubernetes => Some("in force after: kubectl apply -f\n"),
        _ => None,
    }
}
