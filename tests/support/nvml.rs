//! A stand-in for NVIDIA's library, one for each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A driver of its own for one test: the library keeps its state in a file beside it.
pub struct Driver {
    dir: tempfile::TempDir,
}

impl Driver {
    /// `None` where there is no C compiler, which is said; under CI that is a failure.
    pub fn new(state: &str, without: &[&str]) -> Option<Driver> {
        static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let built =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvml-stub-{}", without.join("-")));
        let library = built.join("libnvidia-ml.so.1");
        let mut done = BUILT.lock().unwrap();
        if !done.contains(&built) && !is_newer(&library) {
            if !has_compiler() {
                return None;
            }
            let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml-stub/build");
            let status = Command::new(build)
                .arg(&built)
                .args(without)
                .status()
                .unwrap();
            assert!(status.success(), "the stand-in does not build");
            done.push(built);
        }
        drop(done);
        let dir = tempfile::tempdir().unwrap();
        fs::copy(&library, dir.path().join("libnvidia-ml.so.1")).unwrap();
        let driver = Driver { dir };
        driver.set(state);
        Some(driver)
    }

    pub fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    pub fn set(&self, state: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, state).unwrap();
        fs::rename(new, self.dir.path().join("nvml.state")).unwrap();
    }
}

/// Whether the library was built after its source was last changed.
fn is_newer(library: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml-stub/nvml_stub.c");
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    changed(library).is_some_and(|built| Some(built) > changed(&source))
}

fn has_compiler() -> bool {
    let compiler = std::env::var_os("CC").unwrap_or("cc".into());
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("LEFT OUT: tests with the NVML stand-in: there is no C compiler (cc)");
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "nothing may be left out under CI"
        );
    }
    found
}

/// A state that lies beside the stand-in.
pub fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/nvml-stub")
        .join(name);
    fs::read_to_string(path).unwrap()
}
