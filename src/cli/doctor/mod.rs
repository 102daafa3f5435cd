//! `vramp doctor`: whether everything that vramp needs is there.

mod cards;
mod check;
mod machine;
mod server;
mod service;

use super::rig::Rig;
use super::{Common, Failure, places, print};
use crate::profile;
use crate::units::clean;
use check::{Check, Verdict};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Check everything that vramp needs: driver, cards, server, service, host, disk, clock, terminal
///
/// Changes nothing. Each check says what was looked at, the result (ok, warn, fail), what was seen, and what to do about it. Exit codes:
/// 0 nothing failed, 1 something did, 2 wrong use.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// Check the server at this address instead of the profile's
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// As JSON; to FILE, or to standard output without one
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Looks at everything; gives the exit code.
pub fn doctor(common: &Common, args: &DoctorArgs) -> Result<i32, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let checks = runtime.block_on(look(common, args))?;
    // A driver that hangs is not waited for.
    runtime.shutdown_background();
    match &args.json {
        Some(path) => print::json(&checks, path)?,
        None => print::text(&table(&checks))?,
    };
    let failed = checks.iter().any(|check| check.result == Verdict::Fail);
    Ok(if failed { super::FAILED } else { 0 })
}

async fn look(common: &Common, args: &DoctorArgs) -> Result<Vec<Check>, Failure> {
    let places = places()?;
    let (profile, mut checks) = profile(common, args)?;
    let rig = profile.map(|profile| Rig::of(places.clone(), profile));
    cards::look(rig.as_ref(), &mut checks).await;
    if let Some(rig) = &rig {
        let reached = service::host(rig, &mut checks).await;
        let stopped = match reached {
            true => service::look(rig, &mut checks).await,
            false => false,
        };
        server::look(rig, stopped, &mut checks).await;
    }
    machine::look(&places, rig.as_ref(), &mut checks).await;
    Ok(checks)
}

/// The profile to look at. One that is wrong fails, and the rest is looked at all the same.
fn profile(
    common: &Common,
    args: &DoctorArgs,
) -> Result<(Option<profile::Profile>, Vec<Check>), Failure> {
    const WHAT: &str = "profile";
    if let Some(url) = &args.url {
        let profile = profile::attach(url).map_err(Failure::wrong_use)?;
        return Ok((Some(profile), Vec::new()));
    }
    Ok(
        match profile::load(common.config.as_deref(), common.profile.as_deref()) {
            Ok(Some(loaded)) => {
                let seen = format!("{} in {}", loaded.profile.name, loaded.path.display());
                (Some(loaded.profile), vec![Check::ok(WHAT, seen)])
            }
            Ok(None) => {
                let advice = "Write one with: vramp init. Until then: vramp attach URL";
                let check = Check::warn(WHAT, "there is none yet", advice);
                (None, vec![check])
            }
            Err(error) => {
                let advice = "Correct the file; vramp config check says whether it is in order";
                (None, vec![Check::fail(WHAT, error, advice)])
            }
        },
    )
}

fn table(checks: &[Check]) -> String {
    let mut out = String::new();
    for check in checks {
        let word = check.result.word();
        let _ = writeln!(out, "{word:<5} {:<17} {}", check.what, clean(&check.detail));
        if let Some(advice) = &check.what_to_do {
            let _ = writeln!(out, "{:<24}-> {}", "", clean(advice));
        }
    }
    out
}
