//! From a run's record, its last output and what its trainer said of itself to a verdict: how it ended, why,
//! how sure that is, what was ruled out, and the way out. Everything read here is anybody's bytes.

mod again;
mod bearing;
pub mod cards;
mod case;
pub mod checkpoints;
mod continuation;
pub mod course;
pub mod detect;
pub mod ending;
mod facts;
pub mod kernel;
mod lines;
mod losses;
mod printed;
mod run;
mod runaway;
mod series;
pub mod share;
pub mod shim;
pub mod stacks;
pub mod story;
pub mod time;
pub mod traceback;
mod unseen;
pub mod verdict;
pub mod waits;
mod weight;
mod whose;
pub mod words;

pub use again::Again;
pub use continuation::{Continuation, MissingCode};
pub use facts::{Facts, Since, Terms};
pub use run::{Now, Run, lacks_brake};
pub use series::{Growth, Series};
pub use shim::Told;
pub use story::Story;
pub use verdict::{Cause, Code, Evidence, Location, Remedy, Verdict};
