//! Every pane and dialog at the three designed sizes.

use crate::rig::{self, fresh, idle, judged, walk};
use vramp::app::model::Model;

pub const SIZES: [(u16, u16); 3] = [(160, 48), (120, 36), (80, 24)];

/// The states that are drawn, by name.
pub fn states() -> Vec<(&'static str, Model)> {
    vec![
        ("walk", walk()),
        ("fresh", fresh()),
        ("idle", idle()),
        ("judged", judged()),
    ]
}
