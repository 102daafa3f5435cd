//! What surrounds a restart: the deadline of its trial, and what fell with the stop.

use super::Purpose;
use super::machine::End;
use super::run::Run;
use crate::service::{Deadline, ServiceError};
use std::time::Duration;

/// A deadline that is armed already must not fall into the way back that the operator asked for.
const OUT_OF_THE_WAY: Duration = Duration::from_secs(15 * 60);

/// The least time that a deadline is given when it is armed again.
const SOON: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Arms the deadline of the plan. Before anything is stopped: whatever happens then, the production value comes back. Refuses where
    /// nothing can carry it.
    pub(super) async fn arm_before(&mut self) -> Result<(), ServiceError> {
        let plan = &self.on_disk.intent.plan;
        let stood = self.deps.service.standing().await?.deadline_unix_ms;
        let armed = match (plan.purpose, plan.deadline_s) {
            (Purpose::Change, Some(seconds)) => Some(Duration::from_secs(seconds)),
            _ => stood.map(|_| OUT_OF_THE_WAY),
        };
        if let Some(after) = armed {
            self.arm(after).await?;
            self.armed_over = Some(stood);
        }
        Ok(())
    }

    /// The deadline that stood before this restart stands again, for the trial that it was of. A moment that has passed meanwhile comes
    /// soon.
    async fn arm_as_before(&self, at_unix_ms: i64) -> Result<(), ServiceError> {
        let left = at_unix_ms.saturating_sub(self.deps.clock.now().unix_ms);
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        self.arm(left.max(SOON)).await
    }

    async fn arm(&self, after: Duration) -> Result<(), ServiceError> {
        let levels = self.on_disk.levels.iter();
        let levels = levels.filter_map(|level| Some((level.card, *level.bytes.known()?)));
        let deadline = Deadline {
            after,
            levels: levels.collect(),
        };
        self.deps.service.arm(&deadline).await
    }

    /// After the end: the deadline of a trial counts from its first answer, production needs none, and what fell with the stop comes
    /// back once a server is proven. What fails here changes nothing of the outcome; it is said.
    pub(super) async fn aftermath(&mut self, end: &End) {
        let plan = &self.on_disk.intent.plan;
        let serves = match (end, &self.target) {
            (End::Ready(_), _) => Some(plan.to.context),
            (End::RolledBack(..), Some(target)) => Some(target.config.context),
            _ => None,
        };
        let deadline = match (plan.purpose, plan.deadline_s) {
            (Purpose::Change, Some(seconds)) => Some(Duration::from_secs(seconds)),
            _ => None,
        };
        let service = &self.deps.service;
        let settled = match (serves, end) {
            (Some(context), _) if plan.production != Some(context) && deadline.is_some() => {
                self.arm(deadline.unwrap_or_default()).await
            }
            // The trial that was left has come back, and with it its own deadline.
            (Some(context), End::RolledBack(..)) if plan.production != Some(context) => {
                match self.armed_over {
                    Some(Some(stood)) => self.arm_as_before(stood).await,
                    _ => service.disarm().await,
                }
            }
            (Some(_), _) => service.disarm().await,
            // Nothing was stopped: what stood before stands.
            (None, End::Refused(_)) => match self.armed_over {
                Some(Some(stood)) => self.arm_as_before(stood).await,
                Some(None) => service.disarm().await,
                None => Ok(()),
            },
            // Nothing serves: a deadline that is armed is one way back more.
            (None, _) => Ok(()),
        };
        if let Err(error) = settled {
            self.note(&error.to_string());
        }
        if serves.is_some() {
            match service.settle().await {
                Ok(notes) => notes.iter().for_each(|text| self.note(text)),
                Err(error) => self.note(&error.to_string()),
            }
        }
    }
}
