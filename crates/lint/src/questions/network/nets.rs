//! What a model is made of.

use crate::model::{FrameId, Kind, Module};
use crate::questions::bindings::{bound_to, own_function, returned};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextSize};
use std::cell::Cell;

pub(super) enum Net<'a> {
    Layer(&'a ExprCall, FrameId),
    /// A class of this text.
    Class(u32),
    Row(Vec<Net<'a>>),
}

pub(super) fn net_of<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    before: TextSize,
    deep: u32,
) -> Option<Net<'a>> {
    let deep = deep.checked_sub(1)?;
    budget.set(budget.get().checked_sub(1)?);
    match expr {
        Expr::Name(_) | Expr::Attribute(_) => {
            let name = module.key(expr)?;
            let origin = bound_to(module, name, frame, before)?;
            if origin.part.is_some() {
                return None;
            }
            let net = net_of(
                budget,
                module,
                origin.expr,
                origin.frame,
                origin.expr.start(),
                deep,
            )?;
            Some(with_added(budget, module, net, name, origin.frame, deep))
        }
        Expr::Call(call) => {
            let Some(path) = module.path(&call.func) else {
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
                    return net_of(budget, module, &method.value, frame, before, deep);
                }
                return match module.settled(&call.func, frame).kind {
                    Kind::Class(id) => Some(Net::Class(id)),
                    Kind::Function(_) => {
                        let own = own_function(module, call, frame)?;
                        let result = returned(module, own)?;
                        net_of(budget, module, result, own, result.start(), deep)
                    }
                    _ => None,
                };
            };
            let arguments = &call.arguments;
            match path.segments() {
                ["torch", "nn", "Sequential"] => row(budget, module, &arguments.args, frame, deep),
                ["keras", "Sequential"] | ["keras", "models", "Sequential"] => {
                    match arguments.args.first() {
                        Some(Expr::List(layers)) => row(budget, module, &layers.elts, frame, deep),
                        None if arguments.is_empty() => Some(Net::Row(Vec::new())),
                        _ => None,
                    }
                }
                ["torch", "nn", _] | ["keras", "layers", ..] | ["keras", "Input"] => {
                    Some(Net::Layer(call, frame))
                }
                ["torch", "compile"] => {
                    net_of(budget, module, arguments.args.first()?, frame, before, deep)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

pub(super) fn row<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    layers: &'a [Expr],
    frame: FrameId,
    deep: u32,
) -> Option<Net<'a>> {
    let mut nets = Vec::with_capacity(layers.len());
    for layer in layers {
        match net_of(budget, module, layer, frame, layer.start(), deep) {
            Some(net) => nets.push(net),
            // What follows cannot be known; what came before is.
            None => break,
        }
    }
    (!nets.is_empty()).then_some(Net::Row(nets))
}

/// The layers that are added to a Keras model afterwards: `model.add(…)`.
pub(super) fn with_added<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    net: Net<'a>,
    name: &str,
    frame: FrameId,
    deep: u32,
) -> Net<'a> {
    let Net::Row(mut layers) = net else {
        return net;
    };
    for call in module.calls() {
        if call.method() == Some("add")
            && call.place.frame == frame
            && call.place.within.is_none()
            && call.object().and_then(|object| module.key(object)) == Some(name)
            && let Some(layer) = call.argument(0, "layer")
        {
            match net_of(budget, module, layer, frame, layer.start(), deep) {
                Some(net) => layers.push(net),
                None => break,
            }
        }
    }
    Net::Row(layers)
}
