use super::*;
use crate::host::{FileStat, HostError, Lines, Local, Locked, Output};
use crate::reading::Reading;
use async_trait::async_trait;
use std::path::PathBuf;

const GIB: u64 = 1 << 30;
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A host on which process 4242 is in a container; podman knows its name where `named`.
struct Containers {
    named: bool,
}

#[async_trait]
impl Host for Containers {
    fn name(&self) -> String {
        "rig".to_string()
    }

    fn is_local(&self) -> bool {
        false
    }

    async fn run_with(&self, argv: &[String], _: &[u8]) -> Result<Output, HostError> {
        let asked: Vec<&str> = argv.iter().map(String::as_str).collect();
        let named = self.named && asked == ["podman", "inspect", "--type", "container", ID];
        let json = format!(r#"[{{"Id":"{ID}","Name":"/vllm-1"}}]"#);
        Ok(Output {
            code: Some(if named { 0 } else { 127 }),
            stdout: if named { json.into_bytes() } else { Vec::new() },
            stderr: Vec::new(),
        })
    }

    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError> {
        Local.stream(argv).await
    }

    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
        let inside = path == Path::new("/proc/4242/cgroup");
        let text = format!("0::/system.slice/docker-{ID}.scope\n");
        Ok(inside.then(|| text.into_bytes()))
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        Local.write(path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), HostError> {
        Local.remove(path).await
    }

    async fn stat(&self, path: &Path) -> Result<Option<FileStat>, HostError> {
        Local.stat(path).await
    }

    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError> {
        Local.backup(path).await
    }

    async fn make_dir(&self, path: &Path) -> Result<(), HostError> {
        Local.make_dir(path).await
    }

    async fn lock(&self, path: &Path, who: &str) -> Result<Locked, HostError> {
        Local.lock(path, who).await
    }

    async fn boot_id(&self) -> Result<String, HostError> {
        Local.boot_id().await
    }
}

fn held(pid: u32, name: Option<&str>, used: Reading<u64>) -> Held {
    Held {
        card: 1,
        above: Some(4 * GIB),
        holders: vec![GpuProcess {
            pid,
            name: name.map(str::to_string),
            used,
        }],
    }
}

async fn said(named: bool, one: Held) -> String {
    let occupied = look(&Containers { named }, &[one], &[], (60, 10)).await;
    assert!(occupied.left_overs.is_empty());
    words(&occupied.held)
}

#[tokio::test]
async fn a_holder_is_named_with_its_container_and_its_bytes() {
    let one = || held(4242, Some("python3"), Reading::Value(39 * GIB / 10));
    assert_eq!(
        said(true, one()).await,
        "card 1 still holds 4.0 GiB more than without the server; listed on it: \
         python3 (pid 4242, container 0123456789ab vllm-1, 3.9 GiB)"
    );
    assert!(
        said(false, one())
            .await
            .contains("container 0123456789ab, 3.9")
    );
    let free = held(7, Some("Xorg"), Reading::unsupported());
    assert!(
        said(true, free)
            .await
            .ends_with("Xorg (pid 7, unknown size)")
    );
}

#[tokio::test]
async fn a_number_of_another_namespace_is_nobody_here() {
    // Process 4242 of this host is in a container; the one on the card only has its number.
    let words = said(true, held(4242, None, Reading::Value(GIB))).await;
    assert!(words.ends_with("a process (pid 4242, 1.0 GiB)"), "{words}");
}

#[tokio::test]
async fn a_card_on_which_nobody_is_listed_says_so() {
    let nobody = Held {
        holders: vec![],
        ..held(1, None, Reading::default())
    };
    let words = said(true, nobody).await;
    assert!(words.ends_with(NONE_LISTED), "{words}");
    let unread = Held {
        above: None,
        ..held(9, Some("python3"), Reading::Value(GIB))
    };
    assert!(
        said(true, unread)
            .await
            .starts_with("card 1 cannot be judged")
    );
}
