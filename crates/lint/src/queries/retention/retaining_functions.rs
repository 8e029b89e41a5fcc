//! Functions in the text that store their arguments.

use super::removal::is_emptied_in_block;
use super::totals::{contains_name, find_accumulation, is_rebound_in_function};
use super::{StoredItem, outlives_the_call};
use crate::model::{Call, CodeContext, FrameId, Module, Value};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

/// Returns the arguments of a call with the names of their parameters.
pub fn match_arguments<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    own: FrameId,
) -> Vec<(&'a str, &'a Expr, Value)> {
    let frame = module.frame(own);
    let Some(def) = frame.def else {
        return Vec::new();
    };
    let is_static = def.decorator_list.iter().any(
        |decorator| matches!(&decorator.expression, Expr::Name(name) if name.id.as_str() == "staticmethod"),
    );
    let skip = usize::from(frame.class.is_some() && !is_static);
    let parameters = def.parameters.iter_non_variadic_params().skip(skip);
    let mut found = Vec::new();
    for (index, parameter) in parameters.enumerate() {
        let name = parameter.parameter.name.as_str();
        if let (Some(argument), Some(value)) = (
            call.argument(index, name),
            module.argument(call, index, name),
        ) {
            found.push((name, argument, value));
        }
    }
    found
}

/// A function in this text that stores an argument where it outlives the call.
pub struct RetainingFunction<'a> {
    /// The function.
    pub frame: FrameId,
    /// The parameter whose argument is stored.
    pub parameter: &'a str,
    /// The container that stores it.
    pub name: &'a str,
    /// Whether the argument is added to a total instead of stored in a list.
    pub is_total: bool,
    /// The statement or call that stores it.
    pub range: TextRange,
}

/// Returns the functions that store an argument where it outlives the call.
pub fn find_retaining_functions<'a>(
    module: &Module<'a>,
    items: &[StoredItem<'a>],
) -> Vec<RetainingFunction<'a>> {
    let mut keepers = Vec::new();
    let mut add =
        |name: &'a str, item: &'a Expr, context: &CodeContext, range: TextRange, is_total: bool| {
            let frame = module.frame(context.frame);
            let Some(def) = frame.def else { return };
            if context.no_grad || !outlives_the_call(module, name, context) {
                return;
            }
            for parameter in def.parameters.iter_non_variadic_params() {
                let parameter = parameter.parameter.name.as_str();
                if contains_name(item, parameter)
                    && !is_rebound_in_function(module, parameter, context.frame)
                {
                    keepers.push(RetainingFunction {
                        frame: context.frame,
                        parameter,
                        name,
                        is_total,
                        range,
                    });
                }
            }
        };
    for kept in items {
        if !is_emptied_in_block(module, kept.name, module.frame(kept.context.frame).body) {
            add(kept.name, kept.item, &kept.context, kept.range, false);
        }
    }
    for store in module.stores() {
        if let Some((name, item)) = find_accumulation(module, store) {
            add(name, item, &store.context, store.statement.range(), true);
        }
    }
    keepers
}
