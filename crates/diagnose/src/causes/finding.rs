//! What a detector returns, and how it puts together a cause that it found.

use crate::causes::CauseKind;
use crate::kernel::Incident;
use crate::kernel::hardware_relevance::{Component, max_confidence};
use crate::run::evidence::RunEvidence;
use crate::run::facts::RunState;
use crate::verdict::{Cause, EndKind, Evidence, Location, Remedy};
use antifreeze_text::layout::cut;

/// A quoted line of a log is cut to this many columns.
const MAX_LINE_COLUMNS: usize = 160;

/// The result of a detector.
pub(crate) enum Finding {
    /// Nothing supports the cause, and nothing rules it out.
    Nothing,
    /// Why it was not that.
    RuledOut(String),
    /// The cause was found.
    Found(Found),
}

/// A cause that a detector found.
pub(crate) struct Found {
    pub confidence: f64,
    pub summary: String,
    pub location: Option<Location>,
    pub evidence: Vec<Evidence>,
    pub remedies: Vec<Remedy>,
}

impl Found {
    /// A cause with its summary, which is also the first evidence, and the recorded series that shows it.
    pub fn new(
        evidence: &RunEvidence<'_>,
        confidence: f64,
        summary: String,
        series: &str,
    ) -> Found {
        let found = Found {
            confidence,
            summary: summary.clone(),
            location: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
        };
        found.with_evidence(evidence, summary, series)
    }

    /// A cause from a line of the kernel's log about failing hardware; None where that hardware cannot have ended the
    /// run in this way.
    pub fn from_hardware_incident(
        evidence: &RunEvidence<'_>,
        component: Component,
        confidence: f64,
        incident: &Incident,
    ) -> Option<Found> {
        let confidence = confidence.min(max_confidence(evidence, component, incident));
        (confidence > 0.0).then(|| Found::from_log_line(evidence, confidence, incident))
    }

    /// A cause from a line of the kernel's log. Confidence is limited where only output is known, which has no clock:
    /// the line may be of another time.
    pub fn from_log_line(
        evidence: &RunEvidence<'_>,
        confidence: f64,
        incident: &Incident,
    ) -> Found {
        let limit = match (evidence.facts.state, evidence.end) {
            (RunState::OnlyPrinted, EndKind::Unknown) => 0.75,
            _ => 1.0,
        };
        Found::new(
            evidence,
            confidence.min(limit),
            cut(&incident.line.text, MAX_LINE_COLUMNS),
            "kernel",
        )
    }

    /// Adds a piece of evidence, and the recorded series that shows it.
    pub fn with_evidence(
        mut self,
        evidence: &RunEvidence<'_>,
        text: String,
        series: &str,
    ) -> Found {
        let (from, to) = evidence.time_span();
        self.evidence.push(Evidence {
            text,
            series: (!series.is_empty()).then(|| series.into()),
            from,
            to,
        });
        self
    }

    /// Sets the line of the script, where one is given.
    pub fn at_location(mut self, location: Option<Location>) -> Found {
        self.location = location.or(self.location);
        self
    }

    /// The line of the script as text: "train.py:12".
    pub fn place(&self) -> Option<String> {
        self.location.as_ref().map(Location::place)
    }

    /// Adds a remedy, best first, with code or a command to paste.
    pub fn with_remedy(mut self, text: impl Into<String>, code: Option<String>) -> Found {
        self.remedies.push(Remedy {
            text: text.into(),
            code,
            docs: None,
            edits: Vec::new(),
        });
        self
    }

    /// Adds a remedy that is a change to the script.
    pub fn with_edits(mut self, remedy: Remedy) -> Found {
        self.remedies.push(remedy);
        self
    }

    /// The cause for a verdict. Its remedies lead to its page.
    pub fn into_cause(mut self, kind: &CauseKind) -> Cause {
        for remedy in &mut self.remedies {
            remedy.docs = Some(format!("causes/{}", kind.word));
        }
        Cause {
            code: kind.code,
            confidence: self.confidence,
            summary: self.summary,
            location: self.location,
            evidence: self.evidence,
            remedies: self.remedies,
        }
    }
}

impl From<Option<Found>> for Finding {
    fn from(found: Option<Found>) -> Finding {
        found.map_or(Finding::Nothing, Finding::Found)
    }
}
