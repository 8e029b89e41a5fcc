//! An executor that acts on nothing: it notes what was done as the real one does, and keeps the story.

use crate::given::BOOT;
use crate::story::Story;
use antifreeze_guard::policy::{Acts, Decision, History, Save};
use antifreeze_record::event::Rung;
use std::time::Duration;

#[derive(Default)]
pub struct Executor {
    pub story: Story,
}

impl Executor {
    /// Carries out what was decided on the last input of the history.
    pub fn act(&mut self, decision: &Decision, history: &mut History) {
        let Some(&now) = history.last() else { return };
        self.story.least_available = self.story.least_available.min(now.available);
        let acts = &mut history.acts;
        let rung = decision.rung;
        if rung == Rung::Checkpoint && !matches!(acts.save, Save::Asked { .. }) {
            acts.save = Save::Asked { at: now.at };
        }
        if rung == acts.rung {
            return;
        }
        if acts.rung == Rung::Pause {
            self.story.resumed += 1;
            acts.paused_at = None;
            acts.resumed_at = Some(now.at);
        }
        match rung {
            Rung::Pause => {
                self.story.paused += 1;
                acts.paused_at = Some(now.at);
            }
            Rung::Stop => {
                acts.stop_sent_at = Some(now.at);
                acts.available_at_stop = now.available;
                acts.footprint_at_stop = Some(now.footprint);
            }
            Rung::Kill => acts.kill_sent_at = Some(now.at),
            _ => {}
        }
        acts.rung = rung;
        acts.since = now.at;
        self.story
            .rungs
            .push((seconds(now.at), rung, decision.trigger));
    }

    /// A save that was asked for lands once it has taken its time.
    pub fn land_save(&mut self, at: u64, takes: Duration, acts: &mut Acts) {
        if let Save::Asked { at: asked } = acts.save
            && at.saturating_sub(asked) >= takes.as_nanos() as u64
        {
            acts.save = Save::Done { at };
            acts.save_time = takes;
            self.story.saved.push(seconds(at));
        }
    }

    /// A request was refused.
    pub fn wall(&mut self, at: u64, acts: &mut Acts) {
        acts.walled += 1;
        acts.walled_at = Some(at);
        self.story.walled.push(seconds(at));
    }
}

/// Seconds since the beginning of every make-believe run.
pub fn seconds(at: u64) -> f64 {
    at.saturating_sub(BOOT) as f64 / 1e9
}
