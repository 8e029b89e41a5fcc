//! # user-exception
//!
//! The script raised an error that it did not catch.
//!
//! ## How it looks
//!
//! A traceback, and an exit code of 1.
//!
//! ## How it is told
//!
//! By the traceback at the end of the output, and an exit code that is not 0. Where a cause is known that such an
//! error comes from, that is told instead.
//!
//! ## What to do
//!
//! The line that is named is the last of your own; the error says what it met.

use super::{Finding, Found};
use crate::case::Case;
use crate::verdict::EndKind;
use crate::words::cut;

/// An error's message may be pages long; its beginning tells what it is.
const WIDEST: usize = 160;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = (case.end == EndKind::Exception)
        .then(|| Found::new(case, 0.9, cut(case.error(), WIDEST), "").at(case.location()));
    found.into()
}
