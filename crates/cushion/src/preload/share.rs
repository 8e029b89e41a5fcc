//! Computes how much of the head-room a new process takes. Pure arithmetic.

/// The least share, while head-room is ample.
const FLOOR: u64 = 32 << 20;

/// The share of the `birth`th process started since the last tick: half of the head-room for the first, a quarter for
/// the next, and so on, so that all together cannot take more than there is. It is never below a floor, because no
/// program runs on a few KB. The floor may overdraw the head-room a little until the next tick.
pub fn share(headroom: u64, birth: u32) -> u64 {
    let halved = headroom.checked_shr(birth.max(1)).unwrap_or(0);
    halved.max(FLOOR.min(headroom / 4))
}
