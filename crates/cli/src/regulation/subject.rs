//! A mix as it is named on the command line, while it is regulated.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weft_device::{Device, MixMember, UnitSet};
use weft_engine::regulation::{Outcome, RegulatedModel, Regulation, RegulationOptions, likeness};
use weft_ir::Value;
use weft_scheduler::MAX_UNITS;
use weft_scheduler::regulate::{Mix, Stages, Strategy};

use crate::model_file::{self, DimensionOptions};
use crate::progress;

/// A model of a mix as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct MixedModel {
    pub(crate) name: String,
    pub(crate) batch: usize,
}

/// What a mix has of a device.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) units: &'a UnitSet,
}

/// How long is searched, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    pub(crate) strategy: Strategy,
    pub(crate) rounds: usize,
}

/// A mix that is timed and searched.
pub(crate) struct Subject {
    regulation: Regulation,
    rounds: usize,
    names: Vec<String>,
    input_shapes: Vec<Vec<usize>>,
    likeness: String,
}

impl Subject {
    /// Reads models, and has them prepared for a device. That each named dimension is some model's has been looked at.
    pub(crate) fn new(
        models: &[MixedModel],
        dimensions: &DimensionOptions,
        Place { device, units }: Place<'_>,
        budget: Budget,
    ) -> Result<Self> {
        let names = names(models);
        let (mut members, mut regulated) = (Vec::new(), Vec::new());
        for (place, MixedModel { name, batch }) in models.iter().enumerate() {
            progress::show(format!("loading {name}"));
            let graph = model_file::load(&model_file::resolve(name)?)?;
            let shapes = dimensions.shapes_among(&graph, *batch);
            let shapes = shapes.with_context(|| names[place].clone())?;
            let inputs = model_file::random_values(&graph, &shapes, place as u64);
            let inputs = inputs.with_context(|| names[place].clone())?;
            members.push(MixMember { model: device.load(name, &graph)?, shapes });
            regulated.push(RegulatedModel { name: names[place].clone(), inputs });
        }
        let likeness = likeness(&members);
        let input_shapes = regulated.iter().map(input_shape).collect();
        progress::show("preparing models");
        let mix = device.mix(&members, units).context("this device runs no mixes")??;
        ensure!(
            mix.units().len() <= MAX_UNITS as usize,
            "a mix has at most {MAX_UNITS} units; give --cores"
        );
        let Budget { time, strategy, rounds } = budget;
        // Nobody else waits for the device.
        let options = RegulationOptions { time, strategy, piece: Duration::MAX };
        let regulation = Regulation::new(mix, regulated, options)?;
        Ok(Self { regulation, rounds, names, input_shapes, likeness })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The shape of each model's first input; none where it has no inputs.
    pub(crate) fn input_shapes(&self) -> &[Vec<usize>] {
        &self.input_shapes
    }

    /// What of the models decides how long they take.
    pub(crate) fn likeness(&self) -> &str {
        &self.likeness
    }

    /// How many units schedules share out.
    pub(crate) fn unit_count(&self) -> u32 {
        self.regulation.unit_count()
    }

    /// Times the steps of all models.
    pub(crate) fn timed(&mut self) -> Result<&Mix> {
        while self.regulation.timed().is_none() {
            self.advance()?;
        }
        self.regulation.timed().context("the steps are not timed")
    }

    /// Searches for a schedule, and compares it with other ways. What is known of the mix from earlier is run first, and stays
    /// where nothing faster is found.
    pub(crate) fn regulated(mut self, known: Option<Stages>) -> Result<Outcome> {
        self.timed()?;
        if let Some(known) = known {
            self.regulation.offer(known);
        }
        while self.advance()? {}
        Ok(self.regulation.finish(self.rounds, progress::show)?)
    }

    fn advance(&mut self) -> Result<bool> {
        progress::show(self.regulation.progress());
        Ok(self.regulation.advance()?)
    }
}

/// What models are called, with numbers where several are the same.
fn names(models: &[MixedModel]) -> Vec<String> {
    let names: Vec<String> =
        models.iter().map(|MixedModel { name, batch }| format!("{name} b{batch}")).collect();
    let numbered = |(place, name): (usize, &String)| {
        let count = |names: &[String]| names.iter().filter(|other| *other == name).count();
        match count(&names) {
            1 => name.clone(),
            _ => format!("{name} ({})", count(&names[..=place])),
        }
    };
    names.iter().enumerate().map(numbered).collect()
}

fn input_shape(model: &RegulatedModel) -> Vec<usize> {
    let first = model.inputs.first().and_then(Value::tensor);
    first.map_or_else(Vec::new, |tensor| tensor.shape().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_are_the_same_are_numbered() {
        let model = |&(name, batch): &(&str, usize)| MixedModel { name: name.into(), batch };
        let models: Vec<MixedModel> =
            [("a", 1), ("b", 1), ("a", 2), ("a", 1)].iter().map(model).collect();
        assert_eq!(names(&models), ["a b1 (1)", "b b1", "a b2", "a b1 (2)"]);
    }
}
