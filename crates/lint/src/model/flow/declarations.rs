//! Collects imports, functions and classes, and the roles of the classes.

use super::{Callers, Flow, each_block, new_frame, says_no_grad, turns_grad_off};
use crate::model::facts::{Class, Frame, FrameId, Role};
use crate::model::sizes;
use crate::model::value::Value;
use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

impl<'a> Flow<'a> {
    /// Collects imports, functions and classes before anything is evaluated.
    pub(super) fn collect_declarations(
        &mut self,
        body: &'a [Stmt],
        parent: FrameId,
        class: Option<u32>,
    ) {
        for statement in body {
            self.imports.record_import(statement);
            match statement {
                Stmt::FunctionDef(def) => {
                    let id = self.frames.len() as u32;
                    self.frames
                        .push(new_frame(Some(parent), class, Some(def), &def.body));
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
                    self.collect_declarations(&def.body, FrameId(id), None);
                }
                Stmt::ClassDef(def) => {
                    let id = self.classes.len() as u32;
                    self.classes.push(Class {
                        def,
                        role: Role::Other,
                        attributes: FxHashMap::default(),
                        methods: FxHashMap::default(),
                    });
                    self.known_classes.insert(def.start(), id);
                    self.collect_declarations(&def.body, parent, Some(id));
                }
                Stmt::Expr(expression) => {
                    if let Expr::Call(call) = &*expression.value
                        && let Some((name, default)) = sizes::option(call)
                    {
                        let known = self.options.entry(name).or_insert(default);
                        *known = known.join(default);
                    }
                }
                _ => each_block(statement, |block| {
                    self.collect_declarations(block, parent, class)
                }),
            }
        }
    }

    pub(super) fn assign_roles(&mut self) {
        // Two passes, because a class may derive from one that is defined later.
        for _ in 0..2 {
            for id in 0..self.classes.len() {
                self.classes[id].role = self.class_role(self.classes[id].def);
            }
        }
        for id in 0..self.frames.len() {
            self.frames[id].no_grad = self.is_grad_off_in_function(&self.frames[id]);
        }
    }

    pub(super) fn class_role(&self, def: &'a StmtClassDef) -> Role {
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
                match known.map(|class| class.role) {
                    Some(Role::Other) | None => {}
                    Some(role) => return role,
                }
            }
        }
        Role::Other
    }

    pub(super) fn is_grad_off_in_function(&self, frame: &Frame<'a>) -> bool {
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
        let is = frame.class.map(|class| self.classes[class as usize].role);
        let by_engine = is == Some(Role::Lightning)
            && ["validation_step", "test_step", "predict_step"].contains(&def.name.as_str());
        by_decorator || by_engine
    }
}
