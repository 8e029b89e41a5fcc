//! Goes through a text as it would run, with what is known in place of values.
//!
//! Branches are joined, a loop's body is gone through twice (what its first turn leaves is
//! what its second finds), calls of functions of the same text return what these functions
//! were seen to return. The text is gone through once to learn what functions return and
//! attributes hold, and once more to note what the rules ask for.

use super::facts::{Call, Class, Division, Feed, Frame, FrameId, Loop, LoopId, Place, Role, Store};
use super::form;
use super::known;
use super::path::{Imports, Path};
use super::scope::{Scope, Slot};
use super::sizes;
use super::value::{Device, Form, Kind, Size, Value};
use ruff_python_ast::{
    ExceptHandler, Expr, ExprCall, Operator, Parameters, Stmt, StmtClassDef, StmtFunctionDef,
    StmtTry, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

pub struct Flow<'a> {
    pub text: &'a str,
    pub imports: Imports<'a>,
    pub frames: Vec<Frame<'a>>,
    pub classes: Vec<Class<'a>>,
    pub loops: Vec<Loop<'a>>,
    pub calls: Vec<Call<'a>>,
    pub stores: Vec<Store<'a>>,
    pub divisions: Vec<Division<'a>>,
    /// Of tuples and records.
    pub rows: Vec<Vec<(&'a str, Value)>>,
    /// The lengths along the axes of arrays.
    pub shapes: Vec<Vec<f64>>,
    /// Numbers that the command line's options have when they are not given.
    options: FxHashMap<String, Value>,
    /// Of the arguments of calls, one after the other.
    pub values: Vec<Value>,
    /// Functions, classes and loops by where they begin.
    functions: FxHashMap<TextSize, u32>,
    known_classes: FxHashMap<TextSize, u32>,
    known_loops: FxHashMap<TextSize, LoopId>,
    /// How functions are called, by frame: with a graph, without, and with what.
    callers: Vec<Callers>,
    scope: Scope<'a>,
    place: Place,
    recording: bool,
    speaks_torch: bool,
    speaks_tensorflow: bool,
    /// The function of this text that the call at hand turned out to be.
    last_own: Option<FrameId>,
}

#[derive(Clone, Default)]
struct Callers {
    with_graph: u32,
    without: u32,
    arguments: Vec<Option<Value>>,
    /// What parameters are when they are not given.
    defaults: Vec<Value>,
    /// Whether somebody does not give them.
    left_out: Vec<bool>,
}

const TEXT: FrameId = FrameId(0);

impl<'a> Flow<'a> {
    pub fn of(text: &'a str, body: &'a [Stmt]) -> Flow<'a> {
        let mut flow = Flow {
            text,
            imports: Imports::default(),
            frames: vec![frame(None, None, None, body)],
            classes: Vec::new(),
            loops: Vec::new(),
            calls: Vec::new(),
            stores: Vec::new(),
            divisions: Vec::new(),
            rows: Vec::new(),
            shapes: Vec::new(),
            options: FxHashMap::default(),
            values: Vec::new(),
            functions: FxHashMap::default(),
            known_classes: FxHashMap::default(),
            known_loops: FxHashMap::default(),
            callers: vec![Callers::default()],
            scope: Scope::default(),
            place: at(TEXT),
            recording: false,
            speaks_torch: false,
            speaks_tensorflow: false,
            last_own: None,
        };
        flow.survey(body, TEXT, None);
        flow.speaks_torch = ["torch", "lightning", "accelerate", "transformers", "timm"]
            .iter()
            .any(|package| flow.imports.has(package));
        flow.speaks_tensorflow = flow.imports.has("tensorflow") || flow.imports.has("keras");
        flow.assign_roles();
        flow.run_all();
        flow.learn_from_callers();
        flow.recording = true;
        flow.run_all();
        flow
    }

    // ---- what there is ----

    /// Finds imports, functions and classes before anything is gone through.
    fn survey(&mut self, body: &'a [Stmt], parent: FrameId, class: Option<u32>) {
        for statement in body {
            self.imports.take_in(statement);
            match statement {
                Stmt::FunctionDef(def) => {
                    let id = self.frames.len() as u32;
                    self.frames
                        .push(frame(Some(parent), class, Some(def), &def.body));
                    self.callers.push(Callers {
                        arguments: vec![None; def.parameters.len()],
                        defaults: vec![Value::UNKNOWN; def.parameters.len()],
                        left_out: vec![false; def.parameters.len()],
                        ..Callers::default()
                    });
                    self.functions.insert(def.start(), id);
                    if let Some(class) = class {
                        self.classes[class as usize]
                            .methods
                            .insert(def.name.as_str(), FrameId(id));
                    }
                    self.survey(&def.body, FrameId(id), None);
                }
                Stmt::ClassDef(def) => {
                    let id = self.classes.len() as u32;
                    self.classes.push(Class {
                        def,
                        is: Role::Other,
                        attributes: FxHashMap::default(),
                        methods: FxHashMap::default(),
                    });
                    self.known_classes.insert(def.start(), id);
                    self.survey(&def.body, parent, Some(id));
                }
                Stmt::Expr(expression) => {
                    if let Expr::Call(call) = &*expression.value
                        && let Some((name, default)) = sizes::option(call)
                    {
                        let known = self.options.entry(name).or_insert(default);
                        *known = known.join(default);
                    }
                }
                _ => each_block(statement, |block| self.survey(block, parent, class)),
            }
        }
    }

    fn assign_roles(&mut self) {
        // Twice: a class may be derived from one that comes later.
        for _ in 0..2 {
            for id in 0..self.classes.len() {
                self.classes[id].is = self.role(self.classes[id].def);
            }
        }
        for id in 0..self.frames.len() {
            self.frames[id].no_grad = self.records_nothing(&self.frames[id]);
        }
    }

    fn role(&self, def: &'a StmtClassDef) -> Role {
        let name = def.name.as_str();
        let bases = def.arguments.iter().flat_map(|arguments| &arguments.args);
        for base in bases {
            if let Some(path) = self.imports.resolve(base) {
                match path.segments() {
                    ["lightning", "LightningModule"] => return Role::Lightning,
                    ["torch", "nn", base] if base.ends_with("Loss") => return Role::Criterion,
                    ["torch", "nn", ..]
                        if name.ends_with("Loss") || name.ends_with("Criterion") =>
                    {
                        return Role::Criterion;
                    }
                    ["torch", "nn", ..] => return Role::Model,
                    ["torch", "utils", "data", ..] => return Role::Dataset,
                    ["keras", ..] => return Role::Keras,
                    [.., base] if base.ends_with("PreTrainedModel") => return Role::Model,
                    _ => {}
                }
            }
            if let Expr::Name(base) = base {
                let known = self
                    .classes
                    .iter()
                    .find(|class| class.def.name.as_str() == base.id.as_str());
                match known.map(|class| class.is) {
                    Some(Role::Other) | None => {}
                    Some(role) => return role,
                }
            }
        }
        Role::Other
    }

    fn records_nothing(&self, frame: &Frame<'a>) -> bool {
        let Some(def) = frame.def else { return false };
        let by_decorator = def.decorator_list.iter().any(|decorator| {
            let expression = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            says_no_grad(expression)
                || self
                    .imports
                    .resolve(expression)
                    .is_some_and(|path| turns_grad_off(&path))
        });
        let is = frame.class.map(|class| self.classes[class as usize].is);
        let by_engine = is == Some(Role::Lightning)
            && ["validation_step", "test_step", "predict_step"].contains(&def.name.as_str());
        by_decorator || by_engine
    }

    // ---- going through ----

    fn run_all(&mut self) {
        for id in 0..self.frames.len() {
            self.run(FrameId(id as u32));
        }
    }

    fn run(&mut self, id: FrameId) {
        let index = id.0 as usize;
        let (def, class, body) = {
            let frame = &self.frames[index];
            (frame.def, frame.class, frame.body)
        };
        self.scope = Scope::default();
        self.place = Place {
            no_grad: self.frames[index].no_grad,
            ..at(id)
        };
        if let Some(def) = def {
            self.bind_parameters(id, def, class);
        }
        self.frames[index].returns = Value::of(Kind::None);
        self.block(body);
        let names = std::mem::take(&mut self.scope).into_values();
        if let Some(class) = class {
            self.keep_attributes(class, &names);
        }
        self.frames[index].names = names;
    }

    fn keep_attributes(&mut self, class: u32, names: &FxHashMap<&'a str, Value>) {
        let attributes = &mut self.classes[class as usize].attributes;
        for (name, value) in names {
            if let Some(attribute) = name.strip_prefix("self.") {
                attributes
                    .entry(attribute)
                    .and_modify(|known| {
                        // What was not known when a method was first gone through says nothing.
                        let is_blank = |value: &Value| value.is(Kind::Unknown) && !value.graph;
                        *known = match (is_blank(known), is_blank(value)) {
                            (true, _) => *value,
                            // A number by default, and another one by who calls.
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

    fn bind_parameters(&mut self, id: FrameId, def: &'a StmtFunctionDef, class: Option<u32>) {
        let learned = self.callers[id.0 as usize].arguments.clone();
        for (index, parameter) in def.parameters.iter_non_variadic_params().enumerate() {
            let name = parameter.parameter.name.as_str();
            let annotated = parameter
                .parameter
                .annotation
                .as_deref()
                .map_or(Value::UNKNOWN, |annotation| self.annotated(annotation));
            let value = match class {
                Some(class) if index == 0 && name == "self" => self.instance(class),
                _ if annotated.kind != Kind::Unknown => annotated,
                _ => match learned.get(index).copied().flatten() {
                    Some(value) if value.kind != Kind::Unknown => value,
                    _ => self.suggested(name),
                },
            };
            let value = self.with_number(id, index, value);
            self.bind(name, value);
        }
    }

    /// A parameter that may be a number is the one that all callers give, or its default.
    fn with_number(&self, id: FrameId, index: usize, value: Value) -> Value {
        if !matches!(value.kind, Kind::Unknown | Kind::Number | Kind::None) {
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

    fn annotated(&self, annotation: &'a Expr) -> Value {
        match self.imports.resolve(annotation) {
            Some(path) => match path.segments() {
                ["torch", "Tensor"] => Value::of(Kind::Tensor),
                ["torch", "nn", "Module"] => Value::of(Kind::Model),
                ["torch", "utils", "data", "DataLoader"] => Value::of(Kind::Loader),
                ["torch", "optim", ..] => Value::of(Kind::Optimizer),
                _ => Value::UNKNOWN,
            },
            None => match annotation {
                Expr::Name(name) if ["int", "float", "bool"].contains(&name.id.as_str()) => {
                    Value::of(Kind::Number)
                }
                _ => Value::UNKNOWN,
            },
        }
    }

    /// What a name is likely to stand for when nothing else is known.
    fn suggested(&self, name: &str) -> Value {
        if self.speaks_torch {
            known::suggested_by(name)
        } else {
            Value::UNKNOWN
        }
    }

    fn learn_from_callers(&mut self) {
        for (frame, callers) in self.frames.iter_mut().zip(&self.callers) {
            frame.no_grad |= callers.without > 0 && callers.with_graph == 0;
        }
    }

    fn block(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a Stmt) {
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
                self.note_store(
                    statement,
                    &assign.target,
                    Some(&assign.value),
                    added,
                    Some(assign.op),
                );
                if let Some(key) = self.key(&assign.target) {
                    let sum = sizes::operated(assign.op, before, added);
                    self.scope.revise(key, |value| *value = sum);
                }
            }
            Stmt::For(repeat) => {
                let over = self.eval(&repeat.iter);
                let feed = self.feed(&repeat.iter, over);
                let id = self.enter(
                    statement,
                    &repeat.body,
                    Some((&repeat.target, &repeat.iter)),
                    feed,
                );
                self.turns(id, |flow| {
                    let item = flow.item_of(&repeat.iter, over);
                    flow.assign_quietly(&repeat.target, item);
                    flow.block(&repeat.body);
                });
                self.block(&repeat.orelse);
            }
            Stmt::While(repeat) => {
                let id = self.enter(statement, &repeat.body, None, Feed::Other);
                self.turns(id, |flow| {
                    flow.eval(&repeat.test);
                    flow.block(&repeat.body);
                });
                self.block(&repeat.orelse);
            }
            Stmt::If(choice) => {
                self.eval(&choice.test);
                let fork = self.scope.fork();
                self.block(&choice.body);
                let mut ways = vec![];
                let mut is_complete = false;
                for clause in &choice.elif_else_clauses {
                    ways.push(self.scope.back_to(&fork));
                    match &clause.test {
                        Some(test) => {
                            self.eval(test);
                        }
                        None => is_complete = true,
                    }
                    self.block(&clause.body);
                }
                for way in &ways {
                    self.scope.meet(way);
                }
                if !is_complete {
                    self.scope.meet(&fork);
                }
            }
            Stmt::With(with) => {
                let before = self.place.no_grad;
                for item in &with.items {
                    let value = self.eval(&item.context_expr);
                    self.place.no_grad = self.grad_after(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.assign_quietly(target, value);
                    }
                }
                self.block(&with.body);
                self.place.no_grad = before;
            }
            Stmt::Try(attempt) => self.attempt(attempt),
            Stmt::Return(result) => {
                let value = match &result.value {
                    Some(value) => self.eval(value),
                    None => Value::of(Kind::None),
                };
                let returns = self.frames[self.place.frame.0 as usize].returns;
                // Nothing was returned before, or only nothing.
                let joined = match returns == Value::of(Kind::None) {
                    true => value,
                    false => self.join_deep(returns, value),
                };
                self.frames[self.place.frame.0 as usize].returns = joined;
            }
            Stmt::FunctionDef(def) => {
                for decorator in &def.decorator_list {
                    self.eval(&decorator.expression);
                }
                self.defaults(&def.parameters);
                self.keep_defaults(def);
                if let Some(id) = self.functions.get(&def.start()) {
                    self.bind(def.name.as_str(), Value::of(Kind::Function(*id)));
                }
            }
            Stmt::ClassDef(def) => {
                if let Some(id) = self.known_classes.get(&def.start()) {
                    self.bind(def.name.as_str(), Value::of(Kind::Class(*id)));
                }
                // Methods have frames of their own; what else stands in a class runs here.
                let outside = self.scope.fork();
                for statement in &def.body {
                    match statement {
                        Stmt::FunctionDef(def) => self.keep_defaults(def),
                        _ => {
                            self.statement(statement);
                            self.keep_field(def, statement);
                        }
                    }
                }
                self.scope.back_to(&outside);
            }
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    if let Some(key) = self.key(target) {
                        self.scope.forget(key);
                    }
                }
            }
            Stmt::Match(choice) => {
                self.eval(&choice.subject);
                let fork = self.scope.fork();
                let mut ways = vec![];
                for case in &choice.cases {
                    self.block(&case.body);
                    ways.push(self.scope.back_to(&fork));
                }
                for way in &ways {
                    self.scope.meet(way);
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

    fn attempt(&mut self, attempt: &'a StmtTry) {
        let fork = self.scope.fork();
        self.block(&attempt.body);
        self.block(&attempt.orelse);
        let done = self.scope.fork();
        let mut ways = vec![];
        for handler in &attempt.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.scope.back_to(&fork);
            self.scope.meet(&done);
            let before = self.place.handler.replace(handler.range());
            self.block(&handler.body);
            self.place.handler = before;
            ways.push(self.scope.fork());
        }
        self.scope.back_to(&done);
        for way in &ways {
            self.scope.meet(way);
        }
        self.block(&attempt.finalbody);
    }

    fn defaults(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = &parameter.default {
                self.eval(default);
            }
        }
    }

    fn keep_defaults(&mut self, def: &'a StmtFunctionDef) {
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

    /// A number in the body of a class, such as a field of a dataclass.
    fn keep_field(&mut self, class: &'a StmtClassDef, statement: &'a Stmt) {
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

    // ---- loops ----

    fn enter(
        &mut self,
        statement: &'a Stmt,
        body: &'a [Stmt],
        over: Option<(&'a Expr, &'a Expr)>,
        feed: Feed,
    ) -> LoopId {
        if let Some(id) = self.known_loops.get(&statement.start()) {
            let known = &mut self.loops[id.0 as usize];
            known.feed = feed;
            known.no_grad = self.place.no_grad;
            return *id;
        }
        let id = LoopId(self.loops.len() as u32);
        self.known_loops.insert(statement.start(), id);
        self.loops.push(Loop {
            parent: self.place.within,
            frame: self.place.frame,
            statement,
            body,
            over,
            feed,
            no_grad: self.place.no_grad,
        });
        id
    }

    /// The body, twice where it counts: quietly first, so that the second turn finds what
    /// the first one left.
    fn turns(&mut self, id: LoopId, body: impl Fn(&mut Flow<'a>)) {
        let outer = self.place.within.replace(id);
        if self.recording {
            let before = self.scope.fork();
            self.recording = false;
            body(self);
            self.recording = true;
            self.scope.meet(&before);
        }
        let before = self.scope.fork();
        body(self);
        self.scope.meet(&before);
        self.place.within = outer;
    }

    /// What a `for` goes over, behind `enumerate`, `tqdm`, `zip` and the like.
    fn feed(&self, iter: &'a Expr, over: Value) -> Feed {
        let Expr::Call(call) = iter else {
            return match over.kind {
                Kind::Loader | Kind::Dataset => Feed::Batches,
                _ => Feed::Other,
            };
        };
        if let Expr::Name(name) = &*call.func
            && matches!(name.id.as_str(), "range" | "trange")
        {
            let times = match &*call.arguments.args {
                [times] | [_, times] => self.peek(times).as_number(),
                _ => None,
            };
            return Feed::Times(times);
        }
        let is_batches = over.kind == Kind::Loader
            || call
                .arguments
                .args
                .iter()
                .any(|argument| self.feed(argument, self.peek(argument)) == Feed::Batches);
        if is_batches {
            Feed::Batches
        } else {
            Feed::Other
        }
    }

    /// What one turn of a `for` gets.
    fn item_of(&mut self, iter: &'a Expr, over: Value) -> Value {
        if let Some(counted) = counted(iter) {
            let item = self.item_of(counted, over);
            return self.row(Kind::Tuple, vec![("", Value::of(Kind::Number)), ("", item)]);
        }
        if let Expr::Call(call) = iter
            && let Some(Kind::Function(id)) = self.named(&call.func).map(|callee| callee.kind)
            && let Some(item) = self.frames[id as usize].yields
        {
            return item;
        }
        if over.shape != 0 && matches!(over.kind, Kind::Loader | Kind::Dataset) {
            return Value {
                device: over.device,
                shape: over.shape,
                ..Value::of(Kind::Batch)
            };
        }
        if over.kind == Kind::Parameters {
            return Value::of(Kind::Parameter);
        }
        Value {
            device: over.device,
            graph: over.graph && matches!(over.kind, Kind::List | Kind::Tensor | Kind::Tuple(_)),
            ..Value::UNKNOWN
        }
    }

    // ---- names ----

    /// The text of a plain name, a dotted one, or one with a literal index.
    pub fn key(&self, expression: &'a Expr) -> Option<&'a str> {
        let is_plain = |expression: &Expr| -> bool {
            let mut rest = expression;
            loop {
                match rest {
                    Expr::Name(_) => return true,
                    Expr::Attribute(attribute) => rest = &attribute.value,
                    Expr::Subscript(subscript)
                        if subscript.slice.is_string_literal_expr()
                            || subscript.slice.is_number_literal_expr() =>
                    {
                        rest = &subscript.value;
                    }
                    _ => return false,
                }
            }
        };
        is_plain(expression).then(|| &self.text[expression.range()])
    }

    fn bind(&mut self, name: &'a str, value: Value) {
        let slot = Slot {
            value,
            bound_in: self.place.within,
        };
        self.scope.set(name, slot);
    }

    fn assign(
        &mut self,
        statement: &'a Stmt,
        target: &'a Expr,
        source: Option<&'a Expr>,
        value: Value,
    ) {
        if let Expr::Tuple(_) | Expr::List(_) = target {
            let parts = elements(target);
            let sources = source.map(elements).filter(|s| s.len() == parts.len());
            for (index, part) in parts.iter().enumerate() {
                let value = self.part(value, index, parts.len());
                self.assign(
                    statement,
                    part,
                    sources.map(|sources| &sources[index]),
                    value,
                );
            }
            return;
        }
        self.note_store(statement, target, source, value, None);
        match self.key(target) {
            // `total = total + loss` goes on with the old total; it is no new one.
            Some(key) if source.is_some_and(|source| self.continues(key, source)) => {
                self.scope.revise(key, |known| *known = value);
            }
            _ => self.assign_quietly(target, value),
        }
    }

    /// Whether an expression adds to what this name stands for, and the name is bound.
    fn continues(&self, key: &str, source: &'a Expr) -> bool {
        let Expr::BinOp(operation) = source else {
            return false;
        };
        let is_name = |side: &'a Expr| self.key(side) == Some(key);
        self.scope.get(key).is_some() && (is_name(&operation.left) || is_name(&operation.right))
    }

    fn assign_quietly(&mut self, target: &'a Expr, value: Value) {
        match target {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(target);
                for (index, part) in parts.iter().enumerate() {
                    let value = self.part(value, index, parts.len());
                    self.assign_quietly(part, value);
                }
            }
            Expr::Starred(starred) => self.assign_quietly(&starred.value, Value::UNKNOWN),
            _ => {
                if let Some(key) = self.key(target) {
                    self.bind(key, value);
                } else if let Expr::Subscript(subscript) = target {
                    // What was put in is in the whole.
                    self.eval(&subscript.slice);
                    if value.graph
                        && let Some(key) = self.key(&subscript.value)
                    {
                        self.scope.revise(key, |whole| whole.graph = true);
                    }
                }
            }
        }
    }

    /// One of the parts that a value is taken apart into.
    fn part(&self, value: Value, index: usize, count: usize) -> Value {
        match value.kind {
            Kind::Tuple(row) => {
                let row = &self.rows[row as usize];
                match row.get(index) {
                    Some((_, value)) if row.len() == count => *value,
                    _ => Value::UNKNOWN,
                }
            }
            Kind::Batch if index == 0 => self.first_of(value),
            Kind::Tensor | Kind::Unknown if value.graph => Value::tensor(true).at(value.site),
            _ => Value::UNKNOWN,
        }
    }

    /// What a loader gives first: by custom the input of the model.
    fn first_of(&self, batch: Value) -> Value {
        Value {
            kind: Kind::Tensor,
            size: self.shape(batch).map_or(Size::Unknown, |lengths| {
                let lengths = lengths.to_vec();
                sizes::Array { lengths, each: 4.0 }.size()
            }),
            ..batch
        }
    }

    fn note_store(
        &mut self,
        statement: &'a Stmt,
        target: &'a Expr,
        source: Option<&'a Expr>,
        value: Value,
        operator: Option<Operator>,
    ) {
        if self.recording {
            let carried = self.outlives(target);
            self.stores.push(Store {
                statement,
                target,
                source,
                value,
                operator,
                carried,
                place: self.place,
            });
        }
    }

    /// The innermost loop that a name outlives: bound before it, and not anew in its turns.
    pub fn outlives(&self, target: &'a Expr) -> Option<LoopId> {
        let within = self.place.within?;
        let mut whole = target;
        loop {
            if let Some(slot) = self.key(whole).and_then(|key| self.scope.get(key)) {
                return (slot.bound_in < Some(within)).then_some(within);
            }
            match whole {
                Expr::Attribute(attribute) => whole = &attribute.value,
                Expr::Subscript(subscript) => whole = &subscript.value,
                // Bound by an outer function or the text itself, if at all.
                Expr::Name(_) => return Some(within),
                _ => return None,
            }
        }
    }

    /// What a name stands for.
    fn look_up(&self, key: &'a str) -> Option<Value> {
        if let Some(slot) = self.scope.get(key) {
            return Some(slot.value);
        }
        let mut frame = self.frames[self.place.frame.0 as usize].parent;
        while let Some(id) = frame {
            let outer = &self.frames[id.0 as usize];
            if let Some(value) = outer.names.get(key) {
                return Some(*value);
            }
            frame = outer.parent;
        }
        None
    }

    fn instance(&self, class: u32) -> Value {
        let kind = match self.classes[class as usize].is {
            Role::Model | Role::Lightning | Role::Keras => Kind::Model,
            Role::Criterion => Kind::Criterion,
            Role::Dataset => Kind::Dataset,
            Role::Other => Kind::Instance(class),
        };
        Value {
            class: Some(class),
            ..Value::of(kind)
        }
    }

    /// The method that runs when an object of a class of this text is called.
    fn called_of(&self, object: Value) -> Option<FrameId> {
        let class = self.classes.get(object.class? as usize)?;
        ["forward", "call", "__call__"]
            .iter()
            .find_map(|name| class.methods.get(name).copied())
    }

    /// What a model puts out.
    fn put_out(&mut self, model: Value, call: &'a ExprCall, given: &[Value]) -> Value {
        let tensor = Value::tensor(!self.place.no_grad);
        let Some(id) = self.called_of(model) else {
            let form = match model.form {
                Form::Unknown => Form::Output,
                known => known,
            };
            return Value { form, ..tensor };
        };
        self.learn_arguments(id.0, call, given, true);
        let returns = self.frames[id.0 as usize].returns;
        let like = |value: Value| Value {
            form: value.form,
            unreduced: value.unreduced,
            apart: value.apart,
            ..tensor
        };
        match returns.kind {
            Kind::Tuple(row) => {
                let row = self.rows[row as usize]
                    .iter()
                    .map(|(_, part)| ("", like(*part)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            _ => like(returns),
        }
    }

    /// The class that `self` is of, where we are.
    fn own_class(&self) -> Option<&Class<'a>> {
        let mut frame = Some(self.place.frame);
        while let Some(id) = frame {
            let here = &self.frames[id.0 as usize];
            if let Some(class) = here.class {
                return self.classes.get(class as usize);
            }
            frame = here.parent;
        }
        None
    }

    // ---- expressions ----

    /// What an expression would be, without noting that it was gone through.
    fn peek(&self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(_) => self.named(expression).unwrap_or(Value::UNKNOWN),
            Expr::Attribute(attribute) => self.named(expression).unwrap_or_else(|| {
                let whole = self.peek(&attribute.value);
                let number = self.number_in(&attribute.value, whole.kind, &attribute.attr);
                number.unwrap_or(Value::UNKNOWN)
            }),
            Expr::Subscript(subscript) => {
                let length = self.length_at(&subscript.value, &subscript.slice);
                let value = length.map(Value::number).or_else(|| self.named(expression));
                value.unwrap_or_else(|| {
                    let value = self.element_of(self.peek(&subscript.value), &subscript.slice);
                    value.as_number().map_or(Value::UNKNOWN, Value::number)
                })
            }
            Expr::Call(call) if call.func.is_name_expr() && call.arguments.len() == 1 => {
                let given = call.arguments.args.first().map(|first| self.peek(first));
                match (&*call.func, given) {
                    (Expr::Name(name), Some(given)) if name.id == "len" => {
                        given.rows().map_or(Value::UNKNOWN, Value::number)
                    }
                    (Expr::Name(name), Some(given)) if name.id == "int" => given
                        .as_number()
                        .map_or(Value::UNKNOWN, |number| Value::number(number.trunc())),
                    _ => self.peek_call(call),
                }
            }
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::BinOp(operation) => sizes::operated(
                operation.op,
                self.peek(&operation.left),
                self.peek(&operation.right),
            ),
            Expr::Call(call) => self.peek_call(call),
            _ => Value::UNKNOWN,
        }
    }

    fn peek_call(&self, call: &'a ExprCall) -> Value {
        match self.imports.resolve(&call.func) {
            Some(path) => known::returned_by(&path).map_or(Value::UNKNOWN, Value::of),
            None => Value::UNKNOWN,
        }
    }

    /// A name, dotted or not, that is bound or suggests something.
    fn named(&self, expression: &'a Expr) -> Option<Value> {
        let key = self.key(expression)?;
        if let Some(value) = self.look_up(key) {
            return Some(value);
        }
        if let Some(attribute) = key.strip_prefix("self.")
            && let Some(class) = self.own_class()
        {
            if let Some(value) = class.attributes.get(attribute) {
                return Some(match value.kind {
                    Kind::Unknown if !value.graph => Value {
                        kind: self.suggested(attribute).kind,
                        ..*value
                    },
                    _ => *value,
                });
            }
            if let Some(method) = class.methods.get(attribute) {
                return Some(Value::of(Kind::Function(method.0)));
            }
        }
        None
    }

    fn eval(&mut self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(name) => self.named(expression).unwrap_or_else(|| {
                if self.imports.resolve(expression).is_some() {
                    Value::UNKNOWN
                } else {
                    self.suggested(name.id.as_str())
                }
            }),
            Expr::Attribute(attribute) => {
                if self.imports.resolve(expression).is_some() {
                    return Value::UNKNOWN;
                }
                let whole = self.eval(&attribute.value);
                if let Some(value) = self.named(expression) {
                    return value;
                }
                if let Some(number) = self.number_in(&attribute.value, whole.kind, &attribute.attr)
                {
                    return number;
                }
                self.attribute_of(whole, attribute.attr.as_str())
            }
            Expr::Call(call) => self.call(call),
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_) => {
                if let Expr::FString(text) = expression {
                    for element in text.value.elements() {
                        if let Some(interpolation) = element.as_interpolation() {
                            self.eval(&interpolation.expression);
                        }
                    }
                }
                Value::of(Kind::Text)
            }
            Expr::NoneLiteral(_) => Value::of(Kind::None),
            Expr::BooleanLiteral(_) => Value::of(Kind::Number),
            Expr::BinOp(operation) => {
                let left = self.eval(&operation.left);
                let right = self.eval(&operation.right);
                let value = Value {
                    form: form::operated(operation.op, left, right),
                    apart: form::stays_apart(operation.op, left, right),
                    ..sizes::operated(operation.op, left, right).at(expression.start())
                };
                if self.recording && operation.op == Operator::Div && !right.is(Kind::Number) {
                    self.divisions.push(Division {
                        above: &operation.left,
                        below: &operation.right,
                        by: right,
                        place: self.place,
                    });
                }
                if self.place.no_grad {
                    value.detached()
                } else {
                    value
                }
            }
            Expr::UnaryOp(operation) => {
                let value = self.eval(&operation.operand);
                match (operation.op, value.size) {
                    (UnaryOp::Not, _) => Value::of(Kind::Number),
                    (UnaryOp::USub, Size::Number(number)) => Value::number(-number),
                    _ => value,
                }
            }
            Expr::BoolOp(operation) => {
                let values = operation.values.iter().map(|value| self.eval(value));
                values.reduce(Value::join).unwrap_or(Value::UNKNOWN)
            }
            Expr::Compare(comparison) => {
                self.eval(&comparison.left);
                comparison.comparators.iter().for_each(|value| {
                    self.eval(value);
                });
                Value::of(Kind::Unknown)
            }
            Expr::If(choice) => {
                self.eval(&choice.test);
                let one = self.eval(&choice.body);
                let two = self.eval(&choice.orelse);
                self.join_deep(one, two)
            }
            Expr::Named(named) => {
                let value = self.eval(&named.value);
                self.assign_quietly(&named.target, value);
                value
            }
            Expr::Tuple(_) => {
                let row: Vec<_> = elements(expression)
                    .iter()
                    .map(|element| ("", self.eval(element)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            Expr::List(_) | Expr::Set(_) => {
                let mut graph = false;
                for element in elements(expression) {
                    graph |= self.eval(element).graph;
                }
                Value {
                    graph,
                    ..Value::of(Kind::List)
                }
                .at(expression.start())
            }
            Expr::Dict(dict) => {
                let mut row = Vec::new();
                for item in &dict.items {
                    let key = item.key.as_ref();
                    key.iter().for_each(|key| {
                        self.eval(key);
                    });
                    let value = self.eval(&item.value);
                    if let Some(Expr::StringLiteral(key)) = key {
                        row.push((&self.text[key.range()], value));
                    }
                }
                self.row(Kind::Fields, row).at(expression.start())
            }
            Expr::ListComp(comprehension) => {
                let value = self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    flow.eval(&comprehension.elt)
                });
                Value {
                    graph: value.graph,
                    ..Value::of(Kind::List)
                }
                .at(expression.start())
            }
            Expr::Generator(comprehension) => {
                let value = self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    flow.eval(&comprehension.elt)
                });
                Value {
                    graph: value.graph,
                    ..Value::of(Kind::List)
                }
            }
            Expr::SetComp(comprehension) => {
                self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    flow.eval(&comprehension.elt)
                });
                Value::of(Kind::List)
            }
            Expr::DictComp(comprehension) => {
                self.inline(|flow| {
                    flow.generators(&comprehension.generators);
                    if let Some(key) = &comprehension.key {
                        flow.eval(key);
                    }
                    flow.eval(&comprehension.value)
                });
                Value::of(Kind::Dict)
            }
            Expr::Subscript(subscript) => {
                let whole = self.eval(&subscript.value);
                self.eval(&subscript.slice);
                if let Some(value) = self.key(expression).and_then(|key| self.look_up(key)) {
                    return value;
                }
                if let Some(length) = self.length_at(&subscript.value, &subscript.slice) {
                    return Value::number(length);
                }
                let form = match whole.kind {
                    Kind::Tensor | Kind::Unknown => whole.form,
                    _ => Form::Unknown,
                };
                match self.element_of(whole, &subscript.slice) {
                    part if part.form == Form::Unknown => Value { form, ..part },
                    part => part,
                }
            }
            Expr::Starred(starred) => self.eval(&starred.value),
            Expr::Await(awaited) => self.eval(&awaited.value),
            Expr::Yield(given) => {
                let value = given
                    .value
                    .as_ref()
                    .map_or(Value::UNKNOWN, |value| self.eval(value));
                let frame = self.place.frame.0 as usize;
                let before = self.frames[frame].yields;
                let joined = before.map_or(value, |before| self.join_deep(before, value));
                self.frames[frame].yields = Some(joined);
                Value::UNKNOWN
            }
            Expr::YieldFrom(given) => {
                self.eval(&given.value);
                Value::UNKNOWN
            }
            Expr::Lambda(lambda) => {
                self.inline(|flow| flow.eval(&lambda.body));
                Value::UNKNOWN
            }
            Expr::Slice(slice) => {
                for bound in [&slice.lower, &slice.upper, &slice.step]
                    .into_iter()
                    .flatten()
                {
                    self.eval(bound);
                }
                Value::UNKNOWN
            }
            _ => Value::UNKNOWN,
        }
    }

    fn inline(&mut self, body: impl FnOnce(&mut Flow<'a>) -> Value) -> Value {
        let before = std::mem::replace(&mut self.place.inline, true);
        let value = body(self);
        self.place.inline = before;
        value
    }

    fn generators(&mut self, generators: &'a [ruff_python_ast::Comprehension]) {
        for generator in generators {
            let over = self.eval(&generator.iter);
            let item = self.item_of(&generator.iter, over);
            self.assign_quietly(&generator.target, item);
            generator.ifs.iter().for_each(|condition| {
                self.eval(condition);
            });
        }
    }

    fn row(&mut self, kind: fn(u32) -> Kind, row: Vec<(&'a str, Value)>) -> Value {
        let graph = row.iter().any(|(_, value)| value.graph);
        let index = self.rows.len() as u32;
        self.rows.push(row);
        Value {
            graph,
            ..Value::of(kind(index))
        }
    }

    /// As [`Value::join`]; tuples of one length part by part.
    fn join_deep(&mut self, one: Value, two: Value) -> Value {
        match (one.kind, two.kind) {
            (Kind::Tuple(first), Kind::Tuple(second)) if first != second => {
                let (first, second) = (&self.rows[first as usize], &self.rows[second as usize]);
                if first.len() != second.len() {
                    return Value::UNKNOWN;
                }
                let row = first
                    .iter()
                    .zip(second)
                    .map(|((_, one), (_, two))| ("", one.join(*two)))
                    .collect();
                self.row(Kind::Tuple, row)
            }
            _ => one.join(two),
        }
    }

    fn attribute_of(&self, whole: Value, name: &str) -> Value {
        match whole.kind {
            Kind::Tensor | Kind::Unknown | Kind::Array if known::is_plain_attribute(name) => {
                match name {
                    "data" => whole.detached(),
                    _ => Value::UNKNOWN,
                }
            }
            Kind::Tensor | Kind::Unknown if whole.graph => Value::tensor(true).at(whole.site),
            _ => self.suggested(name),
        }
    }

    fn element_of(&self, whole: Value, index: &'a Expr) -> Value {
        match whole.kind {
            Kind::Fields(row) => {
                let Expr::StringLiteral(key) = index else {
                    return Value::UNKNOWN;
                };
                let key = key.value.to_str();
                let row = &self.rows[row as usize];
                let found = row
                    .iter()
                    .find(|(name, _)| name.trim_matches(['"', '\'']) == key);
                found.map_or(Value::UNKNOWN, |(_, value)| *value)
            }
            Kind::Tuple(row) => {
                let row = &self.rows[row as usize];
                let index = sizes::index(index, row.len());
                index.map_or(Value::UNKNOWN, |index| row[index].1)
            }
            Kind::Tensor | Kind::List | Kind::Bounded | Kind::Unknown if whole.graph => {
                Value::tensor(true).at(whole.site)
            }
            Kind::Tensor => Value::of(Kind::Tensor),
            Kind::Batch if sizes::index(index, 1) == Some(0) => self.first_of(whole),
            _ => Value::UNKNOWN,
        }
    }

    // ---- lengths ----

    /// The lengths along the axes of an array, or of the first part of what a loader gives.
    pub fn shape(&self, value: Value) -> Option<&[f64]> {
        let index = (value.shape as usize).checked_sub(1)?;
        self.shapes.get(index).map(Vec::as_slice)
    }

    fn keep_shape(&mut self, lengths: Vec<f64>) -> u32 {
        // A loop is gone through twice, and finds what it found.
        const FAR: usize = 64;
        let recent = self.shapes.len().saturating_sub(FAR);
        if let Some(known) = self.shapes[recent..]
            .iter()
            .position(|known| *known == lengths)
        {
            return (recent + known + 1) as u32;
        }
        self.shapes.push(lengths);
        self.shapes.len() as u32
    }

    /// A value that is this array.
    fn sized(&mut self, value: Value, array: Option<sizes::Array>) -> Value {
        match array {
            Some(array) => Value {
                size: array.size(),
                shape: self.keep_shape(array.lengths),
                ..value
            },
            None => value,
        }
    }

    /// The same array with elements of another type.
    fn retyped(&self, value: Value, each: Option<f64>) -> Value {
        let size = match (self.shape(value), value.size, each) {
            (Some(lengths), Size::Bytes { rows, .. }, Some(each)) => Size::Bytes {
                bytes: lengths.iter().product::<f64>() * each,
                rows,
            },
            _ => Size::Unknown,
        };
        Value { size, ..value }
    }

    /// `x.shape[1]`.
    fn length_at(&self, whole: &'a Expr, index: &'a Expr) -> Option<f64> {
        let Expr::Attribute(attribute) = whole else {
            return None;
        };
        if attribute.attr.as_str() != "shape" {
            return None;
        }
        let lengths = self.shape(self.named(&attribute.value)?)?;
        lengths.get(sizes::index(index, lengths.len())?).copied()
    }

    /// The lengths that a shape is written as: `(rows, 3)`, `rows`, `IMAGE + (3,)`.
    fn lengths(&self, expression: &'a Expr) -> Option<Vec<f64>> {
        match expression {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = elements(expression).iter();
                parts.map(|part| self.peek(part).as_number()).collect()
            }
            Expr::BinOp(sum)
                if sum.op == Operator::Add && self.peek(expression).as_number().is_none() =>
            {
                let mut lengths = self.lengths(&sum.left)?;
                lengths.extend(self.lengths(&sum.right)?);
                Some(lengths)
            }
            _ => {
                let value = self.peek(expression);
                match value.kind {
                    Kind::Tuple(row) => self.rows[row as usize]
                        .iter()
                        .map(|(_, part)| part.as_number())
                        .collect(),
                    _ => value.as_number().map(|length| vec![length]),
                }
            }
        }
    }

    /// A number behind a dot: an option of the command line, or a field of a record.
    fn number_in(&self, whole: &'a Expr, kind: Kind, name: &str) -> Option<Value> {
        let value = match kind {
            Kind::Instance(class) | Kind::Class(class) => {
                self.classes.get(class as usize)?.attributes.get(name)
            }
            Kind::Unknown if holds_options(self.key(whole)?) => self.options.get(name),
            _ => None,
        };
        value.copied().filter(|value| value.as_number().is_some())
    }

    /// What is known of an expression when a function has been gone through.
    pub fn settled(&self, expression: &'a Expr, frame: FrameId) -> Value {
        match expression {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => {
                let found = self.key(expression).and_then(|key| {
                    let mut frame = Some(frame);
                    while let Some(id) = frame {
                        let outer = &self.frames[id.0 as usize];
                        if let Some(value) = outer.names.get(key) {
                            return Some(*value);
                        }
                        if let Some(attribute) = key.strip_prefix("self.")
                            && let Some(class) = outer.class
                            && let Some(value) =
                                self.classes[class as usize].attributes.get(attribute)
                        {
                            return Some(*value);
                        }
                        frame = outer.parent;
                    }
                    None
                });
                match (found, expression) {
                    (Some(value), _) => value,
                    (None, Expr::Attribute(attribute)) => {
                        let whole = self.settled(&attribute.value, frame);
                        let number = self.number_in(&attribute.value, whole.kind, &attribute.attr);
                        number.unwrap_or(Value::UNKNOWN)
                    }
                    (None, Expr::Subscript(subscript)) => {
                        let whole = self.settled(&subscript.value, frame);
                        self.element_of(whole, &subscript.slice)
                    }
                    _ => Value::UNKNOWN,
                }
            }
            Expr::NumberLiteral(number) => sizes::literal(&number.value),
            Expr::BinOp(operation) => sizes::operated(
                operation.op,
                self.settled(&operation.left, frame),
                self.settled(&operation.right, frame),
            ),
            _ => Value::UNKNOWN,
        }
    }

    // ---- calls ----

    fn call(&mut self, call: &'a ExprCall) -> Value {
        let path = self.imports.resolve(&call.func);
        let (receiver, callee) = match &*call.func {
            Expr::Attribute(attribute) if path.is_none() => {
                let receiver = self.eval(&attribute.value);
                (
                    Some(receiver),
                    self.named(&call.func).unwrap_or(Value::UNKNOWN),
                )
            }
            func if path.is_none() => (None, self.eval(func)),
            _ => (None, Value::UNKNOWN),
        };
        let first = self.values.len();
        // Evaluating one may note others: collected first, then put side by side.
        let mut given: Vec<Value> = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments.args {
            given.push(self.eval(argument));
        }
        for keyword in &call.arguments.keywords {
            given.push(self.eval(&keyword.value));
        }
        self.last_own = None;
        let result = self
            .result(call, path, receiver, callee, &given)
            .at(call.range_start);
        let result = self.formed(call, path, receiver, callee, &given, result);
        let own = self.last_own.take();
        if self.recording {
            let first = self.values.len().max(first) as u32;
            self.values.extend_from_slice(&given);
            let carried = match &*call.func {
                Expr::Attribute(attribute) if own.is_some() || adds(attribute.attr.as_str()) => {
                    self.outlives(&attribute.value)
                }
                function if own.is_some() => self.outlives(function),
                _ => None,
            };
            self.calls.push(Call {
                expr: call,
                path,
                receiver,
                callee,
                own,
                result,
                carried,
                place: self.place,
                arguments: (first, self.values.len() as u32),
            });
        }
        self.effects(call, path, receiver, &given);
        result
    }

    fn result(
        &mut self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        callee: Value,
        given: &[Value],
    ) -> Value {
        let grad = !self.place.no_grad;
        let any_graph = given.iter().any(|value| value.graph);
        let any_predicted = given.iter().any(|value| value.predicted || value.graph);
        if let Some(path) = path {
            return self.returned(call, &path, given);
        }
        match callee.kind {
            Kind::Function(id) => return self.call_own(id, call, given, receiver.is_some()),
            Kind::Class(id) => {
                if let Some(init) = self.classes[id as usize].methods.get("__init__").copied() {
                    self.note_caller(init.0, call, given, true);
                } else {
                    self.fill_fields(id, call, given);
                }
                return self.instance(id);
            }
            Kind::Model => return self.put_out(callee, call, given),
            Kind::Instance(id) => {
                if let Some(method) = self.classes[id as usize].methods.get("__call__").copied() {
                    return self.call_own(method.0, call, given, true);
                }
            }
            Kind::Criterion => {
                let own = self.called_of(callee).map(|id| {
                    self.learn_arguments(id.0, call, given, true);
                    self.frames[id.0 as usize].returns
                });
                let known_plain = !given.is_empty()
                    && given.iter().all(|value| {
                        !value.graph
                            && matches!(value.kind, Kind::Tensor | Kind::Array | Kind::Number)
                    });
                return Value {
                    predicted: true,
                    unreduced: callee.unreduced || own.is_some_and(|own| own.unreduced),
                    apart: own.is_some_and(|own| own.apart),
                    ..Value::tensor(grad && !known_plain)
                };
            }
            _ => {}
        }
        let Some(receiver) = receiver else {
            return self.builtin(call, given);
        };
        let method = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => "",
        };
        match receiver.kind {
            Kind::Instance(class) => {
                if let Some(id) = self.classes[class as usize].methods.get(method).copied() {
                    return self.call_own(id.0, call, given, true);
                }
            }
            Kind::Model => match method {
                "forward" | "__call__" => return self.put_out(receiver, call, given),
                "to" | "cuda" | "cpu" | "train" | "eval" | "half" | "float" | "double"
                | "bfloat16" | "requires_grad_" | "apply" | "compile" => return receiver,
                "parameters" => return Value::of(Kind::Parameters),
                // Of a Lightning module that steps for itself.
                "optimizers" if given.is_empty() => return Value::of(Kind::Optimizer),
                "compute_loss" | "get_loss" | "loss" | "calc_loss" => return Value::tensor(grad),
                _ => return Value::UNKNOWN,
            },
            Kind::Engine if method == "prepare" => {
                if let [one] = given {
                    return *one;
                }
                let row = given.iter().map(|value| ("", *value)).collect();
                return self.row(Kind::Tuple, row);
            }
            Kind::Scaler if method == "scale" => {
                return given.first().copied().unwrap_or(Value::UNKNOWN);
            }
            Kind::Parameter if !known::ends_the_graph(method) && method != "copy_" => {
                return Value::tensor(grad);
            }
            Kind::Tensor | Kind::Unknown | Kind::Array => {
                return self.method_of(receiver, method, call, any_graph, any_predicted);
            }
            Kind::List if receiver.graph && method == "pop" => return Value::tensor(true),
            Kind::Dataset if self.speaks_tensorflow => {
                return self.piped(receiver, method, call, given);
            }
            _ => {}
        }
        Value::UNKNOWN
    }

    fn method_of(
        &mut self,
        receiver: Value,
        method: &'a str,
        call: &'a ExprCall,
        any_graph: bool,
        any_predicted: bool,
    ) -> Value {
        let grad = !self.place.no_grad;
        match method {
            "item" => {
                return Value {
                    predicted: receiver.predicted,
                    ..Value::of(Kind::Number)
                };
            }
            "detach" | "detach_" | "data" => return receiver.detached(),
            "cuda" => {
                return Value {
                    device: Device::Gpu,
                    ..receiver
                };
            }
            "cpu" => {
                return Value {
                    device: Device::Unknown,
                    ..receiver
                };
            }
            "to" => {
                let gpu = call
                    .arguments
                    .args
                    .first()
                    .is_some_and(|device| self.means_gpu(device));
                let device = if gpu { Device::Gpu } else { receiver.device };
                return Value { device, ..receiver };
            }
            "float" | "half" | "double" if receiver.shape != 0 => {
                let each = match method {
                    "float" => 4.0,
                    "half" => 2.0,
                    _ => 8.0,
                };
                return self.retyped(receiver, Some(each));
            }
            "clone" | "contiguous" | "float" | "half" | "double" | "requires_grad_"
            | "pin_memory" => {
                return receiver;
            }
            "astype" if receiver.kind == Kind::Array => {
                let each = call.arguments.args.first().and_then(sizes::element);
                return self.retyped(receiver, each);
            }
            "random" | "standard_normal" | "integers" | "normal" | "uniform"
                if receiver.kind == Kind::Array =>
            {
                let drawn = sizes::drawn_by(method, call, |expression| self.lengths(expression));
                return self.sized(Value::of(Kind::Array), drawn);
            }
            "size" if receiver.shape != 0 && call.arguments.len() == 1 => {
                let length = self.shape(receiver).and_then(|lengths| {
                    let index = sizes::index(call.arguments.args.first()?, lengths.len())?;
                    lengths.get(index).copied()
                });
                return length.map_or(Value::of(Kind::Number), Value::number);
            }
            _ => {}
        }
        let predicted = receiver.predicted || (receiver.graph || any_graph) || any_predicted;
        if known::ends_the_graph(method) {
            return Value {
                predicted: receiver.predicted,
                ..Value::UNKNOWN
            };
        }
        if receiver.graph && known::returns_values_and_indices(method) && !call.arguments.is_empty()
        {
            let row = vec![("", Value::tensor(grad)), ("", Value::of(Kind::Tensor))];
            return self.row(Kind::Tuple, row);
        }
        if receiver.graph || (receiver.kind == Kind::Tensor && any_graph) {
            return Value {
                graph: true,
                predicted,
                unreduced: receiver.unreduced
                    && (!known::reduces(method) || form::keeps_rows(call, 0)),
                ..Value::of(Kind::Tensor)
            };
        }
        match receiver.kind {
            Kind::Tensor => Value {
                predicted,
                ..Value::of(Kind::Tensor)
            },
            _ => Value::UNKNOWN,
        }
    }

    /// What a library function returns.
    fn returned(&mut self, call: &'a ExprCall, path: &Path<'a>, given: &[Value]) -> Value {
        let grad = !self.place.no_grad;
        let any_graph = given.iter().any(|value| value.graph);
        let predicted = given.iter().any(|value| value.predicted || value.graph);
        if let Some(kind) = known::returned_by(path) {
            return self.made(kind, call, path, given);
        }
        let made = sizes::made_by(path, call, |expression| self.lengths(expression));
        if known::makes_a_leaf(path) {
            let gpu = sizes::keyword(call, "device").is_some_and(|device| self.means_gpu(device));
            let leaf = Value {
                device: if gpu { Device::Gpu } else { Device::Unknown },
                ..Value::of(Kind::Tensor)
            };
            return match path.last() {
                "tensor" | "as_tensor" | "from_numpy" => self.copied(leaf, call, given),
                _ => self.sized(leaf, made),
            };
        }
        match path.segments() {
            ["torch", "nn", "functional", name] => {
                let shape = self.shape_after(name, call, given);
                let unreduced = sizes::keyword(call, "reduction").is_some_and(is_text_none);
                let is_loss = is_loss_function(name);
                let reduced = is_loss && !unreduced;
                Value {
                    graph: grad && (any_graph || (is_loss && !self.all_plain(given))),
                    predicted: predicted || is_loss,
                    unreduced: unreduced || (!reduced && given.iter().any(|v| v.unreduced)),
                    shape,
                    ..Value::of(Kind::Tensor)
                }
            }
            ["torch", name] if known::ends_the_graph(name) => Value {
                predicted,
                ..Value::of(Kind::Tensor)
            },
            ["torch", name]
                if any_graph && known::returns_values_and_indices(name) && given.len() > 1 =>
            {
                let row = vec![("", Value::tensor(grad)), ("", Value::of(Kind::Tensor))];
                self.row(Kind::Tuple, row)
            }
            ["torch", name] => Value {
                graph: grad && (any_graph || given.iter().any(|value| value.is(Kind::Parameter))),
                predicted,
                unreduced: given.iter().any(|value| value.unreduced)
                    && (!known::reduces(name) || form::keeps_rows(call, 1)),
                ..Value::of(Kind::Tensor)
            },
            ["torch", "utils", "checkpoint", "checkpoint"] => Value::tensor(grad),
            ["tensorflow", ..] if made.is_some() => self.sized(Value::of(Kind::Tensor), made),
            ["tensorflow", ..] => Value {
                predicted,
                unreduced: given.iter().any(|value| value.unreduced)
                    && !known::reduces(path.last()),
                ..Value::of(Kind::Tensor)
            },
            ["numpy", "array" | "asarray"] => {
                let array = Value {
                    predicted,
                    ..Value::of(Kind::Array)
                };
                self.copied(array, call, given)
            }
            ["numpy", ..] => {
                let array = Value {
                    predicted,
                    ..Value::of(Kind::Array)
                };
                self.sized(array, made)
            }
            ["pandas", ..] => Value::of(Kind::Array),
            ["copy", "deepcopy" | "copy"] => given.first().copied().unwrap_or(Value::UNKNOWN),
            ["tqdm", ..] | ["itertools", "islice"] => {
                given.first().copied().unwrap_or(Value::UNKNOWN)
            }
            _ => Value::UNKNOWN,
        }
    }

    /// The lengths of what a function of `torch.nn.functional` makes of its first argument.
    fn shape_after(&mut self, name: &str, call: &'a ExprCall, given: &[Value]) -> u32 {
        let Some(first) = given.first().filter(|first| first.shape != 0) else {
            return 0;
        };
        match name {
            "relu" | "gelu" | "tanh" | "sigmoid" | "dropout" | "normalize" | "softmax" => {
                first.shape
            }
            "max_pool2d" | "avg_pool2d" => {
                let number = |place: usize, name: &str, otherwise: Option<f64>| {
                    let argument =
                        sizes::keyword(call, name).or_else(|| call.arguments.args.get(place));
                    argument.map_or(otherwise, |argument| self.peek(argument).as_number())
                };
                let kernel = number(1, "kernel_size", None);
                let (Some(kernel), Some(padding)) = (kernel, number(3, "padding", Some(0.0)))
                else {
                    return 0;
                };
                let Some(stride) = number(2, "stride", Some(kernel)) else {
                    return 0;
                };
                let Some([rows, channels, height, width]) = self.shape(*first) else {
                    return 0;
                };
                let along = |length: &f64| sizes::windowed(*length, kernel, stride, padding, 1.0);
                let lengths = vec![*rows, *channels, along(height), along(width)];
                self.keep_shape(lengths)
            }
            _ => 0,
        }
    }

    /// An array or tensor made of another.
    fn copied(&self, made: Value, call: &'a ExprCall, given: &[Value]) -> Value {
        let Some(from) = given.first() else {
            return made;
        };
        let whole = Value {
            size: match from.size {
                Size::Number(_) => Size::Unknown,
                size => size,
            },
            shape: from.shape,
            ..made
        };
        match sizes::keyword(call, "dtype") {
            Some(dtype) => self.retyped(whole, sizes::element(dtype)),
            None => whole,
        }
    }

    fn made(&mut self, kind: Kind, call: &'a ExprCall, path: &Path<'a>, given: &[Value]) -> Value {
        let first = given.first().copied().unwrap_or(Value::UNKNOWN);
        match kind {
            Kind::Criterion => Value {
                unreduced: sizes::keyword(call, "reduction").is_some_and(is_text_none),
                form: form::of_criterion(path, call),
                ..Value::of(kind)
            },
            Kind::Model => {
                let wraps = path.is_any(&["torch.nn.DataParallel", "torch.compile"])
                    || path.is_in("torch.nn.parallel");
                Value {
                    form: self.form_of_model(path, call, given),
                    class: first.class.filter(|_| wraps),
                    ..Value::of(kind)
                }
            }
            Kind::Dataset if path.is_in("torch.utils.data") => Value {
                size: first.size,
                device: first.device,
                shape: if path.last() == "TensorDataset" {
                    first.shape
                } else {
                    0
                },
                ..Value::of(kind)
            },
            Kind::Dataset if path.last() == "from_tensor_slices" => {
                let whole = match first.kind {
                    Kind::Tuple(row) => self.rows[row as usize]
                        .first()
                        .map_or(first, |(_, part)| *part),
                    _ => first,
                };
                Value {
                    size: whole.size,
                    shape: self.shape(whole).map_or(0, |_| whole.shape),
                    ..Value::of(kind)
                }
            }
            Kind::Loader => {
                let size =
                    sizes::keyword(call, "batch_size").or_else(|| call.arguments.args.get(1));
                let size = size.map_or(Value::number(1.0), |size| self.peek(size));
                let turns = first
                    .rows()
                    .zip(size.as_number())
                    .map(|(rows, size)| (rows / size.max(1.0)).ceil());
                Value {
                    device: first.device,
                    // As many rows as turns: that is its length.
                    size: match (first.size, turns) {
                        (Size::Bytes { bytes, .. }, Some(rows)) => Size::Bytes { bytes, rows },
                        _ => Size::Unknown,
                    },
                    shape: self.batched(first, size),
                    ..Value::of(kind)
                }
            }
            Kind::List if path.is("collections.deque") => {
                let bound = sizes::keyword(call, "maxlen").or_else(|| call.arguments.args.get(1));
                let is_bounded = bound.is_some_and(|bound| !bound.is_none_literal_expr());
                Value::of(if is_bounded {
                    Kind::Bounded
                } else {
                    Kind::List
                })
            }
            _ => Value::of(kind),
        }
    }

    /// The lengths of so many rows of a dataset.
    fn batched(&mut self, dataset: Value, size: Value) -> u32 {
        let (Some(lengths), Some(size)) = (self.shape(dataset), size.as_number()) else {
            return 0;
        };
        let mut lengths = lengths.to_vec();
        if let Some(rows) = lengths.first_mut() {
            *rows = rows.min(size);
        }
        self.keep_shape(lengths)
    }

    /// What a method of a `tf.data.Dataset` returns.
    fn piped(
        &mut self,
        dataset: Value,
        method: &str,
        call: &'a ExprCall,
        given: &[Value],
    ) -> Value {
        let plain = Value::of(Kind::Dataset);
        match method {
            "shuffle" | "repeat" | "cache" | "prefetch" | "with_options" => Value {
                size: dataset.size,
                shape: dataset.shape,
                ..plain
            },
            "batch" => {
                let size = sizes::keyword(call, "batch_size").map(|size| self.peek(size));
                let size = size.or(given.first().copied()).unwrap_or(Value::UNKNOWN);
                Value {
                    shape: self.batched(dataset, size),
                    ..plain
                }
            }
            "map"
            | "filter"
            | "padded_batch"
            | "unbatch"
            | "interleave"
            | "flat_map"
            | "take"
            | "skip"
            | "shard"
            | "apply"
            | "concatenate"
            | "enumerate"
            | "window"
            | "map_with_legacy_function"
            | "ragged_batch"
            | "zip"
            | "ignore_errors"
            | "rebatch"
            | "snapshot" => plain,
            _ => Value::UNKNOWN,
        }
    }

    fn builtin(&mut self, call: &'a ExprCall, given: &[Value]) -> Value {
        let Expr::Name(name) = &*call.func else {
            return Value::UNKNOWN;
        };
        let first = given.first().copied().unwrap_or(Value::UNKNOWN);
        match name.id.as_str() {
            "int" if first.as_number().is_some() => first
                .as_number()
                .map_or(Value::UNKNOWN, |number| Value::number(number.trunc())),
            "float" | "int" | "round" | "abs" if !first.graph || name.id != "abs" => Value {
                predicted: first.predicted,
                ..Value::of(Kind::Number)
            },
            "abs" => first,
            "len" => match first.rows() {
                Some(rows) => Value::number(rows),
                None => Value::of(Kind::Number),
            },
            "sum" | "max" | "min" => Value {
                kind: if first.graph {
                    Kind::Tensor
                } else {
                    Kind::Unknown
                },
                graph: first.graph,
                predicted: first.predicted,
                ..Value::UNKNOWN
            },
            "list" | "sorted" | "set" => Value {
                graph: first.graph,
                ..Value::of(Kind::List)
            },
            "tuple" | "reversed" | "iter" | "enumerate" | "tqdm" => first,
            "dict" | "defaultdict" => Value::of(Kind::Dict),
            "str" | "repr" | "format" => Value::of(Kind::Text),
            _ => Value::UNKNOWN,
        }
    }

    /// A call of a function of this text.
    fn call_own(&mut self, id: u32, call: &'a ExprCall, given: &[Value], bound: bool) -> Value {
        self.note_caller(id, call, given, bound);
        let returns = self.frames[id as usize].returns;
        if self.place.no_grad {
            returns.detached()
        } else {
            returns
        }
    }

    /// Fields of a dataclass that are given are not what they were by default.
    fn fill_fields(&mut self, id: u32, call: &'a ExprCall, given: &[Value]) {
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
    fn note_caller(&mut self, id: u32, call: &'a ExprCall, given: &[Value], bound: bool) {
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
    fn learn_arguments(&mut self, id: u32, call: &'a ExprCall, given: &[Value], bound: bool) {
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
    fn form_of_model(&self, path: &Path<'a>, call: &'a ExprCall, given: &[Value]) -> Form {
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
    fn formed(
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

    /// What a call changes besides what it returns.
    fn effects(
        &mut self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        given: &[Value],
    ) {
        if let Some(path) = path {
            if path.is_any(&["torch.set_grad_enabled", "torch.autograd.set_grad_enabled"])
                && let Some(Expr::BooleanLiteral(on)) = call.arguments.args.first()
            {
                self.place.no_grad = !on.value;
            }
            return;
        }
        let Expr::Attribute(attribute) = &*call.func else {
            return;
        };
        if attribute.attr.as_str() == "add"
            && receiver.is_some_and(|receiver| receiver.is(Kind::Model))
            && let [layer] = given
            && let Some(key) = self.key(&attribute.value)
        {
            self.scope.revise(key, |model| model.form = layer.form);
        }
        // Whatever gradients are computed of has a graph.
        if attribute.attr.as_str() == "backward"
            && call.arguments.args.is_empty()
            && !self.place.no_grad
        {
            let of = match &*attribute.value {
                Expr::Call(scaled) => scaled.arguments.args.first().unwrap_or(&attribute.value),
                plain => plain,
            };
            if let Some(key) = self.key(of) {
                self.scope.revise(key, |value| {
                    if matches!(value.kind, Kind::Unknown | Kind::Tensor) {
                        value.kind = Kind::Tensor;
                        value.graph = true;
                        value.predicted = true;
                    }
                });
            }
        }
        if adds(attribute.attr.as_str())
            && receiver.is_some()
            && given.iter().any(|value| value.graph)
            && let Some(key) = self.key(&attribute.value)
        {
            self.scope.revise(key, |whole| whole.graph = true);
        }
    }

    /// Whether gradients are off inside a `with`.
    fn grad_after(&self, context: &'a Expr) -> bool {
        let (function, call) = match context {
            Expr::Call(call) => (&*call.func, Some(call)),
            other => (other, None),
        };
        let Some(path) = self.imports.resolve(function) else {
            return self.place.no_grad || says_no_grad(function);
        };
        if path.last() == "enable_grad" {
            return false;
        }
        if path.last() == "set_grad_enabled" {
            return match call.and_then(|call| call.arguments.args.first()) {
                Some(Expr::BooleanLiteral(on)) => !on.value,
                // `with torch.set_grad_enabled(phase == "train")`: it depends, and whoever
                // writes this knows.
                _ => true,
            };
        }
        self.place.no_grad || turns_grad_off(&path)
    }

    fn means_gpu(&self, device: &'a Expr) -> bool {
        match device {
            Expr::StringLiteral(text) => text.value.to_str().starts_with("cuda"),
            Expr::Name(name) => name.id.contains("device") || name.id.contains("gpu"),
            Expr::Attribute(attribute) => attribute.attr.contains("device"),
            Expr::Call(call) => call
                .arguments
                .args
                .first()
                .is_some_and(|inner| self.means_gpu(inner)),
            Expr::NumberLiteral(_) => true,
            _ => false,
        }
    }

    fn all_plain(&self, given: &[Value]) -> bool {
        !given.is_empty()
            && given
                .iter()
                .all(|value| !value.graph && matches!(value.kind, Kind::Tensor | Kind::Array))
    }
}

/// Functions of `torch.nn.functional` that are losses.
pub fn is_loss_function(name: &str) -> bool {
    name.ends_with("_loss")
        || matches!(
            name,
            "cross_entropy"
                | "binary_cross_entropy"
                | "binary_cross_entropy_with_logits"
                | "kl_div"
        )
}

/// What is counted: `loader` of `enumerate(loader)`, be it in `tqdm`.
fn counted(iter: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = iter else { return None };
    let first = call.arguments.args.first()?;
    match &*call.func {
        Expr::Name(name) if name.id == "enumerate" => Some(first),
        Expr::Name(name) if name.id == "tqdm" => counted(first),
        Expr::Attribute(attribute) if attribute.attr.as_str() == "tqdm" => counted(first),
        _ => None,
    }
}

fn is_text_none(expression: &Expr) -> bool {
    matches!(expression, Expr::StringLiteral(text) if text.value.to_str() == "none")
}

/// Names that people give to what the command line said.
fn holds_options(name: &str) -> bool {
    let name = name.strip_prefix("self.").unwrap_or(name);
    matches!(
        name,
        "args"
            | "arg"
            | "opt"
            | "opts"
            | "options"
            | "FLAGS"
            | "flags"
            | "config"
            | "cfg"
            | "conf"
            | "hparams"
            | "hps"
            | "params"
            | "parsed"
            | "arguments"
            | "settings"
            | "argv"
            | "ARGS"
    )
}

/// Methods that put something into what they are called on.
fn adds(method: &str) -> bool {
    matches!(
        method,
        "append" | "extend" | "add" | "appendleft" | "insert"
    )
}

/// Whether a name that is not PyTorch's own says that it turns gradients off.
fn says_no_grad(function: &Expr) -> bool {
    let name = match function {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    name.contains("no_grad") || name.contains("nograd") || name.contains("inference_mode")
}

fn turns_grad_off(path: &Path<'_>) -> bool {
    matches!(path.last(), "no_grad" | "inference_mode") && path.first() == "torch"
}

fn elements(expression: &Expr) -> &[Expr] {
    match expression {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        Expr::Set(set) => &set.elts,
        _ => &[],
    }
}

fn frame<'a>(
    parent: Option<FrameId>,
    class: Option<u32>,
    def: Option<&'a StmtFunctionDef>,
    body: &'a [Stmt],
) -> Frame<'a> {
    Frame {
        parent,
        class,
        def,
        body,
        no_grad: false,
        returns: Value::of(Kind::None),
        yields: None,
        names: FxHashMap::default(),
    }
}

fn at(frame: FrameId) -> Place {
    Place {
        frame,
        within: None,
        no_grad: false,
        handler: None::<TextRange>,
        inline: false,
    }
}

/// The blocks of statements inside a statement; not those of functions and classes.
pub fn each_block<'a>(statement: &'a Stmt, mut visit: impl FnMut(&'a [Stmt])) {
    match statement {
        Stmt::For(repeat) => {
            visit(&repeat.body);
            visit(&repeat.orelse);
        }
        Stmt::While(repeat) => {
            visit(&repeat.body);
            visit(&repeat.orelse);
        }
        Stmt::If(choice) => {
            visit(&choice.body);
            choice
                .elif_else_clauses
                .iter()
                .for_each(|clause| visit(&clause.body));
        }
        Stmt::With(with) => visit(&with.body),
        Stmt::Try(attempt) => {
            visit(&attempt.body);
            for handler in &attempt.handlers {
                let ExceptHandler::ExceptHandler(handler) = handler;
                visit(&handler.body);
            }
            visit(&attempt.orelse);
            visit(&attempt.finalbody);
        }
        Stmt::Match(choice) => choice.cases.iter().for_each(|case| visit(&case.body)),
        _ => {}
    }
}
