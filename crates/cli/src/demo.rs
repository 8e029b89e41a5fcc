//! `antifreeze demo`: runs a small trainer that leaks memory under a budget, to show the wall on any machine.

use crate::args::{Arguments, Command};
use crate::output::{complain, replace};
use crate::run;
use crate::store::Store;
use clap::Parser;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

static TRAINER: &str = include_str!("../demo/train.py");
const BUDGET: &str = "400MB";

pub fn demo() -> u8 {
    let Some(python) = find_python() else {
        eprintln!("antifreeze: the demo needs python3, and there is none in PATH");
        return 127;
    };
    let script = match put_script() {
        Ok(script) => script,
        Err(message) => {
            complain(&message);
            return run::OWN_FAILURE;
        }
    };
    println!("This trainer leaks 8 MB a step. Its budget is {BUDGET}:");
    println!(
        "  antifreeze run --budget {BUDGET} -- python3 {}\n",
        script.display()
    );
    let words: [OsString; 7] = [
        "antifreeze".into(),
        "run".into(),
        "--budget".into(),
        BUDGET.into(),
        "--".into(),
        python.into(),
        script.into(),
    ];
    match Arguments::parse_from(words).command {
        Command::Run(arguments) => run::run(*arguments),
        _ => run::OWN_FAILURE,
    }
}

fn put_script() -> Result<PathBuf, String> {
    let folder = Store::locate()?.home().join("demo");
    let path = folder.join("train.py");
    std::fs::create_dir_all(&folder)
        .and_then(|()| replace(&path, TRAINER.as_bytes()))
        .map_err(|error| format!("writing {}: {error}", path.display()))?;
    Ok(path)
}

fn find_python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["python3", "python"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
