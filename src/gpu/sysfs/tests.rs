use super::*;
use crate::gpu::Memory;
use crate::host::Local;
use crate::reading::Reading;
use std::fs;
use std::path::Path;

/// A copy of what the kernel shows.
struct Kernel {
    root: tempfile::TempDir,
}

impl Kernel {
    fn new() -> Kernel {
        Kernel {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn set(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_dir_all(self.root.path().join(path)).unwrap();
    }

    /// A card for computing: no fan, no sensor at the edge.
    fn mi300(&self, card: &str, render: &str, used: &str) {
        let device = format!("sys/class/drm/{card}/device");
        for (file, text) in [
            ("vendor", "0x1002"),
            ("device", "0x74a1"),
            ("unique_id", "e2c1b7a51f0d93aa"),
            ("power/runtime_status", "active"),
            ("mem_info_vram_total", "206141652992"),
            ("mem_info_vram_used", used),
            ("gpu_busy_percent", "97"),
            ("mem_busy_percent", "41"),
            ("current_link_speed", "32.0 GT/s PCIe"),
            ("current_link_width", "16"),
            ("hwmon/hwmon5/temp2_input", "71000"),
            ("hwmon/hwmon5/temp2_crit", "100000"),
            ("hwmon/hwmon5/temp2_emergency", "105000"),
            ("hwmon/hwmon5/power1_input", "612000000"),
            ("hwmon/hwmon5/power1_cap", "750000000"),
            ("hwmon/hwmon5/freq1_input", "2100000000"),
        ] {
            self.set(&format!("{device}/{file}"), text);
        }
        self.set(&format!("{device}/drm/{render}/dev"), "226:128");
    }

    fn source(&self) -> Sysfs {
        let at = |name: &str| Path::join(self.root.path(), name).display().to_string();
        Sysfs::below(Arc::new(Local), &at("sys"), &at("proc"))
    }
}

fn at(second: u64) -> Now {
    Now {
        mono_ms: second * 1000,
        unix_ms: 1_700_000_000_000 + second as i64 * 1000,
    }
}

#[test]
fn every_file_of_a_card_and_its_processes() {
    let kernel = Kernel::new();
    kernel.mi300("card1", "renderD128", "150000000000");
    kernel.mi300("card10", "renderD136", "300000000");
    // Neither a connector nor another maker's card is one.
    kernel.set("sys/class/drm/card1-DP-1/device/vendor", "0x1002");
    kernel.set("sys/class/drm/card0/device/vendor", "0x1a03");
    kernel.set("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0");
    kernel.set("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51234");
    kernel.set(
        "sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 1216\ndrm_render_minor 128\nnum_xcc 8",
    );
    kernel.set("sys/class/kfd/kfd/topology/nodes/2/gpu_id", "777");
    kernel.set(
        "sys/class/kfd/kfd/topology/nodes/2/properties",
        "drm_render_minor 136",
    );
    kernel.set("sys/class/kfd/kfd/proc/4711/vram_51234", "149000000000");
    kernel.set("sys/class/kfd/kfd/proc/4711/vram_777", "0");
    kernel.set("proc/4711/comm", "sglang::schedul");
    let seen = kernel.source().read(at(0));
    assert_eq!((seen.fault.as_deref(), seen.cards.len()), (None, 2));
    let card = &seen.cards[0];
    assert_eq!((card.index, card.name.as_str()), (0, "AMD 0x74a1"));
    assert_eq!(card.uuid, "GPU-e2c1b7a51f0d93aa");
    assert_eq!(
        card.memory,
        Reading::Value(Memory {
            total: 206_141_652_992,
            used: 150_000_000_000,
            free: 56_141_652_992,
            reserved: 0,
        })
    );
    assert_eq!(card.busy_pct, Reading::Value(97));
    assert_eq!(card.temp_c, Reading::Value(71));
    assert_eq!(card.power_mw, Reading::Value(612_000));
    assert_eq!(card.power_limit_mw, Reading::Value(750_000));
    let detail = &card.detail;
    assert_eq!(detail.memory_busy_pct, Reading::Value(41));
    assert_eq!(detail.sm_mhz, Reading::Value(2100));
    assert_eq!(detail.slowdown_c, Reading::Value(100));
    assert_eq!(detail.shutdown_c, Reading::Value(105));
    assert_eq!(detail.fan_pct, Reading::unsupported());
    assert_eq!(
        detail.pcie.fresh().map(|pcie| pcie.generation.clone()),
        Some(Reading::Value(5))
    );
    let listed = card.processes.fresh().unwrap();
    assert_eq!((listed.len(), listed[0].pid), (1, 4711));
    assert_eq!(listed[0].name.as_deref(), Some("sglang::schedul"));
    assert_eq!(listed[0].used, Reading::Value(149_000_000_000));
    assert_eq!(seen.cards[1].processes, Reading::Value(vec![]));
}

#[test]
fn a_file_that_is_missing_or_odd_costs_its_figure_alone() {
    let kernel = Kernel::new();
    kernel.mi300("card0", "renderD128", "1000");
    kernel.set("sys/class/drm/card0/device/gpu_busy_percent", "");
    kernel.set("sys/class/drm/card0/device/hwmon/hwmon5/power1_cap", "lots");
    kernel.set("sys/class/drm/card0/device/hwmon/hwmon5/pwm1", "128");
    kernel.set(
        "sys/class/drm/card0/device/product_name",
        "AMD Instinct MI300X",
    );
    fs::remove_file(
        kernel
            .root
            .path()
            .join("sys/class/drm/card0/device/mem_info_vram_used"),
    )
    .unwrap();
    let card = kernel.source().read(at(0)).cards.remove(0);
    assert_eq!(card.name, "Instinct MI300X");
    assert_eq!(card.state, CardState::Ok);
    assert_eq!(card.memory, Reading::unsupported());
    assert!(matches!(card.busy_pct, Reading::Absent(Absent::Failed(_))));
    assert!(matches!(
        card.power_limit_mw,
        Reading::Absent(Absent::Failed(_))
    ));
    assert_eq!(card.detail.fan_pct, Reading::Value(50));
    assert_eq!(card.temp_c, Reading::Value(71));
    // Without ROCm nobody lists processes.
    assert_eq!(card.processes, Reading::unsupported());
}

#[test]
fn a_card_that_sleeps_is_let_sleep_and_one_that_goes_is_lost() {
    let kernel = Kernel::new();
    kernel.mi300("card0", "renderD128", "1000");
    kernel.mi300("card1", "renderD129", "1000");
    kernel.set(
        "sys/class/drm/card0/device/power/runtime_status",
        "suspended",
    );
    let mut source = kernel.source();
    let seen = source.read(at(0));
    assert!(matches!(&seen.cards[0].state, CardState::Unknown(why) if why.contains("asleep")));
    assert_eq!(seen.cards[0].memory.known(), None);
    kernel.remove("sys/class/drm/card1");
    source.read(at(1));
    let seen = source.read(at(2));
    assert_eq!(seen.cards.len(), 2);
    assert_eq!(
        seen.cards[1].state,
        CardState::Lost {
            since_unix_ms: at(1).unix_ms
        }
    );
}

#[test]
fn a_machine_without_such_a_card_is_not_asked_every_second() {
    let kernel = Kernel::new();
    kernel.set("sys/class/drm/card0/device/vendor", "0x10de");
    let mut source = kernel.source();
    let fault = source.read(at(0)).fault.unwrap();
    assert!(fault.contains("no AMD card"), "{fault}");
    kernel.mi300("card1", "renderD128", "1000");
    assert!(source.read(at(1)).cards.is_empty());
    let seen = source.read(at(2));
    assert_eq!((seen.cards.len(), seen.fault), (1, None));
}
