//! What a person is told of a made-up run.

use crate::scenes::Scene;
use antifreeze_view::Look;

pub trait Shown {
    fn closing(&self) -> String;
    fn closing_as(&self, look: &Look) -> String;
    fn show(&self) -> String;
}

impl Shown for Scene {
    fn closing(&self) -> String {
        self.closing_as(&look())
    }

    fn closing_as(&self, look: &Look) -> String {
        antifreeze_view::closing(&self.verdict(), &self.facts, &self.story(), look)
    }

    fn show(&self) -> String {
        antifreeze_view::show(
            &self.verdict(),
            &self.facts,
            &self.story(),
            self.events.iter().copied(),
            &look(),
        )
    }
}

pub fn look() -> Look {
    Look {
        home: Some("/home/ada".into()),
        ..Look::default()
    }
}
