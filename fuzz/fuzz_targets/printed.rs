//! Any bytes as what a run printed, with any as the system's log beside them: a verdict is reached, and nothing in it
//! can steer a terminal. So are the files of a run that stood still, and what is sifted before it is given away.
//!
//! `cargo +nightly fuzz run printed -- -max_total_time=300`, with bench/faults/recorded to begin with.
#![no_main]

use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::share::Sieve;
use antifreeze_diagnose::stacks::Stacks;
use antifreeze_diagnose::waits::Waits;
use antifreeze_diagnose::{Run, Verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let run = Run::of_output(bytes.to_vec(), Log::default());
    let verdict = Verdict::reach(&run.facts, &run.story);
    for cause in &verdict.causes {
        assert!((0.0..=1.0).contains(&cause.confidence), "{cause:?}");
        assert!(!cause.summary.contains(char::is_control), "{cause:?}");
    }
    let _ = Waits::parse(bytes);
    let stacks = Stacks::of(7, bytes);
    let _ = (stacks.standing(), stacks.crash(), stacks.within());
    if let Some(sieve) = Sieve::new(Some("/home/ada"), Some("ada"), Some("laptop")) {
        let _ = sieve.sift_facts(&run.facts);
    }
});
