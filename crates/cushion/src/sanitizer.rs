//! Recognises programs that are built with a sanitizer: AddressSanitizer, ThreadSanitizer, MemorySanitizer and kin.
//!
//! Such a program has an allocator of its own that has to come before any other, and reserves terabytes of address space
//! before any code of a preloaded library runs. There is no way to keep a wall in it, so antifreeze steps aside: the
//! program is started without the cushion and without a limit.

/// Names of the libraries that the runtimes are in, without what follows.
const LIBRARIES: [&[u8]; 8] = [
    b"libasan.so",
    b"libtsan.so",
    b"libhwasan.so",
    b"libclang_rt.asan",
    b"libclang_rt.tsan",
    b"libclang_rt.msan",
    b"libclang_rt.hwasan",
    b"libclang_rt.dfsan",
];
/// The prefix of what every runtime exports that is linked into an executable, or that the executable may define; and
/// what the one exports that runs nothing before the libraries.
const EXPORTED: &[u8] = b"__sanitizer_";
const EXPORTED_BY_MSAN: &[u8] = b"__msan_init";
const LONGEST_NAME: usize = 20;

/// Of elf(5).
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const DYNAMIC_BYTES: usize = 16;
const MAGIC_64_LITTLE: [u8; 6] = *b"\x7fELF\x02\x01";
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
/// Functions that run before those of libraries: almost only sanitizers have any.
const DT_PREINIT_ARRAY: u64 = 32;

const MAX_SEGMENTS: usize = 32;
const MAX_ENTRIES: usize = 128;
const MAX_LIBRARIES: usize = 64;
const MAX_NAMES: u64 = 256 << 10;
const CHUNK_BYTES: usize = 2048;

/// Whether a value of `LD_PRELOAD` names a runtime.
pub fn is_preloaded(preload: &[u8]) -> bool {
    let mut names = preload.split(|byte| matches!(byte, b':' | b' '));
    names.any(|path| is_runtime(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)))
}

/// Whether this is the file of a program with a sanitizer. `read` fills a buffer from an offset of the file, and returns
/// how many bytes there were.
pub fn is_sanitized(mut read: impl FnMut(&mut [u8], u64) -> usize) -> bool {
    let mut file = File(&mut read);
    file.is_sanitized().unwrap_or(false)
}

fn is_runtime(name: &[u8]) -> bool {
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

struct File<'a>(&'a mut dyn FnMut(&mut [u8], u64) -> usize);

/// Where a part of the file is mapped.
#[derive(Clone, Copy, Default)]
struct Load {
    offset: u64,
    address: u64,
    bytes: u64,
}

#[derive(Default)]
struct Loads([Load; MAX_SEGMENTS]);

impl Loads {
    fn offset(&self, address: u64) -> Option<u64> {
        self.0.iter().find_map(|load| {
            let into = address.checked_sub(load.address)?;
            (into < load.bytes).then(|| load.offset.wrapping_add(into))
        })
    }
}

impl File<'_> {
    fn bytes<const N: usize>(&mut self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        ((self.0)(&mut bytes, offset) == N).then_some(bytes)
    }

    /// As much of the file from this offset on as there is, and as fits.
    fn part<'b>(&mut self, buffer: &'b mut [u8], offset: u64) -> &'b [u8] {
        let read = (self.0)(buffer, offset);
        buffer.get(..read).unwrap_or(&[])
    }

    /// The beginning of the name at this offset. The file may end behind it.
    fn name(&mut self, offset: u64) -> [u8; LONGEST_NAME] {
        let mut name = [0; LONGEST_NAME];
        (self.0)(&mut name, offset);
        name
    }

    fn is_sanitized(&mut self) -> Option<bool> {
        let header = self.bytes::<HEADER_BYTES>(0)?;
        if !header.starts_with(&MAGIC_64_LITTLE) {
            return None;
        }
        let segments = number(&header, 32, 8);
        let (bytes, count) = (number(&header, 54, 2), number(&header, 56, 2));
        if bytes != SEGMENT_BYTES as u64 {
            return None;
        }
        let mut loads = Loads::default();
        let mut dynamic = None;
        let mut table = [0; MAX_SEGMENTS * SEGMENT_BYTES];
        let table = self.part(&mut table, segments);
        for (segment, load) in table
            .chunks_exact(SEGMENT_BYTES)
            .take(count as usize)
            .zip(&mut loads.0)
        {
            let found = Load {
                offset: number(segment, 8, 8),
                address: number(segment, 16, 8),
                bytes: number(segment, 32, 8),
            };
            match number(segment, 0, 4) {
                PT_LOAD => *load = found,
                PT_DYNAMIC => dynamic = Some(found),
                _ => {}
            }
        }
        self.is_dynamic_sanitized(dynamic?, &loads)
    }

    fn is_dynamic_sanitized(&mut self, dynamic: Load, loads: &Loads) -> Option<bool> {
        let mut needed = [0; MAX_LIBRARIES];
        let (mut libraries, mut names, mut names_bytes) = (0, None, 0);
        let mut is_first = false;
        let mut table = [0; MAX_ENTRIES * DYNAMIC_BYTES];
        let table = self.part(&mut table, dynamic.offset);
        let entries = dynamic.bytes as usize / DYNAMIC_BYTES;
        for entry in table.chunks_exact(DYNAMIC_BYTES).take(entries) {
            let value = number(entry, 8, 8);
            match number(entry, 0, 8) {
                0 => break,
                DT_NEEDED => {
                    if let Some(place) = needed.get_mut(libraries) {
                        *place = value;
                        libraries += 1;
                    }
                }
                DT_STRTAB => names = loads.offset(value),
                DT_STRSZ => names_bytes = value,
                DT_PREINIT_ARRAY => is_first = true,
                _ => {}
            }
        }
        let names = names?;
        for library in needed.iter().take(libraries) {
            if is_runtime(&self.name(names.wrapping_add(*library))) {
                return Some(true);
            }
        }
        let wanted = if is_first { EXPORTED } else { EXPORTED_BY_MSAN };
        Some(self.names_contain(wanted, names, names_bytes.min(MAX_NAMES)))
    }

    /// Looks through the names of all dynamic symbols, in chunks that overlap.
    fn names_contain(&mut self, wanted: &[u8], names: u64, bytes: u64) -> bool {
        let mut chunk = [0; CHUNK_BYTES];
        let mut at = 0;
        while at < bytes {
            let chunk = self.part(&mut chunk, names.wrapping_add(at));
            if (0..chunk.len()).any(|at| starts_with(chunk, at, wanted)) {
                return true;
            }
            if chunk.len() < CHUNK_BYTES {
                return false;
            }
            at += (CHUNK_BYTES - wanted.len()) as u64;
        }
        false
    }
}

fn starts_with(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(wanted))
}

/// The little-endian number of `size` bytes at this place.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let bytes = bytes.get(at..at + size).unwrap_or(&[]);
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
