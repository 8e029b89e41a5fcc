//! Finds the checkpoint from which a run can continue, and the code that its script lacks for that.

use crate::run::checkpoints::{Checkpoint, Kind};
use crate::run::facts::Facts;
use crate::shim::Fit;
use crate::verdict::place::user_place;

/// How a run can continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation<'a> {
    /// The checkpoint to continue from.
    pub checkpoint: &'a Checkpoint,
    /// The code that the script lacks; None where it lacks nothing.
    pub missing_code: Option<MissingCode>,
}

/// Code to add to a script so that it continues from a checkpoint instead of beginning at step 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCode {
    /// Where it belongs and what else has to change, as a sentence without capital and full stop.
    pub instruction: String,
    /// The code.
    pub code: String,
}

const IMPORT: &str = "import antifreeze";

impl Facts {
    /// How the run can continue. None where there is no checkpoint that the script can load, so that the command would
    /// begin at step 0, and for a notebook, which no command continues.
    pub fn continuation(&self) -> Option<Continuation<'_>> {
        if self.is_kernel() {
            return None;
        }
        let can_resume = self.shim.resumes.is_some();
        let kinds: &[Kind] = if can_resume {
            &self.shim.accepted_kinds
        } else {
            &[]
        };
        let checkpoint = Checkpoint::newest(&self.checkpoints, kinds)?;
        Some(Continuation {
            checkpoint,
            missing_code: (!can_resume).then(|| self.missing_code(checkpoint.kind)),
        })
    }

    fn missing_code(&self, kind: Kind) -> MissingCode {
        let saved = self.shim.saved.as_ref();
        let fit = saved.and_then(|saved| saved.fit);
        match (kind, fit) {
            (Kind::Torch, _) => {
                self.before_loop(&self.resume_arguments("model=model, optimizer=optimizer"))
            }
            (Kind::KerasWeights, None) => self.before_loop(&self.resume_arguments("model=model")),
            (Kind::KerasWeights, Some(fit)) => MissingCode {
                instruction: before_fit("step", fit),
                code: format!(
                    "{IMPORT}\nstep = antifreeze.resume({})",
                    self.resume_arguments("model=model")
                ),
            },
            (Kind::Keras, fit) => {
                let fit = fit.unwrap_or(Fit {
                    steps_in_epoch: None,
                });
                MissingCode {
                    instruction: before_fit("int(model.optimizer.iterations)", fit),
                    code: format!(
                        "{IMPORT}, keras\nif antifreeze.last_save(): model = keras.models.load_model(antifreeze.last_save())"
                    ),
                }
            }
            (Kind::Lightning, _) => MissingCode {
                instruction: "give `fit` the checkpoint (after `import antifreeze`)".into(),
                code: "trainer.fit(model, loader, ckpt_path=antifreeze.last_save())".into(),
            },
            (Kind::Transformers, _) => MissingCode {
                instruction: "give `train` the checkpoint (after `import antifreeze`)".into(),
                code: "trainer.train(resume_from_checkpoint=antifreeze.last_save())".into(),
            },
            (Kind::Script, _) => {
                let mut missing = self.before_loop("load=load");
                missing.instruction += "; write `load(path)` yourself: it loads what `on_checkpoint` saved and returns the step";
                missing
            }
        }
    }

    /// A call of `antifreeze.resume` before the training loop.
    fn before_loop(&self, arguments: &str) -> MissingCode {
        let saved = self.shim.saved.as_ref();
        let own = saved.and_then(|saved| saved.training_loop.as_ref());
        let own = own.filter(|own| is_identifier(&own.variable));
        let variable = own.map_or("step", |own| own.variable.as_str());
        let call = format!("{variable} = antifreeze.resume({arguments})");
        let Some(own) = own else {
            return MissingCode {
                instruction:
                    "insert this before the training loop, and let the loop begin at `step`".into(),
                code: format!("{IMPORT}\n{call}"),
            };
        };
        let place = user_place(own.file.as_bytes(), own.line, self);
        let mut lines = vec![IMPORT, &call];
        let instruction = match &own.code {
            Some(code) => {
                lines.push(code);
                format!("replace the first line of the training loop ({place}) with this")
            }
            None => format!(
                "insert this before the training loop ({place}), and let the loop begin at step `{variable}`"
            ),
        };
        let is_blank = own.indent.bytes().all(|byte| byte == b' ' || byte == b'\t');
        let indent = if is_blank { own.indent.as_str() } else { "" };
        let lines: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
        MissingCode {
            instruction,
            code: lines.join("\n"),
        }
    }

    /// The arguments of `antifreeze.resume`, with the script's own names for what was saved.
    fn resume_arguments(&self, unknown: &str) -> String {
        let saved = self.shim.saved.as_ref();
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
            [] => unknown.to_owned(),
            some => some.join(", "),
        }
    }
}

/// The instruction for a model that `fit` trains, which begins at epoch 0 unless it is given another.
fn before_fit(step: &str, fit: Fit) -> String {
    let (steps, unit) = match fit.steps_in_epoch {
        Some(steps) => (steps.to_string(), ""),
        None => (
            "steps_in_epoch".to_owned(),
            " (the number of batches in an epoch)",
        ),
    };
    format!(
        "insert this before `model.fit`, and give `fit` the argument `initial_epoch={step} // {steps}`{unit}"
    )
}

/// Whether a name is a Python identifier. Names come from a file that any program may have written.
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
    use crate::shim::{Saved, ShimReport, TrainingLoop};
    use std::time::SystemTime;

    fn facts(kinds: &[Kind], shim: ShimReport) -> Facts {
        let checkpoints = kinds.iter().enumerate().map(|(step, kind)| Checkpoint {
            kind: *kind,
            step: step as u64,
            path: "c".into(),
            bytes: None,
            written: SystemTime::UNIX_EPOCH,
        });
        Facts {
            checkpoints: checkpoints.collect(),
            shim,
            ..Facts::default()
        }
    }

    #[test]
    fn a_script_continues_from_the_kind_that_it_loads() {
        let told = ShimReport {
            resumes: Some(0),
            accepted_kinds: vec![Kind::Lightning],
            ..ShimReport::default()
        };
        let both = facts(&[Kind::Lightning, Kind::Torch], told.clone());
        let continuation = both.continuation().unwrap();
        assert_eq!(continuation.checkpoint.kind, Kind::Lightning);
        assert_eq!(continuation.missing_code, None);
        assert_eq!(facts(&[Kind::Torch], told).continuation(), None);
        assert_eq!(facts(&[], ShimReport::default()).continuation(), None);
    }

    fn saved(kind: Kind, saved: Saved) -> MissingCode {
        let told = ShimReport {
            saved: Some(Saved { step: 3, ..saved }),
            ..ShimReport::default()
        };
        facts(&[kind], told)
            .continuation()
            .unwrap()
            .missing_code
            .unwrap()
    }

    #[test]
    fn a_script_that_does_not_resume_is_shown_how_with_its_own_names() {
        let code = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).into()).collect();
            saved(
                Kind::Torch,
                Saved {
                    names,
                    ..Saved::default()
                },
            )
            .code
        };
        assert_eq!(
            code(&["net", "self.adam", "optimizer 1", "x; rm", "f().net"]),
            "import antifreeze\nstep = antifreeze.resume(net=net, adam=self.adam)"
        );
        assert_eq!(
            code(&["a.net", "b.net", "adam"]),
            "import antifreeze\nstep = antifreeze.resume(**{\"a.net\": a.net}, **{\"b.net\": b.net}, adam=adam)"
        );
        assert_eq!(
            code(&[]),
            "import antifreeze\nstep = antifreeze.resume(model=model, optimizer=optimizer)"
        );
    }

    #[test]
    fn a_loop_that_counts_steps_is_replaced_by_one_that_begins_at_the_checkpoint() {
        let in_loop = |code: Option<&str>| {
            let training_loop = Some(TrainingLoop {
                file: "train.py".into(),
                line: 7,
                indent: "    ".into(),
                variable: "step".into(),
                code: code.map(Into::into),
            });
            let names = vec!["model".into()];
            saved(
                Kind::Torch,
                Saved {
                    names,
                    training_loop,
                    ..Saved::default()
                },
            )
        };
        assert_eq!(
            in_loop(Some("for step in range(step, 600):")),
            MissingCode {
                instruction: "replace the first line of the training loop (train.py:7) with this".into(),
                code: "    import antifreeze\n    step = antifreeze.resume(model=model)\n    for step in range(step, 600):".into(),
            }
        );
        assert_eq!(
            in_loop(None),
            MissingCode {
                instruction: "insert this before the training loop (train.py:7), and let the loop begin at step `step`".into(),
                code: "    import antifreeze\n    step = antifreeze.resume(model=model)".into(),
            }
        );
    }

    #[test]
    fn fit_begins_at_the_epoch_of_the_checkpoint() {
        let fit = |kind, steps_in_epoch| {
            let fit = Some(Fit { steps_in_epoch });
            saved(
                kind,
                Saved {
                    fit,
                    ..Saved::default()
                },
            )
            .instruction
        };
        let argument =
            "insert this before `model.fit`, and give `fit` the argument `initial_epoch=";
        assert_eq!(
            fit(Kind::KerasWeights, Some(256)),
            format!("{argument}step // 256`")
        );
        assert_eq!(
            fit(Kind::Keras, None),
            format!(
                "{argument}int(model.optimizer.iterations) // steps_in_epoch` (the number of batches in an epoch)"
            )
        );
    }
}
