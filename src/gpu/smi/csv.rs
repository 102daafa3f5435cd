//! The tables of `nvidia-smi --format=csv`, read by their headers: fields in any order, with units or without.

use crate::reading::{Absent, Reading};
use crate::units::clean;

const MIB: f64 = 1_048_576.0;

/// A header: which column is which.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq)]
struct Column {
    /// As it is asked for: `memory.used`.
    name: String,
    /// `MiB` of `memory.used [MiB]`.
    unit: Option<String>,
}

/// Columns of text, which may hold commas themselves. `nvidia-smi` quotes nothing.
const TEXTS: [&str; 4] = ["name", "gpu_name", "process_name", "process name"];

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    header: &'a Header,
    fields: Vec<String>,
}

impl Header {
    /// Reads a header. `None`: the line is none, as an error text or a row.
    pub fn parse(line: &str) -> Option<Header> {
        let columns: Vec<Column> = line
            .split(',')
            .map(|text| {
                let text = text
                    .trim()
                    .trim_start_matches('\u{feff}')
                    .to_ascii_lowercase();
                let (name, unit) = match text.split_once('[') {
                    Some((name, unit)) => (name, unit.strip_suffix(']').map(str::to_string)),
                    None => (text.as_str(), None),
                };
                Column {
                    name: name.trim().to_string(),
                    unit,
                }
            })
            .collect();
        let known = |name: &str| columns.iter().any(|column| column.name == name);
        (known("index") || known("pid") || known("uuid") || known("memory.total"))
            .then_some(Header { columns })
    }

    /// Takes a line apart. `None`: it has too few fields, as an error text between the rows.
    pub fn row<'a>(&'a self, line: &str) -> Option<Row<'a>> {
        let mut fields: Vec<String> = line
            .split(',')
            .map(|field| field.trim().to_string())
            .collect();
        let extra = fields.len().checked_sub(self.columns.len())?;
        if extra > 0 {
            let is_text = |column: &Column| TEXTS.contains(&column.name.as_str());
            let at = self.columns.iter().position(is_text)?;
            let whole = fields.get(at..=at + extra)?.join(", ");
            fields.splice(at..=at + extra, [whole]);
        }
        Some(Row {
            header: self,
            fields,
        })
    }
}

impl Row<'_> {
    /// The field of the first of these columns that is there.
    fn field(&self, names: &[&str]) -> Option<(&str, &Column)> {
        names.iter().find_map(|name| {
            let columns = &self.header.columns;
            let at = columns.iter().position(|column| column.name == *name)?;
            Some((self.fields.get(at)?.as_str(), columns.get(at)?))
        })
    }

    /// A text; `None` if there is no such column or nothing in it.
    pub fn text(&self, names: &[&str]) -> Option<String> {
        let (field, _) = self.field(names)?;
        (absent(field).is_none() && !field.is_empty()).then(|| clean(field))
    }

    pub fn number(&self, names: &[&str]) -> Reading<f64> {
        let Some((field, _)) = self.field(names) else {
            return Reading::unsupported();
        };
        if let Some(why) = absent(field) {
            return Reading::Absent(why);
        }
        match split(field).map(|(number, _)| number) {
            Some(number) => Reading::Value(number),
            None => unreadable(field),
        }
    }

    /// Bits, written `0x0000000000000004`.
    pub fn bits(&self, names: &[&str]) -> Reading<u64> {
        let Some((field, _)) = self.field(names) else {
            return Reading::unsupported();
        };
        if let Some(why) = absent(field) {
            return Reading::Absent(why);
        }
        let digits = field.strip_prefix("0x").or(field.strip_prefix("0X"));
        match digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            Some(bits) => Reading::Value(bits),
            None => unreadable(field),
        }
    }

    /// A figure of memory in bytes. Without a unit in the field, that of the header counts, else MiB.
    pub fn bytes(&self, names: &[&str]) -> Reading<u64> {
        let Some((field, column)) = self.field(names) else {
            return Reading::unsupported();
        };
        if let Some(why) = absent(field) {
            return Reading::Absent(why);
        }
        let Some((number, unit)) = split(field) else {
            return unreadable(field);
        };
        let unit = match (unit, &column.unit) {
            ("", Some(unit)) => unit.as_str(),
            (unit, _) => unit,
        };
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "mib" => MIB,
            "kib" => 1024.0,
            "gib" => MIB * 1024.0,
            "b" | "bytes" => 1.0,
            "mb" => 1e6,
            "gb" => 1e9,
            _ => return unreadable(field),
        };
        Reading::Value((number * scale).round() as u64)
    }
}

fn unreadable<T>(field: &str) -> Reading<T> {
    Reading::failed(format!("nvidia-smi says {:?}", clean(field)))
}

/// A number that is not negative, and its unit.
fn split(field: &str) -> Option<(f64, &str)> {
    let end = field
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(field.len());
    let (number, unit) = field.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Why a field holds no value; `None` if it holds one.
pub fn absent(field: &str) -> Option<Absent> {
    let inner = field.trim().trim_matches(['[', ']']).to_ascii_lowercase();
    Some(match inner.as_str() {
        "n/a" | "not supported" | "not available" | "not found" | "" => Absent::Unsupported,
        "insufficient permissions" | "no permission" => Absent::Denied,
        "gpu is lost" => Absent::Lost,
        "gpu requires reset" => Absent::Failed("the card needs a reset".to_string()),
        "unknown error" | "unknown" => {
            Absent::Failed("the driver reports an unknown error".to_string())
        }
        "err!" | "error" => Absent::Failed("the driver reports an error".to_string()),
        other if field.trim_start().starts_with('[') => Absent::Failed(clean(other)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_with_units_or_without() {
        for (head, line) in [
            ("index, memory.used [MiB], name", "0, 14 MiB, NVIDIA A, B"),
            ("index, memory.used [MiB], name", "0, 14, NVIDIA A, B"),
            ("name, index, memory.used", "NVIDIA A, B, 0, 14"),
            ("Name,Index,Memory.Used [KiB]", "NVIDIA A, B,0,14336"),
        ] {
            let header = Header::parse(head).unwrap();
            let row = header.row(line).unwrap();
            assert_eq!(row.number(&["index"]), Reading::Value(0.0), "{line}");
            assert_eq!(row.bytes(&["memory.used"]), Reading::Value(14 << 20));
            assert_eq!(row.text(&["gpu_name", "name"]).unwrap(), "NVIDIA A, B");
            assert_eq!(row.number(&["power.draw"]), Reading::unsupported());
        }
        let header = Header::parse("index, name").unwrap();
        assert!(header.row("0").is_none());
        assert!(
            Header::parse("index, uuid")
                .unwrap()
                .row("0, GPU-1, x")
                .is_none()
        );
        for line in [
            "",
            "No devices were found",
            "0, NVIDIA A, 14",
            "Failed to initialize NVML: Unknown Error",
        ] {
            assert_eq!(Header::parse(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_no_value_says_why() {
        let header = Header::parse("index, memory.used [MiB]").unwrap();
        for (field, why) in [
            ("[N/A]", Absent::Unsupported),
            ("N/A", Absent::Unsupported),
            ("[Not Supported]", Absent::Unsupported),
            ("[Insufficient Permissions]", Absent::Denied),
            ("[GPU is lost]", Absent::Lost),
            (
                "[GPU requires reset]",
                Absent::Failed("the card needs a reset".into()),
            ),
            (
                "[Unknown Error]",
                Absent::Failed("the driver reports an unknown error".into()),
            ),
            ("[Some New Text]", Absent::Failed("some new text".into())),
            ("many", Absent::Failed("nvidia-smi says \"many\"".into())),
            (
                "-1 MiB",
                Absent::Failed("nvidia-smi says \"-1 MiB\"".into()),
            ),
            (
                "5 apples",
                Absent::Failed("nvidia-smi says \"5 apples\"".into()),
            ),
        ] {
            let line = format!("0, {field}");
            let row = header.row(&line).unwrap();
            assert_eq!(row.bytes(&["memory.used"]), Reading::Absent(why), "{field}");
        }
    }
}
