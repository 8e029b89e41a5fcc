//! What the guard keeps about each process of the tree.

use crate::policy::WallState;

#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub wall: WallState,
    /// Seen before.
    pub met: bool,
    /// We stopped it; what the user stopped is not marked.
    pub paused: bool,
    /// Setting its limit was refused: another user's, or setuid.
    pub refused: bool,
}
