//! Reads the header of an ELF image to find its text.

use core::mem::offset_of;

const MAGIC: [u8; 4] = *b"\x7fELF";
/// `ET_EXEC`, `PT_LOAD` and `PF_X` of elf(5).
const AT_FIXED_ADDRESS: u16 = 2;
const LOAD: u32 = 1;
const EXECUTABLE: u32 = 1;

#[repr(C)]
struct Header {
    identity: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    segments_offset: u64,
    sections_offset: u64,
    flags: u32,
    header_bytes: u16,
    segment_bytes: u16,
    segments: u16,
}

#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical_address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

const _: () = assert!(offset_of!(Header, segments) == 56);
const _: () = assert!(offset_of!(Segment, memory_bytes) == 40);

/// Where the executable segment of the image at `base` begins, and its size.
///
/// # Safety
/// `base` is null, or an image mapped from its first byte on, its segment table included.
pub unsafe fn text(base: *const u8) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise; mappings are aligned to pages.
    let header = unsafe { base.cast::<Header>().as_ref() }?;
    if header.identity[..4] != MAGIC || usize::from(header.segment_bytes) < size_of::<Segment>() {
        return None;
    }
    (0..usize::from(header.segments)).find_map(|number| {
        let place = header.segments_offset as usize + number * usize::from(header.segment_bytes);
        // SAFETY: the caller's promise; the table need not be aligned.
        let segment = unsafe { base.add(place).cast::<Segment>().read_unaligned() };
        let is_text = segment.kind == LOAD && segment.flags & EXECUTABLE != 0;
        let moved_by = match header.kind {
            AT_FIXED_ADDRESS => 0,
            _ => base as usize,
        };
        is_text.then_some((
            moved_by + segment.address as usize,
            segment.memory_bytes as usize,
        ))
    })
}

/// The address of the segment table of the image at `base`; 0 where there is no image.
///
/// # Safety
/// As [`text`].
pub unsafe fn segments(base: *const u8) -> usize {
    // SAFETY: the caller's promise; mappings are aligned to pages.
    let header = unsafe { base.cast::<Header>().as_ref() };
    header.map_or(0, |header| base as usize + header.segments_offset as usize)
}
