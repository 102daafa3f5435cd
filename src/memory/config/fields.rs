//! The fields of a configuration: many names for one thing, and values that cannot be.

use crate::memory::error::MemoryError;
use serde_json::{Map, Value};

/// No count in a real configuration is larger; beyond it the products mean nothing.
const MOST: u64 = 1 << 31;

/// One object of a configuration.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

fn wrong(field: &str, value: &Value, why: &str) -> MemoryError {
    let mut text = crate::units::clean(&value.to_string());
    if let Some((at, _)) = text.char_indices().nth(60) {
        text.truncate(at);
        text.push('…');
    }
    MemoryError::Field {
        field: crate::units::clean(field),
        value: text,
        why: why.into(),
    }
}

fn whole(field: &str, value: &Value) -> Result<u64, MemoryError> {
    let number = value
        .as_u64()
        // Some writers turn every number into 64.0.
        .or_else(|| {
            value
                .as_f64()
                .filter(|f| f.fract() == 0.0 && *f >= 0.0 && *f <= MOST as f64)
                .map(|f| f as u64)
        })
        .ok_or_else(|| wrong(field, value, "that is not a whole number"))?;
    if number > MOST {
        return Err(wrong(field, value, "no real model has so many"));
    }
    Ok(number)
}

impl<'a> Fields<'a> {
    /// The first of `names` that is there and not null.
    pub fn any(self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        names
            .iter()
            .find_map(|name| Some((*name, self.0.get(*name).filter(|v| !v.is_null())?)))
    }

    pub fn has(self, names: &[&'static str]) -> bool {
        self.any(names).is_some()
    }

    /// A whole number, the first of `names`.
    pub fn count(self, names: &[&'static str]) -> Result<Option<u64>, MemoryError> {
        self.any(names)
            .map(|(name, value)| whole(name, value))
            .transpose()
    }

    /// A whole number above 0; 0 counts as not given.
    pub fn some(self, names: &[&'static str]) -> Result<Option<u64>, MemoryError> {
        Ok(self.count(names)?.filter(|n| *n > 0))
    }

    /// A whole number above 0 that must be there.
    pub fn need(self, names: &[&'static str]) -> Result<u64, MemoryError> {
        self.some(names)?.ok_or_else(|| {
            MemoryError::Missing(names.join(" (or ") + &")".repeat(names.len().saturating_sub(1)))
        })
    }

    pub fn flag(self, name: &'static str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    pub fn text(self, name: &'static str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub fn factor(self, name: &'static str) -> Option<f64> {
        self.0
            .get(name)
            .and_then(Value::as_f64)
            .filter(|f| f.is_finite() && *f > 0.0)
    }

    pub fn object(self, name: &'static str) -> Option<Fields<'a>> {
        self.0.get(name).and_then(Value::as_object).map(Fields)
    }

    pub fn list(self, name: &'static str) -> Option<&'a [Value]> {
        self.0
            .get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
    }

    /// A list of whole numbers.
    pub fn counts(self, name: &'static str) -> Result<Option<Vec<u64>>, MemoryError> {
        self.list(name)
            .map(|list| list.iter().map(|value| whole(name, value)).collect())
            .transpose()
    }
}
