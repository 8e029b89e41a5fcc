//! The reader of a record: takes any bytes, never panics, gives every intact frame.
//!
//! Opening only finds the frames; a sample is decoded when it is asked for, because a decoded
//! one is ten times larger than a stored one.

mod image;

use crate::codec::{decode_event, decode_head, decode_sample, decode_stamp};
use crate::event::Event;
use crate::frame::FrameKind;
use crate::head::RecordHead;
use crate::level_files::{LEVEL_COUNT, level_path};
use antifreeze_sense::regular_file;
use antifreeze_sense::{Sample, Stamp};
use image::{FrameLocation, LevelImage};
use std::io;
use std::path::Path;

pub struct Record {
    levels: [LevelImage; LEVEL_COUNT],
    /// By sequence number, each frame once, whichever levels have it.
    samples: Vec<FrameLocation>,
    events: Vec<FrameLocation>,
}

impl Record {
    /// Opens the record of a run's folder. A level that is missing is an empty one; an error
    /// means that there is no record at all or that it cannot be read.
    pub fn open(folder: &Path) -> io::Result<Record> {
        let mut found = false;
        let mut level = 0;
        let images = [(); LEVEL_COUNT].map(|()| {
            let path = level_path(folder, level);
            let number = level as u8;
            level += 1;
            match regular_file::open(&path) {
                Ok(file) => {
                    found = true;
                    LevelImage::of_file(number, file)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(LevelImage::of_bytes(number, Vec::new()))
                }
                Err(error) => Err(error),
            }
        });
        let [a, b, c, d] = images;
        // What may not be read is there.
        let images = [a?, b?, c?, d?];
        if !found {
            let message = format!("there is no record in {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        Ok(Record::of(images))
    }

    /// A record from the bytes of its levels.
    pub fn from_bytes(levels: [Vec<u8>; LEVEL_COUNT]) -> Record {
        let mut level = 0;
        Record::of(levels.map(|bytes| {
            let image = LevelImage::of_bytes(level, bytes);
            level += 1;
            image
        }))
    }

    fn of(levels: [LevelImage; LEVEL_COUNT]) -> Record {
        let mut record = Record {
            levels,
            samples: Vec::new(),
            events: Vec::new(),
        };
        record.merge();
        record
    }

    fn merge(&mut self) {
        let mut all: Vec<FrameLocation> = self
            .levels
            .iter()
            .flat_map(|image| image.places.iter().copied())
            .collect();
        all.sort_by_key(|place| place.sequence);
        all.dedup_by_key(|place| place.sequence);
        (self.samples, self.events) = all
            .iter()
            .partition(|place| place.kind == FrameKind::Sample);
    }

    /// Takes in what was written since the record was opened or last refreshed; true when
    /// there was something new. For a follower: costs little where little is new, and keeps
    /// frames in memory that the file may have overwritten since.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let mut any = false;
        for image in &mut self.levels {
            any |= image.refresh()?;
        }
        if any {
            self.merge();
        }
        Ok(any)
    }

    pub fn head(&self) -> Option<RecordHead> {
        self.levels
            .iter()
            .find_map(|image| decode_head(image.head()?))
    }

    /// Oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = Event> + '_ {
        self.events
            .iter()
            .filter_map(|place| decode_event(self.payload(place)?))
    }

    /// Oldest first; the older, the sparser.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = Sample> + '_ {
        self.samples
            .iter()
            .filter_map(|place| decode_sample(self.payload(place)?))
    }

    /// When each sample was taken, without decoding the rest of it.
    pub fn sample_stamps(&self) -> impl DoubleEndedIterator<Item = Stamp> + '_ {
        self.samples.iter().filter_map(|place| self.stamp(place))
    }

    pub fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// When the oldest frame was written that is still there.
    pub fn first_stamp(&self) -> Option<Stamp> {
        let firsts = [self.samples.first(), self.events.first()];
        self.stamp(
            firsts
                .into_iter()
                .flatten()
                .min_by_key(|place| place.sequence)?,
        )
    }

    /// When the newest frame was written.
    pub fn last_stamp(&self) -> Option<Stamp> {
        let lasts = [self.samples.last(), self.events.last()];
        self.stamp(
            lasts
                .into_iter()
                .flatten()
                .max_by_key(|place| place.sequence)?,
        )
    }

    /// How many bytes between intact frames are neither empty nor understood. The place where
    /// a lap overwrites the one before is not counted.
    pub fn damaged_bytes(&self) -> u64 {
        self.levels.iter().map(|image| image.damaged).sum()
    }

    pub(crate) fn newest_sequence(&self) -> u64 {
        self.levels
            .iter()
            .map(LevelImage::newest)
            .max()
            .unwrap_or(0)
    }

    /// Where the writer of a level goes on, and what its block already holds.
    pub(crate) fn end_of(&self, level: usize) -> (u64, &[u8]) {
        self.levels.get(level).map_or((0, &[]), LevelImage::end)
    }

    pub(crate) fn last_sample_of(&self, level: usize) -> Option<Stamp> {
        let places = &self.levels.get(level)?.places;
        self.stamp(
            places
                .iter()
                .rfind(|place| place.kind == FrameKind::Sample)?,
        )
    }

    fn payload(&self, place: &FrameLocation) -> Option<&[u8]> {
        self.levels.get(usize::from(place.level))?.payload(place)
    }

    fn stamp(&self, place: &FrameLocation) -> Option<Stamp> {
        decode_stamp(self.payload(place)?)
    }
}

#[cfg(test)]
mod tests;
