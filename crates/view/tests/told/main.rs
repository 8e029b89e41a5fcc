//! What a person is told, from made-up runs and from records on disk.

mod anything;
mod endings;
mod inside;
mod record;
mod report;
#[path = "../../../diagnose/tests/causes/scenes.rs"]
mod scenes;
mod shown;
mod weighing;
