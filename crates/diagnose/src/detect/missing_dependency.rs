//! # missing-dependency
//!
//! A package or a library that the script needs is not installed, or not where this Python looks.
//!
//! ## How it looks
//!
//! `ModuleNotFoundError: No module named 'x'`, `ImportError: libcudart.so.12: cannot open shared object file`.
//!
//! ## How it is told
//!
//! By the error that ended the script. A name that cannot be imported from a module that is there is an error of
//! versions, and called likely.
//!
//! ## What to do
//!
//! Install it into the Python that runs the script:
//!
//! ```sh
//! python -m pip install x
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let error = case.error();
    let module = error
        .strip_prefix("ModuleNotFoundError: No module named ")
        .map(|name| name.trim_matches(['\'', '"', ' ', '.']));
    let (confidence, remedy, paste) = if let Some(module) = module {
        let top = module.split('.').next().unwrap_or(module);
        let install = format!("python -m pip install {}", package(top));
        (0.95, "install it into the Python that runs the script", Some(install))
    } else if error.contains("cannot open shared object file") {
        (0.9, "install the library, or reinstall the package that needs it", None)
    } else if error.starts_with("ImportError: cannot import name ") {
        (0.75, "two packages do not fit together: look at their versions", Some("python -m pip check".into()))
    } else {
        return Finding::Nothing;
    };
    Finding::Found(
        Found::new(case, confidence, cut(error, 160), "")
            .at(case.location())
            .remedy(remedy, paste),
    )
}

/// Whose name is another than that of its module.
fn package(module: &str) -> &str {
    match module {
        "cv2" => "opencv-python",
        "sklearn" => "scikit-learn",
        "PIL" => "pillow",
        "yaml" => "pyyaml",
        "skimage" => "scikit-image",
        "bs4" => "beautifulsoup4",
        "pytorch_lightning" => "pytorch-lightning",
        other => other,
    }
}
