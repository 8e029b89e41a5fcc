//! PyTorch DataLoaders: their datasets and their workers.

use crate::model::{Call, FrameId, Module, Value, ValueKind};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

/// Returns the calls that create a `DataLoader`.
pub fn find_loaders<'m, 'a>(module: &'m Module<'a>) -> impl Iterator<Item = &'m Call<'a>> {
    module.calls().iter().filter(|call| is_loader(call))
}

fn is_loader(call: &Call<'_>) -> bool {
    call.result.is(ValueKind::Loader) && call.path.is_some_and(|path| path.last() == "DataLoader")
}

/// Returns the number of workers of a loader if it is known, and the expression that gives it.
pub fn worker_count<'a>(module: &Module<'a>, loader: &Call<'a>) -> Option<(f64, Option<&'a Expr>)> {
    if let Some(expr) = loader.argument(5, "num_workers") {
        let value = module.argument(loader, 5, "num_workers")?;
        return value.as_number().map(|number| (number, Some(expr)));
    }
    let options =
        spread_records(module, loader).find_map(|record| module.field(record, "num_workers"))?;
    options.as_number().map(|number| (number, None))
}

/// Returns the records unpacked into the arguments: `**options`.
fn spread_records<'m, 'a>(
    module: &'m Module<'a>,
    call: &'m Call<'a>,
) -> impl Iterator<Item = Value> + 'm {
    let arguments = &call.expr.arguments;
    let values = module
        .arguments(call)
        .get(arguments.args.len()..)
        .unwrap_or(&[]);
    let keywords = arguments.keywords.iter().zip(values);
    keywords
        .filter(|(keyword, _)| keyword.arg.is_none())
        .map(|(_, value)| *value)
}

/// Returns the loaders with at least one worker for a dataset class in this text.
pub fn loaders_with_workers<'m, 'a>(
    module: &'m Module<'a>,
    class: u32,
) -> impl Iterator<Item = (&'m Call<'a>, f64)> {
    find_loaders(module).filter_map(move |loader| {
        let dataset = module.argument(loader, 0, "dataset")?;
        let (workers, _) = worker_count(module, loader)?;
        (dataset.class == Some(class) && workers > 0.0).then_some((loader, workers))
    })
}

/// Returns this function and the functions it calls in the same text, up to a depth.
pub fn reachable_functions(module: &Module<'_>, frame: FrameId, deep: u32) -> Vec<FrameId> {
    let mut frames = vec![frame];
    let mut from = 0;
    for _ in 0..deep {
        let until = frames.len();
        for call in module.calls() {
            if let Some(own) = call.local_function
                && frames[from..until].contains(&call.context.frame)
                && !frames.contains(&own)
            {
                frames.push(own);
            }
        }
        if frames.len() == until {
            break;
        }
        from = until;
    }
    frames
}

/// Returns the line on which a loader is created.
pub fn loader_line(module: &Module<'_>, loader: &Call<'_>) -> String {
    module.line_label(loader.expr.range())
}
