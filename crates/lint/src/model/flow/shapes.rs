//! Shapes of arrays, as far as they are written in the text.

use super::{Flow, elements, holds_options};
use crate::model::facts::FrameId;
use crate::model::sizes;
use crate::model::value::{Size, Value, ValueKind};
use ruff_python_ast::{Expr, Operator};

impl<'a> Flow<'a> {
    /// Returns the shape of an array, or of the first part of what a loader yields.
    pub fn shape(&self, value: Value) -> Option<&[f64]> {
        let index = (value.shape as usize).checked_sub(1)?;
        self.shapes.get(index).map(Vec::as_slice)
    }

    pub(super) fn intern_shape(&mut self, lengths: Vec<f64>) -> u32 {
        // A loop body is evaluated twice and finds the same shapes again.
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

    /// Returns the value with the size and shape of this array.
    pub(super) fn with_array_size(&mut self, value: Value, array: Option<sizes::Array>) -> Value {
        match array {
            Some(array) => Value {
                size: array.size(),
                shape: self.intern_shape(array.lengths),
                ..value
            },
            None => value,
        }
    }

    /// Returns the same array with another element size.
    pub(super) fn with_dtype(&self, value: Value, each: Option<f64>) -> Value {
        let size = match (self.shape(value), value.size, each) {
            (Some(lengths), Size::Bytes { rows, .. }, Some(each)) => Size::Bytes {
                bytes: lengths.iter().product::<f64>() * each,
                rows,
            },
            _ => Size::Unknown,
        };
        Value { size, ..value }
    }

    /// Returns a literal element of a shape: `x.shape[1]`.
    pub(super) fn shape_element(&self, whole: &'a Expr, index: &'a Expr) -> Option<f64> {
        let Expr::Attribute(attribute) = whole else {
            return None;
        };
        if attribute.attr.as_str() != "shape" {
            return None;
        }
        let lengths = self.shape(self.resolve_name(&attribute.value)?)?;
        lengths.get(sizes::index(index, lengths.len())?).copied()
    }

    /// Parses a shape: `(rows, 3)`, `rows`, `IMAGE + (3,)`.
    pub(super) fn parse_shape(&self, expression: &'a Expr) -> Option<Vec<f64>> {
        match expression {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(expression).iter();
                parts.map(|part| self.peek(part).as_number()).collect()
            }
            Expr::BinOp(sum)
                if sum.op == Operator::Add && self.peek(expression).as_number().is_none() =>
            {
                let mut lengths = self.parse_shape(&sum.left)?;
                lengths.extend(self.parse_shape(&sum.right)?);
                Some(lengths)
            }
            _ => {
                let value = self.peek(expression);
                match value.kind {
                    ValueKind::Tuple(row) => self.rows[row as usize]
                        .iter()
                        .map(|(_, part)| part.as_number())
                        .collect(),
                    _ => value.as_number().map(|length| vec![length]),
                }
            }
        }
    }

    /// Returns the number of an attribute: a command-line option or a field of a record.
    pub(super) fn number_attribute(
        &self,
        whole: &'a Expr,
        kind: ValueKind,
        name: &str,
    ) -> Option<Value> {
        let value = match kind {
            ValueKind::Instance(class) | ValueKind::Class(class) => {
                self.classes.get(class as usize)?.attributes.get(name)
            }
            ValueKind::Unknown if holds_options(self.dotted_name(whole)?) => self.options.get(name),
            _ => None,
        };
        value.copied().filter(|value| value.as_number().is_some())
    }

    /// Returns the value of an expression at the end of a function.
    pub fn final_value(&self, expression: &'a Expr, frame: FrameId) -> Value {
        match expression {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => {
                let found = self.dotted_name(expression).and_then(|key| {
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
                        let whole = self.final_value(&attribute.value, frame);
                        let number =
                            self.number_attribute(&attribute.value, whole.kind, &attribute.attr);
                        number.unwrap_or(Value::UNKNOWN)
                    }
                    (None, Expr::Subscript(subscript)) => {
                        let whole = self.final_value(&subscript.value, frame);
                        self.element_value(whole, &subscript.slice)
                    }
                    _ => Value::UNKNOWN,
                }
            }
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::BinOp(operation) => sizes::operated(
                operation.op,
                self.final_value(&operation.left, frame),
                self.final_value(&operation.right, frame),
            ),
            _ => Value::UNKNOWN,
        }
    }
}
