//! Resolves the layers that a model consists of.

use crate::model::{FrameId, Module, ValueKind};
use crate::queries::bindings::{find_binding, find_local_function, single_return_value};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextSize};
use std::cell::Cell;

/// The layers of a model.
pub(super) enum Network<'a> {
    Layer(&'a ExprCall, FrameId),
    /// A model class in this text.
    Class(u32),
    Row(Vec<Network<'a>>),
}

/// Resolves an expression to the layers of a model.
pub(super) fn resolve_network<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    before: TextSize,
    deep: u32,
) -> Option<Network<'a>> {
    let deep = deep.checked_sub(1)?;
    budget.set(budget.get().checked_sub(1)?);
    match expr {
        Expr::Name(_) | Expr::Attribute(_) => {
            let name = module.dotted_name(expr)?;
            let origin = find_binding(module, name, frame, before)?;
            if origin.part.is_some() {
                return None;
            }
            let net = resolve_network(
                budget,
                module,
                origin.expr,
                origin.frame,
                origin.expr.start(),
                deep,
            )?;
            Some(with_added_layers(
                budget,
                module,
                net,
                name,
                origin.frame,
                deep,
            ))
        }
        Expr::Call(call) => {
            let Some(path) = module.import_path(&call.func) else {
                if let Expr::Attribute(method) = &*call.func
                    && matches!(
                        method.attr.as_str(),
                        "to" | "cuda"
                            | "cpu"
                            | "train"
                            | "eval"
                            | "float"
                            | "apply"
                            | "requires_grad_"
                    )
                {
                    return resolve_network(budget, module, &method.value, frame, before, deep);
                }
                return match module.final_value(&call.func, frame).kind {
                    ValueKind::Class(id) => Some(Network::Class(id)),
                    ValueKind::Function(_) => {
                        let own = find_local_function(module, call, frame)?;
                        let result = single_return_value(module, own)?;
                        resolve_network(budget, module, result, own, result.start(), deep)
                    }
                    _ => None,
                };
            };
            let arguments = &call.arguments;
            match path.segments() {
                ["torch", "nn", "Sequential"] => {
                    resolve_sequential(budget, module, &arguments.args, frame, deep)
                }
                ["keras", "Sequential"] | ["keras", "models", "Sequential"] => {
                    match arguments.args.first() {
                        Some(Expr::List(layers)) => {
                            resolve_sequential(budget, module, &layers.elts, frame, deep)
                        }
                        None if arguments.is_empty() => Some(Network::Row(Vec::new())),
                        _ => None,
                    }
                }
                ["torch", "nn", _] | ["keras", "layers", ..] | ["keras", "Input"] => {
                    Some(Network::Layer(call, frame))
                }
                ["torch", "compile"] => {
                    resolve_network(budget, module, arguments.args.first()?, frame, before, deep)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Resolves the layers of a sequential model, up to the first unknown one.
pub(super) fn resolve_sequential<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    layers: &'a [Expr],
    frame: FrameId,
    deep: u32,
) -> Option<Network<'a>> {
    let mut nets = Vec::with_capacity(layers.len());
    for layer in layers {
        match resolve_network(budget, module, layer, frame, layer.start(), deep) {
            Some(net) => nets.push(net),
            // The layers after this one are unknown; those before it count.
            None => break,
        }
    }
    (!nets.is_empty()).then_some(Network::Row(nets))
}

/// Appends the layers added to a Keras model later: `model.add(…)`.
pub(super) fn with_added_layers<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    net: Network<'a>,
    name: &str,
    frame: FrameId,
    deep: u32,
) -> Network<'a> {
    let Network::Row(mut layers) = net else {
        return net;
    };
    for call in module.calls() {
        if call.method() == Some("add")
            && call.context.frame == frame
            && call.context.innermost_loop.is_none()
            && call.object().and_then(|object| module.dotted_name(object)) == Some(name)
            && let Some(layer) = call.argument(0, "layer")
        {
            match resolve_network(budget, module, layer, frame, layer.start(), deep) {
                Some(net) => layers.push(net),
                None => break,
            }
        }
    }
    Network::Row(layers)
}
