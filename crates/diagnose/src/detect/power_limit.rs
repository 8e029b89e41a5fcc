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

use super::Finding;
use crate::case::Case;

pub(super) fn look(_: &Case<'_>) -> Finding {
    Finding::Nothing
}
