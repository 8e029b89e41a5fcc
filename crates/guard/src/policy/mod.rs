//! Decides what to do. All functions here are pure: they do not read the machine, act on it, allocate or read a clock,
//! so the same history gives the same decision, during a run or replayed from a record.
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
