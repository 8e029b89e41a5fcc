//! The rules, one per file. `crate::queries` has what several of them share.

mod accumulation_drops_last;
mod accumulation_undefined_index;
mod accumulation_without_division;
mod accumulation_zeroes_every_step;
mod batch_too_large_here;
mod bias_before_batchnorm;
mod cuda_in_worker;
mod dataset_in_ram;
mod dataset_on_gpu;
mod division_by_prediction;
mod double_softmax;
mod eval_without_no_grad;
mod exception_swallowed;
mod excess_per_step_work;
mod fp16_without_scaler;
mod full_batch;
mod graph_in_accumulator;
mod graph_in_container;
mod list_in_dataset_with_workers;
mod log_unguarded;
mod map_not_parallel;
mod missing_zero_grad;
mod no_main_guard;
mod no_prefetch;
mod nonscalar_backward;
mod oom_retry_in_except;
mod outputs_kept_on_gpu;
mod persistent_tape;
mod predict_in_loop;
mod retain_graph_in_loop;
mod sigmoid_then_bce_with_logits;
mod tensors_kept_forever;
mod undetached_state;
mod variable_or_function_in_loop;
mod workers_oversubscribed;

use crate::rule::Rule;

/// All rules, sorted by code.
pub static RULES: &[&Rule] = &[
    &graph_in_accumulator::RULE,
    &graph_in_container::RULE,
    &tensors_kept_forever::RULE,
    &undetached_state::RULE,
    &eval_without_no_grad::RULE,
    &outputs_kept_on_gpu::RULE,
    &retain_graph_in_loop::RULE,
    &oom_retry_in_except::RULE,
    &exception_swallowed::RULE,
    &dataset_on_gpu::RULE,
    &dataset_in_ram::RULE,
    &full_batch::RULE,
    &batch_too_large_here::RULE,
    &list_in_dataset_with_workers::RULE,
    &workers_oversubscribed::RULE,
    &no_main_guard::RULE,
    &cuda_in_worker::RULE,
    &no_prefetch::RULE,
    &map_not_parallel::RULE,
    &excess_per_step_work::RULE,
    &missing_zero_grad::RULE,
    &accumulation_zeroes_every_step::RULE,
    &accumulation_without_division::RULE,
    &accumulation_undefined_index::RULE,
    &accumulation_drops_last::RULE,
    &nonscalar_backward::RULE,
    &fp16_without_scaler::RULE,
    &bias_before_batchnorm::RULE,
    &log_unguarded::RULE,
    &division_by_prediction::RULE,
    &double_softmax::RULE,
    &sigmoid_then_bce_with_logits::RULE,
    &persistent_tape::RULE,
    &variable_or_function_in_loop::RULE,
    &predict_in_loop::RULE,
];

/// Returns a rule by its code or its name.
pub fn find(text: &str) -> Option<&'static Rule> {
    RULES
        .iter()
        .copied()
        .find(|rule| rule.name == text || rule.code.eq_ignore_ascii_case(text))
}
