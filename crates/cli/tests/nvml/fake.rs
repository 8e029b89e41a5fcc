//! A driver's library for machines without a card: `tests/cards.rs` compiles it and has the probe load it. What it
//! answers stands in the file that FAKE_NVML names, and is read again at each call:
//!
//! - a line for each card, with memory in use and in all (MiB), load (%), temperature (°C), draw and limit (W), and
//!   the bits of why it is slowed; `-` for what it does not tell, `lost` for a card that has fallen off the bus;
//! - `hang FUNCTION` for one that never returns.

// The names and the pointers are those of the library.
#![allow(non_snake_case, clippy::not_unsafe_ptr_arg_deref)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};
use std::fs;

const OK: c_int = 0;
const INVALID: c_int = 2;
const NOT_SUPPORTED: c_int = 3;
const LOST: c_int = 15;

#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

fn lines() -> Vec<String> {
    let file = std::env::var_os("FAKE_NVML").unwrap_or_default();
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn cards() -> Vec<String> {
    lines()
        .into_iter()
        .filter(|line| !line.starts_with("hang"))
        .collect()
}

/// The words of a card, or the error that stands for it.
fn card(device: usize, function: &str) -> Result<Vec<String>, c_int> {
    may_hang(function);
    let line = cards()
        .get(device.wrapping_sub(1))
        .cloned()
        .ok_or(INVALID)?;
    match line.as_str() {
        "lost" => Err(LOST),
        line => Ok(line.split_whitespace().map(str::to_owned).collect()),
    }
}

fn may_hang(function: &str) {
    while lines().contains(&format!("hang {function}")) {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

fn number(device: usize, function: &str, place: usize) -> Result<u64, c_int> {
    let words = card(device, function)?;
    words
        .get(place)
        .and_then(|word| word.parse().ok())
        .ok_or(NOT_SUPPORTED)
}

/// Puts an answer where it is wanted.
fn tell<T>(to: *mut T, answer: Result<T, c_int>) -> c_int {
    match answer {
        // SAFETY: the caller gives a place for it.
        Ok(value) => unsafe {
            to.write(value);
            OK
        },
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    may_hang("init");
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    may_hang("shutdown");
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> c_int {
    for (place, byte) in b"580.65.06\0".iter().enumerate().take(length as usize) {
        // SAFETY: within the length that the caller names.
        unsafe { version.add(place).write(*byte as c_char) };
    }
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    tell(count, Ok(cards().len() as c_uint))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut usize) -> c_int {
    tell(device, Ok(index as usize + 1))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: usize, memory: *mut Memory) -> c_int {
    let used = number(device, "memory", 0);
    let total = number(device, "memory", 1);
    let both = used.and_then(|used| Ok((used << 20, total? << 20)));
    tell(
        memory,
        both.map(|(used, total)| Memory {
            version: 0,
            total,
            reserved: 0,
            free: total - used,
            used,
        }),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUtilizationRates(device: usize, rates: *mut Utilization) -> c_int {
    let busy = number(device, "utilization", 2);
    tell(
        rates,
        busy.map(|busy| Utilization {
            gpu: busy as c_uint,
            memory: 0,
        }),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(
    device: usize,
    _sensor: c_int,
    degrees: *mut c_uint,
) -> c_int {
    tell(
        degrees,
        number(device, "temperature", 3).map(|degrees| degrees as c_uint),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(device: usize, milliwatts: *mut c_uint) -> c_int {
    tell(
        milliwatts,
        number(device, "power", 4).map(|watts| watts as c_uint * 1000),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: usize, milliwatts: *mut c_uint) -> c_int {
    tell(
        milliwatts,
        number(device, "power", 5).map(|watts| watts as c_uint * 1000),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: usize,
    bits: *mut c_ulonglong,
) -> c_int {
    tell(bits, number(device, "throttle", 6))
}
