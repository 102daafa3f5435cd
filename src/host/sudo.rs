//! A host with the rights of root, by `sudo -n`.

use super::{FileStat, Host, HostError, Lines, Locked, Output, failed, files, tried};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every command and every file of a host through `sudo -n`, which never asks for a password. Only locks are taken without it.
pub struct Sudo {
    host: Arc<dyn Host>,
}

impl Sudo {
    pub fn new(host: Arc<dyn Host>) -> Sudo {
        Sudo { host }
    }

    /// Whether sudo runs commands without a question. To be asked before anything is stopped.
    ///
    /// # Errors
    /// Why not, and what to do; or the host is lost.
    pub async fn check(&self) -> Result<(), HostError> {
        let argv = ["true".to_string()];
        let output = self.run(&argv).await?;
        if output.code == Some(0) {
            return Ok(());
        }
        Err(failed(
            format!("{} as root on {}", tried(&argv), self.name()),
            "sudo refuses",
        ))
    }

    fn argv(argv: &[String]) -> Vec<String> {
        ["sudo", "-n", "--"]
            .iter()
            .map(|word| word.to_string())
            .chain(argv.iter().cloned())
            .collect()
    }
}

#[async_trait]
impl Host for Sudo {
    fn name(&self) -> String {
        self.host.name()
    }

    fn is_local(&self) -> bool {
        self.host.is_local()
    }

    async fn run_with(&self, argv: &[String], input: &[u8]) -> Result<Output, HostError> {
        let output = self.host.run_with(&Self::argv(argv), input).await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let refused = stderr.starts_with("sudo: ") || stderr.contains("\nsudo: ");
        if output.code == Some(1) && refused {
            let said = stderr.lines().find(|line| line.starts_with("sudo: "));
            return Err(failed(
                format!("{} as root on {}", tried(argv), self.name()),
                format!(
                    "{}. Allow it without a password in sudoers (NOPASSWD), or turn sudo off in the profile",
                    crate::units::clean(said.unwrap_or_default())
                ),
            ));
        }
        Ok(output)
    }

    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError> {
        self.host.stream(&Self::argv(argv)).await
    }

    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
        files::read(self, path).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        files::write(self, path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), HostError> {
        files::remove(self, path).await
    }

    async fn stat(&self, path: &Path) -> Result<Option<FileStat>, HostError> {
        files::stat(self, path).await
    }

    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError> {
        files::backup(self, path).await
    }

    async fn make_dir(&self, path: &Path) -> Result<(), HostError> {
        files::make_dir(self, path).await
    }

    async fn lock(&self, path: &Path, who: &str) -> Result<Locked, HostError> {
        // A process of root is not ours to end, so a lock that one holds could not be given back.
        self.host.lock(path, who).await
    }

    async fn boot_id(&self) -> Result<String, HostError> {
        self.host.boot_id().await
    }
}
