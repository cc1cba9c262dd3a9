//! How the pieces of a launch run: as one batch, fused by a group, as a mix, or one after another.

use std::borrow::Borrow;
use std::sync::Arc;

use weft_device::{Buckets, Group, GroupEntry, Urgency};
use weft_ir::Value;

use crate::call::Piece;
use crate::error::InferError;
use crate::mixing::ReadyMix;
use crate::model::ModelKey;
use crate::seat::{ReadyModel, Seat};

/// What comes of a piece.
pub(crate) type Outcome = Result<Vec<Value>, InferError>;

/// Rows of a request, and the model that they are for.
pub(crate) struct Part {
    pub(crate) piece: Piece,
    pub(crate) model: ReadyModel,
}

impl Part {
    fn inputs(&self) -> Outcome {
        let Piece { call, rows } = &self.piece;
        if *rows == (0..call.rows) {
            return Ok(call.inputs.clone());
        }
        let entries = rows.start as usize..rows.end as usize;
        self.model.buckets.cut(&call.inputs, entries).map_err(Into::into)
    }

    /// The inputs of each of its rows.
    fn entries(&self) -> Result<Vec<Vec<Value>>, InferError> {
        let Piece { call, rows } = &self.piece;
        if call.rows == 1 {
            return Ok(vec![call.inputs.clone()]);
        }
        let entry = |row: u32| {
            let row = row as usize;
            self.model.buckets.cut(&call.inputs, row..row + 1).map_err(Into::into)
        };
        rows.clone().map(entry).collect()
    }
}

/// What makes parts one launch.
pub(crate) enum Together {
    /// Rows of one model are a batch; members of a group run one after another.
    AsBatch,
    /// Entries of a group.
    Fused,
    /// Batches of different models.
    Mixed(Arc<ReadyMix>),
}

impl Together {
    /// Whether there is a mix to run by.
    pub(crate) fn is_mixed(&self) -> bool {
        matches!(self, Self::Mixed(mix) if !mix.is_gone())
    }
}

/// Runs parts, all of one model, of members of one group or of a mix: what comes of each, and whether that was by the mix.
pub(crate) fn run(parts: &[Part], together: &Together, urgency: Urgency) -> (Vec<Outcome>, bool) {
    let Some(first) = parts.first() else { return (Vec::new(), false) };
    let outcomes = match (together, &first.model.seat) {
        (Together::Mixed(mix), _) => match try_mixed(mix, parts) {
            Some(outcomes) => return (outcomes, true),
            None => run_apart(mix, parts, urgency),
        },
        (_, None) => run_as_batch(&first.model.buckets, parts, urgency),
        (Together::Fused, Some(seat)) => run_fused(&*seat.group, parts),
        (_, Some(_)) => parts.iter().map(|part| run_alone(part, urgency)).collect(),
    };
    (outcomes, false)
}

/// Runs the batches of a mix one after another, where rows are missing, since their callers have gone, or where it fails, so that
/// one caller's inputs fail no one else.
fn run_apart(mix: &ReadyMix, parts: &[Part], urgency: Urgency) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = parts.iter().map(|_| None).collect();
    for &(key, _) in &mix.models {
        let own: Vec<(usize, &Part)> = of_model(parts, key).collect();
        let Some((_, first)) = own.first() else { continue };
        let callers: Vec<&Part> = own.iter().map(|(_, part)| *part).collect();
        let ran = run_as_batch(&first.model.buckets, &callers, urgency);
        own.iter().zip(ran).for_each(|((place, _), outcome)| outcomes[*place] = Some(outcome));
    }
    outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(InferError::NotServed))).collect()
}

/// The parts that are a model's, with their places.
fn of_model(parts: &[Part], key: ModelKey) -> impl Iterator<Item = (usize, &Part)> {
    parts.iter().enumerate().filter(move |(_, part)| part.piece.call.model == key)
}

/// What comes of all parts as a mix; `None` where they are not all of it, or it fails.
fn try_mixed(mix: &ReadyMix, parts: &[Part]) -> Option<Vec<Outcome>> {
    let mut batches = Vec::with_capacity(mix.models.len());
    let mut callers = Vec::with_capacity(mix.models.len());
    for &(key, count) in &mix.models {
        let rows: usize = of_model(parts, key).map(|(_, part)| part.piece.rows.len()).sum();
        let inputs: Vec<Vec<Value>> =
            of_model(parts, key).map(|(_, part)| part.inputs().ok()).collect::<Option<_>>()?;
        let (_, first) = of_model(parts, key).next().filter(|_| rows == count as usize)?;
        batches.push(first.model.buckets.join_inputs(&inputs).ok()?);
        callers.push((key, &first.model.buckets, inputs));
    }
    let outputs = mix.run(&batches).ok()?;
    let mut outcomes: Vec<Option<Outcome>> = parts.iter().map(|_| None).collect();
    for ((key, buckets, callers), outputs) in callers.iter().zip(&outputs) {
        let answers = buckets.cut_outputs(outputs, callers).ok()?;
        let own = of_model(parts, *key).zip(answers);
        own.for_each(|((place, _), answer)| outcomes[place] = Some(Ok(answer)));
    }
    outcomes.into_iter().collect()
}

fn run_alone(part: &Part, urgency: Urgency) -> Outcome {
    let outputs = part.model.buckets.run_together(&[part.inputs()?], urgency).pop();
    Ok(outputs.expect("an answer for each caller")?)
}

/// Runs what could be cut as one batch.
fn run_as_batch<P: Borrow<Part>>(buckets: &Buckets, parts: &[P], urgency: Urgency) -> Vec<Outcome> {
    let mut failed = Vec::new();
    let mut callers = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        match part.borrow().inputs() {
            Ok(inputs) => callers.push(inputs),
            Err(error) => failed.push((place, error)),
        }
    }
    let outputs = buckets.run_together(&callers, urgency).into_iter();
    let mut outcomes: Vec<_> = outputs.map(|outputs| outputs.map_err(Into::into)).collect();
    for (place, error) in failed {
        outcomes.insert(place, Err(error));
    }
    outcomes
}

/// Runs every row of what could be cut as an entry of the group, and joins the rows again.
fn run_fused(group: &dyn Group, parts: &[Part]) -> Vec<Outcome> {
    let cut: Vec<_> = parts.iter().map(Part::entries).collect();
    let entries = parts.iter().zip(&cut).flat_map(|(part, cut)| {
        let member = part.model.seat.as_deref().map(|seat: &Seat| seat.member);
        let rows = cut.as_deref().unwrap_or_default().iter();
        rows.filter_map(move |inputs| Some(GroupEntry { member: member?, inputs }))
    });
    let entries: Vec<GroupEntry<'_>> = entries.collect();
    let chunks = entries.chunks(group.entries().max(1));
    let mut answers = chunks.flat_map(|chunk| group.run(chunk)).collect::<Vec<_>>().into_iter();
    let counts: Vec<_> = cut.into_iter().map(|cut| cut.map(|rows| rows.len())).collect();
    let outcome = |(part, count): (&Part, Result<usize, InferError>)| {
        // All of them, whatever becomes of the first: the next belong to another part.
        let rows: Vec<_> = answers.by_ref().take(count?).collect();
        let mut rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
        match rows.len() {
            1 => Ok(rows.remove(0)),
            _ => Ok(part.model.buckets.join(rows)?),
        }
    };
    parts.iter().zip(counts).map(outcome).collect()
}
