//! Lengths of arrays, as far as they are written in the text.

use super::{Flow, elements, holds_options};
use crate::model::facts::FrameId;
use crate::model::sizes;
use crate::model::value::{Kind, Size, Value};
use ruff_python_ast::{Expr, Operator};

impl<'a> Flow<'a> {
    /// The lengths along the axes of an array, or of the first part of what a loader gives.
    pub fn shape(&self, value: Value) -> Option<&[f64]> {
        let index = (value.shape as usize).checked_sub(1)?;
        self.shapes.get(index).map(Vec::as_slice)
    }

    pub(super) fn keep_shape(&mut self, lengths: Vec<f64>) -> u32 {
        // A loop is gone through twice, and finds what it found.
        const FAR: usize = 64;
        let recent = self.shapes.len().saturating_sub(FAR);
        if let Some(known) = self.shapes[recent..]
            .iter()
            .position(|known| *known == lengths)
        {
            return (recent + known + 1) as u32;
        }
        self.shapes.push(lengths);
        self.shapes.len() as u32
    }

    /// A value that is this array.
    pub(super) fn sized(&mut self, value: Value, array: Option<sizes::Array>) -> Value {
        match array {
            Some(array) => Value {
                size: array.size(),
                shape: self.keep_shape(array.lengths),
                ..value
            },
            None => value,
        }
    }

    /// The same array with elements of another type.
    pub(super) fn retyped(&self, value: Value, each: Option<f64>) -> Value {
        let size = match (self.shape(value), value.size, each) {
            (Some(lengths), Size::Bytes { rows, .. }, Some(each)) => Size::Bytes {
                bytes: lengths.iter().product::<f64>() * each,
                rows,
            },
            _ => Size::Unknown,
        };
        Value { size, ..value }
    }

    /// `x.shape[1]`.
    pub(super) fn length_at(&self, whole: &'a Expr, index: &'a Expr) -> Option<f64> {
        let Expr::Attribute(attribute) = whole else {
            return None;
        };
        if attribute.attr.as_str() != "shape" {
            return None;
        }
        let lengths = self.shape(self.named(&attribute.value)?)?;
        lengths.get(sizes::index(index, lengths.len())?).copied()
    }

    /// The lengths that a shape is written as: `(rows, 3)`, `rows`, `IMAGE + (3,)`.
    pub(super) fn lengths(&self, expression: &'a Expr) -> Option<Vec<f64>> {
        match expression {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(expression).iter();
                parts.map(|part| self.peek(part).as_number()).collect()
            }
            Expr::BinOp(sum)
                if sum.op == Operator::Add && self.peek(expression).as_number().is_none() =>
            {
                let mut lengths = self.lengths(&sum.left)?;
                lengths.extend(self.lengths(&sum.right)?);
                Some(lengths)
            }
            _ => {
                let value = self.peek(expression);
                match value.kind {
                    Kind::Tuple(row) => self.rows[row as usize]
                        .iter()
                        .map(|(_, part)| part.as_number())
                        .collect(),
                    _ => value.as_number().map(|length| vec![length]),
                }
            }
        }
    }

    /// A number behind a dot: an option of the command line, or a field of a record.
    pub(super) fn number_in(&self, whole: &'a Expr, kind: Kind, name: &str) -> Option<Value> {
        let value = match kind {
            Kind::Instance(class) | Kind::Class(class) => {
                self.classes.get(class as usize)?.attributes.get(name)
            }
            Kind::Unknown if holds_options(self.key(whole)?) => self.options.get(name),
            _ => None,
        };
        value.copied().filter(|value| value.as_number().is_some())
    }

    /// What is known of an expression when a function has been gone through.
    pub fn settled(&self, expression: &'a Expr, frame: FrameId) -> Value {
        match expression {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => {
                let found = self.key(expression).and_then(|key| {
                    let mut frame = Some(frame);
                    while let Some(id) = frame {
                        let outer = &self.frames[id.0 as usize];
                        if let Some(value) = outer.names.get(key) {
                            return Some(*value);
                        }
                        if let Some(attribute) = key.strip_prefix("self.")
                            && let Some(class) = outer.class
                            && let Some(value) =
                                self.classes[class as usize].attributes.get(attribute)
                        {
                            return Some(*value);
                        }
                        frame = outer.parent;
                    }
                    None
                });
                match (found, expression) {
                    (Some(value), _) => value,
                    (None, Expr::Attribute(attribute)) => {
                        let whole = self.settled(&attribute.value, frame);
                        let number = self.number_in(&attribute.value, whole.kind, &attribute.attr);
                        number.unwrap_or(Value::UNKNOWN)
                    }
                    (None, Expr::Subscript(subscript)) => {
                        let whole = self.settled(&subscript.value, frame);
                        self.element_of(whole, &subscript.slice)
                    }
                    _ => Value::UNKNOWN,
                }
            }
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::BinOp(operation) => sizes::operated(
                operation.op,
                self.settled(&operation.left, frame),
                self.settled(&operation.right, frame),
            ),
            _ => Value::UNKNOWN,
        }
    }
}
