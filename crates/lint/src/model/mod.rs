//! What the names of a text stand for, and what happens to it, as far as it can be told without
//! running it. The model first, then the rules: a rule asks, it does not search the tree.

mod activation;
mod facts;
mod flow;
mod known_apis;
mod path;
mod scope;
mod sizes;
pub mod uses;
mod value;

pub use facts::{
    Call, Class, CodeContext, Division, Frame, FrameId, Loop, LoopId, LoopSource, Role, Store,
};
pub use flow::{each_block, is_loss_function};
pub use path::Path;
pub use sizes::window_output_length;
pub use value::{Activation, Device, Size, Value, ValueKind};

use crate::target_machine::TargetMachine;
use crate::{Cell, Dialect};
use flow::Flow;
use ruff_python_ast::{Expr, ModModule};
use ruff_text_size::{Ranged, TextRange};

/// A text that was gone through.
pub struct Module<'a> {
    pub text: &'a str,
    pub target: TargetMachine,
    pub dialect: Dialect<'a>,
    flow: Flow<'a>,
}

impl<'a> Module<'a> {
    pub fn analyze(
        text: &'a str,
        dialect: Dialect<'a>,
        tree: &'a ModModule,
        target: &TargetMachine,
    ) -> Module<'a> {
        Module {
            text,
            target: *target,
            dialect,
            flow: Flow::analyze(text, &tree.body),
        }
    }

    /// All calls, in the order they would run.
    pub fn calls(&self) -> &[Call<'a>] {
        &self.flow.calls
    }

    /// All assignments, in the order they would run.
    pub fn stores(&self) -> &[Store<'a>] {
        &self.flow.stores
    }

    /// All divisions by something that is no number, in the order they would run.
    pub fn divisions(&self) -> &[Division<'a>] {
        &self.flow.divisions
    }

    pub fn loops(&self) -> &[Loop<'a>] {
        &self.flow.loops
    }

    pub fn frames(&self) -> &[Frame<'a>] {
        &self.flow.frames
    }

    pub fn classes(&self) -> &[Class<'a>] {
        &self.flow.classes
    }

    pub fn frame(&self, id: FrameId) -> &Frame<'a> {
        &self.flow.frames[id.0 as usize]
    }

    pub fn loop_at(&self, id: LoopId) -> &Loop<'a> {
        &self.flow.loops[id.0 as usize]
    }

    /// The loop and those around it, innermost first.
    pub fn enclosing_loops(&self, id: Option<LoopId>) -> impl Iterator<Item = &Loop<'a>> {
        std::iter::successors(id.map(|id| self.loop_at(id)), |inner| {
            inner.parent.map(|id| self.loop_at(id))
        })
    }

    /// Whether a place lies in this loop, be it deeper.
    pub fn is_inside_loop(&self, context: &CodeContext, id: LoopId) -> bool {
        let outer = self.loop_at(id).statement.range();
        self.enclosing_loops(context.innermost_loop)
            .any(|around| around.statement.range() == outer)
    }

    /// The values of a call's arguments: those by place, then those by name.
    pub fn arguments(&self, call: &Call<'a>) -> &[Value] {
        let (first, end) = call.arguments;
        &self.flow.values[first as usize..end as usize]
    }

    /// The value of one argument, by its place or its name.
    pub fn argument(&self, call: &Call<'a>, place: usize, name: &str) -> Option<Value> {
        let wanted = call.argument(place, name)?.range();
        let arguments = &call.expr.arguments;
        let all = arguments
            .args
            .iter()
            .chain(arguments.keywords.iter().map(|keyword| &keyword.value));
        let index = all
            .into_iter()
            .position(|argument| argument.range() == wanted)?;
        self.arguments(call).get(index).copied()
    }

    /// The dotted name behind an expression, from the package it was imported from.
    pub fn import_path(&self, expression: &'a Expr) -> Option<Path<'a>> {
        self.flow.imports.resolve(expression)
    }

    /// Whether anything of this package is imported.
    pub fn imports(&self, package: &str) -> bool {
        self.flow.imports.has_package(package)
    }

    /// A name, dotted or indexed by literals, as it is written.
    pub fn dotted_name(&self, expression: &'a Expr) -> Option<&'a str> {
        self.flow.dotted_name(expression)
    }

    /// The lengths along the axes of an array; of a dataset or loader, those of the first
    /// thing it gives.
    pub fn shape(&self, value: Value) -> Option<&[f64]> {
        self.flow.shape(value)
    }

    /// What is known of a name, number or sum of them when a function has been gone through.
    pub fn final_value(&self, expression: &'a Expr, frame: FrameId) -> Value {
        self.flow.final_value(expression, frame)
    }

    /// A field of a record that is written in the text.
    pub fn field(&self, record: Value, name: &str) -> Option<Value> {
        let ValueKind::Fields(row) = record.kind else {
            return None;
        };
        let row = self.flow.rows.get(row as usize)?;
        let found = row
            .iter()
            .find(|(key, _)| key.trim_matches(['"', '\'']) == name);
        found.map(|(_, value)| *value)
    }

    pub fn source(&self, range: impl Ranged) -> &'a str {
        &self.text[range.range()]
    }

    /// The line that a place is on, as it is called: "line 8", "cell 3, line 2".
    pub fn line_label(&self, range: impl Ranged) -> String {
        let cell = match self.dialect {
            Dialect::Python => None,
            Dialect::Notebook(cells) => Cell::at(cells, range.start()),
        };
        let start = cell.map_or(0, |cell| usize::from(cell.start));
        let before = &self.text.as_bytes()[start..usize::from(range.start())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        match cell {
            Some(cell) => format!("cell {}, line {line}", cell.number),
            None => format!("line {line}"),
        }
    }

    /// The head of a loop or block: what stands before its body.
    pub fn loop_header(&self, id: LoopId) -> TextRange {
        let around = self.loop_at(id);
        let end = around
            .body
            .first()
            .map_or(around.statement.end(), Ranged::start);
        TextRange::new(around.statement.start(), end)
    }
}

/// Whether the text speaks of anything that rules know.
pub fn mentions_training_library(text: &str) -> bool {
    [
        "torch",
        "tensorflow",
        "keras",
        "numpy",
        "pandas",
        "lightning",
    ]
    .iter()
    .any(|name| text.contains(name))
}
