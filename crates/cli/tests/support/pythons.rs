//! Which Python interpreters the tests may use.

use std::env;
use std::path::PathBuf;

/// The interpreter that has PyTorch, NumPy, JAX and TensorFlow, from `ANTIFREEZE_TEST_PYTHON`;
/// `None`, said on stderr, where there is none: then a test of a framework has nothing to test.
pub fn framework_python() -> Option<PathBuf> {
    let named = env::var_os("ANTIFREEZE_TEST_PYTHON").map(PathBuf::from);
    if named.is_none() {
        eprintln!(
            "skipped: ANTIFREEZE_TEST_PYTHON names no interpreter with the frameworks (./test sets it)"
        );
    }
    named
}

/// The interpreters of `ANTIFREEZE_TEST_PYTHONS`, separated by colons, or the system's own.
pub fn pythons() -> Vec<PathBuf> {
    match env::var_os("ANTIFREEZE_TEST_PYTHONS") {
        Some(list) => env::split_paths(&list).collect(),
        None => vec![PathBuf::from("python3")],
    }
}
