//! Evaluates a text in execution order with abstract values.
//!
//! Branches are joined, and a loop body is evaluated twice, so that the second iteration sees what
//! the first one left. Calls of functions in the same text return what those functions were seen to
//! return. The whole text is evaluated twice: first to learn return values and attributes, then to
//! record what the rules query.

mod calls;
mod declarations;
mod expressions;
mod library_calls;
mod local_calls;
mod loops;
mod names;
mod shapes;
mod statements;

use super::facts::{Call, Class, CodeContext, Division, Frame, FrameId, Loop, LoopId, Store};
use super::path::{Imports, Path};
use super::scope::Scope;
use super::value::{Value, ValueKind};
use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtFunctionDef};
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::FxHashMap;

/// The evaluation of a text and everything it recorded.
pub struct Flow<'a> {
    /// The text.
    pub text: &'a str,
    /// The imported names.
    pub imports: Imports<'a>,
    /// The module and its functions.
    pub frames: Vec<Frame<'a>>,
    /// The classes.
    pub classes: Vec<Class<'a>>,
    /// The loops.
    pub loops: Vec<Loop<'a>>,
    /// The calls, in execution order.
    pub calls: Vec<Call<'a>>,
    /// The assignments, in execution order.
    pub stores: Vec<Store<'a>>,
    /// The divisions, in execution order.
    pub divisions: Vec<Division<'a>>,
    /// The elements of tuples and records.
    pub rows: Vec<Vec<(&'a str, Value)>>,
    /// The shapes of arrays.
    pub shapes: Vec<Vec<f64>>,
    /// The numeric defaults of command-line options.
    options: FxHashMap<String, Value>,
    /// The argument values of all calls, one call after another.
    pub values: Vec<Value>,
    /// Functions by start offset. Classes and loops follow in the same way.
    functions: FxHashMap<TextSize, u32>,
    known_classes: FxHashMap<TextSize, u32>,
    known_loops: FxHashMap<TextSize, LoopId>,
    /// How each frame is called: with or without gradient tracking, and with which arguments.
    callers: Vec<Callers>,
    scope: Scope<'a>,
    context: CodeContext,
    recording: bool,
    speaks_torch: bool,
    speaks_tensorflow: bool,
    /// The function in this text that the current call resolved to.
    last_local_function: Option<FrameId>,
}

#[derive(Clone, Default)]
struct Callers {
    with_graph: u32,
    without: u32,
    arguments: Vec<Option<Value>>,
    /// The default values of the parameters.
    defaults: Vec<Value>,
    /// Whether some caller omits the argument.
    left_out: Vec<bool>,
}

const MODULE_FRAME: FrameId = FrameId(0);

impl<'a> Flow<'a> {
    /// Evaluates a text.
    pub fn analyze(text: &'a str, body: &'a [Stmt]) -> Flow<'a> {
        let mut flow = Flow {
            text,
            imports: Imports::default(),
            frames: vec![new_frame(None, None, None, body)],
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
            context: start_of_frame(MODULE_FRAME),
            recording: false,
            speaks_torch: false,
            speaks_tensorflow: false,
            last_local_function: None,
        };
        flow.collect_declarations(body, MODULE_FRAME, None);
        flow.speaks_torch = ["torch", "lightning", "accelerate", "transformers", "timm"]
            .iter()
            .any(|package| flow.imports.has_package(package));
        flow.speaks_tensorflow =
            flow.imports.has_package("tensorflow") || flow.imports.has_package("keras");
        flow.assign_roles();
        flow.run_all_frames();
        flow.learn_from_callers();
        flow.recording = true;
        flow.run_all_frames();
        flow
    }
}

/// Whether a function of `torch.nn.functional` is a loss.
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

/// Returns the iterable inside `enumerate(loader)`, also within `tqdm`.
fn enumerated_iterable(iter: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = iter else { return None };
    let first = call.arguments.args.first()?;
    match &*call.func {
        Expr::Name(name) if name.id == "enumerate" => Some(first),
        Expr::Name(name) if name.id == "tqdm" => enumerated_iterable(first),
        Expr::Attribute(attribute) if attribute.attr.as_str() == "tqdm" => {
            enumerated_iterable(first)
        }
        _ => None,
    }
}

fn is_text_none(expression: &Expr) -> bool {
    matches!(expression, Expr::StringLiteral(text) if text.value.to_str() == "none")
}

/// Whether a name usually holds command-line options.
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

/// Whether a method adds its argument to the receiver.
fn adds_to_receiver(method: &str) -> bool {
    matches!(
        method,
        "append" | "extend" | "add" | "appendleft" | "insert"
    )
}

/// Whether a name outside PyTorch says that it turns gradient tracking off.
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

fn new_frame<'a>(
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
        returns: Value::of_kind(ValueKind::None),
        yields: None,
        names: FxHashMap::default(),
    }
}

fn start_of_frame(frame: FrameId) -> CodeContext {
    CodeContext {
        frame,
        innermost_loop: None,
        no_grad: false,
        handler: None::<TextRange>,
        inline: false,
    }
}

/// Visits the blocks inside a statement, except those of functions and classes.
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
