//! Evaluates loops: what they iterate over, and their bodies.

use super::{Flow, enumerated_iterable};
use crate::model::facts::{Loop, LoopId, LoopSource};
use crate::model::value::{Value, ValueKind};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    pub(super) fn enter_loop(
        &mut self,
        statement: &'a Stmt,
        body: &'a [Stmt],
        over: Option<(&'a Expr, &'a Expr)>,
        feed: LoopSource,
    ) -> LoopId {
        if let Some(id) = self.known_loops.get(&statement.start()) {
            let known = &mut self.loops[id.0 as usize];
            known.loop_source = feed;
            known.no_grad = self.context.no_grad;
            return *id;
        }
        let id = LoopId(self.loops.len() as u32);
        self.known_loops.insert(statement.start(), id);
        self.loops.push(Loop {
            parent: self.context.innermost_loop,
            frame: self.context.frame,
            statement,
            body,
            for_clause: over,
            loop_source: feed,
            no_grad: self.context.no_grad,
        });
        id
    }

    /// Evaluates a loop body. While recording, it runs twice: first without recording, so that the
    /// second iteration sees what the first one left.
    pub(super) fn run_loop_body(&mut self, id: LoopId, body: impl Fn(&mut Flow<'a>)) {
        let outer = self.context.innermost_loop.replace(id);
        if self.recording {
            let before = self.scope.snapshot();
            self.recording = false;
            body(self);
            self.recording = true;
            self.scope.merge(&before);
        }
        let before = self.scope.snapshot();
        body(self);
        self.scope.merge(&before);
        self.context.innermost_loop = outer;
    }

    /// Returns what a `for` iterates over, looking through `enumerate`, `tqdm`, `zip` and similar
    /// calls.
    pub(super) fn classify_loop_source(&self, iter: &'a Expr, over: Value) -> LoopSource {
        let Expr::Call(call) = iter else {
            return match over.kind {
                ValueKind::Loader | ValueKind::Dataset => LoopSource::Batches,
                _ => LoopSource::Other,
            };
        };
        if let Expr::Name(name) = &*call.func
            && matches!(name.id.as_str(), "range" | "trange")
        {
            let times = match &*call.arguments.args {
                [times] | [_, times] => self.peek(times).as_number(),
                _ => None,
            };
            return LoopSource::Times(times);
        }
        let is_batches = over.kind == ValueKind::Loader
            || call.arguments.args.iter().any(|argument| {
                self.classify_loop_source(argument, self.peek(argument)) == LoopSource::Batches
            });
        if is_batches {
            LoopSource::Batches
        } else {
            LoopSource::Other
        }
    }

    /// Returns the value of the loop variable in one iteration.
    pub(super) fn loop_item(&mut self, iter: &'a Expr, over: Value) -> Value {
        if let Some(enumerated_iterable) = enumerated_iterable(iter) {
            let item = self.loop_item(enumerated_iterable, over);
            return self.push_row(
                ValueKind::Tuple,
                vec![("", Value::of_kind(ValueKind::Number)), ("", item)],
            );
        }
        if let Expr::Call(call) = iter
            && let Some(ValueKind::Function(id)) =
                self.resolve_name(&call.func).map(|callee| callee.kind)
            && let Some(item) = self.frames[id as usize].yields
        {
            return item;
        }
        if over.shape != 0 && matches!(over.kind, ValueKind::Loader | ValueKind::Dataset) {
            return Value {
                device: over.device,
                shape: over.shape,
                ..Value::of_kind(ValueKind::Batch)
            };
        }
        if over.kind == ValueKind::Parameters {
            return Value::of_kind(ValueKind::Parameter);
        }
        Value {
            device: over.device,
            graph: over.graph
                && matches!(
                    over.kind,
                    ValueKind::List | ValueKind::Tensor | ValueKind::Tuple(_)
                ),
            ..Value::UNKNOWN
        }
    }
}
