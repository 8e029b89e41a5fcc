use super::*;
use proptest::prelude::*;

fn at(seconds: u64) -> Stamp {
    Stamp {
        monotonic_ns: seconds * 1_000_000_000,
        realtime_ns: 0,
    }
}

fn told(lines: &str) -> ShimReport {
    ShimReport::parse(lines.as_bytes())
}

#[test]
fn the_newest_look_counts_and_the_fastest_grower_is_named() {
    let told = told(concat!(
        r#"{"what":"hello","t":1,"pid":7,"framework":"torch","version":"2.8","device":"cpu"}"#,
        "\n",
        r#"{"what":"holders","t":2,"step":10,"resident":9,"names":[]}"#,
        "\n",
        r#"{"what":"holders","t":3,"step":20,"resident":2000,"names":["#,
        r#"{"name":"model","file":"t.py","scope":"main","bytes":900,"length":3,"grown":0,"steps":10,"seconds":1,"lines":[]},"#,
        r#"{"name":"history","file":"t.py","scope":"main","bytes":500,"length":9,"grown":500,"steps":10,"seconds":1,"lines":[12]}]}"#,
        "\n",
        r#"{"what":"news of tomorrow"}"#,
        "\n{ half a li",
    ));
    assert_eq!(told.hello.as_ref().unwrap().framework, "torch");
    let suspect = told.suspect().unwrap();
    assert_eq!(
        (suspect.holder.name.as_str(), suspect.holder.lines[0]),
        ("history", 12)
    );
    assert_eq!(suspect.kind, SuspectKind::GrowsPerStep(50));
}

#[test]
fn of_a_dictionary_of_lists_the_entry_that_grows_is_named() {
    let told = told(concat!(
        r#"{"what":"holders","t":3,"step":20,"resident":900000000,"names":["#,
        r#"{"name":"log","file":"t.py","bytes":480009000,"length":2,"grown":400009000,"steps":20,"seconds":1,"more":400000000,"lines":[13,14]},"#,
        r#"{"name":"log['outputs']","file":"t.py","bytes":480000000,"length":24,"grown":400000000,"steps":20,"seconds":1,"more":400000000,"lines":[14]},"#,
        r#"{"name":"log['losses']","file":"t.py","bytes":9000,"length":24,"grown":9000,"steps":20,"seconds":1,"more":400000000,"nodes":200,"new_nodes":100,"lines":[13]}]}"#,
    ));
    let suspect = told.suspect().unwrap();
    assert_eq!(
        (suspect.holder.name.as_str(), suspect.holder.lines[0]),
        ("log['outputs']", 14)
    );
    let others = suspect.accomplices();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].name, "log['losses']");
}

#[test]
fn of_a_dictionary_whose_entries_grow_alike_the_whole_is_named() {
    let told = told(concat!(
        r#"{"what":"holders","t":3,"step":20,"resident":900,"names":["#,
        r#"{"name":"log","file":"t.py","bytes":800,"length":2,"grown":800,"steps":20,"seconds":1,"more":800,"lines":[13]},"#,
        r#"{"name":"log['a']","file":"t.py","bytes":400,"length":24,"grown":400,"steps":20,"seconds":1,"more":800,"lines":[13]},"#,
        r#"{"name":"log['b']","file":"t.py","bytes":400,"length":24,"grown":400,"steps":20,"seconds":1,"more":800,"lines":[14]}]}"#,
    ));
    assert_eq!(told.suspect().unwrap().holder.name, "log");
}

#[test]
fn a_look_that_names_nothing_leaves_the_suspect_of_the_one_before() {
    let nothing = r#"{"what":"holders","t":9,"step":1,"resident":500,"names":[]}"#;
    let told = told(&(holding(5, 500) + nothing));
    assert!(told.suspect().is_none());
    let named = told.suspect_before(at(6)).unwrap();
    assert_eq!(
        (named.holder.name.as_str(), named.kind),
        ("kept", SuspectKind::HoldsMost)
    );
    assert!(told.suspect_before(at(4)).is_none());
}

#[test]
fn a_single_look_names_a_container_that_is_added_to_and_holds_most() {
    let line = |resident| {
        format!(
            r#"{{"what":"holders","step":0,"resident":{resident},"names":[
            {{"name":"kept","file":"t.py","bytes":600,"length":9,"grown":0,"steps":0,"seconds":0,"lines":[12]}}]}}"#
        )
        .replace('\n', "")
    };
    assert_eq!(told(&line(1000)).suspect().unwrap().holder.name, "kept");
    assert!(told(&line(2000)).suspect().is_none());
}

#[test]
fn a_single_look_names_a_container_with_an_element_for_each_step() {
    let line = |step, seconds| {
        format!(
            r#"{{"what":"holders","step":{step},"resident":2000,"names":[
            {{"name":"kept","file":"t.py","bytes":300,"length":30,"grown":0,"steps":0,"seconds":{seconds},"lines":[12]}}]}}"#
        )
        .replace('\n', "")
    };
    let how = |step, seconds| {
        told(&line(step, seconds))
            .suspect()
            .map(|suspect| suspect.kind)
    };
    assert_eq!(how(30, 0), Some(SuspectKind::GrowsPerStep(10)));
    assert_eq!(how(31, 0), Some(SuspectKind::GrowsPerStep(10)));
    assert_eq!(how(35, 0), None);
    assert_eq!(how(30, 9), None, "in nine seconds it did not grow");
}

#[test]
fn who_keeps_graphs_is_named_where_bytes_do_not_tell() {
    let told = told(concat!(
        r#"{"what":"holders","step":9,"resident":2000000,"names":["#,
        r#"{"name":"x","file":"t.py","bytes":900,"length":0,"grown":400,"steps":5,"seconds":1,"more":900000,"lines":[3]},"#,
        r#"{"name":"losses","file":"t.py","bytes":500,"length":9,"grown":200,"steps":5,"seconds":1,"more":900000,"nodes":400,"new_nodes":90,"lines":[12]}]}"#,
    ));
    let suspect = told.suspect().unwrap();
    assert_eq!(
        (suspect.holder.name.as_str(), suspect.kind),
        ("losses", SuspectKind::KeepsGraphs)
    );
}

fn holding(seconds: u64, bytes: u64) -> String {
    format!(
        r#"{{"what":"holders","t":{seconds},"step":1,"resident":{bytes},"names":[
        {{"name":"kept","file":"t.py","bytes":{bytes},"length":{seconds},"grown":0,"steps":0,"seconds":0,"lines":[2]}}]}}"#
    )
    .replace('\n', "")
        + "\n"
}

#[test]
fn what_was_known_at_a_moment_does_not_change_with_what_comes_later() {
    let lines = holding(5, 500)
        + r#"{"what":"saved","t":6.0004,"path":"/tmp/step-6.pt","step":6,"seconds":1}"#
        + "\n"
        + &holding(9, 900)
        + r#"{"what":"not-saved","t":10,"step":9,"why":"the disk is full"}"#
        + "\n";
    let told = told(&lines);
    let elements = |told: &ShimReport| told.holders.as_ref().map(|holders| holders.names[0].length);
    let step = |told: &ShimReport| told.saved.as_ref().map(|saved| saved.step);
    for (moment, length, saved, why) in [
        (4, None, None, None),
        (5, Some(5), None, None),
        (6, Some(5), Some(6), None),
        (9, Some(9), Some(6), None),
        (10, Some(9), Some(6), Some("the disk is full")),
    ] {
        let then = told.known_at(at(moment));
        assert_eq!(
            (elements(&then), step(&then), then.not_saved.as_deref()),
            (length, saved, why),
            "{moment}"
        );
        // What was not there yet makes no difference.
        let cut: String = lines
            .lines()
            .filter(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["t"].as_f64().unwrap() <= moment as f64 + 0.001
            })
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(elements(&ShimReport::parse(cut.as_bytes())), length);
    }
}

#[test]
fn the_last_save_is_the_newest_whose_file_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |step: u64| folder.path().join(format!("step-{step}.pt"));
    let line = |step: u64| {
        let path = path(step);
        let path = path.display();
        format!(r#"{{"what":"saved","t":{step},"path":"{path}","step":{step}}}"#) + "\n"
    };
    let mut told = told(&(line(1) + &line(2) + &line(3)));
    let step = |told: &mut ShimReport| {
        told.forget_deleted_saves();
        told.saved.as_ref().map(|saved| saved.step)
    };
    assert_eq!((step(&mut told), told.saves_deleted), (None, true));
    std::fs::write(path(2), b"a save").unwrap();
    assert_eq!((step(&mut told), told.saves_deleted), (Some(2), false));
    // What was said of it at the time was true then.
    assert_eq!(told.known_at(at(9)).saved.unwrap().step, 3);
}

#[test]
fn of_two_processes_the_later_save_counts_whatever_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let line = |time: u64, step: u64| {
        format!(r#"{{"what":"saved","t":{time},"path":"/tmp/{step}.pt","step":{step}}}"#)
    };
    std::fs::write(folder.path().join("shim-1.jsonl"), line(9, 90)).unwrap();
    std::fs::write(folder.path().join("shim-2.jsonl"), line(5, 50)).unwrap();
    assert_eq!(ShimReport::read(folder.path()).saved.unwrap().step, 90);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        ShimReport::parse(&bytes);
    }
}
