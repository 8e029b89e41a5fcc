//! Whether a device is a GPU.

use super::bindings::find_binding;
use crate::model::{FrameId, Module};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

/// Whether a device is a GPU, or one if there is any.
pub fn is_gpu_device<'a>(module: &Module<'a>, device: &'a Expr, frame: FrameId) -> bool {
    is_gpu_device_within(module, device, frame, 4)
}

fn is_gpu_device_within<'a>(
    module: &Module<'a>,
    device: &'a Expr,
    frame: FrameId,
    deep: u32,
) -> bool {
    match device {
        Expr::StringLiteral(text) => text.value.to_str().starts_with("cuda"),
        Expr::FString(_) => module.source(device).contains("cuda"),
        Expr::If(choice) => {
            is_gpu_device_within(module, &choice.body, frame, deep)
                || is_gpu_device_within(module, &choice.orelse, frame, deep)
        }
        Expr::Call(call)
            if module
                .import_path(&call.func)
                .is_some_and(|path| path.is("torch.device")) =>
        {
            let first = call.arguments.args.first();
            first.is_some_and(|inner| is_gpu_device_within(module, inner, frame, deep))
        }
        Expr::Name(_) | Expr::Attribute(_) if deep > 0 => {
            let Some(name) = module.dotted_name(device) else {
                return false;
            };
            match find_binding(module, name, frame, device.start()) {
                Some(origin) if origin.part.is_none() => {
                    is_gpu_device_within(module, origin.expr, origin.frame, deep - 1)
                }
                Some(_) => false,
                None => is_gpu_parameter(module, name, frame, deep - 1),
            }
        }
        _ => false,
    }
}

/// Whether a parameter is a GPU, because all callers in this text pass one or because of its
/// default.
fn is_gpu_parameter<'a>(module: &Module<'a>, name: &str, frame: FrameId, deep: u32) -> bool {
    let Some(def) = module.frame(frame).def else {
        return false;
    };
    let mut parameters = def.parameters.iter_non_variadic_params();
    let Some(place) = parameters.position(|parameter| parameter.parameter.name.as_str() == name)
    else {
        return false;
    };
    let is_method = module.frame(frame).class.is_some();
    let place = place.saturating_sub(usize::from(is_method));
    let mut given = module
        .calls()
        .iter()
        .filter(|call| call.local_function == Some(frame))
        .filter_map(|call| Some((call.argument(place, name)?, call.context.frame)))
        .peekable();
    if given.peek().is_some() {
        return given.all(|(device, frame)| is_gpu_device_within(module, device, frame, deep));
    }
    let mut parameters = def.parameters.iter_non_variadic_params();
    let default = parameters.find(|parameter| parameter.parameter.name.as_str() == name);
    let default = default.and_then(|parameter| parameter.default.as_deref());
    default.is_some_and(|device| is_gpu_device_within(module, device, frame, deep))
}
