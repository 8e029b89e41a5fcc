//! Any bytes are a file: checking and fixing them never panics, as a script or a notebook.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run check -- -max_total_time=300`, with `crates/lint/tests/scripts` as the corpus
//! to begin with.
#![no_main]

use antifreeze_check::crew;
use antifreeze_check::examine::{Fixes, Orders, bytes_at};
use antifreeze_check::settings::{Flags, Settings};
use antifreeze_lint::finding::Safety;
use antifreeze_lint::here::Here;
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
    let flags = Flags {
        preview: true,
        ..Flags::default()
    };
    let selection = Settings::default()
        .resolve(&flags, Path::new("/"))
        .expect("no settings are no mistake");
    let orders = Orders {
        selection: &selection,
        here: Here {
            ram: Some(16_000_000_000),
            vram: Some(8_000_000_000),
            cores: Some(8),
        },
        fixes: Fixes::Show(Safety::Unsafe),
    };
    // On a thread with the stack that is promised to the linter.
    let reports = crew::each(&["a.py", "a.ipynb"], |name| {
        bytes_at(bytes.to_vec(), Path::new(name), &orders)
    });
    for report in reports.expect("a thread") {
        let ours = |trouble: &String| trouble.contains("antifreeze itself failed");
        assert!(!report.troubles.iter().any(ours), "{:?}", report.troubles);
    }
});
