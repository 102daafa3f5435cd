//! `vramp ramp --dry-run`: what would be done, what it costs and what it changes. Nothing is touched, not even the lock.

use super::args::RampArgs;
use super::outlook::{self, Outlook};
use super::progress::headline;
use super::site::{Seen, Site, contexts};
use super::walk::{GPU_PERIOD, Stop};
use crate::app::model::Tried;
use crate::cli::rig::Rig;
use crate::cli::{FAILED, Failure, launch, print};
use crate::clock::Clock;
use crate::gpu::{self, Owned, Snapshot};
use crate::launch::{Dialect, GivenAs, Meaning, find_in_argv};
use crate::memory::Geometry;
use crate::ramp::{Known, Purpose, RestartPlan, Step};
use crate::runtime;
use crate::service::{Config, render};
use crate::units::thousands;
use serde::Serialize;
use std::path::Path;

/// What programs read. Contexts are tokens per request; what is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    /// `planned`, or `refused`.
    pub outcome: &'static str,
    pub simulated: bool,
    /// What is in service now.
    pub context: Option<u64>,
    pub production: Option<u64>,
    /// Requests of others on the server now.
    pub foreign: Option<u64>,
    pub argument: Option<Argument>,
    pub restarts: Vec<Restart>,
    /// What is kept as the production value in the end.
    pub keep: Option<u64>,
    /// Why a walk would be refused now.
    pub reason: Option<String>,
}

/// How the server is given its context.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Argument {
    /// The argument or variable, as written.
    pub name: Option<String>,
    /// Its value now.
    pub text: Option<String>,
    /// What the number stands for, in words.
    pub meaning: Option<String>,
    /// Slots over which it is divided.
    pub slots: Option<u64>,
    /// Where it is written that a reboot brings.
    pub place: Option<String>,
}

/// One restart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restart {
    pub purpose: Purpose,
    pub from: Option<u64>,
    pub to: u64,
    /// What comes back if it fails.
    pub way_back: Option<WayBack>,
    /// Unless it is kept within so many seconds, the production value comes back by itself.
    pub deadline_s: Option<u64>,
    #[serde(flatten)]
    pub outlook: Outlook,
    /// In order, in words.
    pub steps: Vec<String>,
    #[serde(skip)]
    headline: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayBack {
    pub context: u64,
    pub why: &'static str,
}

/// Looks, and plans every restart of the walk.
///
/// # Errors
/// The profile has no service, or the record cannot be read.
pub async fn plan(args: &RampArgs, rig: &Rig) -> Result<Planned, Failure> {
    let site = Site::of(rig)?;
    let tried = runtime::tried(&rig.places, &rig.profile).map_err(Failure::new)?;
    let clock = Clock::default();
    let (gpus, _cards) = gpu::watch::watch(gpu::source_on(&rig.host), clock, GPU_PERIOD);
    let mut planned = Planned {
        outcome: "refused",
        simulated: false,
        context: None,
        production: None,
        foreign: None,
        argument: None,
        restarts: Vec::new(),
        keep: args.confirm,
        reason: None,
    };
    match look(&site).await {
        Ok(seen) => {
            let foreign = match &seen.server {
                Some((engine, _)) => engine.load().await.ok(),
                None => None,
            };
            planned.foreign = foreign.and_then(|l| crate::ramp::foreign(&l, 0).fresh().copied());
            planned.simulated = seen.facts().is_some_and(|facts| facts.simulated);
            planned.context = seen.stand.running().map(|config| config.context);
            planned.production = seen.stand.standing.production;
            planned.argument = Some(argument(&site, &seen).await);
            let tenant = site.tenant().await;
            let world = World {
                rig,
                seen: &seen,
                geometry: site.geometry(&seen, &tenant).await,
                tried,
                cards: outlook::cards(&gpus, &tenant, &rig.profile.cards).await,
                clock,
            };
            match world.restarts(args, &site).await {
                Ok(restarts) => {
                    planned.restarts = restarts;
                    planned.outcome = "planned";
                }
                Err(stop) => planned.reason = Some(stop.reason),
            }
        }
        Err(stop) => planned.reason = Some(stop.reason),
    }
    Ok(planned)
}

/// Says it; gives the exit code.
pub fn answer(planned: Planned, json: Option<&Path>) -> Result<i32, Failure> {
    match json {
        Some(path) => print::json(&planned, path)?,
        None => print::text(&text(&planned))?,
    };
    if let Some(reason) = &planned.reason {
        return Err(Failure {
            text: reason.clone(),
            code: FAILED,
        });
    }
    Ok(0)
}

async fn look(site: &Site<'_>) -> Result<Seen, Stop> {
    if let Some(holder) = site.rig.holder().await.map_err(Stop::refused)? {
        return Err(Stop::refused(format!(
            "another vramp works on this service: {holder}"
        )));
    }
    site.finished().await?;
    site.look().await
}

async fn argument(site: &Site<'_>, seen: &Seen) -> Argument {
    let standing = &seen.stand.standing;
    let filled = Config {
        context: standing.production.unwrap_or(1),
        launch: standing.launch.clone(),
    };
    let profile = site.rig.profile.engine;
    let engine = profile.or(seen.facts().map(|facts| facts.kind));
    let server = render(&filled).ok().and_then(|filled| {
        let dialect = engine.and_then(Option::<Dialect>::from);
        find_in_argv(&filled.argv, &filled.env, dialect)
    });
    let found = server.as_ref().and_then(|server| server.in_force());
    Argument {
        name: found.map(|found| match &found.given_as {
            GivenAs::Argument(name) | GivenAs::Variable(name) => name.clone(),
        }),
        text: found
            .filter(|_| standing.production.is_some())
            .map(|found| found.text.clone()),
        meaning: found.map(launch::length),
        slots: found.and_then(|found| match found.meaning {
            Meaning::Total { slots } | Meaning::Shared { slots } => Some(slots),
            Meaning::PerRequest | Meaning::UnknownSlots => None,
        }),
        place: site.service.written_in().await.ok().flatten(),
    }
}

/// What the restarts are planned on.
struct World<'a> {
    rig: &'a Rig,
    seen: &'a Seen,
    geometry: Option<Result<Geometry, String>>,
    tried: Vec<Tried>,
    cards: (Snapshot, Owned),
    clock: Clock,
}

impl World<'_> {
    /// One after the other, each as if the one before had served.
    async fn restarts(&self, args: &RampArgs, site: &Site<'_>) -> Result<Vec<Restart>, Stop> {
        let stand = &self.seen.stand;
        let mut known = site.known(stand).await?;
        let mut restarts = Vec::new();
        let mut wanted = Vec::new();
        match args.to {
            Some(to) => {
                let mut from = known.running.as_ref().map(|config| config.context);
                if !stand.runs() {
                    let first = site.start_context(stand, to);
                    wanted.push((Purpose::Start, first));
                    from = Some(first);
                }
                let steps = contexts(from, to, &args.ladder);
                wanted.extend(steps.into_iter().map(|step| (Purpose::Change, step)));
            }
            None => {
                let Some(production) = stand.standing.production else {
                    return Err(Stop::refused(
                        "no production value is on record, so there is nothing to roll back to; name a context with --to",
                    ));
                };
                match stand.trial() {
                    Some(_) => wanted.push((Purpose::RollBack, production)),
                    None if !stand.runs() => wanted.push((Purpose::Start, production)),
                    None => {}
                }
            }
        }
        for (purpose, context) in wanted {
            let plan = site.plan(stand, purpose, context, known.clone());
            // Watched for its first minute, what a step brings is the last good of the next one.
            known = Known {
                last_good: match args.no_watch {
                    true => known.last_good,
                    false => Some(plan.to.clone()),
                },
                running: Some(plan.to.clone()),
                production: known.production,
            };
            restarts.push(self.restart(args, &plan));
        }
        Ok(restarts)
    }

    fn restart(&self, args: &RampArgs, plan: &RestartPlan) -> Restart {
        let mut steps: Vec<String> = Step::ALL
            .iter()
            .map(|step| step.words().to_string())
            .collect();
        if plan.purpose != Purpose::Start && plan.on_failure.is_some() && !args.no_watch {
            steps.push("watch the first minute".to_string());
        }
        steps.extend(args.bench.iter().map(|plan| format!("measure {plan}")));
        Restart {
            purpose: plan.purpose,
            from: plan.from.as_ref().map(|config| config.context),
            to: plan.to.context,
            way_back: plan.on_failure.as_ref().map(|target| WayBack {
                context: target.config.context,
                why: target.kind.words(),
            }),
            deadline_s: plan.deadline_s,
            outlook: Outlook::new(
                self.rig,
                self.seen.facts(),
                self.geometry.clone(),
                self.tried.clone(),
                self.cards.clone(),
                self.clock.now(),
                plan,
            ),
            steps,
            headline: headline(plan),
        }
    }
}

fn text(planned: &Planned) -> String {
    let mut lines = vec!["dry run: nothing is touched".to_string()];
    if planned.simulated {
        lines.insert(0, "SIMULATED".to_string());
    }
    if let Some(argument) = &planned.argument {
        let name = argument.name.as_deref().unwrap_or("not found");
        let meaning = argument.meaning.iter().map(|text| format!(", {text}"));
        let place = argument.place.iter().map(|text| format!(", {text}"));
        let more: String = meaning.chain(place).collect();
        lines.push(format!("argument {name}{more}"));
    }
    if let Some(others @ 1..) = planned.foreign {
        lines.push(format!("{others} requests of others are on the server now"));
    }
    for restart in &planned.restarts {
        lines.push(restart.headline.clone());
        lines.extend(restart.outlook.lines());
        lines.push(format!("  steps: {}", restart.steps.join(", ")));
    }
    if let Some(context) = planned.context
        && planned.restarts.is_empty()
        && planned.reason.is_none()
    {
        let context = thousands(context);
        lines.push(format!("{context} is in service: no restart is needed"));
    }
    if let Some(keep) = planned.keep {
        lines.push(format!("keep {} as the production value", thousands(keep)));
    }
    let lines: Vec<String> = lines.iter().map(|line| crate::units::clean(line)).collect();
    lines.join("\n") + "\n"
}
