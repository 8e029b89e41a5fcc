//! Finds what a name was bound to, through other names and functions of the same text.

use crate::model::{FrameId, Module, Role, ValueKind, each_block};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// An expression, the function it is in, and the part of its result that is meant.
#[derive(Clone, Copy)]
pub struct BoundExpr<'a> {
    /// The expression.
    pub expr: &'a Expr,
    /// The frame it is in.
    pub frame: FrameId,
    /// The index of the part that is meant, if a tuple is unpacked.
    pub part: Option<usize>,
}

/// Returns the last binding of a name before a position in a function, any binding of a `self`
/// attribute in its class, or any binding of a name in an outer function.
pub fn find_binding<'a>(
    module: &Module<'a>,
    name: &str,
    frame: FrameId,
    before: TextSize,
) -> Option<BoundExpr<'a>> {
    let own_class = module
        .frame(frame)
        .class
        .filter(|_| name.starts_with("self."));
    let mut here = Some(frame);
    while let Some(at) = here {
        let found = module.stores().iter().rev().find(|store| {
            let in_reach = match own_class {
                Some(class) => module.frame(store.context.frame).class == Some(class),
                None => {
                    store.context.frame == at && (at != frame || store.statement.end() <= before)
                }
            };
            in_reach && store.operator.is_none() && module.dotted_name(store.target) == Some(name)
        });
        if let Some(store) = found {
            let frame = store.context.frame;
            if let Some(expr) = store.source {
                return Some(BoundExpr {
                    expr,
                    frame,
                    part: None,
                });
            }
            let Stmt::Assign(assign) = store.statement else {
                return None;
            };
            let part = assign
                .targets
                .iter()
                .find_map(|target| position_in_target(target, store.target.range()))?;
            return Some(BoundExpr {
                expr: &assign.value,
                frame,
                part: Some(part),
            });
        }
        if own_class.is_some() || module.frame(at).names.contains_key(name) {
            // The name is a parameter or a loop variable.
            return None;
        }
        here = module.frame(at).parent;
    }
    None
}

fn position_in_target(target: &Expr, part: TextRange) -> Option<usize> {
    let parts = match target {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => return None,
    };
    parts.iter().position(|other| other.range() == part)
}

/// Returns the expression behind up to four names.
pub fn resolve_names<'a>(module: &Module<'a>, expr: &'a Expr, frame: FrameId) -> BoundExpr<'a> {
    let mut origin = BoundExpr {
        expr,
        frame,
        part: None,
    };
    for _ in 0..4 {
        let bound = module
            .dotted_name(origin.expr)
            .and_then(|key| find_binding(module, key, origin.frame, origin.expr.start()));
        match bound {
            Some(bound) if bound.part.is_none() && bound.expr.range() != origin.expr.range() => {
                origin = bound
            }
            _ => break,
        }
    }
    origin
}

/// Returns the return value of a function in this text that has a single `return`.
pub fn single_return_value<'a>(module: &Module<'a>, frame: FrameId) -> Option<&'a Expr> {
    match return_values(module, frame)[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Returns all return values of a function in this text.
pub fn return_values<'a>(module: &Module<'a>, frame: FrameId) -> Vec<&'a Expr> {
    fn collect<'a>(body: &'a [Stmt], found: &mut Vec<&'a Expr>) {
        for statement in body {
            match statement {
                Stmt::Return(result) => found.extend(result.value.as_deref()),
                _ => each_block(statement, |block| collect(block, found)),
            }
        }
    }
    let mut found = Vec::new();
    collect(module.frame(frame).body, &mut found);
    found
}

/// Returns the function in this text that is called.
pub fn find_local_function<'a>(
    module: &Module<'a>,
    call: &'a ExprCall,
    frame: FrameId,
) -> Option<FrameId> {
    match module.final_value(&call.func, frame).kind {
        ValueKind::Function(id) => Some(FrameId(id)),
        _ => None,
    }
}

/// Returns the first expression of a chain of methods and attributes: `a` of `a.b().c`.
pub fn chain_root(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Attribute(attribute) => &attribute.value,
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(attribute) => &attribute.value,
                _ => return expr,
            },
            Expr::Subscript(subscript) => &subscript.value,
            _ => return expr,
        }
    }
}

/// Returns the innermost block and the index of the statement in it that contains a range.
pub fn find_statement(body: &[Stmt], place: TextRange) -> Option<(&[Stmt], usize)> {
    let index = body
        .iter()
        .position(|statement| statement.range().contains_range(place))?;
    let mut inner = None;
    each_block(&body[index], |block| {
        inner = inner.or_else(|| find_statement(block, place))
    });
    inner.or(Some((body, index)))
}

/// Whether this text trains: it fits a model, computes gradients or creates a loader.
pub fn is_training_script(module: &Module<'_>) -> bool {
    module.calls().iter().any(|call| {
        matches!(
            call.method(),
            Some("fit" | "backward" | "apply_gradients" | "train_on_batch" | "fit_generator")
        ) || call.result.is(ValueKind::Loader)
    }) || module
        .classes()
        .iter()
        .any(|class| class.role == Role::Dataset)
}
