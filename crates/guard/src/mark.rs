//! What the guard keeps about each process of the tree.

use crate::hands::limit::Limits;
use crate::policy::WallState;

#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub wall: WallState,
    /// Seen before.
    pub met: bool,
    /// Its limits as they were found at this look.
    pub limits: Option<Limits>,
    /// We stopped it; what the user stopped is not marked.
    pub paused: bool,
    /// Setting its limit was refused: another user's, or setuid.
    pub refused: bool,
}
