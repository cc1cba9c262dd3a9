//! A schedule as text, as the tuning database keeps it.

use serde::{Deserialize, Serialize};
use weft_scheduler::regulate::{Form, Mix, MixModel, ScheduleError, Stage, Stages};

/// Numbers are those of models, in the order of the mix.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// What they are called, for people.
    models: Vec<String>,
    steps: Vec<usize>,
    stages: Vec<WrittenStage>,
    fillers: Vec<bool>,
    /// Until where chunks are of use is found out by timing, each time anew.
    chunks: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStage {
    units: Vec<u32>,
    until: f64,
}

/// Why a text says no stages of a mix.
#[derive(Debug, thiserror::Error)]
pub enum StagesError {
    /// It is no schedule.
    #[error("it cannot be read: {0}")]
    Unreadable(serde_json::Error),
    /// A list has more or fewer entries than the mix has models.
    #[error("it is of another number of models")]
    Models,
    /// A model has changed.
    #[error("{model} had {then} steps, and has {now}")]
    Steps {
        /// What it is called.
        model: String,
        /// When the text was written.
        then: usize,
        /// In the mix.
        now: usize,
    },
    /// There are more stages than a search makes.
    #[error("it has {stages} stages for {models} models")]
    Stages {
        /// How many there are.
        stages: usize,
        /// How many the mix has.
        models: usize,
    },
    /// A stage has more units than the mix.
    #[error("it shares out more than {0} units")]
    Units(u32),
    /// The end of a stage is no part of it.
    #[error("a stage ends after more or less than a part of it")]
    Part,
    /// It has fillers, and the device none.
    #[error("models cannot fill what others leave here")]
    Fillers,
    /// A model is not computed in so many chunks any more.
    #[error("{model} gains nothing from {chunks} chunks now")]
    Chunks {
        /// What it is called.
        model: String,
        /// How many it had.
        chunks: u32,
    },
    /// What the stages stand for is no schedule of the mix.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Stages of a mix as text.
pub fn write_stages(stages: &Stages, mix: &Mix) -> String {
    // Where files lie is nobody else's business.
    let name = |model: &MixModel| {
        let name = model.name();
        name.rsplit_once('/').map_or(name, |(_, file)| file).to_string()
    };
    let stage = |stage: &Stage| WrittenStage {
        units: stage.units.clone(),
        until: stage.until.clamp(0.0, 1.0),
    };
    let written = Written {
        models: mix.models().iter().map(name).collect(),
        steps: mix.models().iter().map(MixModel::step_count).collect(),
        stages: stages.stages.iter().map(stage).collect(),
        fillers: stages.fillers.clone(),
        chunks: stages.forms.iter().map(|form| form.chunks).collect(),
    };
    serde_json::to_string(&written).expect("numbers and names can be written")
}

/// What the models of a schedule are called; `None` where the text is none.
pub fn written_models(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok().map(|written: Written| written.models)
}

/// The stages that a text says, where they fit a mix; an error that says why not.
pub fn read_stages(text: &str, mix: &Mix) -> Result<Stages, StagesError> {
    let written: Written = serde_json::from_str(text).map_err(StagesError::Unreadable)?;
    let Written { steps, stages, fillers, chunks, .. } = written;
    let count = mix.models().len();
    let is_whole = [steps.len(), fillers.len(), chunks.len()] == [count; 3]
        && stages.iter().all(|stage| stage.units.len() == count);
    ensure(is_whole, || StagesError::Models)?;
    for (model, then) in mix.models().iter().zip(steps) {
        let (model, now) = (model.name().to_string(), model.step_count());
        ensure(then == now, || StagesError::Steps { model, then, now })?;
    }
    // The search makes no more than one for each model that may end, and one that ends before.
    ensure(stages.len() <= count + 1, || StagesError::Stages {
        stages: stages.len(),
        models: count,
    })?;
    let (most, units) = (mix.unit_count(), |stage: &WrittenStage| -> u64 {
        stage.units.iter().map(|&units| u64::from(units)).sum()
    });
    let is_within = |stage: &WrittenStage| units(stage) <= u64::from(most);
    ensure(stages.iter().all(is_within), || StagesError::Units(most))?;
    let is_part = |stage: &WrittenStage| (0.0..=1.0).contains(&stage.until);
    ensure(stages.iter().all(is_part), || StagesError::Part)?;
    ensure(mix.can_fill() || !fillers.contains(&true), || StagesError::Fillers)?;
    let form = |(model, chunks): (&MixModel, u32)| {
        let form = model.forms().find(|form| form.chunks == chunks);
        form.ok_or_else(|| StagesError::Chunks { model: model.name().to_string(), chunks })
    };
    let forms = mix.models().iter().zip(chunks).map(form).collect::<Result<Vec<Form>, _>>()?;
    let stage = |WrittenStage { units, until }: WrittenStage| Stage { units, until };
    let stages = Stages { stages: stages.into_iter().map(stage).collect(), fillers, forms };
    stages.schedule(mix).check(mix)?;
    Ok(stages)
}

fn ensure(holds: bool, error: impl FnOnce() -> StagesError) -> Result<(), StagesError> {
    if holds { Ok(()) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::Span;
    use weft_scheduler::regulate::StepTimes;

    use super::*;

    /// Models with so many steps of 8 us on one unit, on 4 units.
    fn mix(steps: &[usize]) -> Mix {
        let model = |(place, &count): (usize, &usize)| {
            let timed = [1, 4].map(|units: u32| StepTimes {
                chunks: 1,
                units,
                steps: vec![Span::from_us(8.0 / f64::from(units)); count],
                whole: Span::ZERO,
            });
            MixModel::new(&format!("folder/m{place}.onnx b1"), &timed, &[], 4).unwrap()
        };
        Mix::new(steps.iter().enumerate().map(model).collect(), 4).unwrap()
    }

    #[test]
    fn stages_are_read_as_they_were_written() {
        let mix = mix(&[5, 9]);
        let stages =
            vec![Stage { units: vec![1, 3], until: 0.35 }, Stage { units: vec![4, 0], until: 1.0 }];
        let stages = Stages::of(stages, &mix);
        let text = write_stages(&stages, &mix);
        assert_eq!(read_stages(&text, &mix).unwrap(), stages);
        assert_eq!(written_models(&text).unwrap(), ["m0.onnx b1", "m1.onnx b1"]);
    }

    #[test]
    fn what_does_not_fit_is_not_used_and_why_is_said() {
        let of = mix(&[5, 9]);
        let text = write_stages(&Stages::even(&of), &of);
        let why = |text: &str, mix: &Mix| read_stages(text, mix).unwrap_err().to_string();
        assert!(why(&text, &mix(&[5, 8])).contains("m1.onnx b1 had 9 steps, and has 8"));
        assert!(why(&text, &mix(&[5, 9, 2])).contains("another number of models"));
        for (from, to, expected) in [
            ("[2,2]", "[2,3]", "more than 4 units"),
            ("[2,2]", "[4294967295,4294967295]", "more than 4 units"),
            ("[2,2]", "[2]", "another number of models"),
            ("1.0}", "1.5}", "part of it"),
            ("1.0}", "-0.5}", "part of it"),
            ("1.0}", "1e999}", "cannot be read"),
            ("[1,1]", "[1,2]", "gains nothing from 2 chunks"),
            ("[false,", "[true,", "cannot fill"),
            ("{\"models\"", "{\"more\":1,\"models\"", "unknown field `more`"),
            ("{", "", "cannot be read"),
        ] {
            assert!(text.contains(from), "{text}");
            let found = why(&text.replacen(from, to, 1), &of);
            assert!(found.contains(expected), "{found}");
        }
        let stage = "{\"units\":[2,2],\"until\":1.0}";
        let many = text.replace(stage, &[stage; 4].join(","));
        assert!(why(&many, &of).contains("4 stages for 2 models"));
    }
}
