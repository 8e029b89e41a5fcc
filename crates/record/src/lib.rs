//! The flight record: what the guard saw and did, readable after a crash, a kill, a full disk or a power cut.
//!
//! # The guarantee
//!
//! - **A power cut, a panic of the kernel or a kill costs at most what was appended since the
//!   last [`RecordWriter::sync`]**, which the guard calls as soon as there is a new sample: every 2 seconds while
//!   memory is plentiful, and more often the less is left. What `sync` returned for is on the disk.
//! - **Damage costs exactly the frames it touches.** Truncation, flipped bits, zeroed blocks
//!   and foreign bytes anywhere: every frame whose own bytes are intact is found. A frame whose
//!   CRC is wrong never existed.
//! - **The size is bounded by thinning, never by losing the end.** Old history becomes sparser;
//!   the newest frames, all recent events and the head are always there.
//! - **A full disk loses the oldest, not the newest.** Laps become shorter while the disk is
//!   full; where there is no space at all, frames wait in memory and are written when there is.
//! - **Any bytes may be read.** [`Record::open`] takes what it finds, in bounded memory, and
//!   does not panic.
//!
//! # The format
//!
//! A run's folder holds four files, `record.0` to `record.3`. Level 0 takes every frame; the
//! others take a sample at most each 10, 100 and 1000 seconds, and the last also takes the
//! first sample and every event. A file grows in steps of 256 KiB of zeros to its largest
//! size (8, 8, 4 and 4 MiB), after which the next frame goes to its start again, over the
//! oldest. Each lap begins with the head.
//!
//! A file is a row of frames; zeros may follow a frame. What lies between two intact frames is
//! empty space, damage, or what is left of an overwritten frame. [`frame`] has the bytes of a
//! frame, [`codec`] those of its payload. Sequence numbers rise by one with each frame over
//! all levels: a reader sorts by them and takes a frame that is in several levels once.
//!
//! Writes are whole blocks of 4 KiB, direct and synchronous where the file system can. The
//! last block is written again when it gets its next frame; the bytes it had stay the same, so
//! that a write torn by a power cut harms only the frames in it that were not yet promised.
//!
//! The trainer's last output is beside it, in a file of its own: see [`output_tail`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;

mod blocks;
pub mod codec;
mod error;
pub mod event;
pub mod frame;
mod head;
mod level_files;
pub mod output_tail;
mod read;
pub mod ring;
mod writer;

pub use error::RecordError;
pub use frame::FrameKind;
pub use head::{RecordHead, SCHEMA};
pub use level_files::{LEVEL_COUNT, LEVEL_PERIODS};
pub use output_tail::OutputTail;
pub use read::Record;
pub use ring::{Consumer, Producer, frame_ring};
pub use writer::{LevelSizes, RecordWriter};
