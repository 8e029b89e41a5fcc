//! Parses lines of GPU drivers about failures.

use super::incident::Kind;
use super::scan;
use antifreeze_sense::Pid;

/// Parses a line of a GPU driver.
pub fn parse(text: &str) -> Option<Kind> {
    nvidia(text).or_else(|| amd(text))
}

fn nvidia(text: &str) -> Option<Kind> {
    let said = text.strip_prefix("NVRM: ")?;
    if let Some(rest) = said.strip_prefix("Xid (") {
        return xid(rest);
    }
    // Also logged without a code, and as the last of several lines.
    let gone = said.contains("fallen off the bus");
    gone.then(|| Kind::GpuOffTheBus {
        gpu: said.split([' ', ',']).find_map(address).map(Into::into),
    })
}

/// `PCI:0000:01:00): 79, pid=4242, name=python3, GPU has fallen off the bus.`
fn xid(text: &str) -> Option<Kind> {
    let (gpu, rest) = text.split_once("): ")?;
    let (code, rest) = scan::number(rest)?;
    let detail = rest.trim_start_matches([',', ' ']);
    let pid = detail.strip_prefix("pid=").and_then(|pid| {
        let pid = pid.split(',').next()?;
        scan::pid(pid.trim_matches('\''))
    });
    Some(Kind::Xid {
        gpu: gpu.strip_prefix("PCI:").unwrap_or(gpu).into(),
        code,
        pid,
        detail: detail.into(),
    })
}

fn amd(text: &str) -> Option<Kind> {
    let (gpu, said) = amd_words(text)?;
    let gpu = gpu.map(Into::into);
    let ring = said
        .strip_prefix("ring ")
        .and_then(|rest| rest.split_once(" timeout, signaled seq="));
    if let Some((ring, _)) = ring {
        return Some(Kind::AmdRingTimeout {
            gpu,
            ring: ring.into(),
            process: None,
        });
    }
    if said.starts_with("GPU reset begin!") {
        return Some(Kind::AmdReset { gpu });
    }
    let for_good = said.starts_with("GPU Recovery Failed");
    let lost = said.starts_with("VRAM is lost");
    (for_good || lost).then_some(Kind::AmdLost { gpu, for_good })
}

/// Parses `Process information: process python3 pid 4242 thread …`, below a ring timeout.
pub fn amd_process(text: &str) -> Option<(String, Pid)> {
    let (_, said) = amd_words(text)?;
    let said = said.strip_prefix("Process information: process ");
    let said = said.or_else(|| amd_words(text)?.1.strip_prefix("Process "))?;
    let (who, _) = said.split_once(" thread ").unwrap_or((said, ""));
    let (name, pid) = who.rsplit_once(" pid ")?;
    Some((name.into(), scan::pid(pid)?))
}

/// Skips `amdgpu 0000:03:00.0: amdgpu: ` or `[drm:amdgpu_job_timedout [amdgpu]] *ERROR* `.
fn amd_words(text: &str) -> Option<(Option<&str>, &str)> {
    if let Some(rest) = text.strip_prefix("amdgpu ") {
        let (gpu, rest) = rest.split_once(": ")?;
        let rest = rest.strip_prefix("amdgpu: ").unwrap_or(rest).trim_start();
        return Some((address(gpu), rest.strip_prefix("[drm] ").unwrap_or(rest)));
    }
    let rest = match text.strip_prefix("[drm] ") {
        Some(rest) => rest,
        None => text.strip_prefix("[drm:amdgpu_")?.split_once("]] ")?.1,
    };
    Some((None, rest.strip_prefix("*ERROR* ").unwrap_or(rest)))
}

/// `0000:01:00.0`, perhaps after `PCI:`.
fn address(word: &str) -> Option<&str> {
    let word = word
        .strip_prefix("PCI:")
        .unwrap_or(word)
        .trim_matches([':', '.']);
    let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
    let colons = word.bytes().filter(|byte| *byte == b':').count();
    (colons == 2 && word.bytes().all(plain)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn nvidia() {
        let xid = |code, pid, detail: &str| Kind::Xid {
            gpu: text("0000:01:00"),
            code,
            pid,
            detail: detail.into(),
        };
        let said = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
        tells(
            &format!("NVRM: Xid (PCI:0000:01:00): 79, {said}"),
            xid(79, None, said),
        );
        let said = "pid=42, name=python3, Ch 00000008";
        tells(
            &format!("NVRM: Xid (PCI:0000:01:00): 31, {said}"),
            xid(31, Some(Pid(42)), said),
        );
        tells("NVRM: Xid (0000:01:00): 45", xid(45, None, ""));
        for near in [
            "NVRM: Xid (PCI:0000:01:00): 79x, made up",
            "NVRM: Xid (PCI:0000:01:00): 4294967296, made up",
            "made up: NVRM: Xid (PCI:0000:01:00): 79, x",
            "NVRM: loading NVIDIA UNIX Open Kernel Module",
        ] {
            tells_nothing(near);
        }
        // A process that bears the driver's words as its name.
        let fell = "NVRM: Xid (PCI:[42]: segfault at 0 ip 2a sp 2b error 4";
        assert!(matches!(
            kind(&format!("[1.000000] {fell}")),
            Some(Kind::Segfault { .. })
        ));
        for (said, gpu) in [
            (
                "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.",
                Some("0000:01:00.0"),
            ),
            (
                "NVRM: GPU at PCI:0000:01:00 has fallen off the bus.",
                Some("0000:01:00"),
            ),
            (
                "NVRM: fallen off the bus and is not responding to commands.",
                None,
            ),
        ] {
            let gpu = gpu.map(Into::into);
            tells(said, Kind::GpuOffTheBus { gpu });
        }
        tells_nothing("made up: GPU has fallen off the bus.");
    }

    #[test]
    fn amd() {
        let gpu = || Some(text("0000:03:00.0"));
        for (said, gpu) in [
            (
                "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=7, emitted seq=9",
                gpu(),
            ),
            (
                "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=7, emitted seq=9",
                None,
            ),
        ] {
            let ring = text("gfx_0.0.0");
            tells(
                said,
                Kind::AmdRingTimeout {
                    gpu,
                    ring,
                    process: None,
                },
            );
        }
        tells_nothing("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, but soft recovered");
        tells(
            "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            Kind::AmdReset { gpu: gpu() },
        );
        tells(
            "amdgpu 0000:03:00.0: GPU reset begin!. Source:  1",
            Kind::AmdReset { gpu: gpu() },
        );
        tells_nothing("amdgpu 0000:03:00.0: amdgpu: GPU reset succeeded, trying to resume");
        for (said, gpu, for_good) in [
            ("[drm] VRAM is lost due to GPU reset!", None, false),
            (
                "amdgpu 0000:03:00.0: amdgpu: VRAM is lost due to GPU reset!",
                gpu(),
                false,
            ),
            (
                "amdgpu 0000:03:00.0: amdgpu: GPU Recovery Failed: -110",
                gpu(),
                true,
            ),
        ] {
            tells(said, Kind::AmdLost { gpu, for_good });
        }
        tells_nothing("[drm] VRAM is made up");
    }
}
