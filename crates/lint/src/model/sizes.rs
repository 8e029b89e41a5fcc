//! Numbers and array sizes that can be computed from the text.

use super::path::Path;
use super::value::{Size, Value, ValueKind};
use ruff_python_ast::{Expr, ExprCall, Number, Operator};

/// The element size if the text does not give a type.
const FLOAT32_BYTES: f64 = 4.0;
const FLOAT64_BYTES: f64 = 8.0;

/// Returns the value of a number literal.
pub fn literal(number: &Number) -> Value {
    match number {
        Number::Int(int) => int
            .as_u64()
            .map_or(Value::of_kind(ValueKind::Number), |int| {
                Value::number(int as f64)
            }),
        Number::Float(float) => Value::number(*float),
        Number::Complex { .. } => Value::of_kind(ValueKind::Number),
    }
}

/// Returns a literal index into a row of this length; negative indices count from the end.
pub fn index(expression: &Expr, length: usize) -> Option<usize> {
    let (number, from_end) = match expression {
        Expr::NumberLiteral(number) => (&number.value, false),
        Expr::UnaryOp(operation) if operation.op == ruff_python_ast::UnaryOp::USub => {
            match &*operation.operand {
                Expr::NumberLiteral(number) => (&number.value, true),
                _ => return None,
            }
        }
        _ => return None,
    };
    let Number::Int(int) = number else {
        return None;
    };
    let at = usize::try_from(int.as_u64()?).ok()?;
    let at = if from_end {
        length.checked_sub(at)?
    } else {
        at
    };
    (at < length).then_some(at)
}

/// Returns the result of an operator.
pub fn operated(operator: Operator, left: Value, right: Value) -> Value {
    if let (Some(left), Some(right)) = (left.as_number(), right.as_number()) {
        let number = match operator {
            Operator::Add => left + right,
            Operator::Sub => left - right,
            Operator::Mult => left * right,
            Operator::Div => left / right,
            Operator::FloorDiv => (left / right).floor(),
            Operator::Mod => left % right,
            Operator::Pow => left.powf(right),
            Operator::LShift => left * right.exp2(),
            _ => f64::NAN,
        };
        return if number.is_finite() {
            Value::number(number)
        } else {
            Value::of_kind(ValueKind::Number)
        };
    }
    let is = |kind| left.is(kind) || right.is(kind);
    let graph = left.graph || right.graph || is(ValueKind::Parameter);
    let kind = if graph || is(ValueKind::Tensor) {
        ValueKind::Tensor
    } else if is(ValueKind::Array) {
        ValueKind::Array
    } else if left.is(ValueKind::Number) && right.is(ValueKind::Number) {
        ValueKind::Number
    } else if left.is(ValueKind::List) && right.is(ValueKind::List) {
        ValueKind::List
    } else {
        ValueKind::Unknown
    };
    Value {
        kind,
        graph,
        predicted: left.predicted || right.predicted,
        unreduced: left.unreduced || right.unreduced,
        ..sized_like(left, right)
    }
}

/// Returns the size of an array scaled by a number: `x / 255` is as large as `x`.
fn sized_like(left: Value, right: Value) -> Value {
    let of = match (left.size, right.size) {
        (Size::Bytes { .. }, _) if right.is(ValueKind::Number) => left,
        (_, Size::Bytes { .. }) if left.is(ValueKind::Number) => right,
        _ => return Value::UNKNOWN,
    };
    Value {
        size: of.size,
        shape: of.shape,
        device: of.device,
        ..Value::UNKNOWN
    }
}

/// Returns the output length of a convolution or pooling window along one axis.
pub fn window_output_length(
    length: f64,
    kernel: f64,
    stride: f64,
    padding: f64,
    dilation: f64,
) -> f64 {
    ((length + 2.0 * padding - dilation * (kernel - 1.0) - 1.0) / stride.max(1.0)).floor() + 1.0
}

/// Returns a keyword argument.
pub fn keyword<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    call.arguments
        .find_keyword(name)
        .map(|keyword| &keyword.value)
}

/// Returns the name and numeric default of a command-line option:
/// `parser.add_argument("--batch-size", type=int, default=64)`.
pub fn option(call: &ExprCall) -> Option<(String, Value)> {
    let Expr::Attribute(attribute) = &*call.func else {
        return None;
    };
    let default = match attribute.attr.as_str() {
        "add_argument" => keyword(call, "default"),
        "DEFINE_integer" | "DEFINE_float" => call.arguments.args.get(1),
        _ => return None,
    };
    let texts = call.arguments.args.iter().map_while(|name| match name {
        Expr::StringLiteral(text) => Some(text.value.to_str()),
        _ => None,
    });
    let name = match keyword(call, "dest") {
        Some(Expr::StringLiteral(text)) => text.value.to_str(),
        Some(_) => return None,
        // The first long option, or the first one.
        None => {
            let names: Vec<&str> = texts.collect();
            let long = names.iter().find(|name| name.starts_with("--"));
            long.or(names.first())?.trim_start_matches('-')
        }
    };
    let value = match default {
        Some(Expr::NumberLiteral(number)) => literal(&number.value),
        // The option exists but its default is unknown, so another default must not be used for it.
        _ => Value::UNKNOWN,
    };
    Some((name.replace('-', "_"), value))
}

/// An array of known shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The length along each axis.
    pub lengths: Vec<f64>,
    /// The size of an element in bytes.
    pub each: f64,
}

impl Array {
    /// Returns the number of bytes and rows.
    pub fn size(&self) -> Size {
        match self.lengths.first() {
            Some(rows) => Size::Bytes {
                bytes: self.lengths.iter().product::<f64>() * self.each,
                rows: *rows,
            },
            None => Size::Unknown,
        }
    }
}

/// Returns the array that a library function creates from literal sizes.
pub fn made_by<'a>(
    path: &Path<'a>,
    call: &'a ExprCall,
    lengths: impl Fn(&'a Expr) -> Option<Vec<f64>>,
) -> Option<Array> {
    let (package, function) = match path.segments() {
        [package @ ("torch" | "numpy" | "tensorflow"), function] => (*package, *function),
        ["numpy", "random", function] => ("numpy", *function),
        ["tensorflow", "random", function] => ("tensorflow", *function),
        _ => return None,
    };
    let first = match function {
        "zeros" | "ones" | "empty" | "full" | "rand" | "randn" | "random" | "standard_normal"
        | "random_sample" => 0,
        "normal" | "uniform" if package == "tensorflow" => 0,
        "randint" if package == "torch" => usize::from(!second_is_shape(call)) + 1,
        "randint" | "normal" | "uniform" => 2,
        _ => return None,
    };
    let takes_many =
        matches!(function, "rand" | "randn") || (package == "torch" && function != "full");
    let whole = match (package, function) {
        (_, "randint") => FLOAT64_BYTES,
        ("numpy", _) => FLOAT64_BYTES,
        _ => FLOAT32_BYTES,
    };
    let place = matches!(
        (package, function),
        ("numpy" | "tensorflow", "zeros" | "ones" | "empty")
    );
    let dtype = keyword(call, "dtype").or_else(|| call.arguments.args.get(1).filter(|_| place));
    array(call, first, takes_many, dtype, whole, lengths)
}

/// Returns the array that a NumPy generator creates: `rng.random((rows, columns))`.
pub fn drawn_by<'a>(
    method: &str,
    call: &'a ExprCall,
    lengths: impl Fn(&'a Expr) -> Option<Vec<f64>>,
) -> Option<Array> {
    let first = match method {
        "random" | "standard_normal" => 0,
        "integers" | "normal" | "uniform" => 2,
        _ => return None,
    };
    array(
        call,
        first,
        false,
        keyword(call, "dtype"),
        FLOAT64_BYTES,
        lengths,
    )
}

fn array<'a>(
    call: &'a ExprCall,
    first: usize,
    takes_many: bool,
    dtype: Option<&Expr>,
    whole: f64,
    lengths: impl Fn(&'a Expr) -> Option<Vec<f64>>,
) -> Option<Array> {
    let shape = keyword(call, "size").or_else(|| keyword(call, "shape"));
    let lengths: Vec<f64> = match shape {
        Some(shape) => lengths(shape)?,
        None if takes_many && first == 0 => {
            let parts = call.arguments.args.iter().map(lengths);
            parts.collect::<Option<Vec<_>>>()?.concat()
        }
        None => lengths(call.arguments.args.get(first)?)?,
    };
    let is_shape = !lengths.is_empty()
        && lengths
            .iter()
            .all(|length| *length >= 1.0 && length.fract() == 0.0);
    let each = dtype.map_or(Some(whole), element)?;
    is_shape.then_some(Array { lengths, each })
}

/// Distinguishes `torch.randint(high, (shape))` from `torch.randint(low, high, (shape))`.
fn second_is_shape(call: &ExprCall) -> bool {
    call.arguments
        .args
        .get(1)
        .is_some_and(|second| second.is_tuple_expr() || second.is_list_expr())
}

/// Returns the element size of a dtype in bytes, by the last part of its name.
pub fn element(dtype: &Expr) -> Option<f64> {
    let name = match dtype {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Name(name) => name.id.as_str(),
        Expr::StringLiteral(text) => text.value.to_str(),
        _ => return None,
    };
    let bytes = match name {
        "float64" | "double" | "int64" | "long" | "uint64" | "complex64" | "float"
            if name != "float" =>
        {
            8
        }
        "float" => match dtype {
            // `torch.float` has four bytes, Python's `float` eight.
            Expr::Attribute(_) => 4,
            _ => 8,
        },
        "int" => match dtype {
            Expr::Attribute(_) => 4,
            _ => 8,
        },
        "float32" | "int32" | "uint32" => 4,
        "float16" | "half" | "bfloat16" | "int16" | "uint16" | "short" => 2,
        "int8" | "uint8" | "bool" | "bool_" => 1,
        "complex128" => 16,
        _ => return None,
    };
    Some(f64::from(bytes))
}
