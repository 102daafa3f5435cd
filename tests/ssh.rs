//! A host behind a real sshd: commands, lines, files, the lock, what is said when it cannot be reached, and a connection that is cut.

// The helpers stop a test as the tests themselves do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::sshd::Sshd;
use support::until;
use vramp::host::{Ended, Host, HostError, Local, Locked, Streamed};

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn lost(error: &HostError) -> String {
    assert!(error.is_lost(), "{error}");
    error.to_string()
}

#[tokio::test]
async fn commands_reach_the_other_side_word_by_word() {
    let Some(sshd) = Sshd::start() else { return };
    let host = sshd.host("vramp-test");
    assert_eq!(host.name(), "vramp-test");
    let words = [
        "%s|",
        "",
        "a b",
        "$HOME `id` \\ ! * ~",
        "it's",
        "new\nline",
        "-n",
        "é",
    ];
    let output = host
        .run(&[argv(&["printf"]), argv(&words)].concat())
        .await
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        words[1..]
            .iter()
            .map(|word| format!("{word}|"))
            .collect::<String>()
    );
    assert_eq!((output.code, output.stderr.len()), (Some(0), 0));
    for (script, code) in [
        ("exit 3", Some(3)),
        ("exit 255", Some(255)),
        ("kill -9 $$", None),
    ] {
        let output = host
            .run(&argv(&["sh", "-c", &format!("echo oh >&2; {script}")]))
            .await
            .unwrap();
        assert_eq!(output.code, code, "{script}");
        // A shell may add a word of its own on a signal.
        assert!(output.stderr.starts_with(b"oh\n"), "{script}");
    }
    let big = vec![b'x'; 3 << 20];
    assert_eq!(
        host.run_with(&argv(&["cat"]), &big).await.unwrap().stdout,
        big
    );
    let error = host
        .run(&argv(&["no-such-program"]))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"no-such-program\"") && error.contains("vramp-test"),
        "{error}"
    );
    assert_eq!(host.boot_id().await, Local.boot_id().await);
    // More at once than the connection has sessions.
    let many = (0..25).map(|n| {
        let host = host.clone();
        tokio::spawn(async move {
            host.run(&argv(&["sh", "-c", &format!("sleep 0.1; echo {n}")]))
                .await
        })
    });
    for (n, task) in many.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(
            task.await.unwrap().unwrap().stdout,
            format!("{n}\n").into_bytes()
        );
    }
}

#[tokio::test]
async fn lines_come_as_they_are_written_and_the_command_ends_with_its_listener() {
    let Some(sshd) = Sshd::start() else { return };
    let host = sshd.host("vramp-test");
    let script = "echo one; sleep 0.3; echo two; echo oh >&2; exit 7";
    let begun = Instant::now();
    let mut lines = host.stream(&argv(&["sh", "-c", script])).await.unwrap();
    assert_eq!(lines.next().await, Some(Streamed::Line("one".into())));
    let first = begun.elapsed();
    assert_eq!(lines.next().await, Some(Streamed::Line("two".into())));
    assert!(begun.elapsed() > first + Duration::from_millis(200));
    let ended = Ended {
        code: Some(7),
        stderr: "oh\n".into(),
    };
    assert_eq!(lines.next().await, Some(Streamed::Ended(ended)));
    assert_eq!(lines.next().await, None);

    let mut lines = host
        .stream(&argv(&["sh", "-c", "echo $$; exec sleep 600"]))
        .await
        .unwrap();
    let Some(Streamed::Line(pid)) = lines.next().await else {
        panic!("no line");
    };
    let proc = PathBuf::from(format!("/proc/{pid}"));
    assert!(proc.exists());
    drop(lines);
    for _ in 0..500 {
        if !proc.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!proc.exists(), "process {pid} is still there");
    let mut lines = host.stream(&argv(&["no-such-program"])).await.unwrap();
    let Some(Streamed::Failed(error)) = lines.next().await else {
        panic!("no failure");
    };
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

#[tokio::test]
async fn files_are_written_whole_with_mode_and_backup() {
    let Some(sshd) = Sshd::start() else { return };
    let host = sshd.host("vramp-test");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.service");
    assert_eq!(host.read(&path).await, Ok(None));
    fs::write(&path, "old\r\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(host.stat(&path).await, Local.stat(&path).await);
    let backup = host.backup(&path).await.unwrap();
    host.write(&path, b"new\0\xff").await.unwrap();
    assert_eq!(host.read(&path).await, Ok(Some(b"new\0\xff".to_vec())));
    assert_eq!(fs::read(&backup).unwrap(), b"old\r\n");
    assert_eq!(host.stat(&path).await.unwrap().unwrap().mode, 0o640);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    host.remove(&path).await.unwrap();
    assert_eq!(host.stat(&path).await, Ok(None));
    let folder = dir.path().join("x/y");
    host.make_dir(&folder).await.unwrap();
    assert_eq!(host.stat(&folder).await.unwrap().unwrap().mode, 0o700);
}

#[tokio::test]
async fn one_lock_for_all_ways_to_the_host() {
    let Some(sshd) = Sshd::start() else { return };
    let (one, two) = (sshd.host("vramp-test"), sshd.host("vramp-test"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let Locked::Ours(held) = one.lock(&path, "ada@laptop").await.unwrap() else {
        panic!("nobody else has it");
    };
    assert!(held.held());
    for other in [&two as &dyn Host, &Local] {
        let Locked::Held(who) = other.lock(&path, "bob").await.unwrap() else {
            panic!("it is held");
        };
        assert_eq!(who, "ada@laptop");
    }
    drop(held);
    let begun = Instant::now();
    while !matches!(two.lock(&path, "bob@desk").await.unwrap(), Locked::Ours(_)) {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it was not given back"
        );
    }
}

#[tokio::test]
async fn what_keeps_it_from_connecting_is_said_with_what_to_do() {
    let Some(sshd) = Sshd::start() else { return };
    for (name, words) in [
        ("vramp-unknown", "accept it: ssh vramp-unknown"),
        ("vramp-changed", "host key is not the one on record"),
        ("vramp-stranger", "ssh-add"),
    ] {
        let begun = Instant::now();
        let error = lost(&sshd.host(name).run(&argv(&["true"])).await.unwrap_err());
        assert!(error.contains(words) && error.contains(name), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    let nobody = vramp::host::Ssh::new("ssh:127.0.0.1:1".parse().unwrap(), Some(sshd.config()));
    let error = lost(&nobody.run(&argv(&["true"])).await.unwrap_err());
    assert!(error.contains("sshd running"), "{error}");
    // The next attempt waits, and says so.
    let error = lost(&nobody.run(&argv(&["true"])).await.unwrap_err());
    assert!(error.contains("1 attempt, the next in"), "{error}");
}

#[tokio::test]
async fn jump_hosts_work_and_what_a_person_has_set_does_not_disturb() {
    let Some(sshd) = Sshd::start() else { return };
    for name in ["vramp-jump", "vramp-busy"] {
        let output = sshd.host(name).run(&argv(&["echo", name])).await.unwrap();
        assert_eq!(output.stdout, format!("{name}\n").into_bytes());
    }
    assert!(!fs::read_dir(sshd.path()).unwrap().any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("user-")
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_is_a_stated_fact_and_comes_back() {
    let Some(sshd) = Sshd::start() else { return };
    let host = sshd.host("vramp-test");
    let dir = tempfile::tempdir().unwrap();
    let (path, lock) = (dir.path().join("unit"), dir.path().join("lock"));
    fs::write(&path, "old").unwrap();
    let Locked::Ours(held) = host.lock(&lock, "ada").await.unwrap() else {
        panic!("nobody else has it");
    };
    let mut lines = host.stream(&argv(&["sleep", "600"])).await.unwrap();
    let under_way = tokio::spawn({
        let host = host.clone();
        async move { host.run(&argv(&["sleep", "600"])).await }
    });
    host.run(&argv(&["true"])).await.unwrap();
    sshd.accept(false);
    sshd.cut();
    let error = lost(&under_way.await.unwrap().unwrap_err());
    assert!(error.contains("vramp-test"), "{error}");
    assert!(matches!(lines.next().await, Some(Streamed::Failed(error)) if error.is_lost()));
    until(
        "the lock is known to be lost",
        Duration::from_secs(10),
        || (!held.held()).then_some(()),
    );
    assert_eq!(fs::read(&path).unwrap(), b"old");
    sshd.accept(true);
    let begun = Instant::now();
    loop {
        match host.write(&path, b"new").await {
            Ok(()) => break,
            Err(error) => drop(lost(&error)),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not come back"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert!(matches!(
        host.lock(&lock, "ada").await.unwrap(),
        Locked::Ours(_)
    ));
}

#[tokio::test]
async fn a_login_shell_that_prints_and_one_that_refuses() {
    let Some(sshd) = Sshd::start() else { return };
    // What a noisy profile does: text before the command's own, on both streams.
    sshd.force("echo welcome; echo oh >&2; eval \"$SSH_ORIGINAL_COMMAND\"");
    let host = sshd.host("vramp-test");
    let output = host.run(&argv(&["printf", "a\nb"])).await.unwrap();
    assert_eq!(output.stdout, b"a\nb");
    let mut lines = host.stream(&argv(&["echo", "a"])).await.unwrap();
    assert_eq!(lines.next().await, Some(Streamed::Line("a".into())));
    sshd.force("echo This account is currently not available.; exit 1");
    let error = host.run(&argv(&["true"])).await.unwrap_err();
    assert!(
        !error.is_lost() && error.to_string().contains("did not run"),
        "{error}"
    );
    let error = lost(
        &sshd
            .host("vramp-test")
            .run(&argv(&["true"]))
            .await
            .unwrap_err(),
    );
    assert!(
        error.contains("without a word") || error.contains("not available"),
        "{error}"
    );
}
