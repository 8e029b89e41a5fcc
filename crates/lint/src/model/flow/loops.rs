//! Loops: what they go over, and their turns.

use super::{Flow, counted};
use crate::model::facts::{Feed, Loop, LoopId};
use crate::model::value::{Kind, Value};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    pub(super) fn enter(
        &mut self,
        statement: &'a Stmt,
        body: &'a [Stmt],
        over: Option<(&'a Expr, &'a Expr)>,
        feed: Feed,
    ) -> LoopId {
        if let Some(id) = self.known_loops.get(&statement.start()) {
            let known = &mut self.loops[id.0 as usize];
            known.feed = feed;
            known.no_grad = self.place.no_grad;
            return *id;
        }
        let id = LoopId(self.loops.len() as u32);
        self.known_loops.insert(statement.start(), id);
        self.loops.push(Loop {
            parent: self.place.within,
            frame: self.place.frame,
            statement,
            body,
            over,
            feed,
            no_grad: self.place.no_grad,
        });
        id
    }

    /// The body, twice where it counts: quietly first, so that the second turn finds what
    /// the first one left.
    pub(super) fn turns(&mut self, id: LoopId, body: impl Fn(&mut Flow<'a>)) {
        let outer = self.place.within.replace(id);
        if self.recording {
            let before = self.scope.fork();
            self.recording = false;
            body(self);
            self.recording = true;
            self.scope.meet(&before);
        }
        let before = self.scope.fork();
        body(self);
        self.scope.meet(&before);
        self.place.within = outer;
    }

    /// What a `for` goes over, behind `enumerate`, `tqdm`, `zip` and the like.
    pub(super) fn feed(&self, iter: &'a Expr, over: Value) -> Feed {
        let Expr::Call(call) = iter else {
            return match over.kind {
                Kind::Loader | Kind::Dataset => Feed::Batches,
                _ => Feed::Other,
            };
        };
        if let Expr::Name(name) = &*call.func
            && matches!(name.id.as_str(), "range" | "trange")
        {
            let times = match &*call.arguments.args {
                [times] | [_, times] => self.peek(times).as_number(),
                _ => None,
            };
            return Feed::Times(times);
        }
        let is_batches = over.kind == Kind::Loader
            || call
                .arguments
                .args
                .iter()
                .any(|argument| self.feed(argument, self.peek(argument)) == Feed::Batches);
        if is_batches {
            Feed::Batches
        } else {
            Feed::Other
        }
    }

    /// What one turn of a `for` gets.
    pub(super) fn item_of(&mut self, iter: &'a Expr, over: Value) -> Value {
        if let Some(counted) = counted(iter) {
            let item = self.item_of(counted, over);
            return self.row(Kind::Tuple, vec![("", Value::of(Kind::Number)), ("", item)]);
        }
        if let Expr::Call(call) = iter
            && let Some(Kind::Function(id)) = self.named(&call.func).map(|callee| callee.kind)
            && let Some(item) = self.frames[id as usize].yields
        {
            return item;
        }
        if over.shape != 0 && matches!(over.kind, Kind::Loader | Kind::Dataset) {
            return Value {
                device: over.device,
                shape: over.shape,
                ..Value::of(Kind::Batch)
            };
        }
        if over.kind == Kind::Parameters {
            return Value::of(Kind::Parameter);
        }
        Value {
            device: over.device,
            graph: over.graph && matches!(over.kind, Kind::List | Kind::Tensor | Kind::Tuple(_)),
            ..Value::UNKNOWN
        }
    }
}
