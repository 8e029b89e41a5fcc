//! Any bytes are a file: checking and fixing them never panics, as a script or a notebook.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run check -- -max_total_time=300`, with `crates/lint/tests/scripts` as the corpus
//! to begin with.
#![no_main]

use antifreeze_check::check_file::{CheckOptions, FixMode, check_bytes};
use antifreeze_check::error::FileError;
use antifreeze_check::parallel;
use antifreeze_check::settings::{RuleFlags, Settings};
use antifreeze_lint::finding::Safety;
use antifreeze_lint::target_machine::TargetMachine;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Once;

/// The fuzzer ends at every panic. Those of the parser are caught, and belong to the file.
fn let_panics_be_caught() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| ())));
}

fuzz_target!(|bytes: &[u8]| {
    let_panics_be_caught();
    let flags = RuleFlags {
        preview: true,
        ..RuleFlags::default()
    };
    let selection = Settings::default()
        .resolve(&flags, Path::new("/"))
        .expect("no settings are no mistake");
    let options = CheckOptions {
        selection: &selection,
        target: TargetMachine {
            ram_bytes: Some(16_000_000_000),
            vram_bytes: Some(8_000_000_000),
            cores: Some(8),
        },
        fixes: FixMode::Preview(Safety::Unsafe),
    };
    // On a thread with the stack that is promised to the linter.
    let reports = parallel::map_items(&["a.py", "a.ipynb"], |name| {
        check_bytes(bytes.to_vec(), Path::new(name), &options)
    });
    for report in reports.expect("a thread") {
        let has_panicked = |error: &FileError| matches!(error, FileError::Panic(_));
        assert!(!report.errors.iter().any(has_panicked), "{report:?}");
    }
});
