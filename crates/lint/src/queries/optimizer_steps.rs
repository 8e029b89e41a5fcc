//! Optimizer steps: the calls that update the weights or clear the gradients, and the `if` that
//! accumulates gradients over several batches.

use super::backward::is_backward_call;
use crate::finding::Edit;
use crate::model::uses::lies_in;
use crate::model::{Call, FrameId, LoopId, Module, ValueKind};
use ruff_python_ast::{CmpOp, Expr, ExprBinOp, Number, Operator, Stmt, StmtIf, UnaryOp};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Returns the name of the optimizer that a call steps: `optimizer.step()`,
/// `scaler.step(optimizer)`.
pub fn stepped_optimizer<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<&'a str> {
    if call.method() != Some("step") {
        return None;
    }
    match call.receiver?.kind {
        ValueKind::Optimizer => module.dotted_name(call.object()?),
        ValueKind::Scaler
            if module
                .argument(call, 0, "optimizer")?
                .is(ValueKind::Optimizer) =>
        {
            module.dotted_name(call.argument(0, "optimizer")?)
        }
        _ => None,
    }
}

/// Returns the name of the object whose gradients a call clears.
pub fn cleared_object<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<&'a str> {
    match call.method() {
        Some("zero_grad") => module.dotted_name(call.object()?),
        _ => None,
    }
}

/// Counts how often a word occurs in the text outside comments.
pub fn count_mentions(text: &str, word: &str) -> usize {
    let code = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    code.map(|code| code.matches(word).count()).sum()
}

/// Gradients accumulated over several iterations of a loop before the optimizer steps.
pub struct Accumulation<'m, 'a> {
    /// The loop.
    pub id: LoopId,
    /// The frame of the loop.
    pub frame: FrameId,
    /// The `if` around the step.
    pub choice: &'a StmtIf,
    /// The modulo operation, such as `(i + 1) % 4`.
    pub modulo: &'a ExprBinOp,
    /// Whether the condition contains nothing but this comparison.
    pub is_plain: bool,
    /// The names of the optimizers that step.
    pub optimizers: Vec<&'a str>,
    /// The calls that step them, directly or through a function.
    pub steps: Vec<&'m Call<'a>>,
    /// The calls that compute gradients in every iteration.
    pub backwards: Vec<&'m Call<'a>>,
}

impl<'a> Accumulation<'_, 'a> {
    /// The counter: `i + 1` of `(i + 1) % 4`.
    pub fn counter(&self) -> &'a Expr {
        &self.modulo.left
    }

    /// The number of accumulated batches: `4` of `(i + 1) % 4`.
    pub fn every(&self) -> &'a Expr {
        &self.modulo.right
    }

    /// Whether a range is inside the `if`.
    pub fn is_in_choice(&self, range: impl Ranged) -> bool {
        lies_in(range.range(), self.choice.range())
    }
}

/// Returns all loops that step only every few iterations.
pub fn find_accumulations<'m, 'a>(module: &'m Module<'a>) -> Vec<Accumulation<'m, 'a>> {
    let mut found: Vec<Accumulation<'m, 'a>> = Vec::new();
    let backwards: Vec<&Call<'a>> = module
        .calls()
        .iter()
        .filter(|call| is_backward_call(call))
        .collect();
    if backwards.is_empty() || !module.text.contains('%') {
        return found;
    }
    let steps = OptimizerSteps::collect(module);
    if steps.direct().is_empty() {
        return found;
    }
    for (call, optimizers) in steps.calls() {
        let Some(id) = call.context.innermost_loop else {
            continue;
        };
        if let Some(known) = found.iter_mut().find(|known| known.is_in_choice(call.expr)) {
            known.steps.push(call);
            known.optimizers.extend(optimizers);
            continue;
        }
        let Some((choice, modulo, is_plain)) = find_modulo_guard(module, id, call.expr.range())
        else {
            continue;
        };
        found.push(Accumulation {
            id,
            frame: call.context.frame,
            choice,
            modulo,
            is_plain,
            optimizers,
            steps: vec![call],
            backwards: backwards
                .iter()
                .copied()
                .filter(|back| {
                    back.context.innermost_loop == Some(id)
                        && !lies_in(back.expr.range(), choice.range())
                })
                .collect(),
        });
    }
    found.retain(|one| {
        // Excluded are an `if` that computes gradients itself, such as for a generator, and loops
        // where another call steps in every iteration.
        let has_backward_inside = backwards.iter().any(|back| one.is_in_choice(back.expr))
            || module.calls().iter().any(|call| {
                one.is_in_choice(call.expr)
                    && call
                        .local_function
                        .is_some_and(|own| backwards.iter().any(|back| back.context.frame == own))
            });
        let steps_outside = steps.calls().any(|(call, _)| {
            call.context.frame == one.frame
                && module.is_inside_loop(&call.context, one.id)
                && !one.is_in_choice(call.expr)
        });
        !one.backwards.is_empty() && !has_backward_inside && !steps_outside && !is_one(one.every())
    });
    found
}

fn is_one(expression: &Expr) -> bool {
    matches!(expression, Expr::NumberLiteral(number)
        if matches!(&number.value, Number::Int(int) if int.as_u8().is_some_and(|int| int <= 1)))
}

/// The calls in a text that step optimizers.
pub struct OptimizerSteps<'m, 'a> {
    module: &'m Module<'a>,
    direct: Vec<(&'m Call<'a>, &'a str)>,
}

impl<'m, 'a> OptimizerSteps<'m, 'a> {
    /// Collects the calls that step optimizers.
    pub fn collect(module: &'m Module<'a>) -> OptimizerSteps<'m, 'a> {
        let direct = module.calls().iter();
        OptimizerSteps {
            module,
            direct: direct
                .filter_map(|call| Some((call, stepped_optimizer(module, call)?)))
                .collect(),
        }
    }

    /// Returns the calls that step an optimizer directly, with its name.
    pub fn direct(&self) -> &[(&'m Call<'a>, &'a str)] {
        &self.direct
    }

    /// Returns the calls that step, directly or through a function in the text, with the optimizers
    /// they step.
    pub fn calls(&self) -> impl Iterator<Item = (&'m Call<'a>, Vec<&'a str>)> {
        self.module.calls().iter().filter_map(|call| {
            let optimizers = self.by(call);
            (!optimizers.is_empty()).then_some((call, optimizers))
        })
    }

    fn by(&self, call: &Call<'a>) -> Vec<&'a str> {
        let of = |wanted: &dyn Fn(&Call<'a>) -> bool| -> Vec<&'a str> {
            let steps = self.direct.iter().filter(|(step, _)| wanted(step));
            steps.map(|(_, optimizer)| *optimizer).collect()
        };
        match call.local_function {
            Some(own) => of(&|step| step.context.frame == own),
            None => of(&|step| step.expr.range() == call.expr.range()),
        }
    }
}

/// Returns the `if` in a loop body that runs this range only every few iterations.
fn find_modulo_guard<'a>(
    module: &Module<'a>,
    id: LoopId,
    place: TextRange,
) -> Option<(&'a StmtIf, &'a ExprBinOp, bool)> {
    let mut block = module.loop_at(id).body;
    loop {
        let statement = block
            .iter()
            .find(|statement| lies_in(place, statement.range()))?;
        match statement {
            Stmt::If(choice) => {
                let first = choice.body.first()?;
                let last = choice.body.last()?;
                if !lies_in(place, TextRange::new(first.start(), last.end())) {
                    return None;
                }
                if let Some((modulo, is_plain)) = find_modulo(module, id, &choice.test, 0) {
                    return Some((choice, modulo, is_plain));
                }
                block = &choice.body;
            }
            Stmt::With(with) => block = &with.body,
            _ => return None,
        }
    }
}

/// Returns the modulo operation of a condition, and whether the condition contains nothing else.
fn find_modulo<'a>(
    module: &Module<'a>,
    id: LoopId,
    test: &'a Expr,
    deep: u32,
) -> Option<(&'a ExprBinOp, bool)> {
    let modulo = |expression: &'a Expr| match expression {
        Expr::BinOp(operation) if operation.op == Operator::Mod => Some(operation),
        _ => None,
    };
    match test {
        Expr::Compare(comparison) => match (&*comparison.ops, &*comparison.comparators) {
            ([CmpOp::Eq], [right]) => {
                let found = modulo(&comparison.left).or_else(|| modulo(right))?;
                Some((found, true))
            }
            _ => None,
        },
        Expr::UnaryOp(operation) if operation.op == UnaryOp::Not => {
            Some((modulo(&operation.operand)?, true))
        }
        Expr::BoolOp(operation) => {
            let mut values = operation.values.iter();
            let (found, _) = values.find_map(|value| find_modulo(module, id, value, deep))?;
            Some((found, false))
        }
        Expr::Name(_) if deep == 0 => {
            let key = module.dotted_name(test)?;
            let mut sources = module
                .stores()
                .iter()
                .filter(|store| {
                    store.context.innermost_loop == Some(id)
                        && module.dotted_name(store.target) == Some(key)
                })
                .map(|store| store.source);
            match (sources.next(), sources.next()) {
                (Some(Some(source)), None) => find_modulo(module, id, source, 1),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a range in a block runs unconditionally.
pub fn is_unconditional(mut block: &[Stmt], place: TextRange) -> bool {
    loop {
        match block
            .iter()
            .find(|statement| lies_in(place, statement.range()))
        {
            Some(Stmt::With(with)) => block = &with.body,
            Some(Stmt::Expr(_) | Stmt::Assign(_)) => return true,
            _ => return false,
        }
    }
}

/// Returns the line of a statement that stands alone: from its indentation to the end of the line,
/// without the line break.
fn line_range(text: &str, statement: TextRange) -> Option<(usize, usize)> {
    let (start, end) = (usize::from(statement.start()), usize::from(statement.end()));
    let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(end..)?;
    let rest = rest.split(['\n', '\r']).next().unwrap_or("");
    let is_alone = text.get(line..start)?.trim().is_empty()
        && (rest.trim().is_empty() || rest.trim_start().starts_with('#'));
    is_alone.then_some((line, end + rest.len()))
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns an edit that inserts a statement on its own line after another one, or `None` if that
/// one shares its line.
pub fn insert_line_after(module: &Module<'_>, statement: TextRange, content: &str) -> Option<Edit> {
    let (line, end) = line_range(module.text, statement)?;
    let indent = module.text.get(line..usize::from(statement.start()))?;
    Some(Edit {
        range: TextRange::empty(TextSize::try_from(end).ok()?),
        content: format!("{}{indent}{content}", newline(module.text)),
    })
}

/// Returns an edit that deletes a statement together with its line.
pub fn delete_line(module: &Module<'_>, statement: TextRange) -> Option<Edit> {
    let (line, end) = line_range(module.text, statement)?;
    let rest = module.text.get(end..)?;
    let newline = rest.len()
        - rest
            .strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix('\n'))
            .unwrap_or(rest)
            .len();
    Some(Edit {
        range: TextRange::new(
            TextSize::try_from(line).ok()?,
            TextSize::try_from(end + newline).ok()?,
        ),
        content: String::new(),
    })
}
