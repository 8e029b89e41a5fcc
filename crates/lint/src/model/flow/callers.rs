//! Calls of functions of the same text: what is learned from them, and what they return.

use super::Flow;
use crate::model::facts::FrameId;
use crate::model::form;
use crate::model::path::Path;
use crate::model::value::{Form, Kind, Size, Value};
use ruff_python_ast::{Expr, ExprCall};

impl<'a> Flow<'a> {
    /// A call of a function of this text.
    pub(super) fn call_own(
        &mut self,
        id: u32,
        call: &'a ExprCall,
        given: &[Value],
        bound: bool,
    ) -> Value {
        self.note_caller(id, call, given, bound);
        let returns = self.frames[id as usize].returns;
        if self.place.no_grad {
            returns.detached()
        } else {
            returns
        }
    }

    /// Fields of a dataclass that are given are not what they were by default.
    pub(super) fn fill_fields(&mut self, id: u32, call: &'a ExprCall, given: &[Value]) {
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

    /// Notes how a function of this text is called: with a graph, and with what.
    pub(super) fn note_caller(
        &mut self,
        id: u32,
        call: &'a ExprCall,
        given: &[Value],
        bound: bool,
    ) {
        if self.frames[id as usize].def.is_none() {
            return;
        }
        self.last_own = Some(FrameId(id));
        let no_grad = self.place.no_grad;
        let callers = &mut self.callers[id as usize];
        if no_grad {
            callers.without += 1;
        } else {
            callers.with_graph += 1;
        }
        self.learn_arguments(id, call, given, bound);
    }

    /// Learns from a call what a function of this text is given.
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
                // Graphs come and go with the caller; what kind of thing it is stays, and
                // which number.
                let value = Value {
                    size: value.as_number().map_or(Size::Unknown, Size::Number),
                    form: value.form,
                    class: value.class,
                    ..Value::of(value.kind)
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

    /// What a model puts out that is made by this call.
    pub(super) fn form_of_model(
        &self,
        path: &Path<'a>,
        call: &'a ExprCall,
        given: &[Value],
    ) -> Form {
        // Keras takes its layers as a list.
        if path.last() == "Sequential"
            && let Some(Expr::List(layers)) = call.arguments.args.first()
        {
            return match layers.elts.last() {
                Some(Expr::Call(last)) => match self.imports.resolve(&last.func) {
                    Some(path) => form::of_layer(&path, last, &[]),
                    None => Form::Unknown,
                },
                _ => Form::Unknown,
            };
        }
        form::of_layer(path, call, given)
    }

    /// A call's result with what is known of its numbers.
    pub(super) fn formed(
        &self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        callee: Value,
        given: &[Value],
        result: Value,
    ) -> Value {
        if !matches!(result.kind, Kind::Tensor | Kind::Unknown) || result.form != Form::Unknown {
            return result;
        }
        let first_is_apart = given.first().is_some_and(|first| first.apart);
        let (form, apart) = match (path, receiver) {
            (Some(path), _) if path.is_in("keras.layers") => {
                (form::of_layer(&path, call, given), false)
            }
            (Some(path), _) => {
                let form = form::of_function(&path, given);
                (form, first_is_apart && form::is_elementwise(path.last()))
            }
            (None, Some(receiver)) if matches!(receiver.kind, Kind::Tensor | Kind::Unknown) => {
                let method = match &*call.func {
                    Expr::Attribute(attribute) => attribute.attr.as_str(),
                    _ => "",
                };
                let apart = receiver.apart && form::is_elementwise(method);
                (form::of_method(method, receiver), apart)
            }
            // A layer of Keras, called where it is made.
            (None, None) if callee.is(Kind::Unknown) => (callee.form, false),
            _ => return result,
        };
        Value {
            form,
            apart: apart || result.apart,
            ..result
        }
    }
}
