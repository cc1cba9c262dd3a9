use proptest::prelude::*;

use super::*;
use crate::time::Span;

const GOOD: &str = r#"
[device]
name = "A device"
units = 4
unit = "core"
bandwidth_gb_per_s = 20.5
memory_mb = 1000

[models.small]
batches = [8, 1]
units = [1, 4]
latency_us = [
  [800, 250.5],
  [100, 60],
]
dram_mb = [24, 3]
memory_mb = 12.5
"#;

fn problems(text: &str) -> Vec<String> {
    let problems = ProfileSet::from_toml(text).expect_err(text);
    problems.as_slice().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_is_read_in_any_order() {
    let set = ProfileSet::from_toml(GOOD).unwrap();
    assert_eq!(set.device.name, "A device");
    assert_eq!((set.device.units, set.device.unit.as_str()), (4, "core"));
    assert_eq!(set.device.bandwidth_bytes_per_s, 20.5e9);
    assert_eq!(set.device.memory_bytes, 1_000_000_000);
    let profile = &set.profiles["small"];
    assert_eq!((profile.batches(), profile.units()), (&[1, 8][..], &[1, 4][..]));
    assert_eq!(profile.latency(8, 4), Span::from_us(250.5));
    assert_eq!(profile.latency(1, 4), Span::from_us(60.0));
    assert_eq!((profile.dram_bytes(8, 1), profile.dram_bytes(1, 4)), (24e6, 3e6));
    assert_eq!(profile.memory_bytes, 12_500_000);
}

#[test]
fn bytes_may_be_one_number_or_a_grid() {
    for (written, at_one, at_eight) in
        [("7", 7e6, 7e6), ("[0, 3]", 3e6, 0.0), ("[[8, 9], [1, 2]]", 2e6, 9e6)]
    {
        let text = GOOD.replace("dram_mb = [24, 3]", &format!("dram_mb = {written}"));
        let set = ProfileSet::from_toml(&text).unwrap();
        let profile = &set.profiles["small"];
        assert_eq!((profile.dram_bytes(1, 4), profile.dram_bytes(8, 4)), (at_one, at_eight));
    }
}

#[test]
fn each_problem_is_named_with_its_line() {
    for (from, to, expected) in [
        ("unit = \"core\"", "", "line 2: 'unit' is missing"),
        ("units = 4", "units = 0", "line 4: 'units' must be a whole number of at least 1, not 0"),
        ("20.5", "-1", "line 6: 'bandwidth_gb_per_s' must be a number above 0, not -1"),
        (
            "memory_mb = 1000",
            "memory_mb = '1 GB'",
            "line 7: 'memory_mb' must be a number above 0, not a value of type string",
        ),
        ("[8, 1]", "[8, 8]", "line 10: 8 is given twice in 'batches'"),
        ("[8, 1]", "[]", "line 10: 'batches' must be a list that is not empty"),
        (
            "[8, 1]",
            "[8, 1, 2]",
            "line 12: 'latency_us' has 2 rows, one for each of the 3 'batches' is needed",
        ),
        ("[1, 4]", "[1, 5]", "line 11: 5 in 'units', but the device has 4"),
        (
            "[800, 250.5]",
            "[800]",
            "line 13: 'latency_us' has 1 numbers, one for each of the 2 'units' is needed",
        ),
        ("[800, 250.5]", "[800, 0]", "line 13: 'latency_us' must be a number above 0, not 0"),
        (
            "[100, 60]",
            "[0.0001, 60]",
            "line 9: has a batch, a number of units or a latency of zero",
        ),
        (
            "[24, 3]",
            "[24]",
            "line 16: 'dram_mb' has 1 numbers, one for each of the 2 'batches' is needed",
        ),
        ("[24, 3]", "-24", "line 16: 'dram_mb' must be a number of at least 0, not -24"),
        (
            "memory_mb = 12.5",
            "memory_mb = 12.5\nlatency_ms = 1",
            "line 18: unknown key 'latency_ms'",
        ),
        ("memory_mb = 12.5", "memory_mb = 12.5\n[models.small]", "line 18: 'small' is given twice"),
        ("[device]", "[device", "line 2: "),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let found = problems(&GOOD.replacen(from, to, 1));
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{to}: {found:?}");
    }
}

#[test]
fn problems_of_several_models_are_all_listed() {
    let other = "[models.other]\nbatches = [1]\nunits = [9]\nlatency_us = [[-1]]\ndram_mb = 1\n";
    let text = GOOD.replace("[24, 3]", "[24]") + other;
    assert_eq!(
        problems(&text),
        [
            "line 16: 'dram_mb' has 1 numbers, one for each of the 2 'batches' is needed",
            "line 18: 'memory_mb' is missing",
            "line 20: 9 in 'units', but the device has 4",
            "line 21: 'latency_us' must be a number above 0, not -1",
        ]
    );
}

#[test]
fn a_file_without_models_is_refused() {
    let text = GOOD.split("[models").next().unwrap();
    assert_eq!(problems(text), ["line 1: 'models' is missing"]);
    let text = format!("{text}[models]\n");
    assert_eq!(problems(&text), ["line 9: 'models' must hold at least one model"]);
}

fn any_set() -> impl Strategy<Value = ProfileSet> {
    let profile = (1usize..4, 1usize..4, 1u64..1 << 40).prop_flat_map(|(rows, columns, memory)| {
        let cell = (1u64..1 << 45, 0u64..1 << 40);
        prop::collection::vec(cell, rows * columns).prop_map(move |cells| {
            let points: Vec<ProfilePoint> = cells
                .into_iter()
                .enumerate()
                .map(|(at, (nanos, bytes))| ProfilePoint {
                    batch: 1 << (at / columns),
                    units: 1 + 3 * (at % columns) as u32,
                    latency: Span::from_nanos(nanos),
                    dram_bytes: bytes as f64,
                })
                .collect();
            Profile::new(&points, memory).unwrap()
        })
    });
    let name = "[ -~\\p{Cc}äß]{1,12}";
    let device = (name, 7u32..200, name, 1u64..1 << 43, 1u64..1 << 40);
    (device, prop::collection::btree_map(name, profile, 1..4)).prop_map(|(device, profiles)| {
        let (name, units, unit, bandwidth, memory_bytes) = device;
        let bandwidth_bytes_per_s = bandwidth as f64;
        let device = ProfiledDevice { name, units, unit, bandwidth_bytes_per_s, memory_bytes };
        ProfileSet { device, profiles }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(set in any_set()) {
        let text = set.to_toml();
        prop_assert_eq!(ProfileSet::from_toml(&text).map_err(|problems| format!("{problems}\n{text}")), Ok(set));
    }
}
