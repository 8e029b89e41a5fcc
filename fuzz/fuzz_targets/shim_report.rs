//! Any bytes as what a trainer said of itself, up to the words that are made of it.

#![no_main]

use antifreeze_diagnose::{Facts, Story, Told, Verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let facts = Facts {
        told: Told::said(bytes),
        ..Facts::default()
    };
    if let Some(suspect) = facts.told.suspect() {
        suspect.does();
    }
    let story = Story::default();
    let verdict = Verdict::reach(&facts, &story);
    let style = antifreeze_view::TermStyle::default();
    antifreeze_view::show(&verdict, &facts, &story, [], &style);
});
