//! From which checkpoint a run can be continued, and what its script lacks for it.

use crate::checkpoints::{Checkpoint, Kind};
use crate::facts::Facts;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation<'a> {
    pub checkpoint: &'a Checkpoint,
    /// What the script has to call before it can continue; None where it did already.
    pub missing_code: Option<String>,
}

impl Facts {
    /// None where there is no checkpoint, or none that the script can load: the command would begin at step 0. None
    /// also for a notebook, which no command continues.
    pub fn continuation(&self) -> Option<Continuation<'_>> {
        if self.is_kernel() {
            return None;
        }
        let can_resume = self.told.resumes.is_some();
        let kinds: &[Kind] = if can_resume {
            &self.told.accepted_kinds
        } else {
            &[]
        };
        let checkpoint = Checkpoint::newest(&self.checkpoints, kinds)?;
        Some(Continuation {
            checkpoint,
            missing_code: (!can_resume).then(|| self.code_for(checkpoint.kind)),
        })
    }

    fn code_for(&self, kind: Kind) -> String {
        match kind {
            Kind::Torch => self.resume_call(),
            Kind::KerasWeights => "step = antifreeze.resume(model=model)".into(),
            Kind::Lightning => {
                "trainer.fit(model, loader, ckpt_path=antifreeze.last_save())".into()
            }
            Kind::Transformers => {
                "trainer.train(resume_from_checkpoint=antifreeze.last_save())".into()
            }
            Kind::Keras => {
                "if antifreeze.last_save(): model = keras.models.load_model(antifreeze.last_save())"
                    .into()
            }
            Kind::Script => {
                "step = antifreeze.resume(load=load)  # load(path) returns the step".into()
            }
        }
    }

    /// `antifreeze.resume` with the names that the script has for what was saved.
    fn resume_call(&self) -> String {
        let saved = self.told.saved.as_ref();
        let names = saved.map(|saved| saved.names.as_slice()).unwrap_or(&[]);
        let usable = || {
            let names = names
                .iter()
                .filter(|name| name.split('.').all(is_identifier));
            names.map(|name| (name.rsplit('.').next().unwrap_or(name), name))
        };
        let arguments: Vec<String> = usable()
            .map(|(keyword, name)| {
                let is_unique = usable().filter(|(other, _)| *other == keyword).count() == 1;
                match is_unique {
                    true => format!("{keyword}={name}"),
                    false => format!("**{{\"{name}\": {name}}}"),
                }
            })
            .collect();
        match arguments.as_slice() {
            [] => "step = antifreeze.resume(model=model, optimizer=optimizer)".into(),
            some => format!("step = antifreeze.resume({})", some.join(", ")),
        }
    }
}

/// Names come from the script, through a file that anything may have written to.
fn is_identifier(name: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    name.chars().all(is_word)
        && name
            .chars()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::{Saved, Told};
    use std::time::SystemTime;

    fn facts(kinds: &[Kind], told: Told) -> Facts {
        let checkpoints = kinds.iter().enumerate().map(|(step, kind)| Checkpoint {
            kind: *kind,
            step: step as u64,
            path: "c".into(),
            bytes: None,
            written: SystemTime::UNIX_EPOCH,
        });
        Facts {
            checkpoints: checkpoints.collect(),
            told,
            ..Facts::default()
        }
    }

    #[test]
    fn a_script_continues_from_the_kind_that_it_loads() {
        let told = Told {
            resumes: Some(0),
            accepted_kinds: vec![Kind::Lightning],
            ..Told::default()
        };
        let both = facts(&[Kind::Lightning, Kind::Torch], told.clone());
        let continuation = both.continuation().unwrap();
        assert_eq!(continuation.checkpoint.kind, Kind::Lightning);
        assert_eq!(continuation.missing_code, None);
        assert_eq!(facts(&[Kind::Torch], told).continuation(), None);
        assert_eq!(facts(&[], Told::default()).continuation(), None);
    }

    #[test]
    fn a_script_that_does_not_resume_is_shown_how_with_its_own_names() {
        let told = |names: &[&str]| Told {
            saved: Some(Saved {
                path: None,
                step: 3,
                bytes: None,
                names: names.iter().map(|name| (*name).into()).collect(),
            }),
            ..Told::default()
        };
        let code = |names: &[&str]| {
            let facts = facts(&[Kind::Torch], told(names));
            facts.continuation().unwrap().missing_code.unwrap()
        };
        assert_eq!(
            code(&["net", "self.adam", "optimizer 1", "x; rm", "f().net"]),
            "step = antifreeze.resume(net=net, adam=self.adam)"
        );
        assert_eq!(
            code(&["a.net", "b.net", "adam"]),
            r#"step = antifreeze.resume(**{"a.net": a.net}, **{"b.net": b.net}, adam=adam)"#
        );
        assert_eq!(
            code(&[]),
            "step = antifreeze.resume(model=model, optimizer=optimizer)"
        );
    }
}
