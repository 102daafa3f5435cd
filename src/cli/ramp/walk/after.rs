//! What follows a restart of the walk: it is put on record, measured, and kept.

use super::super::document::Ending;
use super::super::record::Record;
use super::super::site::Seen;
use super::{Result, Stop, Walk};
use crate::app::question::KeepPlan;
use crate::confirm::Pending;
use crate::ramp::{self, Outcome, RestartPlan, StartFailure};
use crate::service::Config;
use crate::units::thousands;

impl Walk<'_> {
    /// Keeps what became of a restart. An error where it is not what was asked for.
    pub(super) fn settle(&mut self, plan: &RestartPlan, outcome: Outcome) -> Result<()> {
        let asked = plan.to.context;
        let cancelled = self.cancelled();
        let given_up = |ending| {
            if cancelled {
                Ending::Interrupted
            } else {
                ending
            }
        };
        let Some(record) = &mut self.record else {
            return Ok(());
        };
        match outcome {
            Outcome::Ready { facts, took_ms } => {
                self.simulated = facts.simulated;
                record.serves(&plan.to, &facts, Some(took_ms));
                let text = format!(
                    "{} answered its first token after {}, context read back {}",
                    thousands(asked),
                    crate::units::mm_ss(took_ms),
                    facts
                        .context
                        .effective
                        .known()
                        .map_or("?".to_string(), |n| thousands(*n))
                );
                record.note(&text);
                self.progress.line(&text);
                Ok(())
            }
            Outcome::Refused { failure } => Err(Stop::new(
                given_up(Ending::Refused),
                format!("not restarted: {}", failure.words()),
            )),
            Outcome::RolledBack { failure, to, facts } => {
                let why = failure.words();
                record.failed(asked, &why);
                record.serves(&to.config, &facts, None);
                let text = format!(
                    "{} failed, {} ({}) is back in service, proven with a token: {why}",
                    thousands(asked),
                    thousands(to.config.context),
                    to.kind.words()
                );
                record.note(&text);
                Err(Stop::new(given_up(Ending::RolledBack), text))
            }
            Outcome::Halted { failure, back } => {
                let why = failure.words();
                record.failed(asked, &why);
                let back = back.as_ref().map(StartFailure::words);
                let back = match back {
                    Some(back) => format!("the way back failed too: {back}"),
                    None => "there was nothing to go back to".to_string(),
                };
                let text = format!(
                    "{} failed: {why} · {back} · nothing more happens without you",
                    thousands(asked)
                );
                record.note(&text);
                Err(Stop::new(Ending::Halted, text))
            }
        }
    }

    /// Makes the trial the production value.
    pub(super) async fn keep(&mut self, to: u64, typed: u64) -> Result<()> {
        let seen = self.look().await?;
        let Some(config) = seen
            .stand
            .running()
            .filter(|config| config.context == to)
            .cloned()
        else {
            return Err(Stop::refused(format!(
                "{} does not run any more, so it is not kept; see vramp status",
                thousands(to)
            )));
        };
        if seen.stand.trial().is_none() {
            self.progress.line(&format!(
                "{} is the production value already",
                thousands(to)
            ));
            return Ok(());
        }
        let proven = self.record.as_ref().is_some_and(Record::is_proven);
        if !proven {
            self.smoke(&seen, &config).await?;
        }
        if self.cancelled() {
            return Err(Stop::interrupted("before the trial was kept"));
        }
        let plan = KeepPlan {
            launch_changed: config.launch != seen.stand.standing.launch,
            previous: seen.stand.standing.production,
            config,
        };
        let confirmed = Pending::new(plan)
            .by_number(typed, to)
            .map_err(|_| Stop::new(Ending::Trial, "the trial was not confirmed"))?;
        let plan = confirmed.into_inner();
        let (host, service) = (self.site.rig.host.as_ref(), self.site.service.as_ref());
        let how = ramp::keep(host, service, &plan.config)
            .await
            .map_err(|why| Stop::new(Ending::Trial, format!("{} {why}", thousands(to))))?;
        let facts = seen.facts();
        if let Some(record) = &mut self.record {
            let words = record.decided(&plan, &self.site.rig.profile.name, facts, &how);
            self.progress.line(&words);
        }
        Ok(())
    }

    /// A trial that was found running is asked whether it makes sense before it is kept.
    async fn smoke(&mut self, seen: &Seen, config: &Config) -> Result<()> {
        let fail = |why: String| {
            Stop::new(
                Ending::Trial,
                format!("the smoke test of the running trial: {why}; it is not kept"),
            )
        };
        let Some((engine, _)) = &seen.server else {
            return Err(fail("the server does not answer".to_string()));
        };
        let smoke = ramp::smoke_question();
        let said = engine
            .ask(&smoke.question, smoke.max_tokens)
            .await
            .map_err(|error| fail(error.to_string()))?;
        (smoke.judge)(&said.text, said.output_tokens).map_err(fail)?;
        if let Some(record) = &mut self.record {
            record.proved(config);
        }
        Ok(())
    }
}
