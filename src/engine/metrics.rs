//! Metrics pages in the Prometheus text format.

use super::Spent;

/// One line of a metrics page.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Labels that tell apart processes of one engine which all report the same figure: adding them up would count it twice.
const RANKS: [&str; 4] = ["tp_rank", "pp_rank", "moe_ep_rank", "pid"];

/// A whole page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    samples: Vec<Sample>,
}

impl Page {
    /// Reads a page. Lines that cannot be read are left out: one broken figure does not cost the others. Histogram buckets are left
    /// out too, they are most of the text.
    pub fn parse(text: &str) -> Self {
        Page {
            samples: text.lines().filter_map(parse_line).collect(),
        }
    }

    /// All samples in the order of the page.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }

    /// Whether any name begins with `prefix`.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        self.samples.iter().any(|s| s.name.starts_with(prefix))
    }

    /// All samples of a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |s| s.name == name)
    }

    /// The sum over engines of the first of `names` that the page has. Ranks of one engine report the same thing and count once.
    /// Not-a-number values do not count.
    pub fn sum(&self, names: &[&str]) -> Option<f64> {
        let groups = self.groups(names)?;
        Some(groups.iter().sum())
    }

    /// The greatest value over engines and ranks of the first of `names` that the page has.
    pub fn max(&self, names: &[&str]) -> Option<f64> {
        let groups = self.groups(names)?;
        groups.into_iter().reduce(f64::max)
    }

    /// [`Page::sum`] as a count.
    pub fn count(&self, names: &[&str]) -> Option<u64> {
        self.sum(names).and_then(to_count)
    }

    /// The model that the page is about, as most lines name it.
    pub fn model(&self) -> Option<&str> {
        self.samples.iter().find_map(|s| s.label("model_name"))
    }

    /// Sum and count of a histogram of seconds.
    pub fn spent(&self, name: &str) -> Option<Spent> {
        Some(Spent {
            seconds: self.sum(&[&format!("{name}_sum")])?,
            requests: self.count(&[&format!("{name}_count")])?,
        })
    }

    /// The same of the lines alone whose `label` is `value`.
    pub fn spent_where(&self, name: &str, label: &str, value: &str) -> Option<Spent> {
        let samples = self.samples.iter();
        let part = Page {
            samples: samples
                .filter(|s| s.name.starts_with(name) && s.label(label) == Some(value))
                .cloned()
                .collect(),
        };
        part.spent(name)
    }

    /// Values of the first name that has any, one for all lines that differ in ranks alone: the greatest.
    fn groups(&self, names: &[&str]) -> Option<Vec<f64>> {
        names.iter().find_map(|name| {
            let mut groups: Vec<(Vec<(String, String)>, f64)> = Vec::new();
            for sample in self.named(name).filter(|s| !s.value.is_nan()) {
                let mut key: Vec<(String, String)> = sample
                    .labels
                    .iter()
                    .filter(|(label, _)| !RANKS.contains(&label.as_str()))
                    .cloned()
                    .collect();
                key.sort();
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, value)) => *value = value.max(sample.value),
                    None => groups.push((key, sample.value)),
                }
            }
            (!groups.is_empty()).then(|| groups.into_iter().map(|(_, value)| value).collect())
        })
    }
}

/// A figure of a metrics page as a count; `None` if it is negative or not finite.
pub fn to_count(value: f64) -> Option<u64> {
    // Counters above 2^53 lose their last digits on the page already.
    (value.is_finite() && value >= 0.0).then_some(value as u64)
}

fn parse_line(line: &str) -> Option<Sample> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let name = line.get(..name_end)?;
    if name.ends_with("_bucket") {
        return None;
    }
    let rest = line.get(name_end..)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => parse_labels(inside)?,
        None => (Vec::new(), rest),
    };
    // A time stamp or an exemplar may follow the value.
    let value = rest.split_whitespace().next()?;
    let value = match value {
        "+Inf" | "Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        other => other.parse().ok()?,
    };
    Some(Sample {
        name: name.to_string(),
        labels,
        value,
    })
}

/// Reads `key="value",…}` and gives what follows the brace. Values escape `\`, `"` and the line end.
fn parse_labels(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, rest) = text.split_once('=')?;
        let rest = rest.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, c) => value.push(c),
            }
        };
        labels.push((key.trim().to_string(), value));
        text = rest.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_shapes_are_read() {
        let page = Page::parse(
            "# HELP a b\n# TYPE a gauge\na 1\nb{x=\"1\",y=\"a \\\"q\\\" \\\\ , } z\"} 2.5e+3 1700000000\nc{} NaN\nd +Inf\nbroken\ne{x=\"never closed 4\nf 7 # {trace=\"1\"} 0.5\ng_bucket{le=\"1\"} 3\nh -1\r\n",
        );
        assert_eq!(page.sum(&["a"]), Some(1.0));
        assert_eq!(page.sum(&["b"]), Some(2500.0));
        let b = page.named("b").next().expect("b");
        assert_eq!(b.label("y"), Some("a \"q\" \\ , } z"));
        assert_eq!(page.sum(&["c"]), None, "not a number is no value");
        assert_eq!(page.count(&["d"]), None);
        assert_eq!(page.sum(&["e"]), None);
        assert_eq!(page.sum(&["f"]), Some(7.0));
        assert_eq!(page.sum(&["g_bucket"]), None);
        assert_eq!(page.count(&["h"]), None);
    }

    #[test]
    fn engines_add_up_and_ranks_do_not() {
        let page = Page::parse(
            "r{tp_rank=\"0\",dp_rank=\"0\"} 8\nr{tp_rank=\"1\",dp_rank=\"0\"} 8\nr{tp_rank=\"0\",dp_rank=\"1\"} 3\n",
        );
        assert_eq!(page.sum(&["r"]), Some(11.0));
        assert_eq!(page.max(&["r"]), Some(8.0));
    }

    #[test]
    fn the_first_name_that_is_there_wins() {
        let page = Page::parse("new 1\nold 2\nnew_created 1.7e9\n");
        assert_eq!(page.sum(&["newest", "new", "old"]), Some(1.0));
        assert_eq!(page.sum(&["newest"]), None);
    }
}
