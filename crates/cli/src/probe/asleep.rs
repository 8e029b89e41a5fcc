//! Finds out whether NVIDIA GPUs are suspended, from files that do not wake them.

use std::fs;
use std::path::{Path, PathBuf};

/// The power files of each GPU.
pub struct Slots(Vec<PathBuf>);

impl Slots {
    /// `sys` is where the kernel's /sys is.
    pub fn open(sys: &Path) -> Slots {
        let devices = fs::read_dir(sys.join("bus/pci/devices"));
        let devices = devices.into_iter().flatten().flatten();
        let gpus = devices.map(|entry| entry.path()).filter(|device| {
            // A GPU has several functions on the bus, such as its audio device; class 03 displays and computes.
            is(&device.join("vendor"), "0x10de") && begins(&device.join("class"), "0x03")
        });
        Slots(gpus.map(|device| device.join("power")).collect())
    }

    /// Whether every GPU is asleep. False if none is visible on the bus, as under WSL.
    pub fn are_all_asleep(&self) -> bool {
        !self.0.is_empty()
            && self
                .0
                .iter()
                .all(|power| is(&power.join("runtime_status"), "suspended"))
    }

    /// Whether one of the GPUs is suspended when it is idle.
    pub fn may_sleep(&self) -> bool {
        self.0
            .iter()
            .any(|power| is(&power.join("control"), "auto"))
    }
}

fn is(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == word)
}

fn begins(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices by vendor, class and whether they sleep, in a folder that must stay: it is read again each time.
    fn slots(devices: &[(&str, &str, &str)]) -> (tempfile::TempDir, Slots) {
        let sys = tempfile::tempdir().unwrap();
        for (number, (vendor, class, status)) in devices.iter().enumerate() {
            let device = sys
                .path()
                .join(format!("bus/pci/devices/0000:0{number}:00.0"));
            fs::create_dir_all(device.join("power")).unwrap();
            fs::write(device.join("vendor"), vendor).unwrap();
            fs::write(device.join("class"), class).unwrap();
            fs::write(device.join("power/runtime_status"), status).unwrap();
            fs::write(device.join("power/control"), "auto\n").unwrap();
        }
        let slots = Slots::open(sys.path());
        (sys, slots)
    }

    const NVIDIA: &str = "0x10de\n";
    const AMD: &str = "0x1002\n";
    const CARD: &str = "0x030000\n";
    const COMPUTES: &str = "0x030200\n";
    const SOUND: &str = "0x040300\n";

    #[test]
    fn a_laptops_card_that_sleeps_is_known_without_asking_it_and_so_is_that_it_woke() {
        let (sys, slots) = slots(&[
            (NVIDIA, CARD, "suspended\n"),
            (AMD, CARD, "active\n"),
            (NVIDIA, SOUND, "active\n"),
        ]);
        assert!(slots.are_all_asleep() && slots.may_sleep());
        let status = "bus/pci/devices/0000:00:00.0/power/runtime_status";
        fs::write(sys.path().join(status), "active\n").unwrap();
        assert!(!slots.are_all_asleep());
    }

    #[test]
    fn one_that_is_awake_is_enough() {
        let two = slots(&[
            (NVIDIA, CARD, "suspended\n"),
            (NVIDIA, COMPUTES, "active\n"),
        ]);
        assert!(!two.1.are_all_asleep());
        assert!(!slots(&[(NVIDIA, CARD, "unsupported\n")]).1.are_all_asleep());
    }

    #[test]
    fn where_no_card_is_seen_on_the_bus_nothing_sleeps() {
        let (_sys, none) = slots(&[(AMD, CARD, "suspended\n")]);
        assert!(!none.are_all_asleep() && !none.may_sleep());
        assert!(!Slots::open(Path::new("/nowhere")).are_all_asleep());
    }
}
