//! YAML as a tree in which every scalar knows where it was written.

mod scalar;
mod tree;

pub(super) use tree::{Kind, Node, documents};

use super::command::{After, Word};
use super::traced::Text;

impl Node {
    /// The value of a key; what `<<` merges in counts where the key itself is not there.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.get_within(key, 0)
    }

    fn get_within(&self, key: &str, depth: usize) -> Option<&Node> {
        let entries = self.entries();
        let own = entries.iter().rfind(|(name, _)| name.is(key));
        if let Some((_, value)) = own {
            return Some(value);
        }
        if depth > 8 {
            return None;
        }
        entries
            .iter()
            .filter(|(name, _)| name.is("<<"))
            .flat_map(|(_, value)| match &value.kind {
                Kind::List(items) => items.as_slice(),
                _ => std::slice::from_ref(value),
            })
            .find_map(|merged| merged.get_within(key, depth + 1))
    }

    pub fn entries(&self) -> &[(Node, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    pub fn scalar(&self) -> Option<&Text> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            _ => None,
        }
    }

    pub fn shown(&self) -> Option<String> {
        self.scalar().map(|text| super::traced::shown(text))
    }

    fn is(&self, text: &str) -> bool {
        self.shown().as_deref() == Some(text)
    }

    /// Names of a map's entries, those merged in too.
    pub fn keys(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut add = |name: String| {
            if !out.contains(&name) {
                out.push(name);
            }
        };
        for (name, value) in self.entries() {
            match name.shown() {
                Some(name) if name == "<<" => {
                    let maps = match &value.kind {
                        Kind::List(items) => items.as_slice(),
                        _ => std::slice::from_ref(value),
                    };
                    for map in maps {
                        map.entries()
                            .iter()
                            .filter_map(|(name, _)| name.shown())
                            .for_each(&mut add);
                    }
                }
                Some(name) => add(name),
                None => {}
            }
        }
        out
    }

    /// The items of a list as words.
    pub fn words(&self) -> Vec<Word> {
        self.items()
            .iter()
            .filter_map(|item| {
                Some(Word {
                    text: item.scalar()?.clone(),
                    after: item.after.clone().unwrap_or(After::Nowhere(
                        "the list is written in a form that cannot be added to",
                    )),
                })
            })
            .collect()
    }
}
