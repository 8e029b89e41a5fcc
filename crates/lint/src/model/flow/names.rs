//! Names: what is bound to them, where, and what outlives a loop.

use super::{Flow, elements};
use crate::model::facts::{Class, FrameId, LoopId, Role, Store};
use crate::model::scope::Slot;
use crate::model::sizes;
use crate::model::value::{Form, Kind, Size, Value};
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    /// The text of a plain name, a dotted one, or one with a literal index.
    pub fn key(&self, expression: &'a Expr) -> Option<&'a str> {
        let is_plain = |expression: &Expr| -> bool {
            let mut rest = expression;
            loop {
                match rest {
                    Expr::Name(_) => return true,
                    Expr::Attribute(attribute) => rest = &attribute.value,
                    Expr::Subscript(subscript)
                        if subscript.slice.is_string_literal_expr()
                            || subscript.slice.is_number_literal_expr() =>
                    {
                        rest = &subscript.value;
                    }
                    _ => return false,
                }
            }
        };
        is_plain(expression).then(|| &self.text[expression.range()])
    }

    pub(super) fn bind(&mut self, name: &'a str, value: Value) {
        let slot = Slot {
            value,
            bound_in: self.place.within,
        };
        self.scope.set(name, slot);
    }

    pub(super) fn assign(
        &mut self,
        statement: &'a Stmt,
        target: &'a Expr,
        source: Option<&'a Expr>,
        value: Value,
    ) {
        if let Expr::Tuple(_) | Expr::List(_) = target {
            let parts = elements(target);
            let sources = source.map(elements).filter(|s| s.len() == parts.len());
            for (index, part) in parts.iter().enumerate() {
                let value = self.part(value, index, parts.len());
                self.assign(
                    statement,
                    part,
                    sources.map(|sources| &sources[index]),
                    value,
                );
            }
            return;
        }
        self.note_store(statement, target, source, value, None);
        match self.key(target) {
            // `total = total + loss` goes on with the old total; it is no new one.
            Some(key) if source.is_some_and(|source| self.continues(key, source)) => {
                self.scope.revise(key, |known| *known = value);
            }
            _ => self.assign_quietly(target, value),
        }
    }

    /// Whether an expression adds to what this name stands for, and the name is bound.
    pub(super) fn continues(&self, key: &str, source: &'a Expr) -> bool {
        let Expr::BinOp(operation) = source else {
            return false;
        };
        let is_name = |side: &'a Expr| self.key(side) == Some(key);
        self.scope.get(key).is_some() && (is_name(&operation.left) || is_name(&operation.right))
    }

    pub(super) fn assign_quietly(&mut self, target: &'a Expr, value: Value) {
        match target {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(target);
                for (index, part) in parts.iter().enumerate() {
                    let value = self.part(value, index, parts.len());
                    self.assign_quietly(part, value);
                }
            }
            Expr::Starred(starred) => self.assign_quietly(&starred.value, Value::UNKNOWN),
            _ => {
                if let Some(key) = self.key(target) {
                    self.bind(key, value);
                } else if let Expr::Subscript(subscript) = target {
                    // What was put in is in the whole.
                    self.eval(&subscript.slice);
                    if value.graph
                        && let Some(key) = self.key(&subscript.value)
                    {
                        self.scope.revise(key, |whole| whole.graph = true);
                    }
                }
            }
        }
    }

    /// One of the parts that a value is taken apart into.
    pub(super) fn part(&self, value: Value, index: usize, count: usize) -> Value {
        match value.kind {
            Kind::Tuple(row) => {
                let row = &self.rows[row as usize];
                match row.get(index) {
                    Some((_, value)) if row.len() == count => *value,
                    _ => Value::UNKNOWN,
                }
            }
            Kind::Batch if index == 0 => self.first_of(value),
            Kind::Tensor | Kind::Unknown if value.graph => Value::tensor(true).at(value.site),
            _ => Value::UNKNOWN,
        }
    }

    /// What a loader gives first: by custom the input of the model.
    pub(super) fn first_of(&self, batch: Value) -> Value {
        Value {
            kind: Kind::Tensor,
            size: self.shape(batch).map_or(Size::Unknown, |lengths| {
                let lengths = lengths.to_vec();
                sizes::Array { lengths, each: 4.0 }.size()
            }),
            ..batch
        }
    }

    pub(super) fn note_store(
        &mut self,
        statement: &'a Stmt,
        target: &'a Expr,
        source: Option<&'a Expr>,
        value: Value,
        operator: Option<Operator>,
    ) {
        if self.recording {
            let carried = self.outlives(target);
            self.stores.push(Store {
                statement,
                target,
                source,
                value,
                operator,
                carried,
                place: self.place,
            });
        }
    }

    /// The innermost loop that a name outlives: bound before it, and not anew in its turns.
    pub fn outlives(&self, target: &'a Expr) -> Option<LoopId> {
        let within = self.place.within?;
        let mut whole = target;
        loop {
            if let Some(slot) = self.key(whole).and_then(|key| self.scope.get(key)) {
                return (slot.bound_in < Some(within)).then_some(within);
            }
            match whole {
                Expr::Attribute(attribute) => whole = &attribute.value,
                Expr::Subscript(subscript) => whole = &subscript.value,
                // Bound by an outer function or the text itself, if at all.
                Expr::Name(_) => return Some(within),
                _ => return None,
            }
        }
    }

    /// What a name stands for.
    pub(super) fn look_up(&self, key: &'a str) -> Option<Value> {
        if let Some(slot) = self.scope.get(key) {
            return Some(slot.value);
        }
        let mut frame = self.frames[self.place.frame.0 as usize].parent;
        while let Some(id) = frame {
            let outer = &self.frames[id.0 as usize];
            if let Some(value) = outer.names.get(key) {
                return Some(*value);
            }
            frame = outer.parent;
        }
        None
    }

    pub(super) fn instance(&self, class: u32) -> Value {
        let kind = match self.classes[class as usize].is {
            Role::Model | Role::Lightning | Role::Keras => Kind::Model,
            Role::Criterion => Kind::Criterion,
            Role::Dataset => Kind::Dataset,
            Role::Other => Kind::Instance(class),
        };
        Value {
            class: Some(class),
            ..Value::of(kind)
        }
    }

    /// The method that runs when an object of a class of this text is called.
    pub(super) fn called_of(&self, object: Value) -> Option<FrameId> {
        let class = self.classes.get(object.class? as usize)?;
        ["forward", "call", "__call__"]
            .iter()
            .find_map(|name| class.methods.get(name).copied())
    }

    /// What a model puts out.
    pub(super) fn put_out(&mut self, model: Value, call: &'a ExprCall, given: &[Value]) -> Value {
        let tensor = Value::tensor(!self.place.no_grad);
        let Some(id) = self.called_of(model) else {
            let form = match model.form {
                Form::Unknown => Form::Output,
                known => known,
            };
            return Value { form, ..tensor };
        };
        self.learn_arguments(id.0, call, given, true);
        let returns = self.frames[id.0 as usize].returns;
        let like = |value: Value| Value {
            form: value.form,
            unreduced: value.unreduced,
            apart: value.apart,
            ..tensor
        };
        match returns.kind {
            Kind::Tuple(row) => {
                let row = self.rows[row as usize]
                    .iter()
                    .map(|(_, part)| ("", like(*part)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            _ => like(returns),
        }
    }

    /// The class that `self` is of, where we are.
    pub(super) fn own_class(&self) -> Option<&Class<'a>> {
        let mut frame = Some(self.place.frame);
        while let Some(id) = frame {
            let here = &self.frames[id.0 as usize];
            if let Some(class) = here.class {
                return self.classes.get(class as usize);
            }
            frame = here.parent;
        }
        None
    }
}
