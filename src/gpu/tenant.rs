//! Which cards belong to the server, and how much of their memory is its own.

use super::{Card, Snapshot};
use serde::{Deserialize, Serialize};

/// The server as the cards can be told by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tenant {
    /// All of its processes, numbered as the machine of the cards numbers them.
    pub pids: Vec<u32>,
    /// What its environment says of devices: variables that end in `_VISIBLE_DEVICES`, and [`ORDER`], by name.
    pub env: Vec<(String, String)>,
}

/// Variables that choose the devices of a program, the first one that is set counts. They number what [`GIVEN`] leaves.
const DEVICES: [&str; 3] = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
];
/// How CUDA counts cards: the fastest first unless this says `PCI_BUS_ID`, which is the driver's own order.
pub const ORDER: &str = "CUDA_DEVICE_ORDER";
/// The variable by which a container is given devices of its host.
const GIVEN: &str = "NVIDIA_VISIBLE_DEVICES";

/// By what the cards of the server are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// Its processes hold memory on them.
    Memory,
    /// Its environment names them.
    Environment,
    /// The profile names them.
    Profile,
    /// Nothing tells: every card may be its own.
    #[default]
    Nothing,
}

impl By {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            By::Memory => "its processes hold memory there",
            By::Environment => "its environment names them",
            By::Profile => "the profile names them",
            By::Nothing => "nothing tells which, so all count",
        }
    }
}

/// The cards of the server by index; empty: all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owned {
    pub cards: Vec<u32>,
    pub by: By,
}

/// Used memory of a card in bytes, by who holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub server: u64,
    /// Everything else but the driver's own share.
    pub others: u64,
}

impl Tenant {
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn is_on(&self, card: &Card) -> bool {
        let listed = card.processes.known();
        listed.is_some_and(|listed| {
            listed
                .iter()
                .any(|one| one.is_local() && self.pids.contains(&one.pid))
        })
    }

    /// Who holds the used memory of `card`. `None`: it cannot be told, because the driver lists no processes or no bytes.
    pub fn held(&self, card: &Card) -> Option<Held> {
        let used = card.memory.known()?.used;
        let listed = card.processes.known()?;
        let own = listed
            .iter()
            .filter(|one| one.is_local() && self.pids.contains(&one.pid));
        let server: u64 = own
            .map(|one| one.used.known().copied())
            .sum::<Option<u64>>()?;
        let server = server.min(used);
        Some(Held {
            server,
            others: used - server,
        })
    }
}

/// The cards of the server: those on which its processes hold memory; where none is seen, those that its environment names; else those of
/// the profile.
pub fn owned(seen: &Snapshot, tenant: &Tenant, profile: &[u32]) -> Owned {
    let cards = |chosen: Vec<&Card>| chosen.iter().map(|card| card.index).collect::<Vec<u32>>();
    let on: Vec<&Card> = seen
        .cards
        .iter()
        .filter(|card| tenant.is_on(card))
        .collect();
    if !on.is_empty() {
        return Owned {
            cards: cards(on),
            by: By::Memory,
        };
    }
    let named = named(seen, tenant).filter(|named| !named.is_empty());
    if let Some(named) = named {
        return Owned {
            cards: cards(named),
            by: By::Environment,
        };
    }
    Owned {
        cards: profile.to_vec(),
        by: match profile.is_empty() {
            true => By::Nothing,
            false => By::Profile,
        },
    }
}

/// The cards that the environment lets the server see; `None` where it says nothing of devices.
fn named<'a>(seen: &'a Snapshot, tenant: &Tenant) -> Option<Vec<&'a Card>> {
    let chosen = DEVICES.iter().find_map(|name| tenant.variable(name));
    let whole: Vec<&Card> = seen.cards.iter().collect();
    let given = tenant
        .variable(GIVEN)
        .filter(|list| !list.is_empty() && *list != "all")
        .map(|list| select(list, &whole))
        // From within the container its devices are counted from 0 again: those of the host are not there.
        .filter(|given| !given.is_empty());
    let alike = whole.windows(2).all(|two| two[0].name == two[1].name);
    let numbered = |list: &str| {
        list.split(',')
            .any(|entry| entry.trim().parse::<usize>().is_ok())
    };
    match (chosen, given) {
        // Among different cards such a number is a place in an order that is not known here.
        (Some(list), None)
            if numbered(list) && !alike && tenant.variable(ORDER) != Some("PCI_BUS_ID") =>
        {
            None
        }
        (Some(list), given) => Some(select(list, given.as_deref().unwrap_or(&whole))),
        (None, given) => given,
    }
}

/// Chooses as CUDA does: by place among `cards` or by the beginning of the name, up to the first entry that names no card, or more than
/// one.
fn select<'a>(list: &str, cards: &[&'a Card]) -> Vec<&'a Card> {
    let mut chosen: Vec<&Card> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let card = match entry.parse::<usize>() {
            Ok(place) => whole(cards).nth(place),
            Err(_) => by_name(entry, cards),
        };
        match card {
            Some(card) if !chosen.iter().any(|known| known.index == card.index) => {
                chosen.push(card)
            }
            _ => break,
        }
    }
    chosen
}

/// Cards as they are counted: an instance of one has a name, not a number.
fn whole<'a>(cards: &[&'a Card]) -> impl Iterator<Item = &'a Card> {
    cards
        .iter()
        .copied()
        .filter(|card| card.detail.mig.is_none())
}

fn by_name<'a>(name: &str, cards: &[&'a Card]) -> Option<&'a Card> {
    let prefixed = name.starts_with("GPU-") || name.starts_with("MIG-");
    let mut found = cards
        .iter()
        .copied()
        .filter(|card| prefixed && card.uuid.starts_with(name));
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{CardState, GpuProcess, Memory, Mig};
    use crate::reading::{Absent, Reading};

    const GIB: u64 = 1 << 30;

    fn card(index: u32, uuid: &str, processes: &[(u32, Option<u64>)]) -> Card {
        let mut card = Card::bare(
            index,
            uuid.into(),
            "H100".into(),
            CardState::Ok,
            &Absent::Unsupported,
        );
        card.memory = Reading::Value(Memory {
            total: 80 * GIB,
            used: 40 * GIB,
            free: 39 * GIB,
            reserved: GIB,
        });
        let process = |(pid, used): &(u32, Option<u64>)| GpuProcess {
            pid: *pid,
            name: Some("python3".into()),
            used: (*used).into(),
        };
        card.processes = Reading::Value(processes.iter().map(process).collect());
        card
    }

    fn four() -> Snapshot {
        let uuids = ["GPU-8932f937", "GPU-8977aaaa", "GPU-1111", "GPU-2222"];
        Snapshot {
            cards: (0..)
                .zip(uuids)
                .map(|(i, uuid)| card(i, uuid, &[]))
                .collect(),
            ..Snapshot::default()
        }
    }

    fn with(pids: &[u32], env: &[(&str, &str)]) -> Tenant {
        Tenant {
            pids: pids.to_vec(),
            env: env
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
        }
    }

    fn named_by(list: &str) -> (Vec<u32>, By) {
        let owned = owned(&four(), &with(&[], &[("CUDA_VISIBLE_DEVICES", list)]), &[3]);
        (owned.cards, owned.by)
    }

    #[test]
    fn memory_of_any_of_its_processes_comes_before_what_is_only_said() {
        let mut seen = four();
        seen.cards[1] = card(1, "GPU-1", &[(7, Some(30 * GIB)), (9, Some(GIB))]);
        seen.cards[2] = card(2, "GPU-2", &[(8, None)]);
        let tenant = with(&[7, 8], &[("CUDA_VISIBLE_DEVICES", "0")]);
        let found = owned(&seen, &tenant, &[3]);
        assert_eq!((found.cards, found.by), (vec![1, 2], By::Memory));
        let held = tenant.held(&seen.cards[1]).unwrap();
        assert_eq!((held.server, held.others), (30 * GIB, 10 * GIB));
        assert_eq!(
            tenant.held(&seen.cards[2]),
            None,
            "the driver says no bytes"
        );
        let held = tenant.held(&seen.cards[0]).unwrap();
        assert_eq!((held.server, held.others), (0, 40 * GIB));
    }

    #[test]
    fn among_different_cards_a_number_counts_only_in_the_driver_s_order() {
        let mut seen = four();
        seen.cards[2].name = "another card".into();
        let by = |env: &[(&str, &str)]| owned(&seen, &with(&[], env), &[]).cards;
        let one = ("CUDA_VISIBLE_DEVICES", "1");
        assert!(by(&[one]).is_empty());
        assert_eq!(by(&[one, (ORDER, "PCI_BUS_ID")]), [1]);
        let uuid = seen.cards[2].uuid.as_str();
        assert_eq!(by(&[("CUDA_VISIBLE_DEVICES", uuid)]), [2]);
    }

    #[test]
    fn a_number_of_another_process_namespace_is_nobody_of_ours() {
        let mut seen = four();
        seen.cards[0] = card(0, "GPU-0", &[(7, Some(GIB))]);
        if let Reading::Value(listed) = &mut seen.cards[0].processes {
            listed[0].name = None;
        }
        let tenant = with(&[7], &[]);
        assert_eq!(owned(&seen, &tenant, &[]).by, By::Nothing);
        assert_eq!(tenant.held(&seen.cards[0]).unwrap().server, 0);
    }

    #[test]
    fn the_environment_names_cards_by_number_and_by_the_beginning_of_their_names() {
        assert_eq!(named_by("2,0"), (vec![2, 0], By::Environment));
        assert_eq!(named_by("GPU-8932,GPU-2222"), (vec![0, 3], By::Environment));
        assert_eq!(named_by(" 1 , 2"), (vec![1, 2], By::Environment));
        // What names no card, or two, ends the list.
        assert_eq!(named_by("1,9,2"), (vec![1], By::Environment));
        assert_eq!(named_by("1,GPU-89,2"), (vec![1], By::Environment));
        assert_eq!(named_by("1,1,2"), (vec![1], By::Environment));
        for nothing in ["", "-1", "NoDevFiles", "GPU-89"] {
            assert_eq!(named_by(nothing), (vec![3], By::Profile), "{nothing}");
        }
        assert_eq!(owned(&four(), &Tenant::default(), &[]), Owned::default());
    }

    #[test]
    fn a_container_counts_the_cards_that_it_was_given() {
        let of = |given: &str, seen: &[(&str, &str)]| {
            let mut env = vec![("NVIDIA_VISIBLE_DEVICES", given)];
            env.extend(seen);
            owned(&four(), &with(&[], &env), &[]).cards
        };
        assert_eq!(of("2,3", &[]), [2, 3]);
        assert_eq!(of("2,3", &[("CUDA_VISIBLE_DEVICES", "1")]), [3]);
        assert_eq!(of("GPU-2222", &[("CUDA_VISIBLE_DEVICES", "0")]), [3]);
        assert_eq!(of("all", &[("CUDA_VISIBLE_DEVICES", "1")]), [1]);
        assert_eq!(
            of("9", &[("CUDA_VISIBLE_DEVICES", "0")]),
            [0],
            "seen from within"
        );
        assert_eq!(of("void", &[]), [0; 0]);
    }

    #[test]
    fn an_instance_of_a_card_is_named_and_not_counted() {
        let mut seen = four();
        let mut instance = card(4, "MIG-2f3c-77", &[]);
        instance.detail.mig = Some(Mig {
            parent: 0,
            instance: 0,
        });
        seen.cards.insert(1, instance);
        let of = |list: &str| owned(&seen, &with(&[], &[("CUDA_VISIBLE_DEVICES", list)]), &[]);
        assert_eq!(of("MIG-2f3c").cards, [4]);
        assert_eq!(of("1").cards, [1]);
    }
}
