//! The mixes of models that policies are compared on; they are part of the program, so that it needs no files.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use weft_scheduler::ProfileSet;
use weft_simulator::{Scenario, Trace, WorkloadFiles, World};

/// The objective of the workload files, as a multiple of solo latencies.
const SLO_FACTOR: f64 = 5.0;

/// Weft's own kernels on an H200.
const PROFILES: &str = include_str!("../../../../../profiles/h200.toml");

/// One mix: a workload file.
#[derive(Debug)]
pub(super) struct Mix {
    /// What selects and reports it.
    pub(super) name: &'static str,
    workload: &'static str,
    /// A load that moves needs all of its time.
    pub(super) is_moving: bool,
}

const fn mix(name: &'static str, workload: &'static str, is_moving: bool) -> Mix {
    Mix { name, workload, is_moving }
}

/// All of them, in the order in which they are shown.
pub(super) const ALL: [Mix; 7] = [
    mix("a", include_str!("../../../../../workloads/mix-a.toml"), false),
    mix("b", include_str!("../../../../../workloads/mix-b.toml"), false),
    mix("c", include_str!("../../../../../workloads/mix-c.toml"), false),
    mix("d", include_str!("../../../../../workloads/mix-d.toml"), false),
    mix("e", include_str!("../../../../../workloads/mix-e.toml"), true),
    mix("e-idle", include_str!("../../../../../workloads/mix-e-idle.toml"), true),
    mix("f", include_str!("../../../../../workloads/mix-f.toml"), false),
];

/// The profiles of a file, or those that come with the program.
pub(super) fn profiles(file: Option<&Path>) -> Result<ProfileSet> {
    let (text, place) = match file {
        None => (PROFILES.to_string(), "the profiles that come with Weft".to_string()),
        Some(path) => {
            let place = path.display().to_string();
            (std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?, place)
        }
    };
    ProfileSet::from_toml(&text).map_err(|problems| anyhow!("{place}:\n{problems}"))
}

impl Mix {
    /// The mix on the device of some profiles, with answers due within `slo_factor` times solo latencies; where the file
    /// says several times as much, within several times that.
    pub(super) fn world(&self, profiles: &ProfileSet, slo_factor: f64) -> Result<World> {
        let scenario = Scenario::from_toml(self.workload, &mut Given(profiles))
            .map_err(|problems| anyhow!("mix {} with these profiles:\n{problems}", self.name))?;
        let mut world = scenario.world;
        for slo in world.models.iter_mut().filter_map(|model| model.slo.as_mut()) {
            slo.latency = slo.latency * (slo_factor / SLO_FACTOR);
        }
        Ok(world)
    }
}

/// Every mix gets the same profiles, and none has a trace.
struct Given<'a>(&'a ProfileSet);

impl WorkloadFiles for Given<'_> {
    fn profiles(&mut self, _: &str) -> Option<ProfileSet> {
        Some(self.0.clone())
    }

    fn trace(&mut self, _: &str) -> Option<Trace> {
        None
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::{Span, Time};

    use super::*;

    #[test]
    fn every_mix_asks_for_a_thousand_requests_per_second_at_any_time() {
        let profiles = profiles(None).unwrap();
        for mix in &ALL {
            let world = mix.world(&profiles, 5.0).unwrap();
            for second in [0.0, 9.9, 10.1, 25.0, 39.9] {
                let at = Time::START + Span::from_s(second);
                let rates = world.models.iter().map(|model| model.load.rate_per_s(at));
                let total: f64 = rates.sum();
                assert!((total - 1000.0).abs() < 0.5, "{} at {second}: {total}", mix.name);
            }
        }
    }

    #[test]
    fn objectives_are_multiples_of_solo_latencies() {
        let profiles = profiles(None).unwrap();
        for (name, slo_factor, least, most) in
            [("a", 5.0, 5.0, 5.0), ("d", 5.0, 5.0, 20.0), ("d", 2.5, 2.5, 10.0)]
        {
            let mix = ALL.iter().find(|mix| mix.name == name).unwrap();
            let world = mix.world(&profiles, slo_factor).unwrap();
            let factors = world.models.iter().map(|model| {
                model.slo.unwrap().latency.us() / model.profile.latency(1, world.units).us()
            });
            let (low, high) = factors.fold((f64::MAX, 0.0f64), |(low, high), factor| {
                (low.min(factor), high.max(factor))
            });
            assert!(
                (low - least).abs() < 1e-3 && (high - most).abs() < 1e-3,
                "{name}: {low} {high}"
            );
        }
    }

    #[test]
    fn a_moving_mix_has_another_hot_model_every_ten_seconds() {
        let profiles = profiles(None).unwrap();
        for mix in ALL.iter().filter(|mix| mix.is_moving) {
            let world = mix.world(&profiles, 5.0).unwrap();
            let hottest = |second: f64| {
                let at = Time::START + Span::from_s(second);
                let rates: Vec<f64> =
                    world.models.iter().map(|model| model.load.rate_per_s(at)).collect();
                let hot = (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap();
                world.models[hot].name.as_str()
            };
            let hot = [5.0, 15.0, 25.0, 35.0].map(hottest);
            assert_eq!(hot, ["resnet50", "vgg16", "mobilenet_v3_large", "bert_base"]);
        }
    }
}
