//! Parses /proc/PID/mountinfo and /proc/PID/cgroup: what is mounted where, and the cgroups of a process.

use super::text::{lines, parse_decimal, split_at_byte, words};

/// One line of /proc/self/mountinfo. Paths are as the kernel escapes them: see [`unescape_mount_path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// The folder of the file system that is mounted.
    pub root: &'a [u8],
    /// The mount point.
    pub point: &'a [u8],
    /// The file system's type, such as `ext4` or `fuse.sshfs`.
    pub kind: &'a [u8],
    /// What was mounted, such as a device.
    pub source: &'a [u8],
    /// The file system's own options, separated by commas.
    pub options: &'a [u8],
}

/// Parses the lines of mountinfo. Malformed lines are skipped.
pub fn mounts(mountinfo: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    lines(mountinfo).filter_map(|line| {
        let mut words = words(line);
        // Skipped: mount number, parent, device.
        let root = words.nth(3)?;
        let point = words.next()?;
        // Skipped: the mount's options and any number of optional fields.
        words.find(|word| *word == b"-")?;
        Some(Mount {
            root,
            point,
            kind: words.next()?,
            source: words.next()?,
            options: words.next().unwrap_or_default(),
        })
    })
}

/// Finds the mount that an absolute path without links is on: the deepest one, and of several at the same mount point
/// the last, because it covers the others.
pub fn mount_holding<'a>(mountinfo: &'a [u8], path: &[u8]) -> Option<Mount<'a>> {
    mounts(mountinfo)
        .filter(|mount| mount_contains(mount.point, path))
        .max_by_key(|mount| mount.point.len())
}

fn mount_contains(point: &[u8], path: &[u8]) -> bool {
    let mut rest = path.iter().copied();
    for byte in unescape_mount_path(point) {
        if rest.next() != Some(byte) {
            return false;
        }
    }
    point.ends_with(b"/") || matches!(rest.next(), None | Some(b'/'))
}

/// Unescapes a path of mountinfo, in which blanks and backslashes are written as `\ooo` in octal.
pub fn unescape_mount_path(path: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = path;
    core::iter::from_fn(move || {
        let (&first, mut after) = rest.split_first()?;
        let mut byte = first;
        if first == b'\\'
            && let Some((digits, beyond)) = after.split_first_chunk::<3>()
            && let Some(code) = parse_octal(digits)
        {
            byte = code;
            after = beyond;
        }
        rest = after;
        Some(byte)
    })
}

fn parse_octal(digits: &[u8; 3]) -> Option<u8> {
    digits.iter().try_fold(0u8, |sum, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 7 {
            return None;
        }
        sum.checked_mul(8)?.checked_add(digit)
    })
}

/// One line of /proc/PID/cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupMembership<'a> {
    /// The number of the hierarchy; 0 is the unified one of version 2.
    pub hierarchy: u64,
    /// The controllers, separated by commas; empty for version 2.
    pub controllers: &'a [u8],
    /// The path from the root of our cgroup namespace.
    pub path: &'a [u8],
}

/// Parses the lines of /proc/PID/cgroup. Malformed lines are skipped.
pub fn cgroup_memberships(cgroup: &[u8]) -> impl Iterator<Item = CgroupMembership<'_>> {
    lines(cgroup).filter_map(|line| {
        let (hierarchy, rest) = split_at_byte(line, b':')?;
        let (controllers, path) = split_at_byte(rest, b':')?;
        Some(CgroupMembership {
            hierarchy: parse_decimal(hierarchy)?,
            controllers,
            path,
        })
    })
}
