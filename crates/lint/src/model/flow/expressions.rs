//! Evaluates expressions to abstract values.

use super::{Flow, elements};
use crate::model::facts::Division;
use crate::model::value::{Activation, Size, Value, ValueKind};
use crate::model::{activation, known_apis, sizes};
use ruff_python_ast::{Expr, ExprCall, Operator, UnaryOp};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    /// Returns the value of an expression without recording calls.
    pub(super) fn peek(&self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(_) => self.resolve_name(expression).unwrap_or(Value::UNKNOWN),
            Expr::Attribute(attribute) => self.resolve_name(expression).unwrap_or_else(|| {
                let whole = self.peek(&attribute.value);
                let number = self.number_attribute(&attribute.value, whole.kind, &attribute.attr);
                number.unwrap_or(Value::UNKNOWN)
            }),
            Expr::Subscript(subscript) => {
                let length = self.shape_element(&subscript.value, &subscript.slice);
                let value = length
                    .map(Value::number)
                    .or_else(|| self.resolve_name(expression));
                value.unwrap_or_else(|| {
                    let value = self.element_value(self.peek(&subscript.value), &subscript.slice);
                    value.as_number().map_or(Value::UNKNOWN, Value::number)
                })
            }
            Expr::Call(call) if call.func.is_name_expr() && call.arguments.len() == 1 => {
                let given = call.arguments.args.first().map(|first| self.peek(first));
                match (&*call.func, given) {
                    (Expr::Name(name), Some(given)) if name.id == "len" => {
                        given.rows().map_or(Value::UNKNOWN, Value::number)
                    }
                    (Expr::Name(name), Some(given)) if name.id == "int" => given
                        .as_number()
                        .map_or(Value::UNKNOWN, |number| Value::number(number.trunc())),
                    _ => self.peek_call(call),
                }
            }
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::BinOp(operation) => sizes::operated(
                operation.op,
                self.peek(&operation.left),
                self.peek(&operation.right),
            ),
            Expr::Call(call) => self.peek_call(call),
            _ => Value::UNKNOWN,
        }
    }

    pub(super) fn peek_call(&self, call: &'a ExprCall) -> Value {
        match self.imports.resolve(&call.func) {
            Some(path) => known_apis::returned_by(&path).map_or(Value::UNKNOWN, Value::of_kind),
            None => Value::UNKNOWN,
        }
    }

    /// Returns the value of a plain or dotted name that is bound, or suggested by its name.
    pub(super) fn resolve_name(&self, expression: &'a Expr) -> Option<Value> {
        let key = self.dotted_name(expression)?;
        if let Some(value) = self.look_up_binding(key) {
            return Some(value);
        }
        if let Some(attribute) = key.strip_prefix("self.")
            && let Some(class) = self.enclosing_class()
        {
            if let Some(value) = class.attributes.get(attribute) {
                return Some(match value.kind {
                    ValueKind::Unknown if !value.graph => Value {
                        kind: self.suggest_by_name(attribute).kind,
                        ..*value
                    },
                    _ => *value,
                });
            }
            if let Some(method) = class.methods.get(attribute) {
                return Some(Value::of_kind(ValueKind::Function(method.0)));
            }
        }
        None
    }

    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(name) => self.resolve_name(expression).unwrap_or_else(|| {
                if self.imports.resolve(expression).is_some() {
                    Value::UNKNOWN
                } else {
                    self.suggest_by_name(name.id.as_str())
                }
            }),
            Expr::Attribute(attribute) => {
                if self.imports.resolve(expression).is_some() {
                    return Value::UNKNOWN;
                }
                let whole = self.eval(&attribute.value);
                if let Some(value) = self.resolve_name(expression) {
                    return value;
                }
                if let Some(number) =
                    self.number_attribute(&attribute.value, whole.kind, &attribute.attr)
                {
                    return number;
                }
                self.attribute_value(whole, attribute.attr.as_str())
            }
            Expr::Call(call) => self.eval_call(call),
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_) => {
                if let Expr::FString(text) = expression {
                    for element in text.value.elements() {
                        if let Some(interpolation) = element.as_interpolation() {
                            self.eval(&interpolation.expression);
                        }
                    }
                }
                Value::of_kind(ValueKind::Text)
            }
            Expr::NoneLiteral(_) => Value::of_kind(ValueKind::None),
            Expr::BooleanLiteral(_) => Value::of_kind(ValueKind::Number),
            Expr::BinOp(operation) => {
                let left = self.eval(&operation.left);
                let right = self.eval(&operation.right);
                let value = Value {
                    activation: activation::operated(operation.op, left, right),
                    elementwise: activation::stays_elementwise(operation.op, left, right),
                    ..sizes::operated(operation.op, left, right).with_site(expression.start())
                };
                if self.recording && operation.op == Operator::Div && !right.is(ValueKind::Number) {
                    self.divisions.push(Division {
                        above: &operation.left,
                        below: &operation.right,
                        by: right,
                        context: self.context,
                    });
                }
                if self.context.no_grad {
                    value.detached()
                } else {
                    value
                }
            }
            Expr::UnaryOp(operation) => {
                let value = self.eval(&operation.operand);
                match (operation.op, value.size) {
                    (UnaryOp::Not, _) => Value::of_kind(ValueKind::Number),
                    (UnaryOp::USub, Size::Number(number)) => Value::number(-number),
                    _ => value,
                }
            }
            Expr::BoolOp(operation) => {
                let values = operation.values.iter().map(|value| self.eval(value));
                values.reduce(Value::join).unwrap_or(Value::UNKNOWN)
            }
            Expr::Compare(comparison) => {
                self.eval(&comparison.left);
                comparison.comparators.iter().for_each(|value| {
                    self.eval(value);
                });
                Value::of_kind(ValueKind::Unknown)
            }
            Expr::If(choice) => {
                self.eval(&choice.test);
                let one = self.eval(&choice.body);
                let two = self.eval(&choice.orelse);
                self.join_with_tuples(one, two)
            }
            Expr::Named(named) => {
                let value = self.eval(&named.value);
                self.assign_without_recording(&named.target, value);
                value
            }
            Expr::Tuple(_) => {
                let row: Vec<_> = elements(expression)
                    .iter()
                    .map(|element| ("", self.eval(element)))
                    .collect();
                self.push_row(ValueKind::Tuple, row)
            }
            Expr::List(_) | Expr::Set(_) => {
                let mut graph = false;
                for element in elements(expression) {
                    graph |= self.eval(element).graph;
                }
                Value {
                    graph,
                    ..Value::of_kind(ValueKind::List)
                }
                .with_site(expression.start())
            }
            Expr::Dict(dict) => {
                let mut row = Vec::new();
                for item in &dict.items {
                    let key = item.key.as_ref();
                    key.iter().for_each(|key| {
                        self.eval(key);
                    });
                    let value = self.eval(&item.value);
                    if let Some(Expr::StringLiteral(key)) = key {
                        row.push((&self.text[key.range()], value));
                    }
                }
                self.push_row(ValueKind::Fields, row)
                    .with_site(expression.start())
            }
            Expr::ListComp(comprehension) => self
                .comprehension_list(&comprehension.generators, &comprehension.elt)
                .with_site(expression.start()),
            Expr::Generator(comprehension) => {
                self.comprehension_list(&comprehension.generators, &comprehension.elt)
            }
            Expr::SetComp(comprehension) => {
                self.eval_nested(|flow| {
                    flow.eval_generators(&comprehension.generators);
                    flow.eval(&comprehension.elt)
                });
                Value::of_kind(ValueKind::List)
            }
            Expr::DictComp(comprehension) => {
                self.eval_nested(|flow| {
                    flow.eval_generators(&comprehension.generators);
                    if let Some(key) = &comprehension.key {
                        flow.eval(key);
                    }
                    flow.eval(&comprehension.value)
                });
                Value::of_kind(ValueKind::Dict)
            }
            Expr::Subscript(subscript) => {
                let whole = self.eval(&subscript.value);
                self.eval(&subscript.slice);
                if let Some(value) = self
                    .dotted_name(expression)
                    .and_then(|key| self.look_up_binding(key))
                {
                    return value;
                }
                if let Some(length) = self.shape_element(&subscript.value, &subscript.slice) {
                    return Value::number(length);
                }
                let activation = match whole.kind {
                    ValueKind::Tensor | ValueKind::Unknown => whole.activation,
                    _ => Activation::Unknown,
                };
                match self.element_value(whole, &subscript.slice) {
                    part if part.activation == Activation::Unknown => Value { activation, ..part },
                    part => part,
                }
            }
            Expr::Starred(starred) => self.eval(&starred.value),
            Expr::Await(awaited) => self.eval(&awaited.value),
            Expr::Yield(given) => {
                let value = given
                    .value
                    .as_ref()
                    .map_or(Value::UNKNOWN, |value| self.eval(value));
                let frame = self.context.frame.0 as usize;
                let before = self.frames[frame].yields;
                let joined = before.map_or(value, |before| self.join_with_tuples(before, value));
                self.frames[frame].yields = Some(joined);
                Value::UNKNOWN
            }
            Expr::YieldFrom(given) => {
                self.eval(&given.value);
                Value::UNKNOWN
            }
            Expr::Lambda(lambda) => {
                self.eval_nested(|flow| flow.eval(&lambda.body));
                Value::UNKNOWN
            }
            Expr::Slice(slice) => {
                for bound in [&slice.lower, &slice.upper, &slice.step]
                    .into_iter()
                    .flatten()
                {
                    self.eval(bound);
                }
                Value::UNKNOWN
            }
            _ => Value::UNKNOWN,
        }
    }

    pub(super) fn eval_nested(&mut self, body: impl FnOnce(&mut Flow<'a>) -> Value) -> Value {
        let before = std::mem::replace(&mut self.context.inline, true);
        let value = body(self);
        self.context.inline = before;
        value
    }

    /// Returns the value of a list comprehension.
    fn comprehension_list(
        &mut self,
        generators: &'a [ruff_python_ast::Comprehension],
        each: &'a Expr,
    ) -> Value {
        let value = self.eval_nested(|flow| {
            flow.eval_generators(generators);
            flow.eval(each)
        });
        Value {
            graph: value.graph,
            ..Value::of_kind(ValueKind::List)
        }
    }

    pub(super) fn eval_generators(&mut self, generators: &'a [ruff_python_ast::Comprehension]) {
        for generator in generators {
            let over = self.eval(&generator.iter);
            let item = self.loop_item(&generator.iter, over);
            self.assign_without_recording(&generator.target, item);
            generator.ifs.iter().for_each(|condition| {
                self.eval(condition);
            });
        }
    }

    pub(super) fn push_row(
        &mut self,
        kind: fn(u32) -> ValueKind,
        row: Vec<(&'a str, Value)>,
    ) -> Value {
        let graph = row.iter().any(|(_, value)| value.graph);
        let index = self.rows.len() as u32;
        self.rows.push(row);
        Value {
            graph,
            ..Value::of_kind(kind(index))
        }
    }

    /// Joins two values like [`Value::join`], and tuples of the same length element by element.
    pub(super) fn join_with_tuples(&mut self, one: Value, two: Value) -> Value {
        match (one.kind, two.kind) {
            (ValueKind::Tuple(first), ValueKind::Tuple(second)) if first != second => {
                let (first, second) = (&self.rows[first as usize], &self.rows[second as usize]);
                if first.len() != second.len() {
                    return Value::UNKNOWN;
                }
                let row = first
                    .iter()
                    .zip(second)
                    .map(|((_, one), (_, two))| ("", one.join(*two)))
                    .collect();
                self.push_row(ValueKind::Tuple, row)
            }
            _ => one.join(two),
        }
    }

    pub(super) fn attribute_value(&self, whole: Value, name: &str) -> Value {
        match whole.kind {
            ValueKind::Tensor | ValueKind::Unknown | ValueKind::Array
                if known_apis::is_plain_attribute(name) =>
            {
                match name {
                    "data" => whole.detached(),
                    _ => Value::UNKNOWN,
                }
            }
            ValueKind::Tensor | ValueKind::Unknown if whole.graph => {
                Value::tensor(true).with_site(whole.site)
            }
            _ => self.suggest_by_name(name),
        }
    }

    pub(super) fn element_value(&self, whole: Value, index: &'a Expr) -> Value {
        match whole.kind {
            ValueKind::Fields(row) => {
                let Expr::StringLiteral(key) = index else {
                    return Value::UNKNOWN;
                };
                let key = key.value.to_str();
                let row = &self.rows[row as usize];
                let found = row
                    .iter()
                    .find(|(name, _)| name.trim_matches(['"', '\'']) == key);
                found.map_or(Value::UNKNOWN, |(_, value)| *value)
            }
            ValueKind::Tuple(row) => {
                let row = &self.rows[row as usize];
                let index = sizes::index(index, row.len());
                index.map_or(Value::UNKNOWN, |index| row[index].1)
            }
            ValueKind::Tensor | ValueKind::List | ValueKind::Bounded | ValueKind::Unknown
                if whole.graph =>
            {
                Value::tensor(true).with_site(whole.site)
            }
            ValueKind::Tensor => Value::of_kind(ValueKind::Tensor),
            ValueKind::Batch if sizes::index(index, 1) == Some(0) => self.first_of_batch(whole),
            _ => Value::UNKNOWN,
        }
    }
}
