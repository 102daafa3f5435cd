//! Cards from the series of a DCGM exporter.

use crate::clock::Now;
use crate::engine::metrics::Sample;
use crate::gpu::{Card, CardState, Detail, Ecc, Memory, Mig, Pcie, Throttle, Xid};
use crate::reading::{Absent, Reading};
use crate::units::clean;
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
/// DCGM's words for "no value": the least of them as integer of 32 bits, of 64 bits, and as a fraction. What is added says why.
const BLANKS: [f64; 3] = [
    2_147_483_632.0,
    9_223_372_036_854_775_792.0,
    140_737_488_355_328.0,
];
/// A figure older than this is stale, seconds: three collections at the usual interval were missed.
const OLD_S: f64 = 45.0;

/// Which card a series is of: machine, number, instance.
type Who = (String, u32, Option<u32>);

/// All cards in the order of machine and number. The index is the exporter's own number.
pub(super) fn cards(samples: &[Sample], ages: &[Sample], at: Now) -> Vec<Card> {
    let mut found: BTreeMap<Who, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        if let Some(who) = who(sample) {
            found.entry(who).or_default().push(sample);
        }
    }
    let age_s = |of: &Who| {
        let of_it = ages.iter().filter(|age| who(age).as_ref() == Some(of));
        of_it.map(|age| age.value).reduce(f64::min)
    };
    found
        .iter()
        // A series of the whole machine (as the count of devices) makes no card.
        .filter(|(_, series)| {
            series
                .iter()
                .any(|one| one.name.contains("_FI_DEV_") || one.name.contains("_FI_PROF_"))
        })
        .map(|(who, series)| card(who, series, age_s(who), at))
        .collect()
}

fn who(sample: &Sample) -> Option<Who> {
    let host = sample
        .label("Hostname")
        .or_else(|| sample.label("exported_Hostname"))
        .or_else(|| {
            sample
                .label("instance")
                .map(|at| at.rsplit_once(':').map_or(at, |(host, _)| host))
        });
    Some((
        clean(host.unwrap_or_default()),
        sample.label("gpu")?.parse().ok()?,
        sample.label("GPU_I_ID").and_then(|id| id.parse().ok()),
    ))
}

fn card(who: &Who, series: &[&Sample], age_s: Option<f64>, at: Now) -> Card {
    let (host, index, instance) = who;
    let label = |name: &str| {
        let mut labels = series.iter().filter_map(|one| one.label(name));
        labels.find(|text| !text.is_empty()).map(clean)
    };
    let of = Series { series, age_s };
    let name = label("modelName").unwrap_or_else(|| "unknown card".to_string());
    let name = name.strip_prefix("NVIDIA ").unwrap_or(&name).to_string();
    let name = match (instance, label("GPU_I_PROFILE")) {
        (Some(_), Some(profile)) => format!("{name} MIG {profile}"),
        _ => name,
    };
    let whole = |names: &[&str]| of.number(names).map(|number| number.round() as u32);
    let milli = |names: &[&str]| {
        of.number(names)
            .map(|watts| (watts * 1000.0).round() as u32)
    };
    let xid = of.number(&["DCGM_FI_DEV_XID_ERRORS"]).map(|code| {
        (code > 0.0).then_some(Xid {
            code: code as u64,
            at_unix_ms: at.unix_ms,
        })
    });
    Card {
        index: *index,
        uuid: label("UUID").unwrap_or_default(),
        name,
        state: CardState::Ok,
        memory: memory(&of),
        busy_pct: whole(&["DCGM_FI_DEV_GPU_UTIL"]),
        temp_c: whole(&["DCGM_FI_DEV_GPU_TEMP"]),
        power_mw: milli(&["DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT"]),
        power_limit_mw: milli(&[
            "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
            "DCGM_FI_DEV_POWER_MGMT_LIMIT",
        ]),
        processes: Reading::unsupported(),
        detail: Detail {
            memory_busy_pct: whole(&["DCGM_FI_DEV_MEM_COPY_UTIL"]),
            sm_mhz: whole(&["DCGM_FI_DEV_SM_CLOCK"]),
            memory_mhz: whole(&["DCGM_FI_DEV_MEM_CLOCK"]),
            throttle: of
                .number(&[
                    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
                    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
                ])
                .map(|bits| Throttle::from_bits(bits as u64)),
            slowdown_c: whole(&["DCGM_FI_DEV_SLOWDOWN_TEMP"]),
            shutdown_c: whole(&["DCGM_FI_DEV_SHUTDOWN_TEMP"]),
            fan_pct: whole(&["DCGM_FI_DEV_FAN_SPEED"]),
            pcie: pcie(&of),
            ecc: ecc(&of),
            xid,
            mig: instance.map(|instance| Mig {
                parent: *index,
                instance,
            }),
            host: (!host.is_empty()).then(|| host.clone()),
            ..Detail::without(&Absent::Unsupported)
        },
    }
}

/// The series of one card.
struct Series<'a> {
    series: &'a [&'a Sample],
    age_s: Option<f64>,
}

impl Series<'_> {
    /// The first of these names that is there. Several of one name (a pod's and the card's own) say the same; the greatest counts.
    fn number(&self, names: &[&str]) -> Reading<f64> {
        let value = names.iter().find_map(|name| {
            let of_it = self.series.iter().filter(|one| one.name == *name);
            of_it
                .map(|one| one.value)
                .filter(|value| !value.is_nan())
                .reduce(f64::max)
        });
        let Some(value) = value else {
            return Reading::unsupported();
        };
        if let Some(why) = blank(value) {
            return Reading::Absent(why);
        }
        if value < 0.0 {
            return Reading::failed("the exporter gives a negative figure");
        }
        match self.age_s {
            Some(age) if age > OLD_S => Reading::Stale {
                value,
                age_ms: (age * 1000.0) as u64,
            },
            _ => Reading::Value(value),
        }
    }
}

/// Why a figure is none.
fn blank(value: f64) -> Option<Absent> {
    // The last digits of the large ones are lost in a fraction.
    let added = BLANKS.iter().map(|blank| value - blank);
    let added = added
        .into_iter()
        .find(|added| (0.0..16.0).contains(added))?;
    Some(match added as u32 {
        3 => Absent::Denied,
        _ => Absent::Unsupported,
    })
}

fn memory(of: &Series<'_>) -> Reading<Memory> {
    let bytes = |name: &str| of.number(&[name]).map(|mib| (mib * MIB).round() as u64);
    let used = bytes("DCGM_FI_DEV_FB_USED");
    let free = bytes("DCGM_FI_DEV_FB_FREE");
    let total = bytes("DCGM_FI_DEV_FB_TOTAL").known().copied();
    let reserved = bytes("DCGM_FI_DEV_FB_RESERVED").known().copied();
    let (Some(used_b), Some(free_b)) = (used.known().copied(), free.known().copied()) else {
        return match (used.absent(), free.absent()) {
            (Some(why), _) | (_, Some(why)) => Reading::Absent(why.clone()),
            _ => Reading::unsupported(),
        };
    };
    let reserved = reserved.unwrap_or_else(|| {
        total.map_or(0, |total| {
            total.saturating_sub(used_b).saturating_sub(free_b)
        })
    });
    let total = total.unwrap_or(used_b + free_b + reserved);
    used.map(|used| Memory {
        total,
        used,
        free: free_b,
        reserved,
    })
}

fn pcie(of: &Series<'_>) -> Reading<Pcie> {
    // The older counters are in KB a second, the profiling ones in bytes.
    let bytes = |profiled: &str, counted: &str| match of.number(&[profiled]) {
        Reading::Absent(_) => of.number(&[counted]).map(|kb| (kb * 1000.0) as u64),
        found => found.map(|bytes| bytes as u64),
    };
    let pcie = Pcie {
        tx_bytes_s: bytes(
            "DCGM_FI_PROF_PCIE_TX_BYTES",
            "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
        ),
        rx_bytes_s: bytes(
            "DCGM_FI_PROF_PCIE_RX_BYTES",
            "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
        ),
        generation: of
            .number(&["DCGM_FI_DEV_PCIE_LINK_GEN"])
            .map(|number| number as u32),
        width: of
            .number(&["DCGM_FI_DEV_PCIE_LINK_WIDTH"])
            .map(|number| number as u32),
    };
    match pcie.tx_bytes_s.known().or(pcie.rx_bytes_s.known()) {
        Some(_) => Reading::Value(pcie),
        None => Reading::unsupported(),
    }
}

fn ecc(of: &Series<'_>) -> Reading<Ecc> {
    let corrected = of.number(&["DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"]);
    let uncorrected = of.number(&["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"]);
    match (corrected, uncorrected) {
        (Reading::Value(corrected), Reading::Value(uncorrected)) => Reading::Value(Ecc {
            corrected: corrected as u64,
            uncorrected: uncorrected as u64,
        }),
        _ => Reading::unsupported(),
    }
}

/// Gives every card a number of its own: the exporter's where there is one machine, else one after the other. Instances come after the
/// cards.
pub(super) fn number(cards: &mut [Card]) {
    let host = cards.first().and_then(|card| card.detail.host.clone());
    let single = cards.iter().all(|card| card.detail.host == host);
    cards.sort_by(|a, b| {
        let key = |card: &Card| (card.detail.mig.is_some(), card.detail.host.clone());
        (key(a), a.index).cmp(&(key(b), b.index))
    });
    let mut next = 0;
    for card in cards {
        if !single || card.detail.mig.is_some() {
            card.index = next;
        }
        next = next.max(card.index + 1);
    }
}

/// The exporter names the last error for ever; it came when it was first seen.
pub(super) fn keep_first_sight(card: &mut Card, before: &Card) {
    if let (Reading::Value(Some(now)), Reading::Value(Some(known))) =
        (&mut card.detail.xid, &before.detail.xid)
        && now.code == known.code
    {
        now.at_unix_ms = known.at_unix_ms;
    }
}
