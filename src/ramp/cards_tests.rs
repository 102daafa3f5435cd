use super::*;
use crate::clock::Now;
use crate::gpu::{CardState, Memory};

const GIB: u64 = 1 << 30;

fn process(pid: u32, used: Reading<u64>) -> GpuProcess {
    GpuProcess {
        pid,
        name: Some(format!("p{pid}")),
        used,
    }
}

fn card(index: u32, used: Reading<u64>, processes: Reading<Vec<GpuProcess>>) -> Card {
    Card {
        index,
        uuid: String::new(),
        name: "RTX A6000".to_string(),
        state: CardState::Ok,
        memory: used.map(|used| Memory {
            total: 48 * GIB,
            used,
            free: 48 * GIB - used,
            reserved: 0,
        }),
        busy_pct: Reading::default(),
        temp_c: Reading::default(),
        power_mw: Reading::default(),
        power_limit_mw: Reading::default(),
        processes,
        detail: crate::gpu::Detail::default(),
    }
}

fn snapshot(at_ms: u64, cards: Vec<Card>) -> Snapshot {
    Snapshot {
        at: Now {
            mono_ms: at_ms,
            unix_ms: 0,
        },
        cards,
        ..Snapshot::default()
    }
}

fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

#[test]
fn the_level_is_what_remains_without_the_servers_own_processes() {
    let shot = snapshot(
        0,
        vec![
            card(
                0,
                value(42 * GIB),
                value(vec![
                    process(10, value(30 * GIB)),
                    process(11, value(10 * GIB)),
                    process(99, value(GIB)),
                ]),
            ),
            card(1, value(3 * GIB), value(vec![process(99, value(2 * GIB))])),
            card(2, value(9 * GIB), value(vec![])),
        ],
    );
    let levels = levels(&shot, &[0, 1], &[10, 11]);
    assert_eq!(
        levels,
        [
            Level {
                card: 0,
                bytes: value(2 * GIB)
            },
            Level {
                card: 1,
                bytes: value(3 * GIB)
            }
        ]
    );
}

#[test]
fn a_neighbour_s_card_is_not_waited_for() {
    let shot = snapshot(
        0,
        vec![
            card(
                0,
                value(30 * GIB),
                value(vec![process(10, value(29 * GIB))]),
            ),
            card(1, value(9 * GIB), value(vec![process(99, value(8 * GIB))])),
            card(2, value(GIB), Reading::Absent(Absent::Denied)),
        ],
    );
    let of = |wanted: &[u32], pids: &[u32]| -> Vec<u32> {
        let levels = levels(&shot, wanted, pids);
        levels.iter().map(|level| level.card).collect()
    };
    assert_eq!(of(&[], &[10]), [0, 2]);
    // The profile's word counts, and a server that is seen nowhere may be anywhere.
    assert_eq!(of(&[0, 1], &[10]), [0, 1]);
    assert_eq!(of(&[], &[12]), [0, 1, 2]);
    assert_eq!(of(&[], &[]), [0, 1, 2]);
}

#[test]
fn without_a_server_the_level_is_what_is_used() {
    let shot = snapshot(0, vec![card(0, value(3 * GIB), Reading::unsupported())]);
    assert_eq!(levels(&shot, &[], &[])[0].bytes, value(3 * GIB));
}

#[test]
fn a_level_that_cannot_be_told_says_why() {
    let why = |card: Card| match levels(&snapshot(0, vec![card]), &[], &[10]).remove(0).bytes {
        Reading::Absent(why) => why.to_string(),
        other => panic!("{other:?}"),
    };
    let ours_unknown = value(vec![process(10, Reading::unsupported())]);
    let hidden = value(vec![process(4711, value(30 * GIB))]);
    assert!(why(card(0, value(GIB), ours_unknown)).contains("how much"));
    assert!(why(card(0, value(30 * GIB), hidden)).contains("known as the server's"));
    assert!(why(card(0, value(30 * GIB), Reading::unsupported())).contains("not supported"));
    assert_eq!(
        why(card(0, Reading::Absent(Absent::Lost), value(vec![]))),
        "lost"
    );
    // A server that uses no card, on cards that nobody uses.
    let idle = snapshot(0, vec![card(0, value(GIB / 4), value(vec![]))]);
    assert_eq!(levels(&idle, &[], &[10])[0].bytes, value(GIB / 4));
}

fn release(bytes: Reading<u64>) -> Release {
    Release::new(vec![Level { card: 0, bytes }])
}

#[test]
fn a_card_is_free_within_two_percent_or_half_a_gib() {
    let mut release = release(value(GIB));
    let two_percent = 48 * GIB / 50;
    let mut held = |used| {
        let listed = value(vec![process(7, value(used))]);
        release.held(&snapshot(0, vec![card(0, value(used), listed)]))
    };
    assert!(held(GIB + two_percent).is_empty());
    let still = held(GIB + two_percent + 1);
    assert_eq!(still[0].above, Some(two_percent + 1));
    assert_eq!(still[0].holders.len(), 1);
}

#[test]
fn a_card_with_a_level_that_cannot_be_read_counts_as_held() {
    let mut release = release(value(GIB));
    for cards in [
        vec![],
        vec![card(0, Reading::Absent(Absent::Lost), Reading::default())],
        vec![card(
            0,
            Reading::Stale {
                value: GIB,
                age_ms: 900,
            },
            Reading::default(),
        )],
    ] {
        let held = release.held(&snapshot(0, cards));
        assert_eq!(held[0].above, None);
    }
}

#[test]
fn a_card_without_a_level_is_waited_for_until_it_settles() {
    let mut release = release(Reading::failed("nobody knows"));
    let mut held = |at_ms, used| {
        let shot = snapshot(at_ms, vec![card(0, value(used), Reading::unsupported())]);
        !release.held(&shot).is_empty()
    };
    assert!(held(0, 40 * GIB));
    assert!(held(2_000, 20 * GIB));
    assert!(held(4_900, 20 * GIB));
    assert!(!held(5_000, 20 * GIB));
    let mut unreadable = super::Release::new(vec![Level {
        card: 0,
        bytes: Reading::unsupported(),
    }]);
    assert!(unreadable.held(&snapshot(0, vec![])).is_empty());
}

#[test]
fn growth_counts_from_the_highest_reading() {
    let shot = |used| snapshot(0, vec![card(0, value(used), value(vec![]))]);
    let mut high = shot(GIB);
    assert!(!grown(&mut high, &shot(GIB + GROWTH - 1)));
    assert!(grown(&mut high, &shot(GIB + GROWTH)));
    assert!(!grown(&mut high, &shot(GIB)));
    assert!(!grown(&mut high, &shot(GIB + GROWTH)));
    assert!(grown(&mut high, &shot(3 * GIB)));
    assert!(!grown(&mut high, &snapshot(0, vec![])));
}

#[test]
fn a_card_that_is_held_without_a_listed_process_is_named_and_no_other() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpu");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let apps = text("gpu-04.apps.csv");
    let cards = crate::gpu::smi::cards(&text("gpu-04.query.csv"), Some(&apps), None).unwrap();
    let snapshot = Snapshot {
        cards,
        ..Snapshot::default()
    };
    let idle = |card| Level {
        card,
        bytes: Reading::Value(14 << 20),
    };
    let held = Release::new(vec![idle(0), idle(1)]).held(&snapshot);
    assert_eq!(held.iter().map(|one| one.card).collect::<Vec<_>>(), [0]);
    assert!(held[0].holders.is_empty());
}
