//! What keeps a forecast from being made.

/// Why there is no figure: what was read or asked, what is wrong with it, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Not the JSON of a model's configuration.
    #[error(
        "cannot read the model's configuration: {0}; give the config.json that lies beside the weights"
    )]
    NotConfig(String),
    /// A field that the formulas need.
    #[error(
        "the configuration does not say {0}; without it no figure would be right. Give the model's whole config.json"
    )]
    Missing(String),
    /// A field whose value cannot be.
    #[error("the configuration's {field} is {value}, and {why}")]
    Field {
        field: String,
        value: String,
        why: String,
    },
    /// A kind of model whose memory is not known here.
    #[error("this model is not supported: {0}. No figure is given rather than a wrong one")]
    Unsupported(String),
    /// Not a GGUF header, or a damaged one.
    #[error(
        "cannot read the GGUF header: {0}; is the file complete, and the first part of a split one?"
    )]
    Gguf(String),
    /// A layout over cards, a type or a length with which no server starts, or which no figure holds.
    #[error("{0}")]
    Layout(String),
    /// A result beyond what 64 bits count.
    #[error("the figure is beyond 64 bits: the lengths or the configuration cannot be real")]
    TooLarge,
}
