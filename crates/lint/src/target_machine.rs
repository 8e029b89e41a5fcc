//! The machine that sizes are compared with.

/// The size of the machine. A field is `None` if it is unknown or there is no such device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetMachine {
    /// Main memory in bytes.
    pub ram_bytes: Option<u64>,
    /// Memory of the largest GPU in bytes.
    pub vram_bytes: Option<u64>,
    /// Cores that may be used.
    pub cores: Option<u32>,
}
