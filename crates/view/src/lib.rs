//! Renders a run for people: the line before it, a sentence for each event, the verdict at the end, the table of
//! runs, and the HTML report. It reads a record and decides nothing.

mod closing;
mod degradations;
mod explain;
mod interleave;
mod live;
mod opening;
mod report;
mod runs;
mod sentence;
mod sheet;
mod speaker;

pub use antifreeze_text::TermStyle;
pub use closing::{closing, met_trouble, was_acted_on};
pub use explain::explain;
pub use interleave::{Cursor, LineTracker};
pub use live::{room, status};
pub use opening::{Brake, Means, Wall, opening};
pub use report::report;
pub use runs::{RunRow, show, table};
pub use sentence::{Detail, rung_name, sentence};
pub use sheet::labelled;
pub use speaker::Speaker;

/// The README's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
