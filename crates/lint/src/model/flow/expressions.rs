//! Expressions: what they stand for.

use super::{Flow, elements};
use crate::model::facts::Division;
use crate::model::value::{Form, Kind, Size, Value};
use crate::model::{form, known, sizes};
use ruff_python_ast::{Expr, ExprCall, Operator, UnaryOp};
use ruff_text_size::Ranged;

impl<'a> Flow<'a> {
    /// What an expression would be, without noting that it was gone through.
    pub(super) fn peek(&self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(_) => self.named(expression).unwrap_or(Value::UNKNOWN),
            Expr::Attribute(attribute) => self.named(expression).unwrap_or_else(|| {
                let whole = self.peek(&attribute.value);
                let number = self.number_in(&attribute.value, whole.kind, &attribute.attr);
                number.unwrap_or(Value::UNKNOWN)
            }),
            Expr::Subscript(subscript) => {
                let length = self.length_at(&subscript.value, &subscript.slice);
                let value = length.map(Value::number).or_else(|| self.named(expression));
                value.unwrap_or_else(|| {
                    let value = self.element_of(self.peek(&subscript.value), &subscript.slice);
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
            Some(path) => known::returned_by(&path).map_or(Value::UNKNOWN, Value::of),
            None => Value::UNKNOWN,
        }
    }

    /// A name, dotted or not, that is bound or suggests something.
    pub(super) fn named(&self, expression: &'a Expr) -> Option<Value> {
        let key = self.key(expression)?;
        if let Some(value) = self.look_up(key) {
            return Some(value);
        }
        if let Some(attribute) = key.strip_prefix("self.")
            && let Some(class) = self.own_class()
        {
            if let Some(value) = class.attributes.get(attribute) {
                return Some(match value.kind {
                    Kind::Unknown if !value.graph => Value {
                        kind: self.suggested(attribute).kind,
                        ..*value
                    },
                    _ => *value,
                });
            }
            if let Some(method) = class.methods.get(attribute) {
                return Some(Value::of(Kind::Function(method.0)));
            }
        }
        None
    }

    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(name) => self.named(expression).unwrap_or_else(|| {
                if self.imports.resolve(expression).is_some() {
                    Value::UNKNOWN
                } else {
                    self.suggested(name.id.as_str())
                }
            }),
            Expr::Attribute(attribute) => {
                if self.imports.resolve(expression).is_some() {
                    return Value::UNKNOWN;
                }
                let whole = self.eval(&attribute.value);
                if let Some(value) = self.named(expression) {
                    return value;
                }
                if let Some(number) = self.number_in(&attribute.value, whole.kind, &attribute.attr)
                {
                    return number;
                }
                self.attribute_of(whole, attribute.attr.as_str())
            }
            Expr::Call(call) => self.call(call),
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_) => {
                if let Expr::FString(text) = expression {
                    for element in text.value.elements() {
                        if let Some(interpolation) = element.as_interpolation() {
                            self.eval(&interpolation.expression);
                        }
                    }
                }
                Value::of(Kind::Text)
            }
            Expr::NoneLiteral(_) => Value::of(Kind::None),
            Expr::BooleanLiteral(_) => Value::of(Kind::Number),
            Expr::BinOp(operation) => {
                let left = self.eval(&operation.left);
                let right = self.eval(&operation.right);
                let value = Value {
                    form: form::operated(operation.op, left, right),
                    apart: form::stays_apart(operation.op, left, right),
                    ..sizes::operated(operation.op, left, right).at(expression.start())
                };
                if self.recording && operation.op == Operator::Div && !right.is(Kind::Number) {
                    self.divisions.push(Division {
                        above: &operation.left,
                        below: &operation.right,
                        by: right,
                        place: self.place,
                    });
                }
                if self.place.no_grad {
                    value.detached()
                } else {
                    value
                }
            }
            Expr::UnaryOp(operation) => {
                let value = self.eval(&operation.operand);
                match (operation.op, value.size) {
                    (UnaryOp::Not, _) => Value::of(Kind::Number),
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
                Value::of(Kind::Unknown)
            }
            Expr::If(choice) => {
                self.eval(&choice.test);
                let one = self.eval(&choice.body);
                let two = self.eval(&choice.orelse);
                self.join_deep(one, two)
            }
            Expr::Named(named) => {
                let value = self.eval(&named.value);
                self.assign_quietly(&named.target, value);
                value
            }
            Expr::Tuple(_) => {
                let row: Vec<_> = elements(expression)
                    .iter()
                    .map(|element| ("", self.eval(element)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            Expr::List(_) | Expr::Set(_) => {
                let mut graph = false;
                for element in elements(expression) {
                    graph |= self.eval(element).graph;
                }
                Value {
                    graph,
                    ..Value::of(Kind::List)
                }
                .at(expression.start())
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
                self.row(Kind::Fields, row).at(expression.start())
            }
            Expr::ListComp(comprehension) => self
                .listed(&comprehension.generators, &comprehension.elt)
                .at(expression.start()),
            Expr::Generator(comprehension) => {
                self.listed(&comprehension.generators, &comprehension.elt)
            }
            Expr::SetComp(comprehension) => {
                self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    flow.eval(&comprehension.elt)
                });
                Value::of(Kind::List)
            }
            Expr::DictComp(comprehension) => {
                self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    if let Some(key) = &comprehension.key {
                        flow.eval(key);
                    }
                    flow.eval(&comprehension.value)
                });
                Value::of(Kind::Dict)
            }
            Expr::Subscript(subscript) => {
                let whole = self.eval(&subscript.value);
                self.eval(&subscript.slice);
                if let Some(value) = self.key(expression).and_then(|key| self.look_up(key)) {
                    return value;
                }
                if let Some(length) = self.length_at(&subscript.value, &subscript.slice) {
                    return Value::number(length);
                }
                let form = match whole.kind {
                    Kind::Tensor | Kind::Unknown => whole.form,
                    _ => Form::Unknown,
                };
                match self.element_of(whole, &subscript.slice) {
                    part if part.form == Form::Unknown => Value { form, ..part },
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
                let frame = self.place.frame.0 as usize;
                let before = self.frames[frame].yields;
                let joined = before.map_or(value, |before| self.join_deep(before, value));
                self.frames[frame].yields = Some(joined);
                Value::UNKNOWN
            }
            Expr::YieldFrom(given) => {
                self.eval(&given.value);
                Value::UNKNOWN
            }
            Expr::Lambda(lambda) => {
                self.inline(|flow| flow.eval(&lambda.body));
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

    pub(super) fn inline(&mut self, body: impl FnOnce(&mut Flow<'a>) -> Value) -> Value {
        let before = std::mem::replace(&mut self.place.inline, true);
        let value = body(self);
        self.place.inline = before;
        value
    }

    /// The list that a comprehension makes.
    fn listed(
        &mut self,
        generators: &'a [ruff_python_ast::Comprehension],
        each: &'a Expr,
    ) -> Value {
        let value = self.inline(|flow| {
            flow.generators(generators);
            flow.eval(each)
        });
        Value {
            graph: value.graph,
            ..Value::of(Kind::List)
        }
    }

    pub(super) fn generators(&mut self, generators: &'a [ruff_python_ast::Comprehension]) {
        for generator in generators {
            let over = self.eval(&generator.iter);
            let item = self.item_of(&generator.iter, over);
            self.assign_quietly(&generator.target, item);
            generator.ifs.iter().for_each(|condition| {
                self.eval(condition);
            });
        }
    }

    pub(super) fn row(&mut self, kind: fn(u32) -> Kind, row: Vec<(&'a str, Value)>) -> Value {
        let graph = row.iter().any(|(_, value)| value.graph);
        let index = self.rows.len() as u32;
        self.rows.push(row);
        Value {
            graph,
            ..Value::of(kind(index))
        }
    }

    /// As [`Value::join`]; tuples of one length part by part.
    pub(super) fn join_deep(&mut self, one: Value, two: Value) -> Value {
        match (one.kind, two.kind) {
            (Kind::Tuple(first), Kind::Tuple(second)) if first != second => {
                let (first, second) = (&self.rows[first as usize], &self.rows[second as usize]);
                if first.len() != second.len() {
                    return Value::UNKNOWN;
                }
                let row = first
                    .iter()
                    .zip(second)
                    .map(|((_, one), (_, two))| ("", one.join(*two)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            _ => one.join(two),
        }
    }

    pub(super) fn attribute_of(&self, whole: Value, name: &str) -> Value {
        match whole.kind {
            Kind::Tensor | Kind::Unknown | Kind::Array if known::is_plain_attribute(name) => {
                match name {
                    "data" => whole.detached(),
                    _ => Value::UNKNOWN,
                }
            }
            Kind::Tensor | Kind::Unknown if whole.graph => Value::tensor(true).at(whole.site),
            _ => self.suggested(name),
        }
    }

    pub(super) fn element_of(&self, whole: Value, index: &'a Expr) -> Value {
        match whole.kind {
            Kind::Fields(row) => {
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
            Kind::Tuple(row) => {
                let row = &self.rows[row as usize];
                let index = sizes::index(index, row.len());
                index.map_or(Value::UNKNOWN, |index| row[index].1)
            }
            Kind::Tensor | Kind::List | Kind::Bounded | Kind::Unknown if whole.graph => {
                Value::tensor(true).at(whole.site)
            }
            Kind::Tensor => Value::of(Kind::Tensor),
            Kind::Batch if sizes::index(index, 1) == Some(0) => self.first_of(whole),
            _ => Value::UNKNOWN,
        }
    }
}
