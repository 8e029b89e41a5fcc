//! How much of the head-room a process takes when it is born. Pure arithmetic.

/// What a share does not fall below, while the head-room is ample.
const FLOOR: u64 = 32 << 20;

/// The share of the `birth`th process started since the guard last looked: half of the
/// head-room for the first, a quarter for the next, and so on, so that all of them together
/// cannot take more than there is; but not below a floor, for nothing runs on a few KB. The
/// floor may overdraw the head-room a little; the guard's next look corrects it.
pub fn share(headroom: u64, birth: u32) -> u64 {
    let halved = headroom.checked_shr(birth.max(1)).unwrap_or(0);
    halved.max(FLOOR.min(headroom / 4))
}
