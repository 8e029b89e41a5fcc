//! What the names of a text stand for and what happens to them, as far as it is known without
//! running it. Rules query the model; they do not search the syntax tree.

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

/// An analyzed text.
pub struct Module<'a> {
    /// The text.
    pub text: &'a str,
    /// The machine to compare sizes with.
    pub target: TargetMachine,
    /// The dialect of the text.
    pub dialect: Dialect<'a>,
    flow: Flow<'a>,
}

impl<'a> Module<'a> {
    /// Analyzes a parsed text.
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

    /// All calls, in execution order.
    pub fn calls(&self) -> &[Call<'a>] {
        &self.flow.calls
    }

    /// All assignments, in execution order.
    pub fn stores(&self) -> &[Store<'a>] {
        &self.flow.stores
    }

    /// All divisions by something other than a number, in execution order.
    pub fn divisions(&self) -> &[Division<'a>] {
        &self.flow.divisions
    }

    /// All loops.
    pub fn loops(&self) -> &[Loop<'a>] {
        &self.flow.loops
    }

    /// The module and all functions.
    pub fn frames(&self) -> &[Frame<'a>] {
        &self.flow.frames
    }

    /// All classes.
    pub fn classes(&self) -> &[Class<'a>] {
        &self.flow.classes
    }

    /// Returns the frame with this id.
    pub fn frame(&self, id: FrameId) -> &Frame<'a> {
        &self.flow.frames[id.0 as usize]
    }

    /// Returns the loop with this id.
    pub fn loop_at(&self, id: LoopId) -> &Loop<'a> {
        &self.flow.loops[id.0 as usize]
    }

    /// Returns the loop and the loops around it, innermost first.
    pub fn enclosing_loops(&self, id: Option<LoopId>) -> impl Iterator<Item = &Loop<'a>> {
        std::iter::successors(id.map(|id| self.loop_at(id)), |inner| {
            inner.parent.map(|id| self.loop_at(id))
        })
    }

    /// Whether a context lies in this loop, at any depth.
    pub fn is_inside_loop(&self, context: &CodeContext, id: LoopId) -> bool {
        let outer = self.loop_at(id).statement.range();
        self.enclosing_loops(context.innermost_loop)
            .any(|around| around.statement.range() == outer)
    }

    /// Returns the values of a call's arguments: positional ones first, then keywords.
    pub fn arguments(&self, call: &Call<'a>) -> &[Value] {
        let (first, end) = call.arguments;
        &self.flow.values[first as usize..end as usize]
    }

    /// Returns the value of one argument by position or keyword.
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

    /// Returns the full dotted name of an imported expression, starting with its package.
    pub fn import_path(&self, expression: &'a Expr) -> Option<Path<'a>> {
        self.flow.imports.resolve(expression)
    }

    /// Whether anything from this package is imported.
    pub fn imports(&self, package: &str) -> bool {
        self.flow.imports.has_package(package)
    }

    /// Returns the source of a name that is plain, dotted or indexed by literals.
    pub fn dotted_name(&self, expression: &'a Expr) -> Option<&'a str> {
        self.flow.dotted_name(expression)
    }

    /// Returns the shape of an array; for a dataset or loader, of the first part it yields.
    pub fn shape(&self, value: Value) -> Option<&[f64]> {
        self.flow.shape(value)
    }

    /// Returns the value of a name, a number or their sum at the end of a function.
    pub fn final_value(&self, expression: &'a Expr, frame: FrameId) -> Value {
        self.flow.final_value(expression, frame)
    }

    /// Returns a field of a record that is written in the text.
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

    /// Returns the source text of a range.
    pub fn source(&self, range: impl Ranged) -> &'a str {
        &self.text[range.range()]
    }

    /// Returns the line of a range as messages name it: "line 8", "cell 3, line 2".
    pub fn line_label(&self, range: impl Ranged) -> String {
        let cell = match self.dialect {
            Dialect::Python => None,
            Dialect::Notebook(cells) => Cell::containing(cells, range.start()),
        };
        let start = cell.map_or(0, |cell| usize::from(cell.start));
        let before = &self.text.as_bytes()[start..usize::from(range.start())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        match cell {
            Some(cell) => format!("cell {}, line {line}", cell.number),
            None => format!("line {line}"),
        }
    }

    /// Returns the range of a loop's header, before its body.
    pub fn loop_header(&self, id: LoopId) -> TextRange {
        let around = self.loop_at(id);
        let end = around
            .body
            .first()
            .map_or(around.statement.end(), Ranged::start);
        TextRange::new(around.statement.start(), end)
    }
}

/// Whether the text mentions a library that the rules know.
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
