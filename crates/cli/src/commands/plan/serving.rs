//! The layout by which Weft's own policy serves a workload, in words, a table and JSON.

use serde_json::{Value, json};
use weft_scheduler::plan::ModelDemand;
use weft_scheduler::{LayoutFound, LayoutTask, ModelId};
use weft_simulator::World;

use crate::table::Table;

/// What was found for the rates of a plan's demands.
pub(super) struct Serving<'a> {
    demands: &'a [ModelDemand<'a>],
    task: LayoutTask,
    found: LayoutFound,
    late_share: f64,
}

impl<'a> Serving<'a> {
    /// Searches the layout.
    pub(super) fn rehearsed(world: &World, demands: &'a [ModelDemand<'a>]) -> Self {
        let mut device = world.served_device();
        for (model, demand) in device.models.iter_mut().zip(demands) {
            model.expected_per_s = demand.rate_per_s;
        }
        let task = LayoutTask {
            device,
            per_s: demands.iter().map(|demand| demand.rate_per_s).collect(),
            corrections: demands.iter().map(|demand| demand.slowdown).collect(),
            spreads: vec![world.noise; demands.len()],
            present: None,
            rounds: None,
        };
        let found = task.solve();
        let late_share = task.late_share(&found.layout);
        Self { demands, task, found, late_share }
    }

    /// The partitions, and what became of the load in rehearsal.
    pub(super) fn sentence(&self) -> String {
        let sizes = self.found.layout.sizes();
        let each = if sizes.len() == 1 { "which" } else { "each of which" };
        let partitions = format!(
            "Weft serves this load with {}, {each} serves every model that it answers in time",
            partitions(&counted(sizes))
        );
        match self.outcome() {
            Some(outcome) => format!("{partitions}; in rehearsal {outcome}"),
            None => partitions,
        }
    }

    /// Nothing where nothing is promised: there is nothing to rehearse.
    fn outcome(&self) -> Option<String> {
        self.is_rehearsed().then(|| {
            let room = self.found.room;
            match room {
                _ if self.found.carries_all_tried() => {
                    format!("it carries at least {room:.1} times the load")
                }
                _ if room > 1.0 => format!("it carries {room:.1} times the load"),
                _ if room == 1.0 => "it carries the load".to_string(),
                _ => format!(
                    "it does not carry the load: it loses {:.1} % of the requests",
                    self.late_share * 100.0
                ),
            }
        })
    }

    fn is_rehearsed(&self) -> bool {
        self.demands.iter().any(|demand| demand.promised_per_s() > 0.0)
    }

    /// One row for each model, with the largest batch at which partitions of each size serve it.
    pub(super) fn table(&self) -> Table {
        let layout = &self.found.layout;
        let seats: Vec<_> = layout.sizes().iter().zip(layout.seats(&self.task.device)).collect();
        let sizes = counted(layout.sizes());
        let heads = sizes.iter().map(|(count, units)| format!("batch on {count} of {units}"));
        let heads: Vec<String> = heads.collect();
        let mut table =
            Table::new(std::iter::once("model").chain(heads.iter().map(String::as_str)));
        for (index, demand) in self.demands.iter().enumerate() {
            let batch = |size: u32| {
                let (_, models) = seats.iter().find(|(units, _)| **units == size)?;
                models.iter().find(|(model, _)| model.index() == index).map(|(_, batch)| *batch)
            };
            let cells = sizes
                .iter()
                .map(|&(_, units)| batch(units).map_or(String::new(), |batch| batch.to_string()));
            table.row(std::iter::once(demand.name.clone()).chain(cells));
        }
        table
    }

    /// All of it for machines.
    pub(super) fn json(&self) -> Value {
        let layout = &self.found.layout;
        let partition = |models: Vec<(ModelId, u32)>| {
            let models = models.into_iter().map(|(model, batch)| {
                json!({ "model": self.demands[model.index()].name, "largest_batch": batch })
            });
            models.collect::<Vec<_>>()
        };
        let seats = layout.seats(&self.task.device).into_iter().map(partition);
        json!({
            "sizes": layout.sizes(),
            "seats": seats.collect::<Vec<_>>(),
            "room": self.is_rehearsed().then_some(self.found.room),
            "room_is_limit": self.found.carries_all_tried(),
            "lost_now": self.late_share,
        })
    }
}

/// How many there are of each size, the largest first.
fn counted(sizes: &[u32]) -> Vec<(usize, u32)> {
    sizes.chunk_by(|left, right| left == right).map(|alike| (alike.len(), alike[0])).collect()
}

fn partitions(sizes: &[(usize, u32)]) -> String {
    let plural = |is_one: bool| if is_one { "" } else { "s" };
    let mut parts: Vec<String> =
        sizes.iter().map(|(count, units)| format!("{count} of {units}")).collect();
    if let (Some(first), Some((count, units))) = (parts.first_mut(), sizes.first()) {
        *first = format!("{count} partition{} of {units}", plural(*count == 1));
    }
    let last = parts.pop().unwrap_or_default();
    let unit = sizes.last().map_or("s", |(_, units)| plural(*units == 1));
    let before = parts.join(", ");
    let and = if before.is_empty() { "" } else { " and " };
    format!("{before}{and}{last} unit{unit}")
}

#[cfg(test)]
mod tests {
    use weft_scheduler::plan::Slo;
    use weft_scheduler::{Layout, Lost, Profile, ProfilePoint, ServedDevice, ServedModel, Span};

    use super::*;

    /// 400 us on one unit, divided among more.
    fn profile() -> Profile {
        let grid = [1, 2].into_iter().flat_map(|batch| [1, 4].map(|units| (batch, units)));
        let points = grid.map(|(batch, units): (u32, u32)| ProfilePoint {
            batch,
            units,
            latency: Span::from_us(400.0 * f64::from(batch) / f64::from(units)),
            dram_bytes: 0.0,
        });
        Profile::new(&points.collect::<Vec<_>>(), 0).unwrap()
    }

    fn demand<'a>(name: &str, profile: &'a Profile, slo_us: Option<f64>) -> ModelDemand<'a> {
        let slo = slo_us.map(|us| Slo { percentile: 0.99, latency: Span::from_us(us) });
        ModelDemand {
            name: name.into(),
            profile,
            slowdown: 1.0,
            slo,
            rate_per_s: 100.0,
            weight: 1.0,
            max_batch: 2,
        }
    }

    fn serving<'a>(
        demands: &'a [ModelDemand<'a>],
        sizes: &[u32],
        room: f64,
        late_share: f64,
    ) -> Serving<'a> {
        let models = demands.iter().map(|demand| ServedModel {
            profile: demand.profile.clone().into(),
            slo: demand.slo,
            expected_per_s: demand.rate_per_s,
            weight: 1.0,
            priority: 0,
            group: None,
        });
        let device = ServedDevice {
            models: models.collect(),
            units: sizes.iter().sum(),
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 1 << 30,
            can_interrupt: false,
        };
        let task = LayoutTask {
            device,
            per_s: vec![100.0; demands.len()],
            corrections: vec![1.0; demands.len()],
            spreads: vec![0.0; demands.len()],
            present: None,
            rounds: None,
        };
        let found = LayoutFound {
            layout: Layout::new(sizes.to_vec()),
            room,
            lost: Lost { now: late_share * 9.0, later: 0.0 },
            present_lost: None,
        };
        Serving { demands, task, found, late_share }
    }

    #[test]
    fn sizes_that_repeat_are_counted() {
        for (sizes, words) in [
            (&[4, 4, 4, 4][..], "4 partitions of 4 units"),
            (&[4, 2, 2, 2], "1 partition of 4 and 3 of 2 units"),
            (&[6, 4, 4, 1, 1], "1 partition of 6, 2 of 4 and 2 of 1 unit"),
            (&[16], "1 partition of 16 units"),
            (&[1, 1], "2 partitions of 1 unit"),
        ] {
            assert_eq!(partitions(&counted(sizes)), words);
        }
    }

    #[test]
    fn what_became_of_the_load_in_rehearsal_is_said_in_words() {
        let profile = profile();
        let demands = [demand("a", &profile, Some(900.0))];
        let best_effort = [demand("a", &profile, None)];
        for (demands, room, late_share, words) in [
            (&demands, 2.197, 0.0, "in time; in rehearsal it carries 2.2 times the load"),
            (&demands, 1.0, 0.0, "in time; in rehearsal it carries the load"),
            (
                &demands,
                3.71293,
                0.0,
                "in time; in rehearsal it carries at least 3.7 times the load",
            ),
            (
                &demands,
                0.0,
                0.0312,
                "in time; in rehearsal it does not carry the load: it loses 3.1 % of the requests",
            ),
            (
                &best_effort,
                3.71293,
                0.0,
                "1 unit, each of which serves every model that it answers in time",
            ),
        ] {
            let sentence = serving(demands, &[1, 1], room, late_share).sentence();
            assert!(sentence.ends_with(words), "{sentence}");
        }
        let whole = serving(&demands, &[4], 1.0, 0.0).sentence();
        assert!(whole.contains("1 partition of 4 units, which serves every"), "{whole}");
    }

    #[test]
    fn partitions_are_listed_with_the_models_that_they_serve() {
        let profile = profile();
        let demands =
            [demand("tight", &profile, Some(300.0)), demand("wide", &profile, Some(900.0))];
        let serving = serving(&demands, &[4, 1, 1], 0.0, 0.25);
        let table = serving.table().render();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "model  batch on 1 of 4  batch on 2 of 1");
        assert_eq!(lines[2], "tight                1");
        assert_eq!(lines[3], "wide                 2                1");
        let json = serving.json();
        assert_eq!(json["sizes"], json!([4, 1, 1]));
        assert_eq!(json["seats"][1], json!([{ "model": "wide", "largest_batch": 1 }]));
        assert_eq!((&json["room"], &json["lost_now"]), (&json!(0.0), &json!(0.25)));
    }
}
