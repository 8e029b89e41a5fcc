//! What a person is told of a made-up run.

use crate::scenes::Scene;
use antifreeze_text::TermStyle;

pub trait Shown {
    fn closing(&self) -> String;
    fn closing_as(&self, style: &TermStyle) -> String;
    fn show(&self) -> String;
}

impl Shown for Scene {
    fn closing(&self) -> String {
        self.closing_as(&style())
    }

    fn closing_as(&self, style: &TermStyle) -> String {
        antifreeze_view::closing(&self.verdict(), &self.facts, &self.summary(), style)
    }

    fn show(&self) -> String {
        antifreeze_view::show(
            &self.verdict(),
            &self.facts,
            &self.summary(),
            self.events.iter().copied(),
            &style(),
        )
    }
}

pub fn style() -> TermStyle {
    TermStyle {
        home: Some("/home/ada".into()),
        ..TermStyle::default()
    }
}
