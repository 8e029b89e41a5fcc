//! Evaluates statements in execution order.

use super::{Flow, start_of_frame};
use crate::model::facts::{CodeContext, FrameId, LoopSource};
use crate::model::scope::Scope;
use crate::model::value::{Size, Value, ValueKind};
use crate::model::{known_apis, sizes};
use ruff_python_ast::{
    ExceptHandler, Expr, Parameters, Stmt, StmtClassDef, StmtFunctionDef, StmtTry,
};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

impl<'a> Flow<'a> {
    pub(super) fn run_all_frames(&mut self) {
        for id in 0..self.frames.len() {
            self.run_frame(FrameId(id as u32));
        }
    }

    pub(super) fn run_frame(&mut self, id: FrameId) {
        let index = id.0 as usize;
        let (def, class, body) = {
            let frame = &self.frames[index];
            (frame.def, frame.class, frame.body)
        };
        self.scope = Scope::default();
        self.context = CodeContext {
            no_grad: self.frames[index].no_grad,
            ..start_of_frame(id)
        };
        if let Some(def) = def {
            self.bind_parameters(id, def, class);
        }
        self.frames[index].returns = Value::of_kind(ValueKind::None);
        self.run_block(body);
        let names = std::mem::take(&mut self.scope).into_values();
        if let Some(class) = class {
            self.merge_attributes(class, &names);
        }
        self.frames[index].names = names;
    }

    pub(super) fn merge_attributes(&mut self, class: u32, names: &FxHashMap<&'a str, Value>) {
        let attributes = &mut self.classes[class as usize].attributes;
        for (name, value) in names {
            if let Some(attribute) = name.strip_prefix("self.") {
                attributes
                    .entry(attribute)
                    .and_modify(|known| {
                        // An attribute that was unknown in the first pass says nothing.
                        let is_blank = |value: &Value| value.is(ValueKind::Unknown) && !value.graph;
                        *known = match (is_blank(known), is_blank(value)) {
                            (true, _) => *value,
                            // A number by default, and another one in some caller.
                            (false, true) if known.as_number().is_some() => *value,
                            (false, true) => *known,
                            (false, false)
                                if known.kind == value.kind
                                    && known.size == Size::Unknown
                                    && matches!(value.size, Size::Bytes { .. }) =>
                            {
                                Value {
                                    size: value.size,
                                    shape: value.shape,
                                    ..known.join(*value)
                                }
                            }
                            (false, false) => known.join(*value),
                        };
                    })
                    .or_insert(*value);
            }
        }
    }

    pub(super) fn bind_parameters(
        &mut self,
        id: FrameId,
        def: &'a StmtFunctionDef,
        class: Option<u32>,
    ) {
        let learned = self.callers[id.0 as usize].arguments.clone();
        for (index, parameter) in def.parameters.iter_non_variadic_params().enumerate() {
            let name = parameter.parameter.name.as_str();
            let annotated = parameter
                .parameter
                .annotation
                .as_deref()
                .map_or(Value::UNKNOWN, |annotation| {
                    self.annotated_value(annotation)
                });
            let value = match class {
                Some(class) if index == 0 && name == "self" => self.instance_of(class),
                _ if annotated.kind != ValueKind::Unknown => annotated,
                _ => match learned.get(index).copied().flatten() {
                    Some(value) if value.kind != ValueKind::Unknown => value,
                    _ => self.suggest_by_name(name),
                },
            };
            let value = self.with_known_number(id, index, value);
            self.bind_name(name, value);
        }
    }

    /// Returns the number that all callers pass for a parameter, or its default.
    pub(super) fn with_known_number(&self, id: FrameId, index: usize, value: Value) -> Value {
        if !matches!(
            value.kind,
            ValueKind::Unknown | ValueKind::Number | ValueKind::None
        ) {
            return value;
        }
        let callers = &self.callers[id.0 as usize];
        let default = callers
            .defaults
            .get(index)
            .copied()
            .filter(|default| default.as_number().is_some());
        let is_left_out = callers.left_out.get(index) == Some(&true);
        let known = match callers.arguments.get(index).copied().flatten() {
            Some(given) if default.is_some() || !is_left_out => Some(given),
            Some(_) => None,
            None => default,
        };
        known
            .filter(|known| known.as_number().is_some())
            .unwrap_or(value)
    }

    pub(super) fn annotated_value(&self, annotation: &'a Expr) -> Value {
        match self.imports.resolve(annotation) {
            Some(path) => match path.segments() {
                ["torch", "Tensor"] => Value::of_kind(ValueKind::Tensor),
                ["torch", "nn", "Module"] => Value::of_kind(ValueKind::Model),
                ["torch", "utils", "data", "DataLoader"] => Value::of_kind(ValueKind::Loader),
                ["torch", "optim", ..] => Value::of_kind(ValueKind::Optimizer),
                _ => Value::UNKNOWN,
            },
            None => match annotation {
                Expr::Name(name) if ["int", "float", "bool"].contains(&name.id.as_str()) => {
                    Value::of_kind(ValueKind::Number)
                }
                _ => Value::UNKNOWN,
            },
        }
    }

    /// Returns what a name probably stands for when nothing else is known.
    pub(super) fn suggest_by_name(&self, name: &str) -> Value {
        if self.speaks_torch {
            known_apis::suggested_by(name)
        } else {
            Value::UNKNOWN
        }
    }

    pub(super) fn learn_from_callers(&mut self) {
        for (frame, callers) in self.frames.iter_mut().zip(&self.callers) {
            frame.no_grad |= callers.without > 0 && callers.with_graph == 0;
        }
    }

    pub(super) fn run_block(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.run_statement(statement);
        }
    }

    pub(super) fn run_statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Expr(expression) => {
                self.eval(&expression.value);
            }
            Stmt::Assign(assign) => {
                let value = self.eval(&assign.value);
                for target in &assign.targets {
                    self.assign(statement, target, Some(&assign.value), value);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(source) = &assign.value {
                    let value = self.eval(source);
                    self.assign(statement, &assign.target, Some(source), value);
                }
            }
            Stmt::AugAssign(assign) => {
                let added = self.eval(&assign.value);
                let before = self.eval(&assign.target);
                self.record_store(
                    statement,
                    &assign.target,
                    Some(&assign.value),
                    added,
                    Some(assign.op),
                );
                if let Some(key) = self.dotted_name(&assign.target) {
                    let sum = sizes::operated(assign.op, before, added);
                    self.scope.update_value(key, |value| *value = sum);
                }
            }
            Stmt::For(repeat) => {
                let over = self.eval(&repeat.iter);
                let feed = self.classify_loop_source(&repeat.iter, over);
                let id = self.enter_loop(
                    statement,
                    &repeat.body,
                    Some((&repeat.target, &repeat.iter)),
                    feed,
                );
                self.run_loop_body(id, |flow| {
                    let item = flow.loop_item(&repeat.iter, over);
                    flow.assign_without_recording(&repeat.target, item);
                    flow.run_block(&repeat.body);
                });
                self.run_block(&repeat.orelse);
            }
            Stmt::While(repeat) => {
                let id = self.enter_loop(statement, &repeat.body, None, LoopSource::Other);
                self.run_loop_body(id, |flow| {
                    flow.eval(&repeat.test);
                    flow.run_block(&repeat.body);
                });
                self.run_block(&repeat.orelse);
            }
            Stmt::If(choice) => {
                self.eval(&choice.test);
                let fork = self.scope.snapshot();
                self.run_block(&choice.body);
                let mut ways = vec![];
                let mut is_complete = false;
                for clause in &choice.elif_else_clauses {
                    ways.push(self.scope.restore(&fork));
                    match &clause.test {
                        Some(test) => {
                            self.eval(test);
                        }
                        None => is_complete = true,
                    }
                    self.run_block(&clause.body);
                }
                for way in &ways {
                    self.scope.merge(way);
                }
                if !is_complete {
                    self.scope.merge(&fork);
                }
            }
            Stmt::With(with) => {
                let before = self.context.no_grad;
                for item in &with.items {
                    let value = self.eval(&item.context_expr);
                    self.context.no_grad = self.is_grad_off_inside(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.assign_without_recording(target, value);
                    }
                }
                self.run_block(&with.body);
                self.context.no_grad = before;
            }
            Stmt::Try(attempt) => self.run_try(attempt),
            Stmt::Return(result) => {
                let value = match &result.value {
                    Some(value) => self.eval(value),
                    None => Value::of_kind(ValueKind::None),
                };
                let returns = self.frames[self.context.frame.0 as usize].returns;
                // The function returned nothing so far, or only `None`.
                let joined = match returns == Value::of_kind(ValueKind::None) {
                    true => value,
                    false => self.join_with_tuples(returns, value),
                };
                self.frames[self.context.frame.0 as usize].returns = joined;
            }
            Stmt::FunctionDef(def) => {
                for decorator in &def.decorator_list {
                    self.eval(&decorator.expression);
                }
                self.eval_defaults(&def.parameters);
                self.record_defaults(def);
                if let Some(id) = self.functions.get(&def.start()) {
                    self.bind_name(def.name.as_str(), Value::of_kind(ValueKind::Function(*id)));
                }
            }
            Stmt::ClassDef(def) => {
                if let Some(id) = self.known_classes.get(&def.start()) {
                    self.bind_name(def.name.as_str(), Value::of_kind(ValueKind::Class(*id)));
                }
                // Methods have frames of their own; the rest of a class body runs here.
                let outside = self.scope.snapshot();
                for statement in &def.body {
                    match statement {
                        Stmt::FunctionDef(def) => self.record_defaults(def),
                        _ => {
                            self.run_statement(statement);
                            self.record_field_default(def, statement);
                        }
                    }
                }
                self.scope.restore(&outside);
            }
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    if let Some(key) = self.dotted_name(target) {
                        self.scope.remove(key);
                    }
                }
            }
            Stmt::Match(choice) => {
                self.eval(&choice.subject);
                let fork = self.scope.snapshot();
                let mut ways = vec![];
                for case in &choice.cases {
                    self.run_block(&case.body);
                    ways.push(self.scope.restore(&fork));
                }
                for way in &ways {
                    self.scope.merge(way);
                }
            }
            Stmt::Raise(raise) => {
                raise.exc.iter().for_each(|raised| {
                    self.eval(raised);
                });
            }
            Stmt::Assert(assert) => {
                self.eval(&assert.test);
            }
            _ => {}
        }
    }

    pub(super) fn run_try(&mut self, attempt: &'a StmtTry) {
        let fork = self.scope.snapshot();
        self.run_block(&attempt.body);
        self.run_block(&attempt.orelse);
        let done = self.scope.snapshot();
        let mut ways = vec![];
        for handler in &attempt.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.scope.restore(&fork);
            self.scope.merge(&done);
            let before = self.context.handler.replace(handler.range());
            self.run_block(&handler.body);
            self.context.handler = before;
            ways.push(self.scope.snapshot());
        }
        self.scope.restore(&done);
        for way in &ways {
            self.scope.merge(way);
        }
        self.run_block(&attempt.finalbody);
    }

    pub(super) fn eval_defaults(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = &parameter.default {
                self.eval(default);
            }
        }
    }

    pub(super) fn record_defaults(&mut self, def: &'a StmtFunctionDef) {
        let Some(id) = self.functions.get(&def.start()).copied() else {
            return;
        };
        for (index, parameter) in def.parameters.iter_non_variadic_params().enumerate() {
            if let Some(default) = &parameter.default {
                let value = self.peek(default);
                if let Some(known) = self.callers[id as usize].defaults.get_mut(index) {
                    *known = value;
                }
            }
        }
    }

    /// Records a number in a class body, such as the default of a dataclass field.
    pub(super) fn record_field_default(&mut self, class: &'a StmtClassDef, statement: &'a Stmt) {
        let (target, source) = match statement {
            Stmt::AnnAssign(assign) => (&*assign.target, assign.value.as_deref()),
            Stmt::Assign(assign) if assign.targets.len() == 1 => {
                (&assign.targets[0], Some(&*assign.value))
            }
            _ => return,
        };
        let (Expr::Name(name), Some(source)) = (target, source) else {
            return;
        };
        let value = self.peek(source);
        if value.as_number().is_some()
            && let Some(id) = self.known_classes.get(&class.start())
        {
            let attributes = &mut self.classes[*id as usize].attributes;
            attributes.entry(name.id.as_str()).or_insert(value);
        }
    }
}
