//! The policy, from single rules to whole stories.

mod arbitrary;
mod endings;
mod executor;
mod forecasts;
mod given;
mod machine;
mod properties;
mod rungs;
mod stories;
mod story;
mod trace;
#[path = "../../testing/trace_fields.rs"]
mod trace_fields;
mod traces;
mod untouched;
mod wall;
