//! What the names of a text stand for.

use crate::here::Here;
use ruff_python_ast::ModModule;

pub struct Module<'a> {
    pub text: &'a str,
    pub here: Here,
}

impl<'a> Module<'a> {
    pub fn of(text: &'a str, _tree: &'a ModModule, here: &Here) -> Module<'a> {
        Module { text, here: *here }
    }
}

/// Whether the text speaks of anything that rules know.
pub fn is_worth_a_look(text: &str) -> bool {
    ["torch", "tensorflow", "keras", "numpy", "pandas", "jax"]
        .iter()
        .any(|name| text.contains(name))
}
