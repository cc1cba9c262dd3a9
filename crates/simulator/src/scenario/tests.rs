use std::sync::Arc;

use weft_scheduler::Time;

use super::*;
use crate::load::Load;

const PROFILES: &str = "
[device]
name = 'small'
units = 4
unit = 'core'
bandwidth_gb_per_s = 10
memory_mb = 100

[models.net]
batches = [1, 4]
units = [1, 4]
latency_us = [[100, 40], [300, 110]]
dram_mb = 1
memory_mb = 1

[models.vast]
batches = [1]
units = [4]
latency_us = [[100]]
dram_mb = 1
memory_mb = 101
";

/// The files of a test, whatever they are called.
struct Files {
    profiles: &'static str,
    trace: &'static str,
    asked: Vec<String>,
}

impl WorkloadFiles for Files {
    fn profiles(&mut self, name: &str) -> Option<ProfileSet> {
        self.asked.push(name.to_string());
        ProfileSet::from_toml(self.profiles).ok()
    }

    fn trace(&mut self, name: &str) -> Option<Trace> {
        self.asked.push(name.to_string());
        Trace::from_csv(self.trace).ok()
    }
}

fn files() -> Files {
    Files { profiles: PROFILES, trace: "1,net\n0.5,other\n0.5,net\n", asked: Vec::new() }
}

fn read(text: &str) -> Result<World, Problems> {
    Scenario::from_toml(text, &mut files()).map(|scenario| scenario.world)
}

#[test]
fn a_workload_becomes_a_world() {
    let text = "
profiles = 'small.toml'
seconds = 2
[models.net]
rate = 100
slo_factor = 5
copies = 3
[models.other]
profile = 'net'
rate = 50
burstiness = 4
";
    let mut files = files();
    let scenario = Scenario::from_toml(text, &mut files).unwrap();
    assert_eq!((files.asked, scenario.devices), (vec!["small.toml".to_string()], 1));
    let world = scenario.world;
    let names: Vec<&str> = world.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["net 1", "net 2", "net 3", "other"]);
    assert_eq!(world.models[0].slo.unwrap().latency, Span::from_us(200.0));
    assert_eq!(world.models[3].slo, None);
    assert_eq!(world.models[3].load, Load::Gamma { rate_per_s: 50.0, burstiness: 4.0 });
    assert_eq!((world.units, world.length), (4, Span::from_s(2.0)));
}

#[test]
fn copies_divide_the_rate_by_rank_and_take_profiles_in_turns() {
    let profiles: &str = PROFILES.replace("memory_mb = 101", "memory_mb = 1").leak();
    let text = "
profiles = 'small.toml'
[models.many]
profile = ['net', 'vast']
rate = 220
slo_factor = 2
copies = 4
zipf = 1
";
    let set = ProfileSet::from_toml(profiles).unwrap();
    let world = Scenario::from_toml(text, &mut Files { profiles, ..files() }).unwrap().world;
    let rates = world.models.iter().map(|model| model.load.rate_per_s(Time::START));
    let rates: Vec<f64> = rates.map(|rate| (rate * 25.0 / 12.0).round()).collect();
    // The sum of 1, 1/2, 1/3 and 1/4 is 25/12.
    assert_eq!(rates, [220.0, 110.0, 73.0, 55.0]);
    let profile = |index: usize| &*world.models[index].profile;
    assert_eq!((profile(0), profile(1)), (&set.profiles["net"], &set.profiles["vast"]));
    assert_eq!(profile(0), profile(2));
    let slo_us = |index: usize| world.models[index].slo.unwrap().latency.us();
    assert_eq!((slo_us(0), slo_us(1)), (80.0, 200.0));
}

const BAD: &str = "profiles = 'x.toml'
seconds = 0
[models.net]
rate = 0
slo_ms = 3
slo_factor = 2
[models.b]
speed = 9
[models.vast]
rate = 1
low_rate = 2
high_share = 1.5
slo_ms = 0.1
[models.c]
profile = 'net'
rate = 9
period_s = 3
percentile = 0.9
";

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_line() {
    let problems = read(BAD).unwrap_err();
    for part in [
        "line 2: 'seconds' must be",
        "line 4: 'rate' must be a number above 0",
        "line 6: 'slo_ms' and 'slo_factor' contradict",
        "line 7: there is no profile 'b'; there are net, vast",
        "line 7: 'rate' is missing",
        "line 8: unknown key 'speed'",
        "line 9: 'vast' takes 101 MB of memory, and the device has 100",
        "line 11: 'low_rate' is above 'rate'",
        "line 12: 'high_share' is",
        "line 13: the objective of 'vast', 100.0 us, cannot be kept: one item takes 100.0 us",
        "line 17: 'period_s' is nothing without 'low_rate' or 'diurnal_low_rate'",
        "line 18: 'percentile' of no objective",
    ] {
        assert!(problems.to_string().contains(part), "{part} in\n{problems}");
    }
}

#[test]
fn without_profiles_the_rest_is_still_read() {
    let mut none = Files { profiles: "", ..files() };
    let problems = Scenario::from_toml(BAD, &mut none).unwrap_err();
    assert!(problems.to_string().contains("line 4: 'rate'"), "{problems}");
    assert!(!problems.to_string().contains("no profile"), "{problems}");
    let nothing_else = "profiles = 'x'\n[models.a]\nrate = 1\n";
    assert!(Scenario::from_toml(nothing_else, &mut none).unwrap_err().is_empty());
}

/// The load of the model `net` with these lines.
fn load(lines: &str) -> Load {
    read(&format!("profiles = 'x'\n[models.net]\n{lines}")).unwrap().models[0].load.clone()
}

#[test]
fn keys_say_what_kind_of_load_it_is() {
    let (second, ms) = (Span::from_s(1.0), Span::from_us(1e3));
    for (lines, expected) in [
        ("rate = 3", Load::Poisson { rate_per_s: 3.0 }),
        ("rate = 3\nburstiness = 2", Load::Gamma { rate_per_s: 3.0, burstiness: 2.0 }),
        (
            "rate = 9\nlow_rate = 0\nperiod_s = 1\nhigh_share = 0.2\nphase_s = 1",
            Load::SquareWave {
                high_per_s: 9.0,
                low_per_s: 0.0,
                period: second,
                share: 0.2,
                phase: second,
            },
        ),
        (
            "rate = 9\ndiurnal_low_rate = 1\nperiod_s = 1",
            Load::Diurnal { high_per_s: 9.0, low_per_s: 1.0, period: second, phase: Span::ZERO },
        ),
        ("clients = 4\nthink_ms = 1", Load::ClosedLoop { clients: 4, think: ms }),
        (
            "trace = 'x.csv'",
            Load::Trace {
                times: Arc::new([0.5, 1.0].map(|at| Time::START + Span::from_s(at))),
                multiplicity: 1.0,
            },
        ),
    ] {
        assert_eq!(load(lines), expected, "{lines}");
    }
}

#[test]
fn loads_that_contradict_themselves_are_refused() {
    for (lines, expected) in [
        ("rate = 1\nclients = 2", "line 4: 'rate' and 'clients' contradict"),
        ("trace = 'x'\nrate = 1", "line 4: 'rate' and 'trace' contradict"),
        (
            "rate = 1\nlow_rate = 1\nburstiness = 2",
            "line 5: 'burstiness' and 'low_rate' contradict",
        ),
        ("clients = 2\ntrace = 'x'", "line 4: 'trace' and 'clients' contradict"),
        ("rate = 1\nthink_ms = 2", "line 4: 'think_ms' is nothing without 'clients'"),
        ("rate = 1\ndiurnal_low_rate = 0\nhigh_share = 0.3", "line 5: 'high_share' is nothing"),
        ("rate = 1\ndiurnal_low_rate = 2", "line 4: 'diurnal_low_rate' is above 'rate'"),
        ("clients = 0", "line 3: 'clients' must be"),
        ("clients = 1\ncopies = 2\nzipf = 1", "line 5: 'zipf' and 'clients' contradict"),
        ("rate = 1\nzipf = 1", "line 4: 'zipf' divides the rate over 'copies'"),
        ("rate = 1\nmax_batch = 0", "line 4: 'max_batch' must be"),
        ("rate = 1\ncopies = 4000000000", "line 4: 'copies' is at most 10000"),
    ] {
        let problems = read(&format!("profiles = 'x'\n[models.net]\n{lines}")).unwrap_err();
        let text = problems.to_string();
        assert!(text.starts_with(expected) && problems.as_slice().len() == 1, "{lines}: {text}");
    }
    let text = "profiles = 'x'\ndevices = 100001\n[models.a]\nprofile = 'net'\ntrace = 'x.csv'";
    let problems = read(text).unwrap_err().to_string();
    assert!(problems.contains("line 2: 'devices' is at most"), "{problems}");
    assert!(problems.contains("line 5: there is no request of 'a' in 'x.csv'"), "{problems}");
}

#[test]
fn a_trace_is_read_once_for_all_models() {
    let text = "profiles = 'p'\ndevices = 3\n[models.net]\ntrace = 't'\n[models.other]\nprofile = 'net'\ntrace = 't'";
    let mut files = files();
    let scenario = Scenario::from_toml(text, &mut files).unwrap();
    assert_eq!((files.asked, scenario.devices), (vec!["p".to_string(), "t".to_string()], 3));
}

#[test]
fn batches_can_be_limited() {
    let world = read("profiles = 'x'\n[models.net]\nrate = 1\nmax_batch = 2").unwrap();
    assert_eq!(world.served_device().models[0].largest_batch(), 2);
}
