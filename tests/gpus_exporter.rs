//! Cards from a DCGM exporter's page and from a real Prometheus that collects it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vramp::clock::{Clock, Now};
use vramp::gpu::{CardState, Exporter, Memory, Snapshot, Source, Throttle};
use vramp::reading::{Absent, Reading};

const MIB: u64 = 1 << 20;

/// An exporter on the loopback; what it says can be changed.
struct Page {
    address: String,
    text: Arc<Mutex<String>>,
}

impl Page {
    fn new(text: &str) -> Page {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let text = Arc::new(Mutex::new(text.to_string()));
        let said = text.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = said.lock().unwrap().clone();
                answer(stream, &said);
            }
        });
        Page { address, text }
    }

    fn set(&self, text: &str) {
        *self.text.lock().unwrap() = text.to_string();
    }
}

fn answer(mut stream: TcpStream, text: &str) {
    let mut asked = [0; 4096];
    let read = stream.read(&mut asked).unwrap_or(0);
    let asked = String::from_utf8_lossy(&asked[..read]);
    let (status, body) = match asked.starts_with("GET /metrics ") {
        true => ("200 OK", text),
        false => ("404 Not Found", "no such page"),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn two_h100() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpu/two-h100.prom");
    std::fs::read_to_string(path).unwrap()
}

fn at(second: i64) -> Now {
    Now {
        mono_ms: second as u64 * 1000,
        unix_ms: 1_700_000_000_000 + second * 1000,
    }
}

fn is_two_h100(seen: &Snapshot) {
    assert_eq!(seen.cards.len(), 2, "{seen:?}");
    let card = &seen.cards[0];
    assert_eq!((card.index, card.name.as_str()), (0, "H100 80GB HBM3"));
    assert!(card.uuid.starts_with("GPU-c0c00000"));
    assert_eq!(
        card.memory,
        Reading::Value(Memory {
            total: (72192 + 8815 + 552) * MIB,
            used: 72192 * MIB,
            free: 8815 * MIB,
            reserved: 552 * MIB,
        })
    );
    assert_eq!(card.busy_pct, Reading::Value(97));
    assert_eq!(card.temp_c, Reading::Value(68));
    assert_eq!(card.power_mw, Reading::Value(642_118));
    assert_eq!(card.power_limit_mw, Reading::unsupported());
    assert_eq!(card.processes, Reading::unsupported());
    assert_eq!(card.detail.sm_mhz, Reading::Value(1755));
    assert_eq!(card.detail.memory_busy_pct, Reading::Value(61));
    assert_eq!(card.detail.xid, Reading::Value(None));
    assert_eq!(card.detail.host.as_deref(), Some("node-a"));
}

#[test]
fn a_page_with_two_cards() {
    let page = Page::new(&two_h100());
    for url in [
        format!("http://{}", page.address),
        format!("http://{}/metrics", page.address),
    ] {
        let seen = Exporter::dcgm(&url, None).read(at(0));
        assert_eq!(seen.fault, None, "{url}");
        is_two_h100(&seen);
    }
}

#[test]
fn figures_that_are_none_say_why_and_errors_keep_their_first_sight() {
    let one = |name: &str, value: &str| {
        format!("DCGM_FI_DEV_{name}{{gpu=\"3\",UUID=\"GPU-x\",modelName=\"NVIDIA L4\"}} {value}\n")
    };
    let text = one("FB_USED", "100")
        + &one("FB_FREE", "900")
        + &one("FB_TOTAL", "1024")
        + &one("GPU_UTIL", "2147483634")
        + &one("GPU_TEMP", "2147483635")
        + &one("MEM_CLOCK", "9223372036854775794")
        + &one("POWER_USAGE", "140737488355328.000000")
        + &one("CLOCK_THROTTLE_REASONS", "68")
        + &one("XID_ERRORS", "79")
        + &one("ECC_SBE_VOL_TOTAL", "7")
        + &one("ECC_DBE_VOL_TOTAL", "0")
        + &one("SM_CLOCK", "NaN");
    let page = Page::new(&text);
    let mut source = Exporter::dcgm(&format!("http://{}", page.address), None);
    source.read(at(0));
    let seen = source.read(at(5));
    let card = &seen.cards[0];
    assert_eq!(card.index, 3, "the exporter's own number");
    assert_eq!(
        card.memory.fresh().map(|memory| memory.reserved),
        Some(24 * MIB)
    );
    assert_eq!(card.busy_pct, Reading::unsupported());
    assert_eq!(card.temp_c, Reading::Absent(Absent::Denied));
    assert_eq!(card.power_mw, Reading::unsupported());
    assert_eq!(card.detail.sm_mhz, Reading::unsupported());
    assert_eq!(card.detail.memory_mhz, Reading::unsupported());
    assert_eq!(
        card.detail.throttle,
        Reading::Value(vec![Throttle::PowerCap, Throttle::HardwareThermal])
    );
    let xid = card.detail.xid.fresh().copied().flatten().unwrap();
    assert_eq!((xid.code, xid.at_unix_ms), (79, at(0).unix_ms));
    assert_eq!(card.detail.ecc.fresh().map(|ecc| ecc.corrected), Some(7));
}

#[test]
fn instances_and_machines_have_numbers_of_their_own() {
    let of = |host: &str, labels: &str| {
        format!(
            "DCGM_FI_DEV_FB_USED{{Hostname=\"{host}\",{labels}}} 1\nDCGM_FI_DEV_FB_FREE{{Hostname=\"{host}\",{labels}}} 2\n"
        )
    };
    let text = of("b", "gpu=\"0\",UUID=\"GPU-b0\"")
        + &of("a", "gpu=\"0\",UUID=\"GPU-a0\",modelName=\"NVIDIA A100\"")
        + &of("a", "gpu=\"1\",UUID=\"GPU-a1\"")
        + &of(
            "a",
            "gpu=\"0\",UUID=\"GPU-a0\",modelName=\"NVIDIA A100\",GPU_I_ID=\"7\",GPU_I_PROFILE=\"1g.10gb\"",
        );
    let page = Page::new(&text);
    let url = format!("http://{}", page.address);
    let seen = Exporter::dcgm(&url, None).read(at(0));
    let listed: Vec<(u32, &str, &str)> = seen
        .cards
        .iter()
        .map(|card| {
            (
                card.index,
                card.uuid.as_str(),
                card.detail.host.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            (0, "GPU-a0", "a"),
            (1, "GPU-a1", "a"),
            (2, "GPU-b0", "b"),
            (3, "GPU-a0", "a")
        ]
    );
    assert_eq!(seen.cards[3].name, "A100 MIG 1g.10gb");
    let alone = Exporter::dcgm(&url, Some("b")).read(at(0));
    assert_eq!((alone.cards.len(), alone.cards[0].index), (1, 0));
    let fault = Exporter::dcgm(&url, Some("c")).read(at(0)).fault.unwrap();
    assert!(fault.contains("\"c\""), "{fault}");
}

#[test]
fn an_exporter_that_goes_away_leaves_its_cards_on_the_list() {
    let page = Page::new(&two_h100());
    let mut source = Exporter::dcgm(&format!("http://{}", page.address), None);
    source.read(at(0));
    page.set("up 1\n");
    let seen = source.read(at(1));
    assert_eq!(seen.cards.len(), 2);
    assert!(matches!(seen.cards[1].state, CardState::Unknown(_)));
    assert_eq!(seen.cards[1].memory.known(), None);
    assert!(seen.fault.unwrap().contains("no figures of cards"));
    page.set(&two_h100());
    is_two_h100(&source.read(at(2)));

    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let fault = Exporter::dcgm(&format!("http://{free}"), None)
        .read(at(0))
        .fault
        .unwrap();
    assert!(fault.contains("connection refused"), "{fault}");
    let other = Exporter::prometheus(&format!("http://{}", page.address), None);
    let fault = { other }.read(at(0)).fault.unwrap();
    assert!(fault.contains("404"), "{fault}");
}

struct Prometheus {
    _folder: tempfile::TempDir,
    child: Child,
    url: String,
}

impl Prometheus {
    /// `None` where it is missing and cannot be installed, which is said; under CI that is a failure.
    fn start(target: &str) -> Option<Prometheus> {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/services/prometheus.sh");
        // Also a test that is killed takes it along.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(script)
            .arg(folder.path())
            .args([&port.to_string(), target])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
                assert_eq!(status.code(), Some(3), "{log}");
                eprintln!("LEFT OUT: Prometheus is missing and cannot be installed");
                assert_ne!(
                    std::env::var("CI").as_deref(),
                    Ok("true"),
                    "nothing may be left out under CI"
                );
                return None;
            }
            assert!(
                began.elapsed() < Duration::from_secs(240),
                "Prometheus does not come up"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(Prometheus {
            _folder: folder,
            child,
            url: format!("http://127.0.0.1:{port}"),
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_prometheus_gives_the_same_figures() {
    let page = Page::new(&two_h100());
    let Some(prometheus) = Prometheus::start(&page.address) else {
        return;
    };
    let clock = Clock::default();
    let mut source = Exporter::prometheus(&prometheus.url, None);
    let mut until = |wanted: &dyn Fn(&Snapshot) -> bool| {
        let began = Instant::now();
        loop {
            let seen = source.read(clock.now());
            if wanted(&seen) {
                return seen;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{seen:?}");
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    let seen = until(&|seen| seen.cards.len() == 2 && seen.fault.is_none());
    is_two_h100(&seen);
    page.set(&two_h100().replace("} 72192", "} 40000"));
    let used = |seen: &Snapshot| seen.cards[0].memory.fresh().map(|memory| memory.used / MIB);
    until(&|seen| used(seen) == Some(40000));
    // The exporter ends: no figure stands for what it said last.
    page.set("");
    let seen = until(&|seen| seen.fault.is_some());
    assert!(seen.cards.iter().all(|card| card.memory.known().is_none()));
    assert_eq!(seen.cards.len(), 2);
}
