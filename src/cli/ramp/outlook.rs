//! What a restart will cost and what it changes, before it begins: in the words of the cockpit's dialog.

use super::super::rig::Rig;
use crate::app::dialog::DiffLine;
use crate::app::diff;
use crate::app::forecast::{self, Foretold};
use crate::app::model::{Model, Restored, Settings, Tried, Who};
use crate::app::rig::Connection;
use crate::clock::Now;
use crate::engine::Facts;
use crate::gpu::{self, Owned, Snapshot, Tenant};
use crate::memory::Geometry;
use crate::ramp::RestartPlan;
use serde::{Serialize, Serializer};
use std::time::Duration;
use tokio::sync::watch;

/// How long the first reading of the cards is waited for.
const READING: Duration = Duration::from_secs(2);

/// What is to be expected of one restart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// What the context costs, each with how sure it is.
    pub estimate: Vec<String>,
    /// What should make the operator think.
    pub warnings: Vec<String>,
    /// The lines of the launch that change.
    #[serde(serialize_with = "signed")]
    pub diff: Vec<DiffLine>,
    /// The forecast, to be set beside what comes.
    #[serde(skip)]
    pub foretold: Option<Foretold>,
}

impl Outlook {
    /// `facts` are those of the server that runs, `geometry` is its model's, `tried` are the contexts on record.
    pub fn new(
        rig: &Rig,
        facts: Option<&Facts>,
        geometry: Option<Result<Geometry, String>>,
        tried: Vec<Tried>,
        (gpus, owned): (Snapshot, Owned),
        now: Now,
        plan: &RestartPlan,
    ) -> Outlook {
        let restored = Restored {
            tried,
            ..Restored::default()
        };
        let profile = Some(rig.profile.clone());
        let mut model = Model::new(now, Who::default(), Settings::default(), profile, restored);
        (model.rig.gpus, model.rig.owned) = (gpus, owned);
        if let Some(facts) = facts {
            model.rig.facts = Some(facts.clone());
            model.rig.connection = Connection::Up { since: now };
        }
        model.rig.geometry = geometry.map(|found| found.map(Box::new));
        model.rig.config = plan.from.clone();
        let mut diff = diff::launches(plan.from.as_ref(), &plan.to);
        diff.retain(|line| !matches!(line, DiffLine::Same(_)));
        Outlook {
            estimate: forecast::lines(&model, plan.to.context, Some(&plan.to.launch)),
            warnings: forecast::warnings(&model, plan),
            diff,
            foretold: Foretold::of(&model, &plan.to),
        }
    }

    /// For a person, a line each.
    pub fn lines(&self) -> Vec<String> {
        let estimate = self.estimate.iter().map(|text| format!("  {text}"));
        let warnings = self.warnings.iter().map(|text| format!("  ! {text}"));
        let diff = self.diff.iter().map(|line| format!("  {}", sign(line)));
        estimate.chain(warnings).chain(diff).collect()
    }
}

/// The newest reading of the cards, with those of the server; the first reading is waited for.
pub async fn cards(
    gpus: &watch::Receiver<Snapshot>,
    tenant: &Tenant,
    profile: &[u32],
) -> (Snapshot, Owned) {
    let mut gpus = gpus.clone();
    // Where none comes in time, the one before any reading says so.
    let _ = tokio::time::timeout(READING, gpus.changed()).await;
    let snapshot = gpus.borrow().clone();
    let owned = gpu::owned(&snapshot, tenant, profile);
    (snapshot, owned)
}

fn sign(line: &DiffLine) -> String {
    match line {
        DiffLine::Same(text) => format!("  {text}"),
        DiffLine::Removed(text) => format!("- {text}"),
        DiffLine::Added(text) => format!("+ {text}"),
    }
}

fn signed<S: Serializer>(diff: &[DiffLine], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(diff.iter().map(sign))
}
