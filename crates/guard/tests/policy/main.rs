//! The policy, from single rules to whole stories.

mod arbitrary;
mod endings;
mod forecasts;
mod given;
mod machine;
mod properties;
mod rungs;
mod stories;
mod wall;
