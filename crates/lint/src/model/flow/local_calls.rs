//! Calls of functions in the same text: their arguments are learned, and their return values used.

use super::Flow;
use crate::model::activation;
use crate::model::facts::FrameId;
use crate::model::path::Path;
use crate::model::value::{Activation, Size, Value, ValueKind};
use ruff_python_ast::{Expr, ExprCall};

impl<'a> Flow<'a> {
    /// Evaluates a call of a function in this text.
    pub(super) fn call_local_function(
        &mut self,
        id: u32,
        call: &'a ExprCall,
        given: &[Value],
        bound: bool,
    ) -> Value {
        self.record_caller(id, call, given, bound);
        let returns = self.frames[id as usize].returns;
        if self.context.no_grad {
            returns.detached()
        } else {
            returns
        }
    }

    /// Joins the arguments given for dataclass fields with their defaults.
    pub(super) fn join_field_arguments(&mut self, id: u32, call: &'a ExprCall, given: &[Value]) {
        let attributes = &mut self.classes[id as usize].attributes;
        if !call.arguments.args.is_empty() {
            attributes
                .values_mut()
                .for_each(|known| *known = known.join(Value::UNKNOWN));
        }
        for (keyword, value) in call
            .arguments
            .keywords
            .iter()
            .zip(&given[call.arguments.args.len()..])
        {
            if let Some(name) = &keyword.arg
                && let Some(known) = attributes.get_mut(name.as_str())
            {
                *known = known.join(*value);
            }
        }
    }

    /// Records how a function in this text is called: with or without gradient tracking, and with
    /// which arguments.
    pub(super) fn record_caller(
        &mut self,
        id: u32,
        call: &'a ExprCall,
        given: &[Value],
        bound: bool,
    ) {
        if self.frames[id as usize].def.is_none() {
            return;
        }
        self.last_local_function = Some(FrameId(id));
        let no_grad = self.context.no_grad;
        let callers = &mut self.callers[id as usize];
        if no_grad {
            callers.without += 1;
        } else {
            callers.with_graph += 1;
        }
        self.learn_arguments(id, call, given, bound);
    }

    /// Learns the arguments of a function in this text from one call.
    pub(super) fn learn_arguments(
        &mut self,
        id: u32,
        call: &'a ExprCall,
        given: &[Value],
        bound: bool,
    ) {
        let Some(def) = self.frames[id as usize].def else {
            return;
        };
        let callers = &mut self.callers[id as usize];
        let is_method = self.frames[id as usize].class.is_some() && bound;
        let offset = usize::from(is_method);
        let mut learn = |place: usize, value: Value| {
            if let Some(known) = callers.arguments.get_mut(place) {
                // Whether a value has a graph depends on the caller; its kind and its number do
                // not.
                let value = Value {
                    size: value.as_number().map_or(Size::Unknown, Size::Number),
                    activation: value.activation,
                    class: value.class,
                    ..Value::of_kind(value.kind)
                };
                *known = Some(known.map_or(value, |known| known.join(value)));
            }
        };
        let arguments = &call.arguments;
        for (index, argument) in arguments.args.iter().enumerate() {
            if argument.is_starred_expr() {
                return;
            }
            learn(index + offset, given[index]);
        }
        for (keyword, value) in arguments
            .keywords
            .iter()
            .zip(&given[arguments.args.len()..])
        {
            if let Some(name) = &keyword.arg {
                let mut parameters = def.parameters.iter_non_variadic_params();
                if let Some(place) =
                    parameters.position(|p| p.parameter.name.as_str() == name.as_str())
                {
                    learn(place, *value);
                }
            }
        }
        if arguments
            .keywords
            .iter()
            .any(|keyword| keyword.arg.is_none())
        {
            return;
        }
        let defaults = callers.defaults.clone();
        for (place, default) in defaults
            .into_iter()
            .enumerate()
            .skip(arguments.args.len() + offset)
        {
            let name = def.parameters.iter_non_variadic_params().nth(place);
            let is_given =
                name.is_some_and(|p| arguments.find_keyword(&p.parameter.name).is_some());
            if is_given {
                continue;
            }
            let callers = &mut self.callers[id as usize];
            if let Some(left_out) = callers.left_out.get_mut(place) {
                *left_out = true;
            }
            if default.as_number().is_some()
                && let Some(known) = callers.arguments.get_mut(place)
            {
                *known = Some(known.map_or(default, |known| known.join(default)));
            }
        }
    }

    /// Returns the activation of the output of the model that this call creates.
    pub(super) fn activation_of_model(
        &self,
        path: &Path<'a>,
        call: &'a ExprCall,
        given: &[Value],
    ) -> Activation {
        // Keras takes its layers as a list.
        if path.last() == "Sequential"
            && let Some(Expr::List(layers)) = call.arguments.args.first()
        {
            return match layers.elts.last() {
                Some(Expr::Call(last)) => match self.imports.resolve(&last.func) {
                    Some(path) => activation::of_layer(&path, last, &[]),
                    None => Activation::Unknown,
                },
                _ => Activation::Unknown,
            };
        }
        activation::of_layer(path, call, given)
    }

    /// Adds what is known of the activation to a call's result.
    pub(super) fn with_activation(
        &self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        callee: Value,
        given: &[Value],
        result: Value,
    ) -> Value {
        if !matches!(result.kind, ValueKind::Tensor | ValueKind::Unknown)
            || result.activation != Activation::Unknown
        {
            return result;
        }
        let first_is_elementwise = given.first().is_some_and(|first| first.elementwise);
        let (activation, elementwise) = match (path, receiver) {
            (Some(path), _) if path.is_in("keras.layers") => {
                (activation::of_layer(&path, call, given), false)
            }
            (Some(path), _) => {
                let activation = activation::of_function(&path, given);
                (
                    activation,
                    first_is_elementwise && activation::is_elementwise(path.last()),
                )
            }
            (None, Some(receiver))
                if matches!(receiver.kind, ValueKind::Tensor | ValueKind::Unknown) =>
            {
                let method = match &*call.func {
                    Expr::Attribute(attribute) => attribute.attr.as_str(),
                    _ => "",
                };
                let elementwise = receiver.elementwise && activation::is_elementwise(method);
                (activation::of_method(method, receiver), elementwise)
            }
            // A Keras layer that is called where it is created.
            (None, None) if callee.is(ValueKind::Unknown) => (callee.activation, false),
            _ => return result,
        };
        Value {
            activation,
            elementwise: elementwise || result.elementwise,
            ..result
        }
    }
}
