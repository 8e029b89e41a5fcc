//! What to do: pure functions from what was seen to what should be done.
//!
//! Nothing here reads the machine, acts on it, allocates or knows the time: the same
//! history gives the same decision, today or replayed from a record.
//!
//! [`decide`] chooses the rung of the ladder; [`plan`] places the wall.

mod assessment;
mod ending;
mod forecast;
mod history;
mod ladder;
mod pace;
mod pageout;
mod pause;
mod rungs;
mod save;
mod signals;
mod trend;
mod wall;
mod wall_plan;

pub use forecast::forecast;
pub use history::*;
pub use ladder::decide;
pub use pageout::{PageoutCandidate, choose_for_pageout};
pub use pause::BACK_OFF;
pub use wall::{OwnLimit, WallSign, WallState, detect};
pub use wall_plan::{Candidate, Planned, WallRoom, closed, plan};
