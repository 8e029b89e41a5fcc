//! Functions of the text that keep what they are given.

use super::emptying::empties;
use super::totals::{added_to, holds, is_rebound};
use super::{Kept, outlives_the_call};
use crate::model::{Call, FrameId, Module, Place, Value};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

/// The arguments of a call with the names of the parameters they are for.
pub fn arguments_of<'a>(
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

/// A function of this text that keeps what it is given, where it outlives the call.
pub struct Keeper<'a> {
    pub frame: FrameId,
    /// The parameter whose argument is kept.
    pub parameter: &'a str,
    /// Where it is kept.
    pub name: &'a str,
    /// It is added up, not put beside others.
    pub is_total: bool,
    /// What keeps it.
    pub range: TextRange,
}

pub fn keepers<'a>(module: &Module<'a>, items: &[Kept<'a>]) -> Vec<Keeper<'a>> {
    let mut keepers = Vec::new();
    let mut add =
        |name: &'a str, item: &'a Expr, place: &Place, range: TextRange, is_total: bool| {
            let frame = module.frame(place.frame);
            let Some(def) = frame.def else { return };
            if place.no_grad || !outlives_the_call(module, name, place) {
                return;
            }
            for parameter in def.parameters.iter_non_variadic_params() {
                let parameter = parameter.parameter.name.as_str();
                if holds(item, parameter) && !is_rebound(module, parameter, place.frame) {
                    keepers.push(Keeper {
                        frame: place.frame,
                        parameter,
                        name,
                        is_total,
                        range,
                    });
                }
            }
        };
    for kept in items {
        if !empties(module, kept.name, module.frame(kept.place.frame).body) {
            add(kept.name, kept.item, &kept.place, kept.range, false);
        }
    }
    for store in module.stores() {
        if let Some((name, item)) = added_to(module, store) {
            add(name, item, &store.place, store.statement.range(), true);
        }
    }
    keepers
}
