//! From what is known of a service to the plan of a restart, with all its ways out.

use super::{Purpose, RestartPlan, Target, TargetKind};
use crate::profile::Launch;
use crate::service::Config;

/// What is known of a service before a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// What runs, where vramp knows it.
    pub running: Option<Config>,
    pub last_good: Option<Config>,
    /// The confirmed context per request.
    pub production: Option<u64>,
}

impl RestartPlan {
    /// The plan of a restart to `to`. A deadline is for trials alone.
    pub fn new(purpose: Purpose, to: Config, known: Known, deadline_s: Option<u64>) -> Self {
        RestartPlan {
            purpose,
            on_failure: way_back(&to, known.last_good, known.running.as_ref()),
            from: known.running,
            to,
            production: known.production,
            deadline_s: deadline_s.filter(|_| purpose == Purpose::Change),
        }
    }
}

/// What comes back when `to` fails: the last good, else what runs now; never the same again.
fn way_back(to: &Config, last_good: Option<Config>, running: Option<&Config>) -> Option<Target> {
    let target = |kind| move |config| Target { kind, config };
    last_good
        .filter(|config| config != to)
        .map(target(TargetKind::LastGood))
        .or_else(|| {
            let running = running.filter(|config| *config != to).cloned();
            running.map(target(TargetKind::Previous))
        })
}

/// The context of a first start: the confirmed one, else the lowest of those offered.
pub fn start_context(production: Option<u64>, ladder: &[u64]) -> Option<u64> {
    production.or_else(|| ladder.first().copied())
}

/// Whether a configuration on record is one of the present launch: another port or program would come back to nothing.
pub fn fits(good: &Config, launch: Option<&Launch>, running: Option<&Config>) -> bool {
    Some(&good.launch) == launch || Some(&good.launch) == running.map(|config| &config.launch)
}

/// Whether what runs is not what a confirmed start would bring: another context, or another launch where both are known. With
/// nothing confirmed, everything is a trial.
pub fn is_trial(
    running: u64,
    with: Option<&Launch>,
    production: Option<u64>,
    confirmed: Option<&Launch>,
) -> bool {
    let other_launch = matches!((with, confirmed), (Some(with), Some(launch)) if with != launch);
    production != Some(running) || other_launch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(context: u64) -> Config {
        Config {
            context,
            launch: Launch {
                argv: vec!["serve".to_string()],
                env: vec![],
                cwd: None,
                slots: 1,
            },
        }
    }

    fn plan(
        purpose: Purpose,
        to: u64,
        last_good: Option<u64>,
        running: Option<u64>,
    ) -> RestartPlan {
        let known = Known {
            running: running.map(config),
            last_good: last_good.map(config),
            production: Some(1),
        };
        RestartPlan::new(purpose, config(to), known, Some(60))
    }

    #[test]
    fn the_way_back_is_the_last_good_else_what_runs_and_never_the_same() {
        let back = |to, last_good, running| {
            let target = plan(Purpose::Change, to, last_good, running).on_failure;
            target.map(|target| (target.kind, target.config.context))
        };
        assert_eq!(back(3, Some(1), Some(2)), Some((TargetKind::LastGood, 1)));
        assert_eq!(back(3, None, Some(2)), Some((TargetKind::Previous, 2)));
        assert_eq!(back(3, Some(3), Some(2)), Some((TargetKind::Previous, 2)));
        assert_eq!(back(3, Some(3), Some(3)), None);
        assert_eq!(back(3, None, None), None);
    }

    #[test]
    fn only_a_trial_has_a_deadline() {
        let deadline = |purpose| plan(purpose, 3, None, Some(2)).deadline_s;
        assert_eq!(deadline(Purpose::Change), Some(60));
        assert_eq!(deadline(Purpose::Start), None);
        assert_eq!(deadline(Purpose::RollBack), None);
    }

    #[test]
    fn a_trial_is_another_number_or_another_launch() {
        let launch = config(1).launch;
        let other = Launch {
            argv: vec!["other".to_string()],
            ..launch.clone()
        };
        let one = Some(&launch);
        assert!(!is_trial(4, one, Some(4), one));
        assert!(!is_trial(4, None, Some(4), one));
        assert!(is_trial(8, one, Some(4), one));
        assert!(is_trial(4, Some(&other), Some(4), one));
        assert!(is_trial(4, one, None, one));
        assert!(fits(&config(9), one, None) && !fits(&config(9), Some(&other), None));
        assert!(fits(&config(9), Some(&other), Some(&config(4))));
        assert_eq!(start_context(None, &[2, 4]), Some(2));
        assert_eq!(start_context(Some(4), &[2]), Some(4));
    }
}
