//! The NVML source against a stand-in for the driver's library: cards that are there, that fall off the bus, that refuse, and a driver
//! that is old, slow, updated or absent.

// The helpers stop a test as the tests themselves do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use vramp::clock::{Clock, Now};
use vramp::gpu::nvml::Nvml;
use vramp::gpu::watch::watch;
use vramp::gpu::{CardState, Memory, Snapshot, Source};
use vramp::reading::{Absent, Reading};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A driver of its own for one test: the library keeps its state in a file beside it.
struct Driver {
    dir: tempfile::TempDir,
}

impl Driver {
    /// `None` where there is no C compiler, which is said; under CI that is a failure.
    fn new(state: &str, without: &[&str]) -> Option<Driver> {
        static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let built =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvml-stub-{}", without.join("-")));
        let library = built.join("libnvidia-ml.so.1");
        let mut done = BUILT.lock().unwrap();
        if !done.contains(&built) {
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

    fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    fn set(&self, state: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, state).unwrap();
        fs::rename(new, self.dir.path().join("nvml.state")).unwrap();
    }

    fn source(&self) -> Nvml {
        Nvml::with_library(self.library())
    }
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
fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/nvml-stub")
        .join(name);
    fs::read_to_string(path).unwrap()
}

fn at(second: u32) -> Now {
    Now {
        mono_ms: u64::from(second) * 1000,
        unix_ms: 1_700_000_000_000 + i64::from(second) * 1000,
    }
}

#[test]
fn every_figure_of_two_cards() {
    let Some(driver) = Driver::new(&shipped("two-h100.state"), &[]) else {
        return;
    };
    let seen = driver.source().read(at(0));
    assert_eq!(seen.source, "NVML 580.95.05");
    assert_eq!(seen.fault, None);
    assert!(!seen.simulated);
    assert_eq!(seen.cards.len(), 2);
    let card = &seen.cards[0];
    assert_eq!((card.index, card.name.as_str()), (0, "H100 80GB HBM3"));
    assert!(card.uuid.starts_with("GPU-c0c00000"), "{}", card.uuid);
    assert_eq!(card.state, CardState::Ok);
    let used = 70 * GIB + GIB / 2;
    assert_eq!(
        card.memory,
        Reading::Value(Memory {
            total: 81559 * MIB,
            used,
            free: (81559 - 552) * MIB - used,
            reserved: 552 * MIB,
        })
    );
    assert_eq!(card.busy_pct, Reading::Value(97));
    assert_eq!(card.temp_c, Reading::Value(68));
    assert_eq!(card.power_mw, Reading::Value(642_000));
    assert_eq!(card.power_limit_mw, Reading::Value(700_000));
    let processes = card.processes.fresh().unwrap();
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0].pid, 1);
    assert_eq!(
        processes[0].used.fresh().map(|used| used / MIB),
        Some(71_475)
    );
    assert!(processes[0].name.is_some(), "process 1 has a name in /proc");
    assert_eq!(seen.cards[1].processes, Reading::Value(Vec::new()));
    assert_eq!(seen.tightest(&[]).map(|(card, _)| card.index), Some(0));
}

#[test]
fn none_one_eight_and_sixteen_cards() {
    let Some(driver) = Driver::new("count = 0", &[]) else {
        return;
    };
    let none = driver.source().read(at(0));
    assert!(none.cards.is_empty());
    assert_eq!(
        none.fault.as_deref(),
        Some("the NVIDIA driver runs and sees no card")
    );
    for count in [1_usize, 8, 16] {
        driver.set(&format!("count = {count}"));
        let seen = driver.source().read(at(0));
        assert_eq!(seen.cards.len(), count);
        assert!(seen.cards.iter().all(|card| card.memory.fresh().is_some()));
        assert_eq!(seen.fault, None);
    }
}

#[test]
fn a_fault_costs_its_own_card_or_figure() {
    let Some(driver) = Driver::new(&shipped("faults.state"), &[]) else {
        return;
    };
    let seen = driver.source().read(at(0));
    assert_eq!(seen.fault, None);
    let [lost, no_util, slow, hidden] = seen.cards.as_slice() else {
        panic!("four cards, not {}", seen.cards.len())
    };
    assert!(matches!(lost.state, CardState::Lost { .. }));
    assert_eq!(lost.memory, Reading::Absent(Absent::Lost));
    assert_eq!(no_util.busy_pct, Reading::unsupported());
    assert!(no_util.memory.fresh().is_some() && no_util.temp_c.fresh().is_some());
    assert_eq!(slow.state, CardState::Ok);
    assert_eq!(hidden.processes, Reading::Absent(Absent::Denied));
    assert_eq!(hidden.temp_c, Reading::Value(91));
}

#[test]
fn a_card_that_falls_off_the_bus_keeps_its_name_and_may_come_back() {
    let state = "count = 2\ngpu*.name = NVIDIA RTX A6000\n";
    let Some(driver) = Driver::new(state, &[]) else {
        return;
    };
    let mut source = driver.source();
    let before = source.read(at(0));
    driver.set(&format!("{state}gpu1.error = GPU_IS_LOST\n"));
    source.read(at(1));
    let seen = source.read(at(2));
    let card = &seen.cards[1];
    assert_eq!(
        card.state,
        CardState::Lost {
            since_unix_ms: at(1).unix_ms
        }
    );
    assert_eq!(card.name, "RTX A6000");
    assert_eq!(card.uuid, before.cards[1].uuid);
    assert_eq!(card.processes, Reading::Absent(Absent::Lost));
    assert_eq!(seen.cards[0].state, CardState::Ok);

    // A card that is not even counted any more is lost as well.
    driver.set("count = 1\n");
    let seen = source.read(at(3));
    assert_eq!(seen.cards.len(), 2);
    assert!(matches!(seen.cards[1].state, CardState::Lost { .. }));

    driver.set(state);
    let seen = source.read(at(4));
    assert_eq!(seen.cards[1].state, CardState::Ok);
    assert!(seen.cards[1].processes.fresh().is_some());
}

#[test]
fn a_card_that_must_be_reset_says_so() {
    let Some(driver) = Driver::new("count = 2\ngpu0.error = RESET_REQUIRED\n", &[]) else {
        return;
    };
    let seen = driver.source().read(at(0));
    assert_eq!(
        seen.cards[0].state,
        CardState::Unknown("the card needs a reset".into())
    );
    assert_eq!(seen.cards[1].state, CardState::Ok);
}

#[test]
fn unified_memory_is_unsupported_not_zero() {
    let Some(driver) = Driver::new(&shipped("unified-memory.state"), &[]) else {
        return;
    };
    let seen = driver.source().read(at(0));
    let card = &seen.cards[0];
    assert_eq!(card.state, CardState::Ok);
    assert_eq!(card.memory, Reading::unsupported());
    assert_eq!(card.power_limit_mw, Reading::unsupported());
    assert_eq!(card.busy_pct, Reading::Value(64));
    let processes = card.processes.fresh().unwrap();
    assert_eq!(processes[0].used, Reading::unsupported());
    assert_eq!(seen.tightest(&[]), None);
}

#[test]
fn an_old_driver_counts_its_own_share_as_used() {
    let Some(driver) = Driver::new(&shipped("two-h100.state"), &["old"]) else {
        return;
    };
    let seen = driver.source().read(at(0));
    let memory = seen.cards[0].memory.fresh().unwrap();
    assert_eq!(memory.used, 70 * GIB + GIB / 2 + 552 * MIB);
    assert_eq!(memory.reserved, 0);
    assert_eq!(seen.cards[0].processes.fresh().map(Vec::len), Some(1));
}

#[test]
fn the_calls_that_a_driver_lacks_are_named() {
    let state = shipped("two-h100.state");
    let Some(driver) = Driver::new(&state, &["old"]) else {
        return;
    };
    // The older forms serve as well.
    assert_eq!(driver.source().missing_calls(), Ok(Vec::new()));
    let Some(driver) = Driver::new(&state, &["nvmlDeviceGetPowerUsage"]) else {
        return;
    };
    assert_eq!(
        driver.source().missing_calls(),
        Ok(vec!["nvmlDeviceGetPowerUsage"])
    );
    let error = Nvml::with_library("/no/such/library.so").missing_calls();
    assert!(error.unwrap_err().contains("not installed"));
}

#[test]
fn missing_symbols_cost_their_figures_alone() {
    let without = [
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetUUID",
    ];
    let Some(driver) = Driver::new("count = 1", &without) else {
        return;
    };
    let seen = driver.source().read(at(0));
    let card = &seen.cards[0];
    assert_eq!(card.temp_c, Reading::unsupported());
    assert_eq!(card.power_limit_mw, Reading::unsupported());
    assert_eq!(card.uuid, "");
    assert!(card.memory.fresh().is_some() && card.power_mw.fresh().is_some());
}

#[test]
fn a_process_counts_once_and_the_list_is_read_every_second_time() {
    let state = "gpu0.procs = 7:1G:G, 7:2G:C, 5:-:C\n";
    let Some(driver) = Driver::new(state, &[]) else {
        return;
    };
    let mut source = driver.source();
    let pids = |seen: &Snapshot| -> Vec<u32> {
        let processes = seen.cards[0].processes.fresh().unwrap();
        processes.iter().map(|process| process.pid).collect()
    };
    let seen = source.read(at(0));
    assert_eq!(pids(&seen), [5, 7]);
    let processes = seen.cards[0].processes.fresh().unwrap();
    assert_eq!(processes[1].used, Reading::Value(2 * GIB));
    driver.set("gpu0.procs = 9:1G\n");
    assert_eq!(pids(&source.read(at(1))), [5, 7]);
    assert_eq!(pids(&source.read(at(2))), [9]);
}

#[test]
fn a_driver_that_is_not_there_is_a_stated_fact() {
    let seen = Nvml::with_library("libvramp-has-no-such-driver.so.1").read(at(0));
    assert!(seen.cards.is_empty());
    assert_eq!(
        seen.fault.as_deref(),
        Some("no NVIDIA driver: libvramp-has-no-such-driver.so.1 is not installed")
    );
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.so");
    fs::write(&text, "no library").unwrap();
    let fault = Nvml::with_library(&text).read(at(0)).fault.unwrap();
    assert!(fault.contains("cannot be opened"), "{fault}");
}

#[test]
fn the_driver_is_tried_again_and_each_refusal_has_its_words() {
    let Some(driver) = Driver::new("init = DRIVER_NOT_LOADED", &[]) else {
        return;
    };
    let mut source = driver.source();
    let fault = source.read(at(0)).fault.unwrap();
    assert!(fault.contains("not loaded"), "{fault}");
    driver.set("init = LIB_RM_VERSION_MISMATCH");
    let fault = source.read(at(1)).fault.unwrap();
    assert!(fault.contains("not loaded"), "not asked again yet: {fault}");
    let fault = source.read(at(2)).fault.unwrap();
    assert!(
        fault.contains("updated") && fault.contains("reboot"),
        "{fault}"
    );
    driver.set("init = NO_PERMISSION");
    let fault = source.read(at(6)).fault.unwrap();
    assert!(fault.contains("no permission"), "{fault}");
    driver.set("count = 1");
    assert!(source.read(at(13)).cards.is_empty());
    let seen = source.read(at(14));
    assert_eq!((seen.cards.len(), seen.fault), (1, None));
}

#[test]
fn a_driver_that_goes_away_leaves_the_cards_on_the_list_and_comes_back() {
    let Some(driver) = Driver::new("count = 2", &[]) else {
        return;
    };
    let mut source = driver.source();
    assert_eq!(source.read(at(0)).cards.len(), 2);
    for state in ["error = UNINITIALIZED", "count = 2\ngpu*.error = UNKNOWN"] {
        driver.set(state);
        let seen = source.read(at(10));
        assert_eq!(seen.cards.len(), 2);
        let fault = seen.fault.expect(state);
        assert!(fault.contains("does not answer"), "{fault}");
        for card in &seen.cards {
            assert_eq!(card.name, "H100 80GB HBM3");
            assert!(matches!(card.state, CardState::Unknown(_)));
            assert!(matches!(card.memory, Reading::Absent(Absent::Failed(_))));
        }
        driver.set("count = 2");
        let seen = source.read(at(12));
        assert_eq!(seen.fault, None);
        assert!(seen.cards[1].memory.fresh().is_some());
    }
}

#[test]
fn a_call_that_hangs_makes_readings_stale_and_never_the_reader_wait() {
    let Some(driver) = Driver::new("count = 1", &[]) else {
        return;
    };
    let period = Duration::from_millis(20);
    let clock = Clock::default();
    let (receiver, control) = watch(Box::new(driver.source()), clock, period);
    let until = Instant::now() + Duration::from_secs(20);
    let wait = |what: &dyn Fn(&Snapshot) -> bool| {
        while !what(&receiver.borrow()) {
            assert!(Instant::now() < until, "{:?}", *receiver.borrow());
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    wait(&|seen| seen.cards.len() == 1);
    driver.set("count = 1\ngpu0.mem.sleep_ms = 4000");
    std::thread::sleep(Duration::from_millis(100));
    wait(&|seen| {
        let aged = seen.aged(clock.now(), period);
        aged.cards[0].memory.fresh().is_none()
            && aged.cards[0].memory.known().is_some()
            && matches!(&aged.cards[0].state, CardState::Unknown(why) if why.contains("has not answered"))
    });
    driver.set("count = 1");
    wait(&|seen| {
        seen.aged(clock.now(), period).cards[0]
            .memory
            .fresh()
            .is_some()
    });
    let stopping = Instant::now();
    drop(control);
    assert!(stopping.elapsed() < Duration::from_secs(1));
}
