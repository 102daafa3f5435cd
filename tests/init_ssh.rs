//! `--host ssh:…`, the real program over a real sshd: `vramp init` finds what runs there and writes a profile that is in order, and
//! `vramp estimate` reads the model that lies there.

// A test that cannot go on may say so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use support::http::{self, free_port};
use support::place::Place;
use support::sshd::Sshd;
use support::{secs, until};

/// A search path on which the system's ssh has the configuration of this test.
fn path_with_ssh(place: &Place, sshd: &Sshd) -> String {
    let bin = place.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let real = if std::path::Path::new("/usr/bin/ssh").exists() {
        "/usr/bin/ssh"
    } else {
        "/bin/ssh"
    };
    let ssh = bin.join("ssh");
    let script = format!(
        "#!/bin/sh\nexec {real} -F {} \"$@\"\n",
        sshd.config().display()
    );
    std::fs::write(&ssh, script).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_server_on_another_host_is_found_over_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let (place, port) = (Place::new(), free_port());
    let path = path_with_ssh(&place, &sshd);
    let mut server = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args([
            "sim",
            "--port",
            &port.to_string(),
            "--context-length",
            "16K",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the server", secs(30), || http::json(port, "/server_info"));

    let url = format!("http://127.0.0.1:{port}");
    let output = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["init", "--host", "ssh:vramp-test", "--url", &url])
        .env("PATH", &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(place.path().join("config/vramp/vramp.toml")).unwrap();
    for part in [
        "host = \"ssh:vramp-test\"",
        "engine = \"sglang\"",
        "\"16K\"",
        &url,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let checked = place.run(&["config", "check"]);
    assert_eq!(
        checked.status.code(),
        Some(0),
        "{}\n{text}",
        String::from_utf8_lossy(&checked.stderr)
    );

    // A host that cannot be reached is said, and nothing is written.
    let gone = place
        .command(env!("CARGO_BIN_EXE_vramp"))
        .args(["init", "--host", "ssh:vramp-stranger", "--config"])
        .arg(place.path().join("other.toml"))
        .env("PATH", &path)
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(1));
    let said = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(said.contains("takes none of your keys"), "{said}");
    assert!(!place.path().join("other.toml").exists());
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_model_on_another_host_is_estimated_as_one_here() {
    let Some(sshd) = Sshd::start() else { return };
    let place = Place::new();
    let path = path_with_ssh(&place, &sshd);
    let estimate = |model: &str, host: &[&str]| {
        let output = place
            .command(env!("CARGO_BIN_EXE_vramp"))
            .args(["estimate", model, "--context", "32K,128K", "--json"])
            .args(host)
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, output.stdout)
    };
    let there = ["--host", "ssh:vramp-test"];
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/kv/configs/qwen3.6-27b.json"
    );
    let mut models = vec![fixture.to_string()];
    models.extend(std::env::var("LLAMA_MODEL"));
    for model in models {
        let (code, said, rows) = estimate(&model, &there);
        assert_eq!(code, Some(0), "{said}");
        assert!(!rows.is_empty());
        assert_eq!(rows, estimate(&model, &[]).2, "{model}");
    }
    let (code, said, _) = estimate("/nowhere/config.json", &there);
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot read /nowhere/config.json"), "{said}");
}
