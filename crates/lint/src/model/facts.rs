//! What the model found out about a text, for the rules to query.

use super::path::Path;
use super::value::Value;
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::TextRange;
use rustc_hash::FxHashMap;

/// The index of a [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// The index of a [`Loop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// A function, or the module itself.
pub struct Frame<'a> {
    /// The enclosing frame.
    pub parent: Option<FrameId>,
    /// The index of the class that a method belongs to.
    pub class: Option<u32>,
    /// The definition of the function; `None` for the module.
    pub def: Option<&'a StmtFunctionDef>,
    /// The statements of the frame.
    pub body: &'a [Stmt],
    /// Whether gradient tracking is off: by a decorator, by the engine that calls the function, or
    /// in all of its callers.
    pub no_grad: bool,
    /// The joined return values.
    pub returns: Value,
    /// The value that a generator yields in one iteration.
    pub yields: Option<Value>,
    /// The final values of the frame's names.
    pub names: FxHashMap<&'a str, Value>,
}

impl<'a> Frame<'a> {
    /// The function's name; empty for the module itself.
    pub fn name(&self) -> &'a str {
        self.def.map_or("", |def| def.name.as_str())
    }
}

/// A class in the text.
pub struct Class<'a> {
    /// The definition of the class.
    pub def: &'a StmtClassDef,
    /// What the class is, by its base classes.
    pub role: Role,
    /// The attributes on `self`, by name without `self.`.
    pub attributes: FxHashMap<&'a str, Value>,
    /// The methods by name.
    pub methods: FxHashMap<&'a str, FrameId>,
}

/// The role of a class, by its base classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A PyTorch module.
    Model,
    /// A Lightning module, whose steps are called by an engine.
    Lightning,
    /// A loss.
    Criterion,
    /// A PyTorch dataset.
    Dataset,
    /// A Keras model or layer.
    Keras,
    /// Any other class.
    Other,
}

/// A `for` or `while` loop.
pub struct Loop<'a> {
    /// The enclosing loop in the same frame.
    pub parent: Option<LoopId>,
    /// The frame that contains the loop.
    pub frame: FrameId,
    /// The loop statement.
    pub statement: &'a Stmt,
    /// The statements of the loop body.
    pub body: &'a [Stmt],
    /// The target and the iterable of a `for` loop.
    pub for_clause: Option<(&'a Expr, &'a Expr)>,
    /// What the loop iterates over.
    pub loop_source: LoopSource,
    /// Whether gradient tracking is off in the loop.
    pub no_grad: bool,
}

/// What a loop iterates over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoopSource {
    /// The batches of a loader.
    Batches,
    /// A range with this number of iterations, if it is known.
    Times(Option<f64>),
    /// Anything else.
    Other,
}

/// The context of a call or an assignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeContext {
    /// The frame of the code.
    pub frame: FrameId,
    /// The innermost loop around the code.
    pub innermost_loop: Option<LoopId>,
    /// Whether gradient tracking is off.
    pub no_grad: bool,
    /// The range of the `except` block it is in.
    pub handler: Option<TextRange>,
    /// Whether it is in a comprehension or a lambda.
    pub inline: bool,
}

/// A call in the text.
pub struct Call<'a> {
    /// The call expression.
    pub expr: &'a ExprCall,
    /// The imported name that is called.
    pub path: Option<Path<'a>>,
    /// The value that a method is called on.
    pub receiver: Option<Value>,
    /// The value that is called, if it is one.
    pub callee: Value,
    /// The function in this text that is called; for a class its `__init__`.
    pub local_function: Option<FrameId>,
    /// The value that the call returns.
    pub result: Value,
    /// The innermost loop that the receiver of an adding method, or the called function, outlives.
    pub outlived_loop: Option<LoopId>,
    /// Where the call is.
    pub context: CodeContext,
    pub(super) arguments: (u32, u32),
}

impl<'a> Call<'a> {
    /// The method name, if this calls a method.
    pub fn method(&self) -> Option<&'a str> {
        match &*self.expr.func {
            Expr::Attribute(attribute) if self.path.is_none() => Some(attribute.attr.as_str()),
            _ => None,
        }
    }

    /// The expression before the dot of a method call.
    pub fn object(&self) -> Option<&'a Expr> {
        match &*self.expr.func {
            Expr::Attribute(attribute) if self.path.is_none() => Some(&attribute.value),
            _ => None,
        }
    }

    /// Returns an argument by position or keyword.
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

    /// Returns a keyword argument.
    pub fn keyword(&self, name: &str) -> Option<&'a Expr> {
        self.expr
            .arguments
            .keywords
            .iter()
            .find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg == name))
            .map(|keyword| &keyword.value)
    }

    /// Whether some arguments are unpacked: `*args`, `**options`.
    pub fn is_open(&self) -> bool {
        let arguments = &self.expr.arguments;
        arguments.args.iter().any(Expr::is_starred_expr)
            || arguments
                .keywords
                .iter()
                .any(|keyword| keyword.arg.is_none())
    }
}

/// A division with `/` (not `//`).
pub struct Division<'a> {
    /// The dividend.
    pub above: &'a Expr,
    /// The divisor.
    pub below: &'a Expr,
    /// The value of the divisor.
    pub by: Value,
    /// Where the division is.
    pub context: CodeContext,
}

/// An assignment to one target.
pub struct Store<'a> {
    /// The assignment statement.
    pub statement: &'a Stmt,
    /// The target.
    pub target: &'a Expr,
    /// The right-hand side; `None` if a tuple is unpacked.
    pub source: Option<&'a Expr>,
    /// The assigned value; for `+=` the added one.
    pub value: Value,
    /// The operator of an augmented assignment such as `+=`.
    pub operator: Option<Operator>,
    /// The innermost loop that the target outlives: its value is still there in the next iteration.
    pub outlived_loop: Option<LoopId>,
    /// Where the assignment is.
    pub context: CodeContext,
}
