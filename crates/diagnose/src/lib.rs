//! Explains how a run ended: from its record, its last output, the reports of its shim and the kernel's log to a
//! [`Verdict`] with causes, confidence, evidence, remedies, and what was ruled out.
//!
//! - [`run`] gathers what is known of a run, [`output`] reads what it printed, [`shim`] what its trainers reported, and
//!   [`kernel`] the system's log. All of these are untrusted bytes of any length.
//! - [`causes`] has one file for each cause, with its detector.
//! - [`verdict`] ranks what the detectors found and determines how the run ended.

pub mod causes;
pub mod kernel;
pub mod output;
pub mod redact;
pub mod run;
pub mod shim;
pub mod time;
pub mod verdict;

pub use run::continuation::{Continuation, MissingCode};
pub use run::facts::{Facts, RunState, Terms};
pub use run::restart::RestartDecision;
pub use run::series::{Growth, Series};
pub use run::summary::RunSummary;
pub use run::{ReadContext, Run, lacks_brake};
pub use shim::ShimReport;
pub use verdict::{Cause, Code, Evidence, Location, Remedy, Verdict};
