//! Lists every text of a report that a person or a script wrote, so that it can be redacted.

use super::{Changed, Saved, ScriptChange, ShimReport};

impl ShimReport {
    /// Changes every text that a person or a script wrote.
    pub fn each_text(&mut self, mut change: impl FnMut(&mut String)) {
        if let Some(hello) = &mut self.hello {
            change(&mut hello.framework);
            change(&mut hello.version);
            hello
                .device
                .iter_mut()
                .chain(&mut hello.dtype)
                .for_each(&mut change);
        }
        if let Some(model) = &mut self.model {
            change(&mut model.optimizer);
        }
        for holder in self
            .holders
            .iter_mut()
            .flat_map(|holders| &mut holders.names)
        {
            change(&mut holder.name);
            change(&mut holder.file);
        }
        for numbers in &mut self.numbers {
            numbers.file.iter_mut().for_each(&mut change);
        }
        for error in &mut self.out_of_memory {
            error.file.iter_mut().for_each(&mut change);
            change(&mut error.message);
        }
        if let Some(saved) = &mut self.saved {
            saved.change_texts(&mut change);
        }
        for changes in &mut self.script_changes {
            change(&mut changes.name);
            changes.shown.iter_mut().for_each(&mut change);
            change(&mut changes.file);
            changes
                .edits
                .iter_mut()
                .for_each(|edit| edit.change_texts(&mut change));
        }
        if let Some(batch) = &mut self.batch {
            change(&mut batch.file);
            batch
                .edits
                .iter_mut()
                .for_each(|edit| edit.change_texts(&mut change));
            if let Some(size) = &mut batch.size {
                change(&mut size.before);
                change(&mut size.after);
            }
        }
        for loaded in &mut self.loaded {
            change(&mut loaded.name);
            change(&mut loaded.version);
        }
        for said in &mut self.changes {
            match &mut said.what {
                Changed::Holders(holders) => {
                    for holder in &mut holders.names {
                        change(&mut holder.name);
                        change(&mut holder.file);
                    }
                }
                Changed::Saved(saved) => {
                    saved.change_texts(&mut change);
                }
                Changed::NotSaved(why) => change(why),
            }
        }
        let cells = std::mem::take(&mut self.cells).into_iter();
        self.cells = cells
            .map(|(mut file, number)| {
                change(&mut file);
                (file, number)
            })
            .collect();
        self.not_saved.iter_mut().for_each(&mut change);
        self.faults.iter_mut().for_each(change);
    }
}

impl ScriptChange {
    fn change_texts(&mut self, change: &mut impl FnMut(&mut String)) {
        change(&mut self.code);
        change(&mut self.before);
        change(&mut self.indent);
        self.imports.iter_mut().for_each(change);
    }
}

impl Saved {
    fn change_texts(&mut self, change: &mut impl FnMut(&mut String)) {
        self.path.iter_mut().for_each(&mut *change);
        self.names.iter_mut().for_each(&mut *change);
        if let Some(training_loop) = &mut self.training_loop {
            change(&mut training_loop.file);
            change(&mut training_loop.indent);
            change(&mut training_loop.variable);
            training_loop.code.iter_mut().for_each(change);
        }
    }
}
