//! What a person sees of a run: the line before it, a sentence when something changes, the
//! verdict at the end, the table of runs. Reads a record and decides nothing.

mod again;
mod causes;
mod closing;
mod ending;
mod facts;
mod lacks;
mod live;
mod look;
mod opening;
mod remedies;
mod run;
mod runs;
pub mod safe;
mod sentence;
mod series;
pub mod shim;
pub mod signal;
mod speaker;
pub mod story;
pub mod traceback;
pub mod units;
pub mod verdict;

pub use again::Again;
pub use closing::{closing, met_trouble};
pub use facts::{Facts, Since};
pub use live::{room, status};
pub use look::{Glyphs, Look};
pub use opening::{Brake, Means, Wall, opening};
pub use run::{Now, Run};
pub use runs::{RunRow, show, table};
pub use sentence::{Detail, rung_name, sentence};
pub use series::{Growth, Series};
pub use shim::Told;
pub use speaker::Speaker;
pub use story::Story;
pub use verdict::{Cause, Code, Evidence, Location, Remedy, Verdict};
