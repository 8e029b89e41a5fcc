//! # power-limit
//!
//! The processor or the card was slowed down because it drew as much power as it may.
//!
//! ## How it looks
//!
//! Slower than the same machine elsewhere; a laptop on its battery or a weak charger.
//!
//! ## How it is told
//!
//! By the kernel's notes of a power limit. A card's own limit is normal at full load and is not called a cause.
//!
//! ## What to do
//!
//! Plug in the right charger, choose the performance profile:
//!
//! ```sh
//! powerprofilesctl set performance
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use crate::units;

/// Notes of it in a run that are more than a moment's.
const MANY: usize = 10;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let is_one = |kind: &Kind| matches!(kind, Kind::PowerLimit { .. });
    let times = case.incidents().filter(|incident| is_one(&incident.kind)).count();
    if times < MANY {
        return Finding::Nothing;
    }
    let summary = format!(
        "the kernel noted a power limit {}",
        units::count(times as u64, "time")
    );
    Finding::Found(
        Found::new(case, 0.5, summary, "kernel").remedy(
            "plug in the right charger, and choose the performance profile",
            Some("powerprofilesctl set performance".into()),
        ),
    )
}
