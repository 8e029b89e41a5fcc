//! Return types of well-known libraries, and what common variable names stand for.

use super::path::Path;
use super::value::{Value, ValueKind};

/// Returns the kind of a library function's result, before its arguments are considered.
pub fn returned_by(path: &Path<'_>) -> Option<ValueKind> {
    let last = path.last();
    let kind = match path.segments() {
        ["torch", "optim", "lr_scheduler", ..] => ValueKind::Scheduler,
        ["torch", "optim", name] if starts_upper(name) => ValueKind::Optimizer,
        ["torch_optimizer" | "bitsandbytes" | "apex", ..] if starts_upper(last) => {
            ValueKind::Optimizer
        }
        ["transformers", "AdamW" | "Adafactor"] => ValueKind::Optimizer,
        ["torch", "nn", "utils", ..] => return None,
        ["torch", "nn", "parallel", ..] | ["torch", "nn", "DataParallel"] => ValueKind::Model,
        ["torch", "nn", "Parameter"] => ValueKind::Tensor,
        ["torch", "nn", name] if name.ends_with("Loss") => ValueKind::Criterion,
        ["torch", "nn", "modules", "loss", _] => ValueKind::Criterion,
        ["torch", "nn", name] if starts_upper(name) => ValueKind::Model,
        ["torch", "jit", "script" | "trace"] | ["torch", "compile"] => ValueKind::Model,
        ["torch", "hub", "load"] => ValueKind::Model,
        ["torchvision", "models", ..] if !starts_upper(last) || last.ends_with("Net") => {
            ValueKind::Model
        }
        ["timm", "create_model"] | ["timm", "models", "create_model"] => ValueKind::Model,
        ["segmentation_models_pytorch", name] if starts_upper(name) => ValueKind::Model,
        ["transformers", class, "from_pretrained" | "from_config"] if class.contains("Model") => {
            ValueKind::Model
        }
        ["torch", "utils", "data", "DataLoader"]
        | ["torch_geometric", "data" | "loader", "DataLoader"]
        | ["torch", "utils", "data", "dataloader", "DataLoader"] => ValueKind::Loader,
        ["torch", "utils", "data", "random_split"] => return None,
        ["torch", "utils", "data", name] if name.ends_with("Dataset") || *name == "Subset" => {
            ValueKind::Dataset
        }
        ["torchvision", "datasets", ..] => ValueKind::Dataset,
        ["torch", "cuda", "amp", "GradScaler"]
        | ["torch", "amp", "GradScaler"]
        | ["torch", "amp", "grad_scaler", "GradScaler"]
        | ["torch", "cuda", "amp", "grad_scaler", "GradScaler"] => ValueKind::Scaler,
        ["accelerate", "Accelerator"]
        | ["lightning", "fabric", "Fabric"]
        | ["lightning", "Fabric"] => ValueKind::Engine,
        ["tensorflow", "GradientTape"] => ValueKind::Tape,
        ["keras", "optimizers", ..] => ValueKind::Optimizer,
        ["keras", "losses", name] if starts_upper(name) => ValueKind::Criterion,
        ["keras", "Sequential" | "Model"]
        | ["keras", "models", "Sequential" | "Model" | "load_model"]
        | ["keras", "applications", ..] => ValueKind::Model,
        ["tensorflow", "data", ..] => ValueKind::Dataset,
        ["collections", "deque"] => ValueKind::List,
        _ => return None,
    };
    Some(kind)
}

/// Whether a PyTorch function creates a tensor without a graph.
pub fn makes_a_leaf(path: &Path<'_>) -> bool {
    const MAKERS: [&str; 20] = [
        "rand",
        "randn",
        "randint",
        "randperm",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "linspace",
        "eye",
        "tensor",
        "as_tensor",
        "from_numpy",
        "zeros_like",
        "ones_like",
        "rand_like",
        "randn_like",
        "load",
        "normal",
    ];
    matches!(path.segments(), ["torch", name] if MAKERS.contains(name))
}

/// Whether the result of a function or method never has a graph.
pub fn ends_the_graph(name: &str) -> bool {
    matches!(
        name,
        "item"
            | "detach"
            | "detach_"
            | "tolist"
            | "numpy"
            | "argmax"
            | "argmin"
            | "argsort"
            | "eq"
            | "ne"
            | "gt"
            | "ge"
            | "lt"
            | "le"
            | "isnan"
            | "isinf"
            | "isfinite"
            | "size"
            | "dim"
            | "numel"
            | "nelement"
            | "data_ptr"
            | "is_contiguous"
            | "type"
            | "element_size"
            | "backward"
            | "zeros_like"
            | "ones_like"
            | "rand_like"
            | "randn_like"
            | "full_like"
            | "empty_like"
            | "bincount"
            | "nonzero"
            | "equal"
            | "allclose"
            | "is_tensor"
            | "all"
            | "any"
            | "long"
            | "int"
            | "bool"
            | "byte"
            | "short"
            | "stop_gradient"
            | "get_device"
            | "new_zeros"
            | "new_ones"
            | "new_empty"
            | "new_full"
            | "new_tensor"
    )
}

/// Whether an attribute of a tensor has no graph.
pub fn is_plain_attribute(name: &str) -> bool {
    matches!(
        name,
        "shape"
            | "device"
            | "dtype"
            | "ndim"
            | "grad"
            | "data"
            | "requires_grad"
            | "is_cuda"
            | "is_leaf"
            | "grad_fn"
            | "layout"
            | "names"
            | "nbytes"
            | "itemsize"
    )
}

/// Whether a function returns values and indices, of which only the values have a graph.
pub fn returns_values_and_indices(name: &str) -> bool {
    matches!(
        name,
        "max" | "min" | "topk" | "sort" | "kthvalue" | "median" | "mode" | "cummax" | "cummin"
    )
}

/// Whether a function reduces many values to one.
pub fn reduces(name: &str) -> bool {
    matches!(
        name,
        "mean"
            | "sum"
            | "reduce_mean"
            | "reduce_sum"
            | "max"
            | "min"
            | "norm"
            | "item"
            | "nanmean"
            | "nansum"
            | "logsumexp"
            | "prod"
            | "dot"
    )
}

/// Returns what a variable name usually stands for.
pub fn by_name(name: &str) -> ValueKind {
    let name = name.rsplit('.').next().unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    let ends = |words: &[&str]| {
        words.iter().any(|word| {
            lower.strip_suffix(word).is_some_and(|rest| {
                rest.is_empty()
                    || rest.ends_with('_')
                    || rest.ends_with(|c: char| c.is_ascii_digit())
            })
        })
    };
    let begins = |words: &[&str]| {
        words.iter().any(|word| {
            lower
                .strip_prefix(word)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.len() == 1)
        })
    };
    if lower.ends_with("loader") || ends(&["dataloader", "dl", "train_iter", "data_iter"]) {
        ValueKind::Loader
    } else if ends(&["optimizer", "optim", "opt", "optimiser"]) || begins(&["optimizer", "optim"]) {
        ValueKind::Optimizer
    } else if ends(&[
        "criterion",
        "loss_fn",
        "loss_func",
        "loss_function",
        "lossfn",
        "criteria",
        "crit",
        "loss_obj",
        "loss_object",
    ]) || begins(&["criterion"])
    {
        ValueKind::Criterion
    } else if ends(&["scaler"]) {
        ValueKind::Scaler
    } else if ends(&["scheduler", "sched"]) {
        ValueKind::Scheduler
    } else if ends(&["dataset", "trainset", "testset", "valset"]) {
        ValueKind::Dataset
    } else if ends(&[
        "model",
        "net",
        "network",
        "generator",
        "discriminator",
        "encoder",
        "decoder",
        "critic",
        "actor",
        "backbone",
        "classifier",
        "module",
        "rnn",
        "lstm",
        "gru",
        "policy_net",
        "target_net",
        "student",
        "teacher",
        "unet",
        "resnet",
        "transformer",
        "vae",
        "autoencoder",
    ]) || begins(&["net", "model"])
    {
        ValueKind::Model
    } else {
        ValueKind::Unknown
    }
}

/// Returns a value of the kind that a name suggests.
pub fn suggested_by(name: &str) -> Value {
    Value::of_kind(by_name(name))
}

fn starts_upper(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}
