//! How the pieces of a launch run: as one batch, fused by a group, or one after another.

use weft_device::{Buckets, Group, GroupEntry, Urgency};
use weft_ir::Value;

use crate::call::Piece;
use crate::error::InferError;
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

/// Runs parts, all of one model or of members of one group: what comes of each.
pub(crate) fn run(parts: &[Part], is_fused: bool, urgency: Urgency) -> Vec<Outcome> {
    let Some(first) = parts.first() else { return Vec::new() };
    match &first.model.seat {
        None => run_as_batch(&first.model.buckets, parts, urgency),
        Some(seat) if is_fused => run_fused(&*seat.group, parts),
        Some(_) => parts.iter().map(|part| run_alone(part, urgency)).collect(),
    }
}

fn run_alone(part: &Part, urgency: Urgency) -> Outcome {
    let outputs = part.model.buckets.run_together(&[part.inputs()?], urgency).pop();
    Ok(outputs.expect("an answer for each caller")?)
}

/// Runs what could be cut as one batch.
fn run_as_batch(buckets: &Buckets, parts: &[Part], urgency: Urgency) -> Vec<Outcome> {
    let mut failed = Vec::new();
    let mut callers = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        match part.inputs() {
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
