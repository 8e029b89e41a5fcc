//! Starts a program that cannot have a wall ([`crate::sanitizer`]): without the cushion, and without a limit.
//!
//! Writes only to the stack and the page: after vfork(2) the memory belongs to the parent.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::limit::Limit;
use crate::page::Slot;
use crate::{loader, sanitizer, shared, sys};

pub type Words = *const *const c_char;

/// Programs with more variables than this, or a longer list of libraries, are started as any other.
const MAX_VARIABLES: usize = 1024;
const MAX_BYTES: usize = 4096;
const LONGEST_PATH: usize = 1024;
const PRELOAD: &[u8] = b"LD_PRELOAD=";
const PAGE: &[u8] = b"ANTIFREEZE_PAGE=";

/// The path of the cushion as the loader was given it.
static CUSHION: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Called before `main`: no program that has the cushion is one to step aside for.
pub fn find() {
    let path = sys::own_path().map_or(null(), CStr::as_ptr);
    CUSHION.store(path.cast_mut(), Relaxed);
    if let Some(slot) = shared::slot_with(sys::pid()) {
        slot.aside.store(0, Release);
    }
}

/// Whether a program that is started now could load the cushion. Not in another root folder, or as a user who may not
/// read it: the loader would complain in every program.
pub fn is_cushion_reachable() -> bool {
    let path = CUSHION.load(Relaxed);
    // SAFETY: the loader's copy of the path, which stays.
    path.is_null() || !sys::is_out_of_reach(unsafe { CStr::from_ptr(path) }, false)
}

/// Whether a program that is started with these variables loads the cushion and finds the page. Not where the variables
/// are others, or another `/proc` was mounted.
///
/// # Safety
/// As [`is_due`].
pub unsafe fn will_have_cushion(envp: Words) -> bool {
    let _errno = sys::KeptErrno::new();
    let cushion = CUSHION.load(Relaxed);
    if cushion.is_null() {
        return true;
    }
    // SAFETY: the loader's copy of the path, which stays.
    let cushion = unsafe { CStr::from_ptr(cushion) }.to_bytes();
    let is_separator = |byte: &u8| matches!(byte, b':' | b' ');
    // SAFETY: the caller's promise.
    let is_loaded = unsafe { variables(envp) }
        .filter_map(|(_, text)| text.strip_prefix(PRELOAD))
        .any(|names| names.split(is_separator).any(|name| name == cushion));
    // SAFETY: as above.
    is_loaded
        && unsafe { variables(envp) }
            .filter_map(|(_, text)| text.strip_prefix(PAGE))
            .any(shared::is_reachable)
}

/// Whether the program at this path, started with these variables, is one to step aside for.
///
/// # Safety
/// `envp` is null, or a list of variables that ends with null.
pub unsafe fn is_due(path: &CStr, envp: Words) -> bool {
    // SAFETY: the caller's promise.
    let preloads = unsafe { variables(envp) }.find_map(|(_, text)| text.strip_prefix(PRELOAD));
    if preloads.is_some_and(sanitizer::is_preloaded) {
        return true;
    }
    sys::File::executable(path)
        .is_some_and(|file| sanitizer::is_sanitized(|bytes, offset| file.read_at(bytes, offset)))
}

/// The file that a name without a slash stands for.
pub struct Found([u8; LONGEST_PATH]);

impl Found {
    /// Searches the folders of `PATH` as execvp(3) does, where that is asked for and the name has no slash.
    pub fn search(name: &CStr, is_searched: bool) -> Option<Self> {
        let mut found = Self([0; LONGEST_PATH]);
        if !is_searched || has_slash(name.to_bytes()) {
            return found.join(b"", name).then_some(found);
        }
        let folders = sys::environment(c"PATH")?.to_bytes();
        let is_there = |folder: &[u8]| found.join(folder, name) && found.is_there();
        folders
            .split(|byte| *byte == b':')
            .any(is_there)
            .then_some(found)
    }

    fn join(&mut self, folder: &[u8], name: &CStr) -> bool {
        let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        let mut rest = &mut self.0[..];
        for part in [folder, separator, name.to_bytes_with_nul()] {
            let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else {
                return false;
            };
            place.copy_from_slice(part);
            rest = behind;
        }
        true
    }

    fn is_there(&self) -> bool {
        sys::File::executable(self.path()).is_some()
    }

    pub fn path(&self) -> &CStr {
        // SAFETY: `join` has written a whole C string, and what is behind it in the buffer is no part of it.
        unsafe { CStr::from_ptr(self.0.as_ptr().cast()) }
    }
}

/// Variables without the cushion among the libraries that are loaded first.
pub struct Environment {
    words: [*const c_char; MAX_VARIABLES],
    preload: [u8; MAX_BYTES],
}

impl Environment {
    pub const EMPTY: Self = Self {
        words: [null(); MAX_VARIABLES],
        preload: [0; MAX_BYTES],
    };

    /// Fills this with all of `envp`. None where there is too much of it.
    ///
    /// # Safety
    /// As [`is_due`].
    pub unsafe fn fill(&mut self, envp: Words) -> Option<Words> {
        let mut count = 0;
        // SAFETY: the caller's promise.
        for (mut word, text) in unsafe { variables(envp) } {
            if let Some(names) = text.strip_prefix(PRELOAD) {
                if self.leave_out_cushion(names)? == 0 {
                    continue;
                }
                word = self.preload.as_ptr().cast();
            }
            // The last word ends the list.
            *self.words[..MAX_VARIABLES - 1].get_mut(count)? = word;
            count += 1;
        }
        Some(self.words.as_ptr())
    }

    /// Returns how many bytes of names are left.
    fn leave_out_cushion(&mut self, names: &[u8]) -> Option<usize> {
        let cushion = CUSHION.load(Relaxed);
        // SAFETY: null, or the loader's copy of the path, which stays.
        let cushion = match cushion.is_null() {
            true => b"",
            false => unsafe { CStr::from_ptr(cushion) }.to_bytes(),
        };
        let mut end = 0;
        let mut add = |bytes: &[u8]| {
            let place = self.preload.get_mut(end..end + bytes.len())?;
            place.copy_from_slice(bytes);
            end += bytes.len();
            Some(())
        };
        add(PRELOAD)?;
        let mut left = 0;
        let is_separator = |byte: &u8| matches!(byte, b':' | b' ');
        for name in names.split(is_separator).filter(|name| *name != cushion) {
            if left > 0 {
                add(b":")?;
            }
            add(name)?;
            left += name.len();
        }
        add(b"\0")?;
        Some(left)
    }
}

/// What was done for a program that is about to be started.
pub struct Aside {
    slot: &'static Slot,
    limit: Option<(Limit, u64)>,
    announced: (u64, u64),
}

impl Aside {
    /// Takes the limit away, so that the program begins without one, and tells the guard to set none.
    pub fn step() -> Option<Self> {
        let head = shared::head()?;
        let slot = shared::slot()?;
        let before = slot.loading.load(Acquire);
        let announced = loader::begin(head, slot);
        slot.aside.store(1, Release);
        let limit = Limit::read_any().and_then(|limit| {
            let raised = limit.highest(loader::ceiling(Some(head)));
            (raised > limit.soft && limit.move_to(raised)).then_some((limit, raised))
        });
        Some(Self {
            slot,
            limit,
            announced: (announced, before),
        })
    }

    /// The program runs in another process, or could not be started.
    pub fn step_back(self) {
        if let Some((limit, raised)) = self.limit
            && Limit::read_any().is_some_and(|now| now.soft == raised)
        {
            limit.move_to(limit.soft);
        }
        self.slot.aside.store(0, Release);
        loader::end(self.slot, self.announced.0, self.announced.1);
    }
}

/// The guard sets no limit to this process either.
pub fn note_child(pid: c_int) {
    if let Some(slot) = shared::slot_of(pid as u32) {
        slot.aside.store(1, Release);
    }
}

/// # Safety
/// As [`is_due`].
unsafe fn variables(envp: Words) -> impl Iterator<Item = (*const c_char, &'static [u8])> {
    let mut next = envp;
    core::iter::from_fn(move || {
        // SAFETY: the caller's promise: null, or a word of the list, whose last one is null.
        let word = unsafe { next.as_ref() }
            .copied()
            .filter(|word| !word.is_null())?;
        next = next.wrapping_add(1);
        // SAFETY: as above; the variables outlive the call that starts the program.
        Some((word, unsafe { CStr::from_ptr(word) }.to_bytes()))
    })
}

fn has_slash(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').nth(1).is_some()
}
