//! Any bytes as a system log, up to the incidents that are read from it.

#![no_main]

use antifreeze_diagnose::kernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let reference = "2026-11-16T12:00:00Z".parse();
    for incident in reference.map_or_else(|_| Vec::new(), |at| kernel::incidents(bytes, at)) {
        assert!(!incident.line.text.contains(char::is_control));
        if let kernel::Kind::Xid { code, .. } = incident.kind {
            let _ = kernel::xid(code);
        }
    }
});
