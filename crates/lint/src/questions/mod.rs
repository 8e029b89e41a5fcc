//! What several rules ask of the model, one subject a file.

pub mod attempts;
pub mod backward;
pub mod bindings;
pub mod devices;
pub mod files;
pub mod keeping;
pub mod loaders;
pub mod network;
pub mod numbers;
pub mod origin;
pub mod pipeline;
pub mod steps;
pub mod words;
