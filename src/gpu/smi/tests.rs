use super::*;
use crate::clock::Clock;
use crate::gpu::{Snapshot, Throttle};
use crate::host::Local;
use serde_json::Value;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

fn fixture(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpu");
    std::fs::read_to_string(folder.join(name)).ok()
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().map(|mib| mib * MIB)
}

#[test]
fn saved_tables_are_read_as_they_mean() {
    let mut seen = 0;
    for n in 1..=9 {
        let name = |end: &str| format!("gpu-{n:02}.{end}");
        let Some(expected) = fixture(&name("expected.json")) else {
            continue;
        };
        seen += 1;
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let text = fixture(&name("query.csv"))
            .or_else(|| fixture(&name("stdout.txt")))
            .unwrap();
        let code = fixture(&name("exit")).map(|text| text.trim().parse().unwrap());
        let apps = fixture(&name("apps.csv"));
        let read = cards(&text, apps.as_deref(), code);
        let wanted = expected["gpus"].as_array();
        if wanted.is_some_and(Vec::is_empty) {
            let error = read.unwrap_err();
            assert!(
                error.contains("driver") && error.contains("library"),
                "{error}"
            );
            continue;
        }
        let read = read.unwrap();
        for (card, wanted) in read.iter().zip(wanted.into_iter().flatten()) {
            assert_eq!(u64::from(card.index), wanted["index"].as_u64().unwrap());
            let memory = card.memory.fresh();
            for (key, figure) in [
                ("total_mib", memory.map(|memory| memory.total)),
                ("used_mib", memory.map(|memory| memory.used)),
                ("free_mib", memory.map(|memory| memory.free)),
            ] {
                assert_eq!(figure, number(&wanted[key]), "{key} of {}", name("query"));
            }
            if let Some(reserved) = number(&wanted["reserved_mib"]) {
                assert_eq!(memory.unwrap().reserved, reserved);
            }
        }
        if let Some(wanted) = wanted {
            assert_eq!(read.len(), wanted.len());
        }
        for wanted in expected["processes"].as_array().into_iter().flatten() {
            let listed = read[0].processes.fresh().unwrap();
            assert_eq!(u64::from(listed[0].pid), wanted["pid"].as_u64().unwrap());
            assert_eq!(listed[0].used.fresh().copied(), number(&wanted["used_mib"]));
        }
        if let Some(free) = number(&expected["tightest_free_mib"]) {
            let snapshot = Snapshot {
                cards: read,
                ..Snapshot::default()
            };
            assert_eq!(snapshot.tightest(&[]).map(|(_, free)| free), Some(free));
        }
    }
    assert_eq!(seen, 4);
}

#[test]
fn tables_of_other_forms() {
    let both = cards(
        "uuid, name, memory.total [MiB], memory.used [MiB]\nGPU-a, NVIDIA L4, 23034 MiB, 1 MiB\nGPU-b, NVIDIA L4, 23034 MiB, [GPU is lost]\n",
        Some("pid, gpu_uuid, process_name, used_gpu_memory [MiB]\n7, GPU-a, /opt/venv/bin/python, -m, x, 100 MiB\n8, GPU-a, [Not Found], [N/A]\n"),
        None,
    )
    .unwrap();
    assert_eq!((both[0].index, both[1].index), (0, 1));
    assert!(matches!(both[1].state, CardState::Lost { .. }));
    assert_eq!(both[1].memory, Reading::Absent(Absent::Lost));
    let listed = both[0].processes.fresh().unwrap();
    assert_eq!(listed[0].used, Reading::Value(100 * MIB));
    assert_eq!(
        (listed[1].name.clone(), listed[1].used.clone()),
        (None, Reading::unsupported())
    );
    // Which of two cards a process is on is not guessed.
    let text = "index, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, 10, 5, 5\n1, 10, 5, 5\n0, 10, 6, 4\n1, 10, 5, 5\n";
    let two = cards(text, Some("pid, used_memory [MiB]\n7, 100\n"), None).unwrap();
    assert_eq!(two.len(), 2);
    assert!(matches!(
        two[0].processes,
        Reading::Absent(Absent::Failed(_))
    ));
    let used = |index: u32| {
        two.iter()
            .find(|card| card.index == index)
            .unwrap()
            .memory
            .fresh()
            .unwrap()
            .used
    };
    assert_eq!((used(0), used(1)), (6 * MIB, 5 * MIB));
}

#[test]
fn each_failure_of_the_tool_is_told_apart() {
    for (code, text, part) in [
        (
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure",
            "not loaded",
        ),
        (
            12,
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            "libnvidia-ml.so",
        ),
        (
            18,
            "Failed to initialize NVML: Driver/library version mismatch",
            "reboot the host",
        ),
        (
            4,
            "Failed to initialize NVML: Insufficient Permissions",
            "no permission",
        ),
        (
            255,
            "Failed to initialize NVML: Unknown Error",
            "Unknown Error",
        ),
        (6, "No devices were found", "no card"),
        (
            15,
            "Unable to determine the device handle for GPU0000:10:00.0: GPU is lost.  Reboot",
            "lost",
        ),
        (1, "", "exit code 1"),
    ] {
        let error = cards(text, None, Some(code)).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let field = words::unknown_field("Field \"memory.reserved\" is not a valid field to query.\n");
    assert_eq!(field, Some("memory.reserved"));
    for text in [
        "Unable to determine the device handle for GPU0000:1A:00.0: GPU is lost.  Reboot",
        "Unable to determine the device handle for GPU 00000000:1A:00.0: GPU is lost.  Reboot",
        "Unable to determine the device handle for GPU1: 00000000:1A:00.0: GPU is lost.  Reboot",
    ] {
        assert_eq!(words::lost_bus(text).as_deref(), Some(":1a:00.0"), "{text}");
    }
    assert_eq!(words::short_bus("00000000:1A:00.0"), ":1a:00.0");
}

/// A stand-in for the tool that follows a script of its own.
struct Tool {
    dir: tempfile::TempDir,
}

impl Tool {
    fn new(query: &str, apps: &str) -> Tool {
        let dir = tempfile::tempdir().unwrap();
        let tool = Tool { dir };
        tool.set("query", query);
        tool.set("apps", apps);
        tool
    }

    fn set(&self, name: &str, script: &str) {
        let new = self.dir.path().join("new");
        std::fs::write(&new, script).unwrap();
        std::fs::rename(new, self.dir.path().join(name)).unwrap();
    }

    fn source(&self) -> Smi {
        Smi::new(Arc::new(Machine(self.dir.path().to_path_buf())))
    }
}

/// This machine with another `nvidia-smi`.
struct Machine(PathBuf);

impl Machine {
    fn argv(&self, argv: &[String]) -> Vec<String> {
        let name = if argv[1].starts_with("--query-gpu") {
            "query"
        } else {
            "apps"
        };
        let mut words = vec![
            "sh".to_string(),
            self.0.join(name).to_str().unwrap().to_string(),
        ];
        words.extend_from_slice(&argv[1..]);
        words
    }
}

#[async_trait::async_trait]
impl Host for Machine {
    fn name(&self) -> String {
        "rig".to_string()
    }
    fn is_local(&self) -> bool {
        false
    }
    async fn run_with(
        &self,
        argv: &[String],
        input: &[u8],
    ) -> Result<crate::host::Output, HostError> {
        Local.run_with(&self.argv(argv), input).await
    }
    async fn stream(&self, argv: &[String]) -> Result<Lines, HostError> {
        Local.stream(&self.argv(argv)).await
    }
    async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, HostError> {
        Local.read(path).await
    }
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        Local.write(path, bytes).await
    }
    async fn remove(&self, path: &Path) -> Result<(), HostError> {
        Local.remove(path).await
    }
    async fn stat(&self, path: &Path) -> Result<Option<crate::host::FileStat>, HostError> {
        Local.stat(path).await
    }
    async fn backup(&self, path: &Path) -> Result<PathBuf, HostError> {
        Local.backup(path).await
    }
    async fn make_dir(&self, path: &Path) -> Result<(), HostError> {
        Local.make_dir(path).await
    }
    async fn lock(&self, path: &Path, who: &str) -> Result<crate::host::Locked, HostError> {
        Local.lock(path, who).await
    }
    async fn boot_id(&self) -> Result<String, HostError> {
        Local.boot_id().await
    }
}

const HEAD: &str = "echo 'index, uuid, pci.bus_id, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB], memory.reserved [MiB], utilization.gpu [%], temperature.gpu, power.draw [W], enforced.power.limit [W], name'\n";
const NO_APPS: &str = "echo 'gpu_uuid, pid, used_gpu_memory [MiB], process_name'\n";

fn row(index: u32, used: &str) -> String {
    format!(
        "echo '{index}, GPU-{index}, 00000000:1{index}:00.0, 550.54.15, 49140 MiB, {used}, 6560 MiB, 462 MiB, 97 %, 71, 288.41 W, 300.00 W, NVIDIA RTX A6000'\n"
    )
}

fn used(snapshot: &Snapshot, card: usize) -> Option<u64> {
    snapshot.cards[card]
        .memory
        .fresh()
        .map(|memory| memory.used / MIB)
}

#[test]
fn a_running_tool_is_read_round_by_round() {
    let rounds = format!(
        "{HEAD}n=100; while :; do n=$((n + 1)); for i in 0 1; do echo \"$i, GPU-$i, 00000000:1$i:00.0, 550.54.15, 49140 MiB, $n MiB, 6560 MiB, 462 MiB, 97 %, 71, 288.41 W, 300.00 W, NVIDIA RTX A6000\"; done; sleep 0.2; done\n"
    );
    let apps = format!("{NO_APPS}echo 'GPU-1, 4711, 42000 MiB, sglang::scheduler, TP0'\n");
    let tool = Tool::new(&rounds, &apps);
    let mut source = tool.source();
    let clock = Clock::default();
    let first = source.read(clock.now());
    assert_eq!(first.source, "nvidia-smi 550.54.15 on rig");
    assert_eq!((first.fault.as_deref(), first.cards.len()), (None, 2));
    let card = &first.cards[0];
    assert_eq!(
        (card.name.as_str(), card.uuid.as_str()),
        ("RTX A6000", "GPU-0")
    );
    assert_eq!(card.busy_pct, Reading::Value(97));
    assert_eq!(card.temp_c, Reading::Value(71));
    assert_eq!(card.power_mw, Reading::Value(288_410));
    assert_eq!(card.power_limit_mw, Reading::Value(300_000));
    assert_eq!(card.processes, Reading::Value(vec![]));
    let listed = first.cards[1].processes.fresh().unwrap();
    assert_eq!(
        (listed[0].pid, listed[0].name.as_deref()),
        (4711, Some("sglang::scheduler, TP0"))
    );
    // What was written while nobody read is not the newest.
    std::thread::sleep(Duration::from_millis(900));
    let second = source.read(clock.now());
    assert!(used(&second, 0).unwrap() >= used(&first, 0).unwrap() + 4);
}

#[test]
fn a_field_that_an_old_version_does_not_know_is_left_out() {
    let script = "case $1 in *memory.reserved*) echo 'Field \"memory.reserved\" is not a valid field to query.'; exit 2;; esac\necho 'index, memory.total [MiB], memory.used [MiB], memory.free [MiB]'; echo '0, 100 MiB, 90 MiB, 8 MiB'; sleep 60\n";
    let tool = Tool::new(script, NO_APPS);
    let mut source = tool.source();
    let clock = Clock::default();
    source.read(clock.now());
    let seen = source.read(clock.now());
    assert_eq!(used(&seen, 0), Some(90));
    assert_eq!(seen.cards[0].memory.fresh().unwrap().reserved, 2 * MIB);
}

#[test]
fn a_card_that_falls_off_the_bus_costs_only_itself() {
    let lost = "echo 'Unable to determine the device handle for GPU0000:10:00.0: GPU is lost.  Reboot the system to recover this GPU'; exit 15\n";
    let tool = Tool::new(
        &format!(
            "{HEAD}{}{}sleep 0.5; {lost}",
            row(0, "14 MiB"),
            row(1, "15 MiB")
        ),
        NO_APPS,
    );
    let mut source = tool.source();
    let clock = Clock::default();
    assert_eq!(source.read(clock.now()).cards.len(), 2);
    tool.set(
        "query",
        &format!(
            "case $* in *--id=GPU-1) ;; *) {}exit 15;; esac\n{HEAD}{}sleep 60\n",
            lost.replace("; exit 15\n", "; "),
            row(1, "16 MiB")
        ),
    );
    let mut seen = source.read(clock.now());
    for _ in 0..3 {
        seen = source.read(clock.now());
    }
    assert!(
        matches!(seen.cards[0].state, CardState::Lost { .. }),
        "{seen:?}"
    );
    assert_eq!(seen.cards[0].memory, Reading::Absent(Absent::Lost));
    assert_eq!(used(&seen, 1), Some(16));
    assert_eq!(seen.fault, None);
}

#[test]
fn a_tool_that_fails_or_is_missing_is_a_stated_fact() {
    let tool = Tool::new(
        "echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 580.119'; exit 18\n",
        NO_APPS,
    );
    let clock = Clock::default();
    let mut source = tool.source();
    let seen = source.read(clock.now());
    assert!(seen.cards.is_empty() && seen.fault.unwrap().contains("reboot the host"));
    // It is not run again at once.
    tool.set("query", &format!("{HEAD}{}sleep 60\n", row(0, "1 MiB")));
    assert!(source.read(clock.now()).cards.is_empty());
    let later = |ms| Now {
        mono_ms: clock.now().mono_ms + ms,
        unix_ms: 0,
    };
    assert_eq!(used(&source.read(later(3_000)), 0), Some(1));
    let mut absent = Smi::new(Arc::new(Local));
    let fault = absent.read(clock.now()).fault;
    assert_eq!(
        fault.as_deref(),
        Some("no NVIDIA driver: nvidia-smi is not installed")
    );
}

#[test]
fn the_rarer_columns_under_their_old_and_new_names() {
    for (throttle, words) in [
        ("clocks_throttle_reasons.active", "0x0000000000000004"),
        ("clocks_event_reasons.active", "0x4"),
    ] {
        let text = format!(
            "index, memory.total [MiB], memory.used [MiB], utilization.memory [%], clocks.current.sm [MHz], {throttle}, fan.speed [%], ecc.errors.corrected.volatile.total, ecc.errors.uncorrected.volatile.total\n0, 10 MiB, 5 MiB, 61 %, 1755 MHz, {words}, [N/A], 3, 1\n1, 10 MiB, 5 MiB, 0 %, 210 MHz, Active, 30 %, [N/A], [N/A]\n"
        );
        let seen = cards(&text, None, None).unwrap();
        let detail = &seen[0].detail;
        assert_eq!(detail.memory_busy_pct, Reading::Value(61));
        assert_eq!(detail.sm_mhz, Reading::Value(1755));
        assert_eq!(detail.throttle, Reading::Value(vec![Throttle::PowerCap]));
        assert_eq!(detail.fan_pct, Reading::unsupported());
        assert_eq!(detail.ecc.fresh().map(|ecc| ecc.uncorrected), Some(1));
        let other = &seen[1].detail;
        assert_eq!(
            other.throttle,
            Reading::failed("nvidia-smi says \"Active\"")
        );
        assert_eq!(other.fan_pct, Reading::Value(30));
        assert_eq!(other.ecc, Reading::unsupported());
    }
}
