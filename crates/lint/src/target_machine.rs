//! The machine that sizes are held against.

/// What is there; None where it is not known, or not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetMachine {
    /// Memory in bytes.
    pub ram_bytes: Option<u64>,
    /// Memory of the largest graphics card in bytes.
    pub vram_bytes: Option<u64>,
    pub cores: Option<u32>,
}
