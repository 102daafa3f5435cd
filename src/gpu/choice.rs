//! Which source to read, where somebody says so.

use super::exporter::Exporter;
use super::sim::SimSource;
use super::smi::Smi;
use super::sysfs::Sysfs;
use super::{Snapshot, Source, nvml};
use crate::clock::Now;
use crate::host::Host;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// A source by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Nvml,
    Smi,
    Sysfs,
    /// A DCGM exporter's page.
    Dcgm(String),
    /// A Prometheus server that scrapes DCGM exporters.
    Prometheus(String),
    Sim,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let at = |url: &str| {
            let parsed = url::Url::parse(url).ok();
            match parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
                Some(_) => Ok(url.to_string()),
                None => Err(format!(
                    "{url:?} is no address; write for example dcgm:http://node:9400/metrics or prometheus:http://node:9090"
                )),
            }
        };
        match text {
            "nvml" => Ok(Choice::Nvml),
            "nvidia-smi" => Ok(Choice::Smi),
            "sysfs" => Ok(Choice::Sysfs),
            "sim" => Ok(Choice::Sim),
            _ => match text.split_once(':') {
                Some(("dcgm", url)) => at(url).map(Choice::Dcgm),
                Some(("prometheus", url)) => at(url).map(Choice::Prometheus),
                _ => Err(format!(
                    "there is no source {text:?}; the sources are nvml, nvidia-smi, sysfs, dcgm:URL, prometheus:URL and sim"
                )),
            },
        }
    }
}

/// Opens a source. `host` is where commands run and files are read. `node` keeps of the cards of an exporter those of one machine. `rig`
/// is the folder of the simulated rig.
///
/// # Errors
/// The source cannot read that host: why, and what can.
pub fn open(
    choice: &Choice,
    host: &Arc<dyn Host>,
    node: Option<&str>,
    rig: &Path,
) -> Result<Box<dyn Source>, String> {
    let elsewhere = |name: &str| match host.is_local() {
        true => Ok(()),
        false => Err(format!(
            "{name} reads the cards of this machine alone; for {} use nvidia-smi, sysfs, dcgm:URL or prometheus:URL",
            host.name()
        )),
    };
    Ok(match choice {
        Choice::Nvml => {
            elsewhere("nvml")?;
            Box::new(nvml::Nvml::new())
        }
        Choice::Sim => {
            elsewhere("sim")?;
            Box::new(SimSource::new(rig))
        }
        Choice::Smi => Box::new(Smi::new(Arc::clone(host))),
        Choice::Sysfs => Box::new(Sysfs::new(Arc::clone(host))),
        Choice::Dcgm(url) => Box::new(Exporter::dcgm(url, node)),
        Choice::Prometheus(url) => Box::new(Exporter::prometheus(url, node)),
    })
}

/// The first of several sources that has a card; it is asked alone from then on.
pub(super) struct FirstWithCards {
    sources: Vec<Box<dyn Source>>,
    found: bool,
}

impl FirstWithCards {
    pub(super) fn new(sources: Vec<Box<dyn Source>>) -> FirstWithCards {
        FirstWithCards {
            sources,
            found: false,
        }
    }
}

impl Source for FirstWithCards {
    fn read(&mut self, at: Now) -> Snapshot {
        let mut first = None;
        for nth in 0..self.sources.len() {
            let Some(source) = self.sources.get_mut(nth) else {
                break;
            };
            let seen = source.read(at);
            if self.found {
                return seen;
            }
            if !seen.cards.is_empty() {
                self.found = true;
                self.sources.swap(0, nth);
                self.sources.truncate(1);
                return seen;
            }
            // The first one's word counts where none has a card.
            first.get_or_insert(seen);
        }
        first.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Local;

    #[test]
    fn sources_are_named_as_they_are_written() {
        let read = |text: &str| text.parse::<Choice>();
        assert_eq!(read("nvml"), Ok(Choice::Nvml));
        assert_eq!(read("nvidia-smi"), Ok(Choice::Smi));
        assert_eq!(
            read("dcgm:http://node:9400"),
            Ok(Choice::Dcgm("http://node:9400".into()))
        );
        assert_eq!(
            read("prometheus:https://h/prom"),
            Ok(Choice::Prometheus("https://h/prom".into()))
        );
        for wrong in [
            "",
            "amd",
            "dcgm",
            "dcgm:",
            "dcgm:node:9400",
            "prometheus:file:///x",
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("dcgm:"), "{error}");
        }
    }

    struct Fixed(&'static str, u32);

    impl Source for Fixed {
        fn read(&mut self, at: Now) -> Snapshot {
            let folder = tempfile::tempdir().unwrap();
            let seen = SimSource::new(folder.path()).with_cards(self.1).read(at);
            Snapshot {
                source: self.0.to_string(),
                ..seen
            }
        }
    }

    #[test]
    fn the_first_source_with_a_card_is_kept() {
        let now = Now::default();
        let mut none = FirstWithCards::new(vec![Box::new(Fixed("a", 0)), Box::new(Fixed("b", 0))]);
        assert_eq!(none.read(now).source, "a");
        let mut second =
            FirstWithCards::new(vec![Box::new(Fixed("a", 0)), Box::new(Fixed("b", 2))]);
        assert_eq!(second.read(now).source, "b");
        assert_eq!(second.sources.len(), 1);
        assert_eq!(second.read(now).cards.len(), 2);
    }

    #[test]
    fn a_source_of_this_machine_alone_is_refused_elsewhere() {
        let here: Arc<dyn Host> = Arc::new(Local);
        let there: Arc<dyn Host> =
            Arc::new(crate::host::Ssh::new("ssh:gpu-7".parse().unwrap(), None));
        let rig = Path::new("/nowhere");
        assert!(open(&Choice::Nvml, &here, None, rig).is_ok());
        let error = open(&Choice::Nvml, &there, None, rig).err().unwrap();
        assert!(
            error.contains("gpu-7") && error.contains("nvidia-smi"),
            "{error}"
        );
        assert!(open(&Choice::Smi, &there, None, rig).is_ok());
    }
}
