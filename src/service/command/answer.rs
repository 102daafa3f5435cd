//! What the operator's commands print: facts, one on a line, or one JSON object.

use crate::units::clean;
use serde_json::Value;

/// The facts of an answer, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    facts: Vec<(String, String)>,
}

impl Answer {
    /// Reads `name value`, `name=value`, `name: value`, or a JSON object of such. A line with a number alone is the fact `alone`. Lines of
    /// other forms are somebody's words and do not count.
    pub fn parse(text: &str, alone: &str) -> Answer {
        if let Ok(Value::Object(object)) = serde_json::from_str(text) {
            let one = |name: &str, value: &Value| match value {
                Value::String(text) => vec![(name.to_string(), clean(text))],
                Value::Number(number) => vec![(name.to_string(), number.to_string())],
                Value::Array(list) => list
                    .iter()
                    .filter(|value| value.is_number())
                    .map(|value| (name.to_string(), value.to_string()))
                    .collect(),
                _ => vec![],
            };
            let facts = object.iter().flat_map(|(name, value)| one(name, value));
            return Answer {
                facts: facts.collect(),
            };
        }
        let fact = |line: &str| {
            let line = clean(line);
            let line = line.trim();
            if line.parse::<u64>().is_ok() {
                return Some((alone.to_string(), line.to_string()));
            }
            let (name, value) = line.split_once([' ', '=', ':'])?;
            let value = value.trim_start_matches([' ', '=', ':']).trim();
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            (!name.is_empty() && name.chars().all(is_name) && !value.is_empty())
                .then(|| (name.to_ascii_lowercase(), value.to_string()))
        };
        Answer {
            facts: text.lines().filter_map(fact).collect(),
        }
    }

    /// The last value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut facts = self.facts.iter().rev();
        facts
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The last value as a number; an error names what stands there instead.
    pub fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|_| format!("it prints {name} {text:?}, which is no number"))
    }

    /// All numbers of this name, also several on a line.
    pub fn numbers(&self, name: &str) -> Vec<u32> {
        let of_name = self.facts.iter().filter(|(known, _)| known == name);
        of_name
            .flat_map(|(_, value)| value.split([' ', ',']))
            .filter_map(|word| word.trim().parse().ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_in_every_usual_form() {
        for text in [
            "production 32768\npid 12 13\n",
            "production=32768\nPID=12\npid=13",
            "loading config\nproduction: 32768\npid: 12, 13\n",
            r#"{"production": 32768, "pid": [12, 13]}"#,
            "production 1\nproduction 32768\npid 12\npid 13",
        ] {
            let answer = Answer::parse(text, "x");
            assert_eq!(answer.number("production"), Ok(Some(32768)), "{text}");
            assert_eq!(answer.numbers("pid"), [12, 13], "{text}");
        }
        let bare = Answer::parse("warning!\n32768\n", "production");
        assert_eq!(bare.number("production"), Ok(Some(32768)));
        assert_eq!(bare.number("context"), Ok(None));
        let wrong = Answer::parse("production 32K\n", "production");
        assert!(wrong.number("production").unwrap_err().contains("32K"));
        assert_eq!(Answer::parse("", "production"), Answer::default());
    }
}
