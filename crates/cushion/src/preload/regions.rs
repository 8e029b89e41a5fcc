//! Finds the regions of `/proc/self/maps` that may be paged out. Pure.

/// Smaller regions are not worth a system call.
const MIN_BYTES: u64 = 1 << 20;
/// How much of a region's name is read.
const NAME_BYTES: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
}

#[derive(Clone, Copy, Default)]
enum Field {
    #[default]
    Start,
    End,
    Access,
    Offset,
    Device,
    Inode,
    Name,
}

/// Reads the file byte by byte, so that a line may be longer than any buffer.
#[derive(Default)]
pub struct Regions {
    field: Field,
    region: Region,
    access: [u8; 4],
    access_len: usize,
    has_inode: bool,
    name: [u8; NAME_BYTES],
    name_len: usize,
}

impl Regions {
    /// Takes the next byte; returns the region of a line that ends with it, if that may be paged out.
    pub fn feed(&mut self, byte: u8) -> Option<Region> {
        if byte == b'\n' {
            let line = core::mem::take(self);
            return line.may_be_paged_out().then_some(line.region);
        }
        match (self.field, byte) {
            (Field::Start, b'-') => self.field = Field::End,
            (Field::Start, _) => push_hex(&mut self.region.start, byte),
            (Field::End, b' ') => self.field = Field::Access,
            (Field::End, _) => push_hex(&mut self.region.end, byte),
            (Field::Access, b' ') => self.field = Field::Offset,
            (Field::Access, _) => push(&mut self.access, &mut self.access_len, byte),
            (Field::Offset, b' ') => self.field = Field::Device,
            (Field::Device, b' ') => self.field = Field::Inode,
            (Field::Inode, b' ') => self.field = Field::Name,
            (Field::Inode, _) => self.has_inode |= byte != b'0',
            (Field::Offset | Field::Device, _) => {}
            (Field::Name, b' ') if self.name_len == 0 => {}
            (Field::Name, _) => push(&mut self.name, &mut self.name_len, byte),
        }
        None
    }

    /// Anonymous, private and writable, and large: the heap and what was mapped without a file, but no stack.
    fn may_be_paged_out(&self) -> bool {
        let name = self.name.get(..self.name_len).unwrap_or_default();
        let is_anonymous = matches!(name, b"" | b"[heap]" | b"[anon:");
        let bytes = self.region.end.saturating_sub(self.region.start);
        is_anonymous
            && !self.has_inode
            && matches!(self.access, [_, b'w', _, b'p'])
            && bytes >= MIN_BYTES
    }
}

fn push(bytes: &mut [u8], len: &mut usize, byte: u8) {
    if let Some(place) = bytes.get_mut(*len) {
        *place = byte;
        *len += 1;
    }
}

fn push_hex(number: &mut u64, digit: u8) {
    let digit = match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    };
    *number = number.wrapping_shl(4) | u64::from(digit);
}
