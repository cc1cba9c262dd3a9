//! A partition plan in words, tables and JSON.

use serde_json::{Value, json};
use weft_scheduler::Span;
use weft_scheduler::plan::{ModelDemand, PartitionPlan, Shortfall, ShortfallReason};

use super::label;
use crate::table::Table;

/// A plan and what it was made for.
pub(super) struct Report<'a> {
    pub(super) plan: &'a PartitionPlan,
    pub(super) demands: &'a [ModelDemand<'a>],
    pub(super) units: u32,
}

fn ms(span: Span) -> String {
    format!("{:.2}", span.us() * 1e-3)
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Report<'_> {
    /// One row for each model in each partition.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new([
            "partition",
            "units",
            "model",
            "batch",
            "rate/s",
            "busy %",
            "latency ms",
            "slo ms",
        ]);
        for (number, partition) in (1..).zip(&self.plan.partitions) {
            let predicted = partition.predicted_latencies(self.demands);
            for (share, predicted) in partition.shares.iter().zip(predicted) {
                let demand = &self.demands[share.model.index()];
                table.row([
                    format!("P{number}"),
                    partition.units.to_string(),
                    demand.name.clone(),
                    share.batch.to_string(),
                    label::rate(share.rate_per_s).trim_end_matches("/s").to_string(),
                    format!("{:.1}", share.busy * 100.0),
                    ms(predicted),
                    demand.slo.map_or("-".into(), |slo| ms(slo.latency)),
                ]);
            }
        }
        table
    }

    /// What is left, who lives on it, who asks for nothing, and who falls short.
    pub(super) fn sentences(&self) -> Vec<String> {
        let (left, units) = (self.plan.best_effort_units, self.units);
        let left = match left {
            0 => "nothing is left for best effort".to_string(),
            1 => format!("1 of {units} units is left for best effort"),
            _ => format!("{left} of {units} units are left for best effort"),
        };
        let best_effort = self.names(|demand| demand.slo.is_none());
        let mut sentences = vec![match best_effort.is_empty() {
            true => left,
            false => format!("{left}: {}", best_effort.join(", ")),
        }];
        let idle = self.names(|demand| demand.slo.is_some() && demand.promised_per_s() == 0.0);
        if !idle.is_empty() {
            sentences.push(format!("nothing is asked of {}", idle.join(", ")));
        }
        sentences.extend(self.plan.shortfalls.iter().map(|shortfall| self.words(shortfall)));
        sentences
    }

    /// Whether every objective holds, in one line.
    pub(super) fn verdict(&self) -> String {
        let short = self.plan.shortfalls.len();
        let asking = self.demands.iter().filter(|demand| demand.promised_per_s() > 0.0).count();
        match short {
            0 => "every SLO holds".to_string(),
            1 => format!("does not fit: 1 of {asking} models gets less than it asks for"),
            _ => format!("does not fit: {short} of {asking} models get less than they ask for"),
        }
    }

    fn names(&self, is_meant: impl Fn(&ModelDemand<'_>) -> bool) -> Vec<&str> {
        let meant = self.demands.iter().filter(|demand| is_meant(demand));
        meant.map(|demand| demand.name.as_str()).collect()
    }

    fn words(&self, shortfall: &Shortfall) -> String {
        let demand = &self.demands[shortfall.model.index()];
        let remedy = match shortfall.reason {
            ShortfallReason::NotEnoughUnits { units_missing } => {
                format!("{units_missing} more unit{} would make it fit", plural(units_missing))
            }
            ShortfallReason::NotEnoughMemory { bytes_missing } => {
                format!(
                    "{:.0} MB more memory would make it fit",
                    (bytes_missing as f64 * 1e-6).ceil()
                )
            }
            ShortfallReason::SloTooTight { least_latency } => format!(
                "one item takes {least_latency} alone on the whole device, which leaves nothing of an SLO of {}",
                demand.slo.map_or(Span::ZERO, |slo| slo.latency)
            ),
        };
        format!(
            "{} gets {} of {} requests/s: {remedy}",
            demand.name,
            label::rate(shortfall.given_per_s).trim_end_matches("/s"),
            label::rate(shortfall.asked_per_s).trim_end_matches("/s"),
        )
    }

    /// All of it for machines.
    pub(super) fn json(&self, workload: &str, device: &str) -> Value {
        let name = |model: weft_scheduler::ModelId| &self.demands[model.index()].name;
        let partitions = self.plan.partitions.iter().map(|partition| {
            let predicted = partition.predicted_latencies(self.demands);
            let shares = partition.shares.iter().zip(predicted).map(|(share, predicted)| {
                let slo = self.demands[share.model.index()].slo;
                json!({
                    "model": name(share.model),
                    "batch": share.batch,
                    "rate_per_s": share.rate_per_s,
                    "busy": share.busy,
                    "predicted_latency_us": predicted.us(),
                    "slo_us": slo.map(|slo| slo.latency.us()),
                    "percentile": slo.map(|slo| slo.percentile),
                })
            });
            json!({ "units": partition.units, "shares": shares.collect::<Vec<_>>() })
        });
        let shortfalls = self.plan.shortfalls.iter().map(|shortfall| {
            let (reason, missing) = match shortfall.reason {
                ShortfallReason::NotEnoughUnits { units_missing } => {
                    ("units", json!({ "units": units_missing }))
                }
                ShortfallReason::NotEnoughMemory { bytes_missing } => {
                    ("memory", json!({ "bytes": bytes_missing }))
                }
                ShortfallReason::SloTooTight { least_latency } => {
                    ("slo", json!({ "least_latency_us": least_latency.us() }))
                }
            };
            json!({
                "model": name(shortfall.model),
                "asked_per_s": shortfall.asked_per_s,
                "given_per_s": shortfall.given_per_s,
                "reason": reason,
                "needed": missing,
            })
        });
        json!({
            "workload": workload,
            "device": device,
            "units": self.units,
            "fits": self.plan.shortfalls.is_empty(),
            "partitions": partitions.collect::<Vec<_>>(),
            "best_effort_units": self.plan.best_effort_units,
            "best_effort_models": self.names(|demand| demand.slo.is_none()),
            "shortfalls": shortfalls.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::plan::{DeviceFacts, Effort, Slo, plan_partitions};
    use weft_scheduler::{Profile, ProfilePoint};

    use super::*;

    fn profile() -> Profile {
        let point = |units: u32| ProfilePoint {
            batch: 1,
            units,
            latency: Span::from_us(1000.0 / f64::from(units)),
            dram_bytes: 0.0,
        };
        Profile::new(&[point(1), point(4)], 50_000_000).unwrap()
    }

    fn demand<'a>(
        name: &str,
        profile: &'a Profile,
        rate_per_s: f64,
        slo_us: f64,
    ) -> ModelDemand<'a> {
        let slo = (slo_us > 0.0).then(|| Slo { percentile: 0.99, latency: Span::from_us(slo_us) });
        ModelDemand {
            name: name.into(),
            profile,
            slowdown: 1.0,
            slo,
            rate_per_s,
            weight: 1.0,
            max_batch: 1,
        }
    }

    fn check(demands: &[ModelDemand<'_>], memory_bytes: u64, sentences: &[&str], verdict: &str) {
        let plan =
            plan_partitions(demands, &DeviceFacts { units: 4, memory_bytes }, Effort::Thorough);
        let report = Report { plan: &plan, demands, units: 4 };
        assert_eq!(report.sentences(), sentences);
        assert_eq!(report.verdict(), verdict);
        let json = report.json("w", "d");
        assert_eq!(json["fits"], plan.shortfalls.is_empty());
        for share in json["partitions"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|p| p["shares"].as_array().unwrap())
        {
            assert!(share["predicted_latency_us"].as_f64() <= share["slo_us"].as_f64(), "{share}");
        }
        let rows = report.table().render().lines().count() - 2;
        assert_eq!(
            rows,
            plan.partitions.iter().map(|partition| partition.shares.len()).sum::<usize>()
        );
    }

    #[test]
    fn what_is_left_and_what_falls_short_is_said_in_words() {
        let profile = profile();
        let model = |name: &str, rate, slo_us| demand(name, &profile, rate, slo_us);
        check(
            &[model("a", 100.0, 9000.0), model("b", 5.0, 0.0), model("c", 0.0, 9000.0)],
            1 << 30,
            &["3 of 4 units are left for best effort: b", "nothing is asked of c"],
            "every SLO holds",
        );
        check(
            &[model("a", 100.0, 9000.0), model("b", 50.0, 9000.0), model("c", 50.0, 200.0)],
            60_000_000,
            &[
                "3 of 4 units are left for best effort",
                "b gets 0 of 50 requests/s: 40 MB more memory would make it fit",
                "c gets 0 of 50 requests/s: one item takes 250.0 us alone on the whole device, which leaves nothing of \
                 an SLO of 200.0 us",
            ],
            "does not fit: 2 of 3 models get less than they ask for",
        );
        let plan = plan_partitions(
            &[model("a", 9000.0, 9000.0)],
            &DeviceFacts { units: 4, memory_bytes: 1 << 30 },
            Effort::Thorough,
        );
        let demands = [model("a", 9000.0, 9000.0)];
        let report = Report { plan: &plan, demands: &demands, units: 4 };
        let sentences = report.sentences().join("\n");
        assert!(sentences.contains("nothing is left for best effort\na gets 3"), "{sentences}");
        assert!(sentences.contains(" more units would make it fit"), "{sentences}");
    }
}
