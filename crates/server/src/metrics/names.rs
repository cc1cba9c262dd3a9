//! Every metric: its name, its kind, and what it means.

/// How a metric grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A metric, with all its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
}

macro_rules! families {
    ($($constant:ident $kind:ident $name:literal $help:literal)*) => {
        $(
            #[doc = $help]
            pub(crate) const $constant: Family =
                Family { name: $name, kind: Kind::$kind, help: $help };
        )*

        /// All of them.
        #[cfg(test)]
        pub(crate) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    REQUESTS Counter "weft_requests_total"
        "Requests for inference, by model and outcome: ok, refused, failed or cancelled."
    REFUSALS Counter "weft_refusals_total"
        "Requests that were refused, by model and reason."
    REQUEST_DURATION Histogram "weft_request_duration_seconds"
        "From the head of a request to its answer, by model and outcome."
    QUEUE_DURATION Histogram "weft_queue_duration_seconds"
        "From when a request reached the engine until its batch began, of requests that were answered."
    BATCH_ROWS Histogram "weft_batch_rows"
        "Entries of the batches that ran."
    EXECUTION_DURATION Histogram "weft_execution_duration_seconds"
        "How long batches ran."
    FUSED_LAUNCHES Counter "weft_fused_launches_total"
        "Launches in which entries of a group ran as one, whosever they were."
    FUSED_ROWS Counter "weft_fused_rows_total"
        "Entries that ran in such launches, by model."
    GROUPS Gauge "weft_groups"
        "Groups of models that differ in their weights alone."
    GROUP_MEMBERS Gauge "weft_group_members"
        "Models that are in one of these groups."
    GROUP_EVICTIONS Counter "weft_group_evictions_total"
        "How often members of groups were evicted from the batches of the others, since they held them up, by model."
    GROUP_EVICTED_MEMBERS Gauge "weft_group_evicted_members"
        "Members of groups that are served apart from the others at present."
    MIXED_LAUNCHES Counter "weft_mixed_launches_total"
        "Launches in which batches of different models ran as one, by a schedule."
    MIXES Gauge "weft_mixes"
        "Mixes of models that are asked for together again and again, and for which there is a schedule that gains something."
    ROWS_ASKED Counter "weft_rows_total"
        "Entries of batches that requests have asked the engine for."
    OBJECTIVE_REQUESTS Counter "weft_objective_requests_total"
        "Requests with a deadline, of their model's objective or their own, that reached the engine and were not cancelled."
    OBJECTIVE_MET Counter "weft_objective_met_total"
        "Those of them that were answered before their deadline."
    QUEUE_ROWS Gauge "weft_queue_rows"
        "Entries that wait to be run."
    UNITS_HELD Gauge "weft_units_held"
        "Units of the partitions that have the model ready; a partition that models share counts for each of them."
    UNITS_ASKED Gauge "weft_units_asked"
        "Units that the load of the last 10 seconds would keep busy: entries asked for per second, times the unit-seconds that an entry is expected to take."
    BUSY_UNIT_SECONDS Counter "weft_busy_unit_seconds_total"
        "Time that batches ran, times the units of their partitions, by model and layer."
    EXPECTED_UNIT_SECONDS Counter "weft_expected_unit_seconds_total"
        "The same, as it was expected before the batches ran, over both layers."
    PREDICTION_ERROR_UNIT_SECONDS Counter "weft_prediction_error_unit_seconds_total"
        "How far apart the two were, batch by batch, whichever was longer."
    PREDICTION_ERROR Gauge "weft_prediction_error_ratio"
        "How far recent predictions of durations were off, as a ratio: the median, and the 95th percentile."
    UNITS Gauge "weft_units"
        "Units that the server computes on."
    PARTITIONS Gauge "weft_partitions"
        "Partitions that have their units, by layer."
    REPARTITIONS Counter "weft_repartitions_total"
        "How often partitions have got their units, those of the start among them."
    MODELS Gauge "weft_models"
        "Versions of models in the repository, by state."
    MODELS_MEMORY Gauge "weft_models_memory_bytes"
        "Memory of the device that the models on it take at their largest batches, and their groups and mixes."
    MEMORY_BUDGET Gauge "weft_memory_budget_bytes"
        "Memory of the device that models may take."
    CONNECTIONS Gauge "weft_connections"
        "Connections of clients that are open."
    REQUESTS_IN_FLIGHT Gauge "weft_requests_in_flight"
        "Requests for inference that were let in and have not ended."
    SPANS Counter "weft_spans_total"
        "Requests whose spans were sent to the collector, and those whose spans were dropped, by fate."
    BUILD_INFO Gauge "weft_build_info"
        "Always 1; the label says which version runs."
    RESIDENT_MEMORY Gauge "process_resident_memory_bytes"
        "Memory of the host that the process takes."
    OPEN_FILES Gauge "process_open_fds"
        "Files and sockets that the process has open."
    START_TIME Gauge "process_start_time_seconds"
        "When the server started, in seconds since 1970."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_say_what_they_count() {
        for (place, family) in ALL.iter().enumerate() {
            assert!(ALL[..place].iter().all(|other| other.name != family.name), "{}", family.name);
            assert_eq!(family.name.ends_with("_total"), family.kind == Kind::Counter);
            assert!(family.help.ends_with('.') && !family.help.contains(['\n', '\\']));
        }
    }

    #[test]
    fn every_name_is_documented() {
        let page = include_str!("../../../../docs/observing.md");
        for family in ALL {
            assert!(page.contains(&format!("`{}`", family.name)), "{}", family.name);
        }
    }
}
