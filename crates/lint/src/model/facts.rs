//! What the model found out, for the rules to ask.

use super::path::Path;
use super::value::Value;
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::TextRange;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// The text itself, or a function in it.
pub struct Frame<'a> {
    pub parent: Option<FrameId>,
    pub class: Option<u32>,
    pub def: Option<&'a StmtFunctionDef>,
    pub body: &'a [Stmt],
    /// Nothing in it records a graph: by its decorator, by the engine that calls it, or
    /// because all who call it see to that.
    pub no_grad: bool,
    pub returns: Value,
    /// What a generator gives in one turn.
    pub yields: Option<Value>,
    /// What its names stand for in the end.
    pub names: FxHashMap<&'a str, Value>,
}

impl<'a> Frame<'a> {
    /// The function's name; empty for the text itself.
    pub fn name(&self) -> &'a str {
        self.def.map_or("", |def| def.name.as_str())
    }
}

pub struct Class<'a> {
    pub def: &'a StmtClassDef,
    pub role: Role,
    /// What is kept in `self.…`, by the name after the dot.
    pub attributes: FxHashMap<&'a str, Value>,
    pub methods: FxHashMap<&'a str, FrameId>,
}

/// What a class is made to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Model,
    /// A Lightning module: an engine runs its steps.
    Lightning,
    Criterion,
    Dataset,
    /// A Keras model or layer.
    Keras,
    Other,
}

pub struct Loop<'a> {
    pub parent: Option<LoopId>,
    pub frame: FrameId,
    pub statement: &'a Stmt,
    pub body: &'a [Stmt],
    /// What a `for` binds, and goes over.
    pub for_clause: Option<(&'a Expr, &'a Expr)>,
    pub loop_source: LoopSource,
    pub no_grad: bool,
}

/// What a loop goes over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoopSource {
    /// The batches of a loader.
    Batches,
    /// So many times, where that is known.
    Times(Option<f64>),
    Other,
}

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeContext {
    pub frame: FrameId,
    pub innermost_loop: Option<LoopId>,
    pub no_grad: bool,
    /// Inside an `except`.
    pub handler: Option<TextRange>,
    /// Inside a comprehension, or a lambda.
    pub inline: bool,
}

pub struct Call<'a> {
    pub expr: &'a ExprCall,
    /// What is called, if it was imported.
    pub path: Option<Path<'a>>,
    /// What a method is called on.
    pub receiver: Option<Value>,
    /// What is called, if it is a value.
    pub callee: Value,
    /// The function of this text that is called; of a class its `__init__`.
    pub local_function: Option<FrameId>,
    pub result: Value,
    /// Of a method that adds to what it is called on, and of functions of this text: the
    /// innermost loop that this, or the function, outlives.
    pub outlived_loop: Option<LoopId>,
    pub context: CodeContext,
    pub(super) arguments: (u32, u32),
}

impl<'a> Call<'a> {
    /// The name of the method, where it is one.
    pub fn method(&self) -> Option<&'a str> {
        match &*self.expr.func {
            Expr::Attribute(attribute) if self.path.is_none() => Some(attribute.attr.as_str()),
            _ => None,
        }
    }

    /// What stands before the dot of a method.
    pub fn object(&self) -> Option<&'a Expr> {
        match &*self.expr.func {
            Expr::Attribute(attribute) if self.path.is_none() => Some(&attribute.value),
            _ => None,
        }
    }

    /// An argument by its place or its name.
    pub fn argument(&self, place: usize, name: &str) -> Option<&'a Expr> {
        self.keyword(name).or_else(|| {
            let arguments = &self.expr.arguments.args;
            let is_plain = arguments
                .iter()
                .take(place + 1)
                .all(|a| !a.is_starred_expr());
            arguments.get(place).filter(|_| is_plain)
        })
    }

    pub fn keyword(&self, name: &str) -> Option<&'a Expr> {
        self.expr
            .arguments
            .keywords
            .iter()
            .find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg == name))
            .map(|keyword| &keyword.value)
    }

    /// Some arguments are not spelled out: `*args`, `**options`.
    pub fn is_open(&self) -> bool {
        let arguments = &self.expr.arguments;
        arguments.args.iter().any(Expr::is_starred_expr)
            || arguments
                .keywords
                .iter()
                .any(|keyword| keyword.arg.is_none())
    }
}

/// A division: `/`, and `//` not.
pub struct Division<'a> {
    pub above: &'a Expr,
    pub below: &'a Expr,
    /// What it is divided by.
    pub by: Value,
    pub context: CodeContext,
}

/// An assignment to one target.
pub struct Store<'a> {
    pub statement: &'a Stmt,
    pub target: &'a Expr,
    /// The right-hand side; None where a tuple is taken apart.
    pub source: Option<&'a Expr>,
    pub value: Value,
    /// With an operator: `+=`.
    pub operator: Option<Operator>,
    /// The innermost loop that the target outlives: what is put there is still there when the
    /// loop's next turn comes.
    pub outlived_loop: Option<LoopId>,
    pub context: CodeContext,
}
