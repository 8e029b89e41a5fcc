use super::*;
use crate::codec::testing::{calm_sample, largest_sample, sample};
use antifreeze_sense::{MAX_CORES, Process, Reading, Reason, Stamp};
use proptest::prelude::*;

fn encoded(sample: &Sample) -> Vec<u8> {
    let mut out = [0; SAMPLE_BYTES];
    let len = encode_sample(sample, &mut out);
    assert_ne!(len, 0);
    out[..len].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sample_comes_back(sample in sample()) {
        prop_assert_eq!(decode_sample(&encoded(&sample)), Some(sample));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
        let _ = decode_sample(&bytes);
    }

    #[test]
    fn a_damaged_sample_decodes_or_is_refused(
        sample in sample(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = encoded(&sample);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode_sample(&bytes);
    }

    #[test]
    fn what_a_newer_writer_appended_is_passed_over(sample in sample(), newer: Vec<u8>) {
        let mut bytes = encoded(&sample);
        bytes.extend(newer);
        prop_assert_eq!(decode_sample(&bytes), Some(sample));
    }
}

#[test]
fn the_largest_sample_fits() {
    let sample = largest_sample();
    assert_eq!(decode_sample(&encoded(&sample)), Some(sample));
}

#[test]
fn a_calm_sample_of_ten_processes_is_small() {
    let sample = calm_sample(10, 3600);
    let len = encoded(&sample).len();
    println!("a calm sample of ten processes takes {len} bytes");
    assert_eq!(decode_sample(&encoded(&sample)), Some(sample));
    assert!(len <= 610, "{len} bytes");
}

#[test]
fn too_small_a_buffer_is_told() {
    assert_eq!(encode_sample(&calm_sample(10, 0), &mut [0; 100]), 0);
}

#[test]
fn only_the_cores_there_are_are_stored() {
    let mut few = Sample::default();
    few.cpu.core_count = 4;
    let mut many = few;
    many.cpu.core_count = 64;
    assert_eq!(encoded(&many).len() - encoded(&few).len(), 60);
    many.cpu.core_count = 1000;
    many.cpu.core_percents = [99; MAX_CORES];
    assert_eq!(decode_sample(&encoded(&many)), Some(many));
}

/// A sample as a writer of another age would have stored it: with `fields` more or fewer in
/// each group, and with two processes of which only the first reading was known.
fn stored_by_another(mut sample: Sample, fields: isize, process: Option<Process>) -> Vec<u8> {
    let mut out = [0; 2 * SAMPLE_BYTES];
    let mut writer = Writer::new(&mut out);
    put_stamp(&mut writer, sample.at);
    for_each_group(&mut sample, |group| {
        let count = group.len().saturating_add_signed(fields);
        writer.number(count as u64);
        for place in 0..count {
            let packed = group
                .get(place)
                .map_or(12345, |(unit, value)| pack(*unit, **value, 0));
            writer.tagged(packed);
        }
        Some(())
    });
    put_cores(&mut writer, &sample.cpu);
    if let Some(process) = process {
        writer.number(2);
        writer.number(5);
        for pid in [process.pid.0, 0] {
            writer.text(b"");
            writer.signed(pid.into());
            writer.signed(0);
            writer.signed(0);
            writer.number(b'R'.into());
            writer.tagged(pack(crate::codec::reading::Unit::Bytes, process.vm_data, 0));
        }
    }
    let len = writer.finish();
    out[..len].to_vec()
}

#[test]
fn a_record_from_before_a_field_says_that_it_was_not_recorded() {
    let sample = calm_sample(0, 5);
    let decoded = decode_sample(&stored_by_another(sample, -1, None)).unwrap();
    assert_eq!(decoded.memory.total, sample.memory.total);
    assert_eq!(
        decoded.memory.swap_cached,
        Reading::Unavailable(Reason::NotRecorded)
    );
    assert_eq!(decoded.tree.footprint, sample.tree.footprint);
    assert_eq!(
        decoded.tree.read_asked,
        Reading::Unavailable(Reason::NotRecorded)
    );
}

#[test]
fn a_record_from_before_a_group_says_that_it_was_not_recorded() {
    let mut out = [0; 32];
    let mut writer = Writer::new(&mut out);
    put_stamp(
        &mut writer,
        Stamp {
            monotonic_ns: 1,
            realtime_ns: 2,
        },
    );
    let len = writer.finish();
    let decoded = decode_sample(&out[..len]).unwrap();
    assert_eq!(
        decoded.memory.total,
        Reading::Unavailable(Reason::NotRecorded)
    );
    assert!(decoded.processes.as_slice().is_empty());
}

#[test]
fn fields_of_a_newer_writer_are_passed_over() {
    let sample = calm_sample(0, 5);
    assert_eq!(
        decode_sample(&stored_by_another(sample, 3, None)),
        Some(sample)
    );
}

#[test]
fn processes_from_before_a_field_are_read() {
    let process = *calm_sample(1, 5).processes.as_slice().first().unwrap();
    let bytes = stored_by_another(calm_sample(0, 5), 0, Some(process));
    let decoded = decode_sample(&bytes).unwrap();
    let [first, second] = decoded.processes.as_slice() else {
        panic!("two processes")
    };
    assert_eq!(first.pid, process.pid);
    assert_eq!(first.vm_data, process.vm_data);
    assert_eq!(first.wall, Reading::Unavailable(Reason::NotRecorded));
    assert_eq!(second.pid, process.pid);
}
