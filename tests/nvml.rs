//! The NVML source against a stand-in for the driver's library: cards that are there, that fall off the bus, that refuse, and a driver
//! that is old, slow, updated or absent.

// The helpers stop a test as the tests themselves do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/nvml.rs"]
mod stub;

use std::fs;
use std::time::{Duration, Instant};
use stub::{Driver, shipped};
use vramp::clock::{Clock, Now};
use vramp::gpu::nvml::Nvml;
use vramp::gpu::watch::watch;
use vramp::gpu::{CardState, Memory, Snapshot, Source, Throttle};
use vramp::reading::{Absent, Reading};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

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
    let seen = Nvml::with_library(driver.library()).read(at(0));
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
    let none = Nvml::with_library(driver.library()).read(at(0));
    assert!(none.cards.is_empty());
    assert_eq!(
        none.fault.as_deref(),
        Some("the NVIDIA driver runs and sees no card")
    );
    for count in [1_usize, 8, 16] {
        driver.set(&format!("count = {count}"));
        let seen = Nvml::with_library(driver.library()).read(at(0));
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
    let seen = Nvml::with_library(driver.library()).read(at(0));
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
    let mut source = Nvml::with_library(driver.library());
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
    let seen = Nvml::with_library(driver.library()).read(at(0));
    assert_eq!(
        seen.cards[0].state,
        CardState::Unknown("the card needs a reset".into())
    );
    assert_eq!(seen.cards[1].state, CardState::Ok);
}

#[test]
fn a_card_without_memory_of_its_own_shows_that_of_the_machine() {
    let Some(driver) = Driver::new(&shipped("unified-memory.state"), &[]) else {
        return;
    };
    let seen = Nvml::with_library(driver.library()).read(at(0));
    let card = &seen.cards[0];
    assert_eq!(card.state, CardState::Ok);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().next().unwrap();
    let kib: u64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
    let memory = card.memory.fresh().unwrap();
    assert_eq!(memory.total, kib * 1024);
    assert!(memory.used > 0 && memory.used + memory.free == memory.total);
    assert!(card.detail.host_memory, "and says so");
    assert_eq!(card.power_limit_mw, Reading::unsupported());
    assert_eq!(card.busy_pct, Reading::Value(64));
    let processes = card.processes.fresh().unwrap();
    assert_eq!(processes[0].used, Reading::unsupported());

    // Memory that cannot be read for another reason is not replaced.
    driver.set("gpu0.mem.error = NO_PERMISSION");
    let seen = Nvml::with_library(driver.library()).read(at(0));
    assert_eq!(seen.cards[0].memory, Reading::Absent(Absent::Denied));
    assert!(!seen.cards[0].detail.host_memory);
}

#[test]
fn the_rarer_figures() {
    let state = shipped("two-h100.state")
        + "gpu0.fans = 2\ngpu0.fan0 = 40\ngpu0.fan1 = 70\ngpu0.ecc.corrected.now = 12\ngpu0.ecc.uncorrected.now = 1\ngpu1.ecc = 0\n";
    let Some(driver) = Driver::new(&state, &[]) else {
        return;
    };
    let seen = Nvml::with_library(driver.library()).read(at(0));
    let detail = &seen.cards[0].detail;
    assert_eq!(detail.memory_busy_pct, Reading::Value(61));
    assert_eq!(detail.sm_mhz, Reading::Value(1755));
    assert_eq!(detail.memory_mhz, Reading::Value(2619));
    assert_eq!(detail.throttle, Reading::Value(vec![Throttle::PowerCap]));
    assert_eq!(detail.slowdown_c, Reading::Value(89));
    assert_eq!(detail.shutdown_c, Reading::Value(92));
    assert_eq!(detail.fan_pct, Reading::Value(70), "the fastest");
    let pcie = detail.pcie.fresh().unwrap();
    assert_eq!(pcie.tx_bytes_s, Reading::Value(184_320 * 1024));
    assert_eq!(pcie.rx_bytes_s, Reading::Value(522_240 * 1024));
    assert_eq!(
        (&pcie.generation, &pcie.width),
        (&Reading::Value(5), &Reading::Value(16))
    );
    let nvlink = detail.nvlink.fresh().unwrap();
    assert_eq!((nvlink.active, nvlink.links), (18, 18));
    let ecc = detail.ecc.fresh().unwrap();
    assert_eq!((ecc.corrected, ecc.uncorrected), (12, 1));
    assert_eq!(detail.xid, Reading::Value(None));
    assert_eq!(detail.mig_mode, Reading::unsupported());
    let other = &seen.cards[1].detail;
    assert_eq!(other.throttle, Reading::Value(vec![]));
    assert_eq!(other.fan_pct, Reading::unsupported());
    assert_eq!(other.nvlink, Reading::unsupported());
    assert_eq!(other.ecc, Reading::unsupported());
}

#[test]
fn dear_figures_are_read_every_fourth_time_and_static_ones_once() {
    let Some(driver) = Driver::new("gpu0.pcie.tx = 1\ngpu0.temp.limit1 = 80\n", &[]) else {
        return;
    };
    let mut source = Nvml::with_library(driver.library());
    let tx = |seen: &Snapshot| {
        let pcie = seen.cards[0].detail.pcie.fresh().unwrap();
        pcie.tx_bytes_s.fresh().copied()
    };
    assert_eq!(tx(&source.read(at(0))), Some(1024));
    driver.set("gpu0.pcie.tx = 2\ngpu0.temp.limit1 = 70\ngpu0.temp = 66\n");
    for second in 1..4 {
        let seen = source.read(at(second));
        assert_eq!(tx(&seen), Some(1024), "{second}");
        assert_eq!(seen.cards[0].temp_c, Reading::Value(66));
    }
    let seen = source.read(at(4));
    assert_eq!(tx(&seen), Some(2048));
    assert_eq!(seen.cards[0].detail.slowdown_c, Reading::Value(80));
}

#[test]
fn a_critical_error_is_kept_with_its_time_also_when_it_costs_the_card() {
    let state = "count = 3\ngpu2.events.error = NOT_SUPPORTED\n";
    let Some(driver) = Driver::new(state, &[]) else {
        return;
    };
    let mut source = Nvml::with_library(driver.library());
    let seen = source.read(at(0));
    assert_eq!(seen.cards[0].detail.xid, Reading::Value(None));
    assert_eq!(seen.cards[2].detail.xid, Reading::unsupported());
    driver.set(&format!(
        "{state}gpu0.xid = 31\ngpu1.xid = 79\ngpu1.error = GPU_IS_LOST\n"
    ));
    source.read(at(1));
    let seen = source.read(at(2));
    let xid = |card: usize| seen.cards[card].detail.xid.fresh().copied().flatten();
    let first = xid(0).unwrap();
    assert_eq!((first.code, first.at_unix_ms), (31, at(1).unix_ms));
    assert_eq!(seen.cards[0].state, CardState::Ok);
    assert_eq!(xid(1).map(|xid| xid.code), Some(79));
    assert!(matches!(seen.cards[1].state, CardState::Lost { .. }));
}

#[test]
fn a_driver_that_reports_no_errors_costs_nothing_else() {
    for without in ["nvmlEventSetCreate", "nvmlEventSetWait_v2"] {
        let Some(driver) = Driver::new("count = 1", &[without]) else {
            return;
        };
        let seen = Nvml::with_library(driver.library()).read(at(0));
        assert!(seen.cards[0].memory.fresh().is_some());
        assert_eq!(seen.fault, None);
    }
}

#[test]
fn instances_of_a_card_are_cards_after_the_cards() {
    let state = shipped("mig.state").replace("count = 1", "count = 2");
    let Some(driver) = Driver::new(&state, &[]) else {
        return;
    };
    let seen = Nvml::with_library(driver.library()).read(at(0));
    let indices: Vec<u32> = seen.cards.iter().map(|card| card.index).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    assert_eq!(seen.cards[0].detail.mig_mode, Reading::Value(true));
    assert_eq!(seen.cards[0].busy_pct, Reading::unsupported());
    assert_eq!(seen.cards[1].detail.mig, None);
    let used = seen.cards[2].memory.fresh().unwrap();
    assert_eq!((used.total, used.used), (40448 * MIB, 30 * GIB + GIB / 2));
    assert_eq!(seen.cards[2].name, "H100 80GB HBM3 MIG 3g.40gb");
    assert!(seen.cards[2].uuid.starts_with("MIG-"));
    assert_eq!(seen.cards[2].processes.fresh().map(Vec::len), Some(1));
    let mig = seen.cards[3].detail.mig.as_ref().unwrap();
    assert_eq!((mig.parent, mig.instance), (0, 1));
    assert_eq!(seen.cards[3].processes, Reading::Value(vec![]));
    assert_eq!(seen.tightest(&[]).map(|(card, _)| card.index), Some(2));
}

#[test]
fn a_slow_card_rests_so_that_the_others_stay_new() {
    let Some(driver) = Driver::new("count = 2\ngpu0.sleep_ms = 250\n", &[]) else {
        return;
    };
    let mut source = Nvml::with_library(driver.library());
    let seen = source.read(at(0));
    assert!(seen.cards.iter().all(|card| card.memory.fresh().is_some()));
    let began = Instant::now();
    let seen = source.read(at(5));
    // Only its handle is asked for.
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert!(matches!(
        seen.cards[0].memory,
        Reading::Stale { age_ms: 5000, .. }
    ));
    assert!(seen.cards[1].memory.fresh().is_some());
    driver.set("count = 2\ngpu0.mem.used = 7G\n");
    let seen = source.read(at(20));
    let used = seen.cards[0].memory.fresh().map(|memory| memory.used);
    assert_eq!(used, Some(7 * GIB));
}

#[test]
fn a_slow_card_is_not_asked_for_what_can_wait() {
    let Some(driver) = Driver::new("count = 2\ngpu0.sleep_ms = 120\n", &[]) else {
        return;
    };
    let mut source = Nvml::with_library(driver.library());
    let began = Instant::now();
    let seen = source.read(at(0));
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(seen.cards[0].detail.pcie, Reading::default());
    assert!(seen.cards[1].detail.pcie.fresh().is_some());
}

#[test]
fn an_old_driver_counts_its_own_share_as_used() {
    let Some(driver) = Driver::new(&shipped("two-h100.state"), &["old"]) else {
        return;
    };
    let seen = Nvml::with_library(driver.library()).read(at(0));
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
    assert_eq!(
        Nvml::with_library(driver.library()).missing_calls(),
        Ok(Vec::new())
    );
    let Some(driver) = Driver::new(&state, &["nvmlDeviceGetPowerUsage"]) else {
        return;
    };
    assert_eq!(
        Nvml::with_library(driver.library()).missing_calls(),
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
    let seen = Nvml::with_library(driver.library()).read(at(0));
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
    let mut source = Nvml::with_library(driver.library());
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
    let mut source = Nvml::with_library(driver.library());
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
    let mut source = Nvml::with_library(driver.library());
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
    let (receiver, control) = watch(
        Box::new(Nvml::with_library(driver.library())),
        clock,
        period,
    );
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
