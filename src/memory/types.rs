//! The element types of the KV cache and of the fixed state.

use serde::{Deserialize, Serialize};

/// A stored type: `bytes` hold `block` elements, scales included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KvType {
    /// As it is printed.
    pub name: &'static str,
    pub block: u64,
    pub bytes: u64,
    /// llama.cpp has it.
    pub llamacpp: bool,
}

const fn of(name: &'static str, block: u64, bytes: u64, llamacpp: bool) -> KvType {
    KvType {
        name,
        block,
        bytes,
        llamacpp,
    }
}

/// Two bytes an element: what every engine takes where nothing is said.
pub const BF16: KvType = of("bf16", 1, 2, true);
/// llama.cpp's own choice, as wide.
pub const FP16: KvType = of("fp16", 1, 2, true);
/// One byte an element, without scales.
pub const FP8: KvType = of("fp8", 1, 1, false);

/// Spellings of the engines' own arguments, and what they stand for.
const TYPES: [(&[&str], KvType); 13] = [
    (&["bf16", "bfloat16", "auto"], BF16),
    (&["fp16", "f16", "float16", "half"], FP16),
    (&["fp32", "f32", "float32", "float"], of("fp32", 1, 4, true)),
    (
        &[
            "fp8",
            "f8",
            "fp8_e4m3",
            "fp8_e5m2",
            "fp8_e4m3fn",
            "fp8_ds_mla",
        ],
        FP8,
    ),
    (&["int8"], of("int8", 1, 1, false)),
    (&["q8_0", "q8"], of("q8_0", 32, 34, true)),
    (&["q5_1"], of("q5_1", 32, 24, true)),
    (&["q5_0"], of("q5_0", 32, 22, true)),
    (&["q4_1"], of("q4_1", 32, 20, true)),
    (&["q4_0", "q4"], of("q4_0", 32, 18, true)),
    (&["iq4_nl"], of("iq4_nl", 32, 18, true)),
    (&["fp4", "fp4_e2m1", "nvfp4"], of("fp4", 16, 9, false)),
    (&["mxfp4"], of("mxfp4", 32, 17, false)),
];

impl std::str::FromStr for KvType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.trim().to_ascii_lowercase();
        TYPES
            .iter()
            .find(|(names, _)| names.contains(&wanted.as_str()))
            .map(|(_, kind)| *kind)
            .ok_or_else(|| {
                let known: Vec<&str> = TYPES.iter().map(|(_, kind)| kind.name).collect();
                format!(
                    "unknown KV type {text:?}; known are {} (and the engines' longer names)",
                    known.join(", ")
                )
            })
    }
}

/// The types of keys and values; they may differ in llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KvTypes {
    pub key: KvType,
    pub value: KvType,
}

impl Default for KvTypes {
    fn default() -> Self {
        KvTypes {
            key: BF16,
            value: BF16,
        }
    }
}

impl std::fmt::Display for KvTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.key == self.value {
            f.write_str(self.key.name)
        } else {
            write!(f, "k={},v={}", self.key.name, self.value.name)
        }
    }
}

impl std::str::FromStr for KvTypes {
    type Err = String;

    /// `q8_0`, or `k=q8_0,v=f16`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains('=') {
            let kind = text.parse()?;
            return Ok(KvTypes {
                key: kind,
                value: kind,
            });
        }
        let mut types = KvTypes::default();
        for (name, kind) in pairs(text)? {
            match name {
                "k" | "key" => types.key = kind.parse()?,
                "v" | "value" => types.value = kind.parse()?,
                _ => return Err(format!("{name:?} is neither k nor v; write k=q8_0,v=f16")),
            }
        }
        Ok(types)
    }
}

/// Bytes of one element of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateType {
    Bf16,
    Fp32,
}

impl StateType {
    pub fn bytes(self) -> u64 {
        match self {
            StateType::Bf16 => 2,
            StateType::Fp32 => 4,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            StateType::Bf16 => "bf16",
            StateType::Fp32 => "fp32",
        }
    }
}

impl std::str::FromStr for StateType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "bf16" | "bfloat16" | "fp16" | "f16" | "float16" => Ok(StateType::Bf16),
            "fp32" | "f32" | "float32" => Ok(StateType::Fp32),
            _ => Err(format!(
                "unknown state type {text:?}; known are bf16, fp16 and fp32"
            )),
        }
    }
}

/// The types of a linear layer's convolution window and of its recurrent state; what is not given is the engine's own choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateChoice {
    pub conv: Option<StateType>,
    pub ssm: Option<StateType>,
}

impl std::str::FromStr for StateChoice {
    type Err = String;

    /// `conv=bf16,ssm=fp32`, one of them, or one type for both.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains('=') {
            let kind = Some(text.parse()?);
            return Ok(StateChoice {
                conv: kind,
                ssm: kind,
            });
        }
        let mut choice = StateChoice::default();
        for (name, kind) in pairs(text)? {
            match name {
                "conv" => choice.conv = Some(kind.parse()?),
                "ssm" | "recurrent" => choice.ssm = Some(kind.parse()?),
                _ => {
                    return Err(format!(
                        "{name:?} is neither conv nor ssm; write conv=bf16,ssm=fp32"
                    ));
                }
            }
        }
        Ok(choice)
    }
}

/// The types that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTypes {
    pub conv: StateType,
    pub ssm: StateType,
}

fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    text.split([',', ';'])
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            part.split_once('=')
                .map(|(name, kind)| (name.trim(), kind.trim()))
                .ok_or_else(|| format!("{part:?} is not NAME=TYPE"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_the_engines_write_them() {
        let both = |text: &str| text.parse::<KvTypes>().map(|t| (t.key.name, t.value.name));
        assert_eq!(both("F16"), Ok(("fp16", "fp16")));
        assert_eq!(both("fp8_e4m3"), Ok(("fp8", "fp8")));
        assert_eq!(both("k=q8_0,v=q4_0"), Ok(("q8_0", "q4_0")));
        assert_eq!(both("k=q8_0"), Ok(("q8_0", "bf16")));
        assert!(both("q9").unwrap_err().contains("q8_0"));
        assert!(both("x=q8_0").is_err());
        let state = |text: &str| text.parse::<StateChoice>().map(|c| (c.conv, c.ssm));
        let (b, f) = (Some(StateType::Bf16), Some(StateType::Fp32));
        assert_eq!(state("conv=bf16;ssm=fp32"), Ok((b, f)));
        assert_eq!(state("ssm=fp32"), Ok((None, f)));
        assert_eq!(state("fp32"), Ok((f, f)));
        assert!(state("conv=int3").is_err());
    }
}
