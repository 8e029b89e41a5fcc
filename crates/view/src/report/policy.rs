//! The Content-Security-Policy of the page: the browser may use only our own style and script, each identified by
//! its hash. A script that is injected into the page does not run, and nothing can be sent anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The value of the `Content-Security-Policy`.
pub(crate) fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{}'; script-src '{}'",
        hash(style),
        hash(script)
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_browsers_compute() {
        // The example of the standard, CSP level 3, 6.7.3.3.
        assert_eq!(
            hash("alert('Hello, world.');"),
            "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
        );
    }

    #[test]
    fn only_what_is_ours_may_run() {
        let policy = policy("a{}", "b()");
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
