//! Binds names, looks them up, and finds the loop that a name outlives.

use super::{Flow, elements};
use crate::model::facts::{Class, FrameId, LoopId, Role, Store};
use crate::model::scope::Binding;
use crate::model::sizes;
use crate::model::value::{Activation, Size, Value, ValueKind};
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    /// Returns the source of a name: plain, dotted, or with a literal index.
    pub fn dotted_name(&self, expression: &'a Expr) -> Option<&'a str> {
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

    pub(super) fn bind_name(&mut self, name: &'a str, value: Value) {
        let slot = Binding {
            value,
            bound_in: self.context.innermost_loop,
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
                let value = self.unpacked_part(value, index, parts.len());
                self.assign(
                    statement,
                    part,
                    sources.map(|sources| &sources[index]),
                    value,
                );
            }
            return;
        }
        self.record_store(statement, target, source, value, None);
        match self.dotted_name(target) {
            // `total = total + loss` updates the old total instead of replacing it.
            Some(key) if source.is_some_and(|source| self.extends_own_value(key, source)) => {
                self.scope.update_value(key, |known| *known = value);
            }
            _ => self.assign_without_recording(target, value),
        }
    }

    /// Whether an expression adds to the current value of this bound name.
    pub(super) fn extends_own_value(&self, key: &str, source: &'a Expr) -> bool {
        let Expr::BinOp(operation) = source else {
            return false;
        };
        let is_name = |side: &'a Expr| self.dotted_name(side) == Some(key);
        self.scope.get(key).is_some() && (is_name(&operation.left) || is_name(&operation.right))
    }

    pub(super) fn assign_without_recording(&mut self, target: &'a Expr, value: Value) {
        match target {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(target);
                for (index, part) in parts.iter().enumerate() {
                    let value = self.unpacked_part(value, index, parts.len());
                    self.assign_without_recording(part, value);
                }
            }
            Expr::Starred(starred) => self.assign_without_recording(&starred.value, Value::UNKNOWN),
            _ => {
                if let Some(key) = self.dotted_name(target) {
                    self.bind_name(key, value);
                } else if let Expr::Subscript(subscript) = target {
                    // A container holds the graph of what is stored in it.
                    self.eval(&subscript.slice);
                    if value.graph
                        && let Some(key) = self.dotted_name(&subscript.value)
                    {
                        self.scope.update_value(key, |whole| whole.graph = true);
                    }
                }
            }
        }
    }

    /// Returns one of the parts that a value is unpacked into.
    pub(super) fn unpacked_part(&self, value: Value, index: usize, count: usize) -> Value {
        match value.kind {
            ValueKind::Tuple(row) => {
                let row = &self.rows[row as usize];
                match row.get(index) {
                    Some((_, value)) if row.len() == count => *value,
                    _ => Value::UNKNOWN,
                }
            }
            ValueKind::Batch if index == 0 => self.first_of_batch(value),
            ValueKind::Tensor | ValueKind::Unknown if value.graph => {
                Value::tensor(true).with_site(value.site)
            }
            _ => Value::UNKNOWN,
        }
    }

    /// Returns the first part of a batch, by convention the input of the model.
    pub(super) fn first_of_batch(&self, batch: Value) -> Value {
        Value {
            kind: ValueKind::Tensor,
            size: self.shape(batch).map_or(Size::Unknown, |lengths| {
                let lengths = lengths.to_vec();
                sizes::Array { lengths, each: 4.0 }.size()
            }),
            ..batch
        }
    }

    pub(super) fn record_store(
        &mut self,
        statement: &'a Stmt,
        target: &'a Expr,
        source: Option<&'a Expr>,
        value: Value,
        operator: Option<Operator>,
    ) {
        if self.recording {
            let outlived_loop = self.find_outlived_loop(target);
            self.stores.push(Store {
                statement,
                target,
                source,
                value,
                operator,
                outlived_loop,
                context: self.context,
            });
        }
    }

    /// Returns the innermost loop that a name outlives: it is bound before the loop and not rebound
    /// in its iterations.
    pub fn find_outlived_loop(&self, target: &'a Expr) -> Option<LoopId> {
        let innermost_loop = self.context.innermost_loop?;
        let mut whole = target;
        loop {
            if let Some(slot) = self.dotted_name(whole).and_then(|key| self.scope.get(key)) {
                return (slot.bound_in < Some(innermost_loop)).then_some(innermost_loop);
            }
            match whole {
                Expr::Attribute(attribute) => whole = &attribute.value,
                Expr::Subscript(subscript) => whole = &subscript.value,
                // Bound by an outer function or the module, if at all.
                Expr::Name(_) => return Some(innermost_loop),
                _ => return None,
            }
        }
    }

    /// Returns the value of a name, looking through outer frames.
    pub(super) fn look_up_binding(&self, key: &'a str) -> Option<Value> {
        if let Some(slot) = self.scope.get(key) {
            return Some(slot.value);
        }
        let mut frame = self.frames[self.context.frame.0 as usize].parent;
        while let Some(id) = frame {
            let outer = &self.frames[id.0 as usize];
            if let Some(value) = outer.names.get(key) {
                return Some(*value);
            }
            frame = outer.parent;
        }
        None
    }

    pub(super) fn instance_of(&self, class: u32) -> Value {
        let kind = match self.classes[class as usize].role {
            Role::Model | Role::Lightning | Role::Keras => ValueKind::Model,
            Role::Criterion => ValueKind::Criterion,
            Role::Dataset => ValueKind::Dataset,
            Role::Other => ValueKind::Instance(class),
        };
        Value {
            class: Some(class),
            ..Value::of_kind(kind)
        }
    }

    /// Returns the method that runs when an object of a class in this text is called.
    pub(super) fn method_run_by_call(&self, object: Value) -> Option<FrameId> {
        let class = self.classes.get(object.class? as usize)?;
        ["forward", "call", "__call__"]
            .iter()
            .find_map(|name| class.methods.get(name).copied())
    }

    /// Returns the output of a model.
    pub(super) fn call_model(
        &mut self,
        model: Value,
        call: &'a ExprCall,
        given: &[Value],
    ) -> Value {
        let tensor = Value::tensor(!self.context.no_grad);
        let Some(id) = self.method_run_by_call(model) else {
            let activation = match model.activation {
                Activation::Unknown => Activation::ModelOutput,
                known => known,
            };
            return Value {
                activation,
                ..tensor
            };
        };
        self.learn_arguments(id.0, call, given, true);
        let returns = self.frames[id.0 as usize].returns;
        let like = |value: Value| Value {
            activation: value.activation,
            unreduced: value.unreduced,
            elementwise: value.elementwise,
            ..tensor
        };
        match returns.kind {
            ValueKind::Tuple(row) => {
                let row = self.rows[row as usize]
                    .iter()
                    .map(|(_, part)| ("", like(*part)))
                    .collect();
                self.push_row(ValueKind::Tuple, row)
            }
            _ => like(returns),
        }
    }

    /// The class that `self` refers to in the current frame.
    pub(super) fn enclosing_class(&self) -> Option<&Class<'a>> {
        let mut frame = Some(self.context.frame);
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
