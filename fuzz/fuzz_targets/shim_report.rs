//! Any bytes as what a trainer said of itself, up to the words that are made of it.

#![no_main]

use antifreeze_diagnose::{Facts, RunSummary, ShimReport, Verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let facts = Facts {
        shim: ShimReport::parse(bytes),
        ..Facts::default()
    };
    if let Some(suspect) = facts.shim.suspect() {
        suspect.does();
    }
    let summary = RunSummary::default();
    let verdict = Verdict::reach(&facts, &summary);
    let style = antifreeze_view::TermStyle::default();
    antifreeze_view::show(&verdict, &facts, &summary, [], &style);
});
