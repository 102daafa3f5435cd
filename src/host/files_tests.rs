use super::*;
use crate::host::Local;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Names that a careless script would trip over.
const NAMES: [&str; 5] = ["plain", "a b", "-n", "it's $HOME `x`", "new\nline"];

#[tokio::test]
async fn a_file_is_written_read_looked_at_and_removed_whatever_its_name() {
    let dir = tempfile::tempdir().unwrap();
    for name in NAMES {
        let path = dir.path().join(name);
        assert_eq!(read(&Local, &path).await, Ok(None), "{name}");
        assert_eq!(stat(&Local, &path).await, Ok(None));
        let bytes = [b"a\0\xff\n".repeat(50_000), b"end".to_vec()].concat();
        write(&Local, &path, &bytes).await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(read(&Local, &path).await, Ok(Some(bytes)));
        assert_eq!(stat(&Local, &path).await, Local.stat(&path).await);
        write(&Local, &path, b"").await.unwrap();
        assert_eq!(read(&Local, &path).await, Ok(Some(vec![])));
        remove(&Local, &path).await.unwrap();
        assert!(!path.exists());
        remove(&Local, &path).await.unwrap();
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(stat(&Local, dir.path()).await.unwrap().unwrap().is_dir);
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_the_link() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("file"), dir.path().join("link"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4640)).unwrap();
    symlink(&file, &link).unwrap();
    write(&Local, &link, b"new").await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(mode(&file), 0o4640);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    // A new one gets what any other program would give it.
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    write(&Local, &ours, b"x").await.unwrap();
    fs::write(&theirs, "x").unwrap();
    assert_eq!(mode(&ours), mode(&theirs));
}

#[tokio::test]
async fn an_input_that_is_cut_off_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("unit");
    fs::write(&path, "old").unwrap();
    let argv = script(WRITE, &[path.to_str().unwrap(), "1000"]);
    let output = Local.run_with(&argv, b"half").await.unwrap();
    assert_eq!(output.code, Some(1));
    assert_eq!(said(&output), "the text arrived cut off");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_cannot_be_done_is_said_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let lost = dir.path().join("no/such/file");
    for error in [
        write(&Local, &folder, b"x").await.unwrap_err(),
        read(&Local, &folder).await.unwrap_err(),
        write(&Local, &lost, b"x").await.unwrap_err(),
        backup(&Local, &lost).await.unwrap_err(),
        remove(&Local, &folder).await.unwrap_err(),
    ] {
        let error = error.to_string();
        let path = dir.path().display().to_string();
        assert!(
            error.contains(&path) && error.contains("localhost"),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_backup_keeps_mode_and_time_and_spares_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["unit", "-a b"] {
        let path = dir.path().join(name);
        fs::write(&path, "text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let one = backup(&Local, &path).await.unwrap();
        let two = backup(&Local, &path).await.unwrap();
        assert_ne!(one, two);
        assert_eq!(Local.stat(&one).await, Local.stat(&path).await);
        assert_eq!(fs::read(&two).unwrap(), b"text");
    }
}

#[tokio::test]
async fn the_lock_is_the_kernels_and_the_same_as_ours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let first = lock(&Local, &path, "ada@rig, pid 1")
        .await
        .unwrap()
        .unwrap();
    let second = lock(&Local, &path, "bob").await.unwrap();
    assert_eq!(second.err().as_deref(), Some("ada@rig, pid 1"));
    // Across the two ways of taking it.
    let own = Local.lock(&path, "bob").await.unwrap();
    assert!(matches!(own, crate::host::Locked::Held(who) if who == "ada@rig, pid 1"));
    let pid = first.pid.to_string();
    let wrong = dir.path().join("other");
    let unlock = |path: &Path| script(UNLOCK, &[path.to_str().unwrap(), &pid]);
    assert_ne!(Local.run(&unlock(&wrong)).await.unwrap().code, Some(0));
    assert_eq!(Local.run(&unlock(&path)).await.unwrap().code, Some(0));
    let mut own = Local.lock(&path, "bob").await.unwrap();
    for _ in 0..100 {
        if matches!(own, crate::host::Locked::Ours(_)) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        own = Local.lock(&path, "bob").await.unwrap();
    }
    assert!(matches!(own, crate::host::Locked::Ours(_)));
    let third = lock(&Local, &path, "cyd").await.unwrap();
    assert_eq!(third.err().as_deref(), Some("bob"));
}

#[tokio::test]
async fn the_boot_is_the_same_by_either_way() {
    assert_eq!(boot_id(&Local).await, Local.boot_id().await);
}
