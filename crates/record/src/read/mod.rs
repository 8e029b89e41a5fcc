//! The reader of a record. It accepts any bytes, never panics, and returns every intact frame.
//!
//! Opening only finds the frames. A sample is decoded when it is iterated over, because a decoded one is ten times larger
//! than a stored one.

mod image;

use crate::codec::{decode_event, decode_head, decode_sample, decode_stamp};
use crate::error::RecordError;
use crate::event::Event;
use crate::frame::FrameKind;
use crate::head::RecordHead;
use crate::level_files::{LEVEL_COUNT, level_path};
use antifreeze_sense::regular_file;
use antifreeze_sense::{Sample, Stamp};
use image::{FrameLocation, LevelImage};
use std::io;
use std::path::Path;

/// A record that was opened for reading.
pub struct Record {
    levels: [LevelImage; LEVEL_COUNT],
    /// Sorted by sequence number, each frame once, whichever levels have it.
    samples: Vec<FrameLocation>,
    events: Vec<FrameLocation>,
}

impl Record {
    /// Opens the record in the folder of a run. A level that is missing counts as empty. An error
    /// means that there is no record at all or that it cannot be read, and names the file.
    pub fn open(folder: &Path) -> Result<Record, RecordError> {
        let mut found = false;
        let mut level = 0;
        let images = [(); LEVEL_COUNT].map(|()| {
            let path = level_path(folder, level);
            let number = level as u8;
            level += 1;
            match regular_file::open(&path) {
                Ok(file) => {
                    found = true;
                    LevelImage::from_file(number, file)
                        .map_err(|error| RecordError::new(path, error))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(LevelImage::from_bytes(number, Vec::new()))
                }
                Err(error) => Err(RecordError::new(path, error)),
            }
        });
        let [a, b, c, d] = images;
        // A file that cannot be read exists, so its error comes before "there is no record".
        let images = [a?, b?, c?, d?];
        if !found {
            return Err(RecordError::no_record(folder));
        }
        Ok(Record::from_images(images))
    }

    /// Makes a record from the bytes of its levels.
    pub fn from_bytes(levels: [Vec<u8>; LEVEL_COUNT]) -> Record {
        let mut level = 0;
        Record::from_images(levels.map(|bytes| {
            let image = LevelImage::from_bytes(level, bytes);
            level += 1;
            image
        }))
    }

    fn from_images(levels: [LevelImage; LEVEL_COUNT]) -> Record {
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

    /// Reads what was written since the record was opened or last refreshed, and returns whether
    /// there was anything new. It costs little when little is new. Frames stay in memory even
    /// when the file has overwritten them.
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

    /// The head, where an intact one was found.
    pub fn head(&self) -> Option<RecordHead> {
        self.levels
            .iter()
            .find_map(|image| decode_head(image.head()?))
    }

    /// Iterates over the events, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = Event> + '_ {
        self.events
            .iter()
            .filter_map(|place| decode_event(self.payload(place)?))
    }

    /// Iterates over the samples, oldest first; the older they are, the sparser.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = Sample> + '_ {
        self.samples
            .iter()
            .filter_map(|place| decode_sample(self.payload(place)?))
    }

    /// Iterates over the stamps of the samples, without decoding the rest of them.
    pub fn sample_stamps(&self) -> impl DoubleEndedIterator<Item = Stamp> + '_ {
        self.samples.iter().filter_map(|place| self.stamp(place))
    }

    /// How many samples there are.
    pub fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// The stamp of the oldest sample or event that still exists.
    pub fn first_stamp(&self) -> Option<Stamp> {
        let firsts = [self.samples.first(), self.events.first()];
        self.stamp(
            firsts
                .into_iter()
                .flatten()
                .min_by_key(|place| place.sequence)?,
        )
    }

    /// The stamp of the newest sample or event.
    pub fn last_stamp(&self) -> Option<Stamp> {
        let lasts = [self.samples.last(), self.events.last()];
        self.stamp(
            lasts
                .into_iter()
                .flatten()
                .max_by_key(|place| place.sequence)?,
        )
    }

    /// How many bytes between intact frames are neither empty nor part of a frame. The gap where
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

    /// The offset at which the writer of a level continues, and what its block already holds.
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
