//! Texts of real kernels, texts that lie, and any bytes at all.

mod machine;
mod mount;
mod process;
mod properties;
