//! Running totals, and whether plain numbers are enough in them.

use crate::model::uses::{Use, lies_in};
use crate::model::{FrameId, Module, Store};
use crate::queries::backward::is_backward_call;
use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// Returns the total and the added expression of `total += x` or `total = total + x`.
pub fn find_accumulation<'a>(
    module: &Module<'a>,
    store: &Store<'a>,
) -> Option<(&'a str, &'a Expr)> {
    let name = module.dotted_name(store.target)?;
    let source = store.source?;
    let (name, added) = match store.operator {
        Some(Operator::Add | Operator::Sub) => (name, source),
        Some(_) => return None,
        None => match source {
            Expr::BinOp(sum) if sum.op == Operator::Add => {
                let is_name = |side: &'a Expr| module.dotted_name(side) == Some(name);
                match (is_name(&sum.left), is_name(&sum.right)) {
                    (true, false) => (name, &*sum.right),
                    (false, true) => (name, &*sum.left),
                    _ => return None,
                }
            }
            _ => return None,
        },
    };
    // A list that is extended, not a total.
    let is_list = matches!(added, Expr::List(_) | Expr::ListComp(_) | Expr::Tuple(_));
    (!is_list).then_some((name, added))
}

pub(super) fn is_rebound_in_function(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let mut stores = module
        .stores()
        .iter()
        .filter(|store| store.context.frame == frame);
    stores.any(|store| module.dotted_name(store.target) == Some(name))
}

/// Whether an expression contains the value of this name unchanged.
pub(super) fn contains_name(expression: &Expr, name: &str) -> bool {
    match expression {
        Expr::Name(found) => found.id.as_str() == name,
        Expr::Tuple(tuple) => tuple.elts.iter().any(|part| contains_name(part, name)),
        Expr::List(list) => list.elts.iter().any(|part| contains_name(part, name)),
        Expr::Dict(dict) => dict
            .items
            .iter()
            .any(|item| contains_name(&item.value, name)),
        Expr::BinOp(operation) => {
            contains_name(&operation.left, name) || contains_name(&operation.right, name)
        }
        Expr::UnaryOp(operation) => contains_name(&operation.operand, name),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(attribute) => {
                matches!(
                    attribute.attr.as_str(),
                    "clone" | "mean" | "sum" | "to" | "cuda" | "float" | "contiguous"
                ) && contains_name(&attribute.value, name)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether `.item()` works on an expression: `backward()` runs on it without arguments, or it is
/// such a value times a number.
pub fn is_scalar<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    match item {
        Expr::BinOp(operation) => {
            (is_scalar(module, &operation.left, frame) && is_number(&operation.right))
                || (is_number(&operation.left) && is_scalar(module, &operation.right, frame))
        }
        _ => module
            .dotted_name(item)
            .is_some_and(|key| is_backward_receiver(module, key, frame)),
    }
}

/// Whether `backward()` is called on exactly this name: `loss.backward()`, not
/// `loss.mean().backward()`.
pub(super) fn is_backward_receiver(module: &Module<'_>, key: &str, frame: FrameId) -> bool {
    let mut backward = module
        .calls()
        .iter()
        .filter(|call| call.context.frame == frame && is_backward_call(call));
    backward.any(|call| {
        let given = call.expr.arguments.args.first();
        let of = match (given, call.object()) {
            // `accelerator.backward(loss)`
            (Some(loss), Some(object)) if module.dotted_name(object) != Some(key) => Some(loss),
            (None, Some(Expr::Call(scaled)))
                if module.source(&*scaled.func).ends_with(".scale") =>
            {
                scaled.arguments.args.first()
            }
            (None, object) => object,
            _ => None,
        };
        of.and_then(|of| module.dotted_name(of)) == Some(key)
    })
}

pub(super) fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::NumberLiteral(_) => true,
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => matches!(name.id.as_str(), "len" | "float" | "int"),
            Expr::Attribute(attribute) => match attribute.attr.as_str() {
                "size" => call.arguments.len() == 1,
                "numel" | "item" => true,
                _ => false,
            },
            _ => false,
        },
        Expr::Subscript(part) => {
            matches!(&*part.value, Expr::Attribute(shape) if shape.attr.as_str() == "shape")
        }
        Expr::BinOp(operation) => is_number(&operation.left) && is_number(&operation.right),
        _ => false,
    }
}

/// Whether a use of a total or list works with plain numbers too: it prints, compares or adds them.
/// A value that is returned or renamed may be used as a tensor.
pub fn accepts_plain_number(module: &Module<'_>, used: &Use<'_>, kept_by: TextRange) -> bool {
    let is_put = matches!(used.around[0], Some(Expr::Subscript(part)) if part.ctx.is_store());
    if used.is_store || is_put || lies_in(used.expr.range(), kept_by) {
        return true;
    }
    // Only the condition of an `if`; the statements inside are checked on their own.
    let source = match used.statement {
        Stmt::If(choice) => module.source(&*choice.test),
        Stmt::Expr(_) | Stmt::AugAssign(_) | Stmt::Assert(_) => module.source(used.statement),
        _ => return false,
    };
    const OF_TENSORS: [&str; 10] = [
        ".item(", ".detach(", ".cpu(", ".numpy(", ".mean(", ".tolist(", ".to(", ".data.", ".data[",
        "torch.",
    ];
    !OF_TENSORS.iter().any(|sign| source.contains(sign))
}
