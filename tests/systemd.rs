//! systemd units through the cockpit: raised, kept, rolled back, taken back by a deadline.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// Only a part of it is used here.
#[allow(dead_code)]
#[path = "support/nvml.rs"]
mod stub;
mod support;

use support::http::json;
use support::place::Process;
use support::systemd::{Mode, Systemd};
use support::term::{Term, key};
use support::unit::{Bench, read};
use support::{secs, until};

const VRAMP: &str = env!("CARGO_BIN_EXE_vramp");

#[test]
fn a_unit_is_raised_and_kept_and_a_reboot_brings_it() {
    for mode in [Mode::User, Mode::System] {
        let Some(bench) = Bench::new(mode, "a unit raised and kept") else {
            return;
        };
        let text = format!(
            "# the server\n[Service]\nExecStart={}\nRestart=on-failure\n",
            bench.command("4096")
        );
        Systemd::write(&bench.unit(), &text);
        bench.profile("");
        bench.start();
        let before = bench.systemd.main_pid("llm.service");
        let mut term = bench.cockpit();
        bench.raise(&term);
        assert_eq!(
            read(&bench.unit()),
            text,
            "a trial leaves the unit as it is"
        );
        let drop_ins = bench.systemd.property("llm.service", "DropInPaths");
        assert!(drop_ins.ends_with("/zzz-vramp-trial.conf"), "{drop_ins}");
        let trial = bench.systemd.main_pid("llm.service");
        assert_ne!(trial, before);

        bench.keep(&term);
        assert_eq!(read(&bench.unit()), text.replace("4096", "8192"));
        assert!(!bench.trial().exists());
        assert_eq!(bench.systemd.property("llm.service", "DropInPaths"), "");
        let command = bench.systemd.property("llm.service", "ExecStart");
        assert!(command.contains("--context-length 8192"), "{command}");
        assert_eq!(
            bench.systemd.main_pid("llm.service"),
            trial,
            "keeping restarts nothing"
        );
        assert_eq!(term.leave().exit_code(), 0);
        bench.serves(8192);
        bench.reboot();
        bench.serves(8192);
    }
}

#[test]
fn a_trial_that_is_not_kept_ends_with_a_reboot() {
    for mode in [Mode::User, Mode::System] {
        let Some(bench) = Bench::new(mode, "a trial and a reboot") else {
            return;
        };
        Systemd::write(
            &bench.unit(),
            &format!("[Service]\nExecStart={}\n", bench.command("4096")),
        );
        bench.profile("");
        bench.start();
        let term = bench.cockpit();
        bench.raise(&term);
        drop(term);
        // Whoever restarts it before gets the trial again, as the drop-in says.
        bench.systemd.systemctl(&["restart", "llm.service"]);
        bench.serves(8192);
        bench.reboot();
        bench.serves(4096);
    }
}

/// Raises and rolls back, then raises and keeps, with `brings` looking at the files each time.
fn there_and_back(bench: &Bench, brings: impl Fn(&str)) {
    bench.start();
    let term = bench.cockpit();
    bench.raise(&term);
    brings("4096");
    bench.roll_back(&term);
    brings("4096");
    assert!(!bench.trial().exists());
    bench.raise(&term);
    bench.keep(&term);
    brings("8192");
    assert!(!bench.trial().exists());
    bench.reboot();
    bench.serves(8192);
}

#[test]
fn a_number_in_an_environment_file_is_raised_there() {
    let Some(bench) = Bench::new(Mode::User, "a number in an environment file") else {
        return;
    };
    let file = bench.place.path().join("llm.env");
    let env = |context: &str| format!("# tuned\r\nPORT=1\r\nCTX=\"{context}\"   \r\n#CTX=1\r\n");
    Systemd::write(&file, &env("4096"));
    let unit = format!(
        "[Service]\nEnvironment=CTX=2048\nEnvironmentFile=-{}\nExecStart={}\n",
        file.display(),
        bench.command("${CTX}")
    );
    Systemd::write(&bench.unit(), &unit);
    bench.profile("");
    there_and_back(&bench, |context| {
        assert_eq!(read(&file), env(context));
        assert_eq!(read(&bench.unit()), unit);
    });
}

#[test]
fn a_unit_of_a_package_is_overridden_and_never_edited() {
    let Some(bench) = Bench::new(Mode::System, "a unit of a package") else {
        return;
    };
    let unit = bench.systemd.package().join("llm.service");
    let text = format!("[Service]\nExecStart={}\n", bench.command("4096"));
    Systemd::write(&unit, &text);
    let over = bench
        .systemd
        .lasting()
        .join("llm.service.d/zz-vramp-context.conf");
    bench.profile("");
    there_and_back(&bench, |context| {
        assert_eq!(read(&unit), text);
        assert_eq!(over.exists(), context == "8192");
    });
    assert!(read(&over).contains("ExecStart=\nExecStart="));
}

#[test]
fn a_drop_in_that_overrides_the_command_is_where_the_number_lives() {
    let Some(bench) = Bench::new(Mode::User, "a drop-in that overrides") else {
        return;
    };
    let unit = format!("[Service]\nExecStart={}\n", bench.command("1024"));
    Systemd::write(&bench.unit(), &unit);
    // A name that hides or follows the usual name of a trial.
    let folder = bench.systemd.lasting().join("llm.service.d");
    let drop_in = folder.join("zzz-vramp-trial.conf");
    let text = |context: &str| {
        format!(
            "[Service]\nExecStart=\nExecStart=-{}\n",
            bench.command(context)
        )
    };
    Systemd::write(&drop_in, &text("4096"));
    bench.profile("");
    there_and_back(&bench, |context| {
        assert_eq!(read(&bench.unit()), unit);
        assert_eq!(read(&drop_in), text(context));
    });
}

#[test]
fn what_requires_the_server_comes_back_with_it() {
    let Some(bench) = Bench::new(Mode::User, "a unit that requires the server") else {
        return;
    };
    Systemd::write(
        &bench.unit(),
        &format!("[Service]\nExecStart={}\n", bench.command("4096")),
    );
    let other = bench.systemd.lasting().join("web.service");
    Systemd::write(
        &other,
        "[Unit]\nRequires=llm.service\nAfter=llm.service\n[Service]\nExecStart=/bin/sleep 1000\n",
    );
    bench.profile("");
    bench.start();
    bench.systemd.systemctl(&["start", "web.service"]);
    let state = || bench.systemd.property("web.service", "ActiveState");
    assert_eq!(state(), "active");
    let term = bench.cockpit();
    bench.raise(&term);
    let back = || (state() == "active").then_some(());
    until("web.service is back", secs(10), back);
    bench.roll_back(&term);
    until("web.service is back", secs(10), back);
}

#[test]
fn a_crash_that_the_manager_would_repeat_is_stopped_at_the_first() {
    let Some(bench) = Bench::new(Mode::User, "a crash with Restart=always") else {
        return;
    };
    let crashing = bench.command("4096") + " --oom-above 6000";
    let text = format!(
        "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n[Service]\nExecStart={crashing}\nRestart=always\nRestartSec=100ms\n"
    );
    Systemd::write(&bench.unit(), &text);
    bench.profile("");
    bench.start();
    let term = bench.cockpit();
    // Another context each time, so that no words of the last time are taken for this one's.
    for asked in ["8,192", "9,216", "10,240"] {
        term.set_context(asked);
        term.restart_at(asked, secs(10));
        term.wait_for(&format!("{asked} failed, 4,096 ("), secs(60));
        assert!(
            term.screen().contains("is back in service"),
            "{}",
            term.screen()
        );
        bench.serves(4096);
        assert!(!bench.trial().exists());
        assert_eq!(read(&bench.unit()), text);
    }
}

#[test]
fn without_the_right_to_change_it_nothing_is_stopped() {
    let Some(bench) = Bench::new(Mode::User, "a unit that cannot be written") else {
        return;
    };
    Systemd::write(
        &bench.unit(),
        &format!("[Service]\nExecStart={}\n", bench.command("4096")),
    );
    // Everything sorts before it, so no trial can override it.
    let last = bench.systemd.lasting().join("llm.service.d/~last.conf");
    Systemd::write(&last, "[Service]\nNice=1\n");
    bench.profile("");
    bench.start();
    let before = bench.systemd.main_pid("llm.service");
    let term = bench.cockpit();
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    term.wait_for("not restarted: ", secs(30));
    assert!(term.screen().contains("~last.conf"), "{}", term.screen());
    assert_eq!(bench.systemd.main_pid("llm.service"), before);
}

#[test]
fn a_deadline_brings_production_back_without_the_cockpit() {
    let Some(bench) = Bench::new(Mode::User, "a deadline") else {
        return;
    };
    Systemd::write(
        &bench.unit(),
        &format!("[Service]\nExecStart={}\n", bench.command("4096")),
    );
    bench.profile("confirm_within = \"10s\"");
    bench.start();
    let mut term = bench.cockpit();
    // User units without lingering end with the session, and so would the deadline.
    term.set_context("8K");
    term.answer("server at 8,192 tokens", "d", secs(10));
    term.wait_for("lingering is off", secs(10));
    term.keys(key::ESC);
    term.settle(std::time::Duration::from_millis(150));
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    term.wait_for("not restarted: ", secs(30));
    assert!(term.screen().contains("lingering"), "{}", term.screen());
    bench.serves(4096);

    bench.systemd.linger();
    bench.raise(&term);
    term.wait_for("back in 00:0", secs(5));
    bench.systemd.systemctl(&["daemon-reload"]);
    term.signal(rustix::process::Signal::KILL);
    term.wait_exit(secs(10));
    bench.serves(4096);
    assert!(!bench.trial().exists());
    let log = bench.place.state().join("services/unit/deadline.log");
    until("the script proves the value", secs(20), || {
        read(&log).contains("proven with a token").then_some(())
    });

    // Kept in time, no timer is left.
    let term = bench.cockpit();
    bench.raise(&term);
    bench.keep(&term);
    let timers = bench.systemd.systemctl(&["list-timers", "--all"]);
    assert!(!timers.contains("vramp"), "{timers}");
    std::thread::sleep(secs(12));
    bench.serves(8192);
}

#[test]
fn a_deadline_is_given_renewed_and_taken_away_by_keys() {
    let Some(bench) = Bench::new(Mode::System, "a deadline by keys") else {
        return;
    };
    Systemd::write(
        &bench.unit(),
        &format!("[Service]\nExecStart={}\n", bench.command("4096")),
    );
    bench.profile("");
    bench.start();
    let timers = || bench.timers();
    let left_s = || {
        let record = read(&bench.place.state().join("services/unit/deadline.json"));
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let at = record["at_unix_ms"].as_i64().unwrap();
        (at - vramp::clock::unix_ms()) / 1000
    };
    let raise = |term: &Term| {
        term.set_context("8K");
        term.answer("server at 8,192 tokens", "d", secs(10));
        term.answer("kept within 10:00", "y", secs(10));
        term.wait_for("The server is running at 8,192", secs(60));
        term.wait_for("back in 09:", secs(10));
    };
    let term = bench.cockpit();
    raise(&term);
    assert!(timers() > 0 && (500..=600).contains(&left_s()));
    term.answer("deadline 30 min", "d", secs(10));
    term.wait_for("the trial has deadline 30 min now", secs(20));
    assert!(timers() > 0 && (1_700..=1_800).contains(&left_s()));
    term.answer("The server is running at 8,192", "d", secs(10));
    term.wait_for("the trial has no deadline now", secs(20));
    assert_eq!(timers(), 0);
    assert!(!term.screen().contains("back in "), "{}", term.screen());
    term.answer("The server is running at 8,192", "d", secs(10));
    term.wait_for("the trial has deadline 10 min now", secs(20));
    assert!(timers() > 0);
    term.answer("The server is running at 8,192", "r", secs(10));
    term.answer("production value of 4,096 tokens", "y", secs(10));
    term.wait_for("4,096 answered its first token", secs(60));
    assert_eq!(timers(), 0);
    raise(&term);
    term.answer("The server is running at 8,192", "y", secs(10));
    term.wait_for("8,192 is the production value now", secs(20));
    assert_eq!(timers(), 0);
}

#[test]
fn the_cockpit_sees_the_deadline_pass() {
    let Some(bench) = Bench::new(Mode::System, "a deadline under the eyes of the cockpit") else {
        return;
    };
    Systemd::write(
        &bench.unit(),
        &format!("[Service]\nExecStart={}\n", bench.command("4096")),
    );
    bench.profile("confirm_within = \"15s\"");
    bench.start();
    let term = bench.cockpit();
    bench.raise(&term);
    term.wait_for("was not kept in time", secs(30));
    term.wait_for("the production value 4,096 is back", secs(40));
    bench.serves(4096);
    assert!(!bench.trial().exists());
    // And the next trial is one as any other.
    bench.raise(&term);
    bench.roll_back(&term);
    let timers = bench.systemd.systemctl(&["list-timers", "--all"]);
    assert!(!timers.contains("vramp"), "{timers}");
}

#[test]
fn a_crash_in_the_first_minute_brings_the_earlier_value_back() {
    let Some(bench) = Bench::new(Mode::User, "a crash in the first minute") else {
        return;
    };
    let text = format!(
        "[Service]\nExecStart={}\nRestart=always\nRestartSec=100ms\n",
        bench.command("4096")
    );
    Systemd::write(&bench.unit(), &text);
    bench.profile("");
    bench.start();
    let term = bench.cockpit();
    bench.raise(&term);
    std::thread::sleep(secs(3));
    bench
        .systemd
        .systemctl(&["kill", "--signal=SIGKILL", "llm.service"]);
    term.wait_for("8,192 failed, 4,096 (", secs(60));
    let screen = term.screen();
    assert!(screen.contains("is back in service, proven"), "{screen}");
    assert!(screen.contains("was ready and crashed"), "{screen}");
    bench.serves(4096);
    assert!(!bench.trial().exists());
    assert_eq!(read(&bench.unit()), text);
    // One that somebody stops on purpose is left alone.
    bench.raise(&term);
    bench.systemd.systemctl(&["stop", "llm.service"]);
    term.wait_for("Enter on the first task starts it at 4,096", secs(20));
    std::thread::sleep(secs(4));
    assert_eq!(bench.served(), None);
}

#[test]
fn the_managers_own_word_for_the_end_is_told() {
    let Some(bench) = Bench::new(Mode::User, "a unit whose time is over") else {
        return;
    };
    let slow = bench
        .command("4096")
        .replace("--start-ms 300", "--start-ms 6000");
    Systemd::write(&bench.unit(), &format!("[Service]\nExecStart={slow}\n"));
    bench.profile("");
    bench.start();
    let term = bench.cockpit();
    let limit = bench.systemd.runtime().join("llm.service.d/10-limit.conf");
    Systemd::write(&limit, "[Service]\nRuntimeMaxSec=3\n");
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    term.wait_for("RuntimeMaxSec=", secs(60));
}

#[test]
fn an_instance_of_a_template_is_kept_without_the_others() {
    let Some(bench) = Bench::new(Mode::User, "an instance of a template") else {
        return;
    };
    let template = bench.systemd.lasting().join("llm@.service");
    let text = format!("[Service]\nExecStart={} --seed %i\n", bench.command("4096"));
    Systemd::write(&template, &text);
    bench.profile("");
    let file = bench.place.path().join("config/vramp/vramp.toml");
    let profile = read(&file).replace("llm.service", "llm@7.service");
    std::fs::write(&file, profile).unwrap();
    bench.systemd.systemctl(&["daemon-reload"]);
    bench.systemd.systemctl(&["start", "llm@7.service"]);
    bench.serves(4096);
    let term = bench.systemd.cockpit(&bench.place, &["--quick"]);
    term.wait_for("attached: ", secs(30));
    bench.raise(&term);
    bench.keep(&term);
    assert_eq!(read(&template), text);
    bench.systemd.reboot();
    bench.systemd.systemctl(&["start", "llm@7.service"]);
    bench.serves(8192);
}

#[test]
fn a_cockpit_killed_in_the_middle_leaves_both_ways_open() {
    let Some(bench) = Bench::new(Mode::User, "a cockpit killed in the middle") else {
        return;
    };
    let text = format!(
        "[Service]\nExecStart={}\n",
        bench
            .command("4096")
            .replace("--start-ms 300", "--start-ms 1500")
    );
    Systemd::write(&bench.unit(), &text);
    bench.profile("");
    bench.start();
    for (delay_ms, way, context) in [(1_500, "g", 8192), (2_500, "r", 4096), (3_500, "r", 4096)] {
        let mut term = bench.cockpit();
        let to = if bench.served() == Some(8192) {
            "4K"
        } else {
            "8K"
        };
        if to == "4K" {
            // Back to the beginning: the value of the files is in service, and no trial.
            term.set_context(to);
            term.restart_at("4,096", secs(10));
            bench.serves(4096);
            term.wait_for("4,096 answered its first token", secs(30));
            assert!(!bench.trial().exists());
        }
        term.set_context("8K");
        term.restart_at("8,192", secs(10));
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        term.signal(rustix::process::Signal::KILL);
        term.wait_exit(secs(10));
        assert_eq!(read(&bench.unit()), text);
        let term = bench.systemd.cockpit(&bench.place, &["--quick"]);
        let intent = bench.place.state().join("services/unit/intent.json");
        if intent.exists() {
            term.answer("unfinished", way, secs(30));
            term.wait_until("the way out is taken", secs(60), |screen| {
                screen.contains("answered its first token") || screen.contains("is back in service")
            });
            bench.serves(context);
        }
        drop(term);
        assert_eq!(read(&bench.unit()), text);
    }
}

#[test]
fn a_real_llama_server_is_raised_from_2048_to_4096_a_slot() {
    let Some(llama) = support::llama::Llama::find("a unit with a real llama-server") else {
        return;
    };
    let Some(bench) = Bench::new(Mode::User, "a unit with a real llama-server") else {
        return;
    };
    let text = |context: u32| {
        format!(
            "[Service]\nExecStart={} --model {} \\\n  -c {context} -np 2 --host 127.0.0.1 --port {} --metrics --threads 1 --poll 0\n",
            llama.server.display(),
            llama.model.display(),
            bench.port
        )
    };
    Systemd::write(&bench.unit(), &text(4096));
    bench.profile("");
    let file = bench.place.path().join("config/vramp/vramp.toml");
    let profile = read(&file)
        .replace("sglang", "llamacpp")
        .replace("stuck_after = 20", "stuck_after = 120");
    std::fs::write(&file, profile).unwrap();
    let served = || {
        let page = json(bench.port, "/props")?;
        page.pointer("/default_generation_settings/n_ctx")?.as_u64()
    };
    bench.systemd.systemctl(&["daemon-reload"]);
    bench.systemd.systemctl(&["start", "llm.service"]);
    until("2048 a slot", secs(120), || {
        (served() == Some(2048)).then_some(())
    });
    let term = bench.cockpit();
    term.set_context("4K");
    term.restart_at("4,096", secs(10));
    term.answer("The server is running at 4,096", "y", secs(180));
    term.wait_for("4,096 is the production value now", secs(30));
    assert_eq!(served(), Some(4096));
    assert_eq!(read(&bench.unit()), text(8192), "the digits alone");
    bench.reboot();
    until("4096 a slot", secs(120), || {
        (served() == Some(4096)).then_some(())
    });
}

#[test]
fn a_command_inside_a_shell_is_repeated_whole_by_the_trial() {
    let Some(bench) = Bench::new(Mode::User, "a command inside a shell") else {
        return;
    };
    let text = |context: &str| {
        format!(
            "[Service]\nEnvironment=\"SEED=3\"\nExecStart=/bin/bash -c 'set -e; \\\n  # of %n, 100%%\n  exec {VRAMP} sim --start-ms 300 --port {} --seed \"$$SEED\" --context-length={context} 2>&1'\n",
            bench.port
        )
    };
    Systemd::write(&bench.unit(), &text("4096"));
    bench.profile("");
    there_and_back(&bench, |context| {
        assert_eq!(read(&bench.unit()), text(context));
    });
}

#[test]
fn what_changes_the_unit_goes_through_sudo_and_its_want_is_told_before_the_stop() {
    let Some(bench) = Bench::new(Mode::System, "a unit through sudo") else {
        return;
    };
    let text = format!("[Service]\nExecStart={}\n", bench.command("4096"));
    Systemd::write(&bench.unit(), &text);
    bench.profile("sudo = true");
    bench.start();
    // Stands in for sudo: notes what it is asked for, and wants a password for what changes something until it may.
    let bin = bench.place.path().join("bin");
    let sudo = bin.join("sudo");
    let allowed = bench.place.path().join("allowed");
    let asked = bench.place.path().join("asked");
    Systemd::write(
        &sudo,
        &format!(
            "#!/bin/sh\n[ \"$1\" = -n ] || exit 9\nshift\necho \"$1 $2 $3 $4 $5\" >>{}\n[ $1 = journalctl ] || [ -e {} ] || {{ echo 'sudo: a password is required' >&2; exit 1; }}\nexec \"$@\"\n",
            asked.display(),
            allowed.display()
        ),
    );
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let term = bench
        .systemd
        .cockpit_with(&bench.place, &["--quick"], &[("PATH", &path)]);
    term.wait_for("attached: ", secs(30));
    let before = bench.systemd.main_pid("llm.service");
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    term.wait_for("not restarted: ", secs(30));
    assert!(term.screen().contains("password"), "{}", term.screen());
    assert_eq!(bench.systemd.main_pid("llm.service"), before);

    std::fs::write(&allowed, "").unwrap();
    bench.raise(&term);
    bench.keep(&term);
    assert_eq!(read(&bench.unit()), text.replace("4096", "8192"));
    let asked = read(&asked);
    for word in ["daemon-reload", "stop", "start", "mkdir", "sh -c", "cp "] {
        assert!(asked.contains(word), "{word}: {asked}");
    }
}

#[test]
fn what_a_unit_leaves_in_its_control_group_is_ended_by_its_key() {
    let Some(driver) = stub::Driver::new("", &[]) else {
        return;
    };
    let Some(bench) = Bench::new(Mode::User, "a unit that leaves a process behind") else {
        return;
    };
    let card = |used: u64, holders: &str| {
        driver.set(&format!(
            "count = 1\ngpu0.mem.total = 48G\ngpu0.mem.used = {used}G\ngpu0.procs = {holders}\n"
        ));
    };
    let (leave, left) = (
        bench.place.path().join("leave"),
        bench.place.path().join("left"),
    );
    let fork = format!(
        "if rm {}; then sleep 600 >/dev/null 2>&1 & echo $$! >{}; fi",
        leave.display(),
        left.display()
    );
    std::fs::write(&leave, "").unwrap();
    let text = format!(
        "[Service]\nKillMode=process\nExecStart={}\nExecStartPost=/bin/sh -c '{fork}'\n",
        bench.command("4096")
    );
    Systemd::write(&bench.unit(), &text);
    bench.profile("");
    bench.start();
    let pid = read(&left).trim().parse().unwrap();
    let left_over = Process::of(pid).expect("it runs");
    let server = bench.systemd.main_pid("llm.service");
    card(41, &format!("{server}:30G, {pid}:10G"));

    let library = driver.library();
    let more = [("VRAMP_NVML_LIB", library.to_str().unwrap())];
    let term = bench
        .systemd
        .cockpit_with(&bench.place, &["--quick"], &more);
    term.wait_for("attached: ", secs(30));
    term.wait_for("41.0/48.0", secs(30));
    term.set_context("8K");
    term.restart_at("8,192", secs(10));
    until("the server is stopped", secs(30), || {
        bench.served().is_none().then_some(())
    });
    card(11, &format!("{pid}:10G"));
    let asked = "The cards were not free within 5 s";
    term.wait_for(asked, secs(60));
    for part in [&format!("sleep pid {pid}"), "10.0 GiB  left over"] {
        assert!(term.screen().contains(part), "{part}: {}", term.screen());
    }
    assert!(left_over.lives());
    term.answer(asked, "e", secs(5));
    until("the left-over has ended", secs(30), || {
        (!left_over.lives()).then_some(())
    });
    term.settle(secs(1));
    assert_eq!(bench.systemd.main_pid("llm.service"), 0);
    card(1, "");
    term.answer("The server is running at 8,192", key::ESC, secs(60));
    bench.serves(8192);
}
