//! Queries about the model that several rules share, one subject per file.

pub mod activations;
pub mod backward;
pub mod bindings;
pub mod devices;
pub mod files;
pub mod loaders;
pub mod network;
pub mod optimizer_steps;
pub mod retention;
pub mod tensor_origin;
pub mod tf_data;
pub mod try_blocks;
pub mod wording;
