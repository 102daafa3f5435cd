//! The file itself: who wrote it, who may, and what a kill leaves.

use super::fixture::{begin, place, point, session, task};
use super::*;
use crate::app::task::{Task, TaskKind, TaskState};
use crate::bench::point::Validity;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn a_newer_database_is_refused_and_left_as_it_is() {
    let (_dir, path) = place();
    {
        let mut store = Store::open(&path).unwrap();
        session(&mut store, "qwen");
        store
            .conn
            .pragma_update(None, "user_version", 1000)
            .unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 1000, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("newer vramp"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_foreign_file_is_refused_and_left_as_it_is() {
    let (dir, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "these are my notes, not a database\n".repeat(40);
    std::fs::write(&path, &text).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let other = dir.path().join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE sessions (mine)")
        .unwrap();
    let before = std::fs::read(&other).unwrap();
    let error = Store::open(&other).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&other).unwrap(), before);
}

#[test]
fn a_place_that_cannot_be_written_says_so() {
    // /proc takes files from nobody, not even from root.
    for path in ["/proc/vramp.db", "/proc/self/data/vramp.db"] {
        let error = Store::open(Path::new(path)).unwrap_err();
        assert!(matches!(error, StoreError::Directory { .. }), "{error}");
        assert!(
            error.to_string().contains(path) && error.to_string().contains("writable"),
            "{error}"
        );
    }
    if rustix::process::geteuid().is_root() {
        return; // Modes bind everybody else.
    }
    let (_dir, path) = place();
    session(&mut Store::open(&path).unwrap(), "qwen");
    let folder = path.parent().unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o500)).unwrap();
    let error = Store::open(&folder.join("new.db")).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();

    // The file may be written, but nothing beside it.
    let (_dir, path) = place();
    let folder = path.parent().unwrap();
    session(&mut Store::open(&path).unwrap(), "qwen");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o500)).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    assert!(
        Store::open(&path)
            .unwrap()
            .latest_session("qwen")
            .unwrap()
            .is_some()
    );
}

#[test]
fn many_open_the_same_new_database_at_once() {
    let (_dir, path) = place();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::open(&path).unwrap();
                for _ in 0..5 {
                    session(&mut store, &format!("p{n}"));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let store = Store::open(&path).unwrap();
    for n in 0..4 {
        assert!(store.latest_session(&format!("p{n}")).unwrap().is_some());
    }
}

#[test]
fn a_database_goes_to_a_network_file_system_and_back() {
    let (_dir, path) = place();
    let id = session(&mut Store::open(&path).unwrap(), "qwen");
    for (journal, mode) in [(Journal::Rollback, "delete"), (Journal::WriteAhead, "wal")] {
        let mut store = Store::open_with(&path, journal).unwrap();
        let found: String = store
            .conn
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found, mode);
        let tasks = [task(1, TaskKind::Own, TaskState::Pending)];
        store.save_tasks(id, &tasks).unwrap();
        let other = Store::open_with(&path, journal).unwrap();
        assert_eq!(other.session(id).unwrap().unwrap().tasks, tasks);
    }
}

#[test]
fn a_second_reader_sees_whole_steps_while_the_first_writes() {
    let (_dir, path) = place();
    let mut writer = Store::open(&path).unwrap();
    let id = session(&mut writer, "qwen");
    let reader = Store::open(&path).unwrap();
    let lists: Vec<Vec<Task>> = [3_u64, 7]
        .map(|n| {
            (0..n)
                .map(|id| task(id, TaskKind::Own, TaskState::Pending))
                .collect()
        })
        .to_vec();
    writer.save_tasks(id, &lists[0]).unwrap();
    let thread = std::thread::spawn(move || {
        for turn in 0..40 {
            writer.save_tasks(id, &lists[turn % 2]).unwrap();
        }
    });
    while !thread.is_finished() {
        let seen = reader.session(id).unwrap().unwrap().tasks.len();
        assert!(seen == 3 || seen == 7, "{seen} tasks");
    }
    thread.join().unwrap();
}

/// Writes for ever, saying after each step that it is on the disk. Runs only as a child of the test below.
#[test]
fn writer_that_is_killed() {
    let Ok(path) = std::env::var("VRAMP_TEST_KILLED_WRITER") else {
        return;
    };
    let mut store = Store::open(Path::new(&path)).unwrap();
    let id = session(&mut store, "qwen");
    let run = begin(&mut store, Some(id));
    for n in 1.. {
        store.add_point(run, &point(n, Validity::Valid)).unwrap();
        std::fs::write(format!("{path}.new"), n.to_string()).unwrap();
        std::fs::rename(format!("{path}.new"), format!("{path}.count")).unwrap();
    }
}

#[test]
fn what_was_handed_over_survives_a_kill_in_the_middle() {
    let (_dir, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests_disk::writer_that_is_killed"])
        .env("VRAMP_TEST_KILLED_WRITER", &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let count = || {
        std::fs::read_to_string(path.with_extension("db.count"))
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            .unwrap_or(0)
    };
    while count() < 20 {
        assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = count();
    let store = Store::open(&path).unwrap();
    let row = store.latest_session("qwen").unwrap().unwrap();
    let points = store.session_points(row.id).unwrap();
    assert!(
        points.len() == said || points.len() == said + 1,
        "{} points, {said} handed over",
        points.len()
    );
    for stored in points {
        assert_eq!(store.requests(stored.id).unwrap().len(), 2);
    }
    let sound: String = store
        .conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_database_of_the_first_form_is_brought_to_the_present_one() {
    let (_dir, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("form_1.sql")).unwrap();
    old.execute_batch(
        "PRAGMA application_id = 0x76726D70; PRAGMA user_version = 1;
         INSERT INTO runs VALUES (1, NULL, 'throughput', 'throughput', '{}', 'http://h', 'vllm', NULL, 'm', 4096, 7, 0, 5, 9, 'finished');
         INSERT INTO points VALUES (1, 1, 10, 20, 1, NULL, 9, 'valid', NULL, NULL, NULL, '{}');
         INSERT INTO requests VALUES (1, 0, 0.5, 12.5, NULL, 99.0, NULL, 10, 20, NULL, 20, NULL);
         INSERT INTO sessions VALUES (7, 'rig', 'http://h', 'me', 'here', '0.1.0', 900, 0, 1, NULL, NULL);
         INSERT INTO memory_history VALUES (7, 0, 1, 1000, 1, 5, 5, 5, 9), (7, 0, 0, 1000, 1, 4, 4, 4, 8), (7, 0, 0, 2000, 1, 6, 6, 6, 8);",
    )
    .unwrap();
    drop(old);
    let mut store = Store::open(&path).unwrap();
    let row = store.run(1).unwrap().unwrap();
    assert_eq!((row.name, row.points), (None, 1));
    let requests = store.requests(1).unwrap();
    assert_eq!(requests[0].ttft_ms, Some(12.5));
    assert_eq!(requests[0].client_queue_ms, None);
    assert!(store.unfinished_runs(9).unwrap().is_empty());
    assert_eq!(store.memory_span(7).unwrap(), Some((1000, 2000)));
    let bands = store.memory(7, 0, 3000, 3000).unwrap();
    let seen: Vec<_> = bands
        .iter()
        .map(|band| (band.card, band.at_unix_ms, band.mean, band.total))
        .collect();
    assert_eq!(seen, [(0, 1000, 4, 8), (0, 2000, 6, 8), (1, 1000, 5, 9)]);
    begin(&mut store, None);
}
