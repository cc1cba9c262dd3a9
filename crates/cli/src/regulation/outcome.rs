//! What became of a mix, for machines.

use serde_json::{Map, Value as Json, json};
use weft_engine::regulation::{Outcome, Way};
use weft_scheduler::Span;
use weft_scheduler::regulate::{Form, MixModel, Segment};

/// What was found, for machines.
pub(crate) fn outcome_json(outcome: &Outcome) -> Json {
    let time = |way: Way| (outcome.name(way).replace([' ', '-'], "_"), json!(outcome.time_us(way)));
    let times: Map<String, Json> = outcome.ways().map(time).collect();
    let shared = outcome.lockstep.as_ref().map(|lockstep| {
        json!({
            "launches": lockstep.sets.len(),
            "of_several_models": lockstep.shared_count(),
            "predicted_us": lockstep.makespan.us(),
        })
    });
    let segment = |(segment, (begin, end)): (&Segment, &(Span, Span))| {
        json!({
            "model": segment.model,
            "first_step": segment.steps.start,
            "end_step": segment.steps.end,
            "units": segment.units.iter().collect::<Vec<_>>(),
            "chunks": segment.form.chunks,
            "chunks_until_step": segment.form.until,
            "fills": segment.is_filler,
            "begin_us": begin.us(),
            "end_us": end.us(),
        })
    };
    let segments = outcome.schedule.segments.iter().zip(&outcome.timeline.segments).map(segment);
    let history = outcome.history.iter().map(|(at, us)| json!([at.as_secs_f64(), us]));
    let units = 1..=outcome.mix.unit_count();
    let form = |(model, form): (&MixModel, Form)| {
        let times_us: Vec<f64> = units.clone().map(|units| model.time(form, units).us()).collect();
        json!({"chunks": form.chunks, "until_step": form.until, "us_by_units": times_us})
    };
    let model = |model: &MixModel| {
        let forms: Vec<Json> = model.forms().map(|of| form((model, of))).collect();
        json!({"name": model.name(), "steps": model.step_count(), "forms": forms})
    };
    json!({
        "alone": outcome.mix.models().iter().map(model).collect::<Vec<_>>(),
        "bound_us": outcome.mix.bound().us(),
        "times_us": times,
        "best": outcome.name(outcome.best()),
        "shared_launches": shared,
        "coordinate_descent_us": outcome.coordinate_descent_us,
        "predicted_us": outcome.predicted_us,
        "idle_unit_us": outcome.timeline.idle_unit_us,
        "evaluated": outcome.evaluated,
        "measured": outcome.measured,
        "profiling_s": outcome.profiling.as_secs_f64(),
        "settled_s": outcome.settled().as_secs_f64(),
        "segments": segments.collect::<Vec<_>>(),
        "history": history.collect::<Vec<_>>(),
    })
}
