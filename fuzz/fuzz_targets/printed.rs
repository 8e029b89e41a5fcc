//! Any bytes as what a run printed, with any as the system's log beside them: a verdict is reached, and nothing in it
//! can steer a terminal. So are the files of a run that stood still, and what is sifted before it is given away.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run printed -- -max_total_time=300`, with bench/faults/recorded to begin with.
#![no_main]

use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::redact::Redactor;
use antifreeze_diagnose::run::stacks::Stacks;
use antifreeze_diagnose::run::wait_states::WaitStates;
use antifreeze_diagnose::{Run, Verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let run = Run::from_output(bytes.to_vec(), Log::default());
    let verdict = Verdict::reach(&run.facts, &run.summary);
    for cause in &verdict.causes {
        assert!((0.0..=1.0).contains(&cause.confidence), "{cause:?}");
        assert!(!cause.summary.contains(char::is_control), "{cause:?}");
    }
    let _ = WaitStates::parse(bytes);
    let stacks = Stacks::parse(7, bytes);
    let _ = (
        stacks.repeated_stack(),
        stacks.crash(),
        stacks.repeated_function(),
    );
    if let Some(sieve) = Redactor::new(Some("/home/ada"), Some("ada"), Some("laptop")) {
        let _ = sieve.redact_facts(&run.facts);
    }
});
