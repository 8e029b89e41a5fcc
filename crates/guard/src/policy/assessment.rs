//! What a decision is computed from: the history, the configuration, and the signals and forecast derived from them.

use super::forecast::Outlook;
use super::history::{Acts, Config, Forecast, History, PolicyInput};
use super::signals::Signals;
use super::trend::seconds;
use antifreeze_record::event::{Rung, Trigger};

/// A rung, and the signal that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub rung: Rung,
    pub trigger: Trigger,
}

impl Verdict {
    pub fn new(rung: Rung, trigger: Trigger) -> Verdict {
        Verdict { rung, trigger }
    }

    /// The same verdict, but not above this rung.
    pub fn at_most(self, rung: Rung) -> Verdict {
        Verdict {
            rung: self.rung.min(rung),
            trigger: self.trigger,
        }
    }
}

pub(super) struct Assessment<'a> {
    pub history: &'a History,
    pub now: &'a PolicyInput,
    pub config: &'a Config,
    pub forecast: Option<Forecast>,
    pub signals: Signals,
}

impl<'a> Assessment<'a> {
    /// None before the first sample.
    pub fn new(history: &'a History, config: &'a Config) -> Option<Assessment<'a>> {
        let now = history.last()?;
        let outlook = Outlook::from_history(history);
        Some(Assessment {
            history,
            now,
            config,
            forecast: outlook.from(now),
            signals: Signals::from_history(history, now, &outlook),
        })
    }

    pub fn acts(&self) -> &'a Acts {
        &self.history.acts
    }

    /// Seconds since a time.
    pub fn age(&self, at: u64) -> f64 {
        seconds(self.now.at.saturating_sub(at))
    }

    /// Length of the history in seconds.
    pub fn known_for(&self) -> f64 {
        self.history
            .iter()
            .next()
            .map_or(0.0, |first| self.age(first.at))
    }

    pub fn save_time(&self) -> f64 {
        self.acts().save_time.as_secs_f64()
    }

    pub fn total(&self) -> f64 {
        self.now.total as f64
    }

    pub fn reserve(&self) -> f64 {
        self.now.reserve as f64
    }

    pub fn available(&self) -> f64 {
        self.now.available as f64
    }

    pub fn room(&self) -> f64 {
        self.now.room as f64
    }

    /// Growth of the footprint in bytes a second; 0 if unknown.
    pub fn growth(&self) -> f64 {
        self.forecast.map_or(0.0, |forecast| forecast.growth)
    }

    /// The machine is about to become unusable, so nothing can be waited for.
    pub fn critical(&self) -> bool {
        self.available() < self.reserve() / 4.0 || self.signals.storm()
    }

    /// Whether the tree may still use swap.
    pub fn may_swap(&self) -> bool {
        self.room() > 0.0 && self.room() > self.available() - self.reserve()
    }

    /// The tree used up all of its room and continues to grow.
    pub fn grows_beyond_wall(&self) -> bool {
        let Signals {
            growing, tree_grew, ..
        } = self.signals;
        self.config.wall && growing && tree_grew && self.room() < 0.0
    }

    /// The tree uses more memory than all other processes together.
    pub fn tree_is_largest(&self) -> bool {
        self.now.footprint > self.now.others
    }
}
