//! What came of a run.

use antifreeze_record::event::{Rung, Trigger};

/// Times are seconds since the beginning.
#[derive(Debug)]
pub struct Story {
    /// Every change of rung.
    pub rungs: Vec<(f64, Rung, Trigger)>,
    pub walled: Vec<f64>,
    pub paused: u32,
    pub resumed: u32,
    pub saved: Vec<f64>,
    /// When and how the trainer ended, if it did.
    pub ended: Option<(f64, End)>,
    pub least_available: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    AtWall,
    Stopped,
    Killed,
}

impl Story {
    pub fn highest(&self) -> Rung {
        self.rungs
            .iter()
            .map(|(_, rung, _)| *rung)
            .max()
            .unwrap_or_default()
    }

    /// When a rung was first entered.
    pub fn first(&self, wanted: Rung) -> Option<f64> {
        self.rungs
            .iter()
            .find(|(_, rung, _)| *rung == wanted)
            .map(|(at, ..)| *at)
    }

    /// When the ladder first stood at a rung or above it.
    pub fn reached(&self, least: Rung) -> Option<f64> {
        self.rungs
            .iter()
            .find(|(_, rung, _)| *rung >= least)
            .map(|(at, ..)| *at)
    }
}

impl Default for Story {
    fn default() -> Self {
        Story {
            rungs: Vec::new(),
            walled: Vec::new(),
            paused: 0,
            resumed: 0,
            saved: Vec::new(),
            ended: None,
            least_available: u64::MAX,
        }
    }
}
