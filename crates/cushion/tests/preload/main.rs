//! The preload library in real processes, under a real limit, with a guard of the test's own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod births;
mod company;
mod library;
mod loader;
mod page_given;
mod page_missing;
mod pure;
mod python;
mod sentry;
mod subject;

const MB: u64 = 1 << 20;
