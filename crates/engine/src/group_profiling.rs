//! Measuring how long entries of a group take in one launch.

use std::iter;
use std::sync::Arc;

use weft_device::{
    Device, DeviceError, Group, GroupEntry, LoadedModel, NewGroup, Partition, UnitSet, bucket_sizes,
};
use weft_ir::{Dimensions, Value};
use weft_scheduler::{Profile, ProfilePoint};

use crate::beside;
use crate::moments::{FEWEST_MOMENTS, Moments};
use crate::profiling::{
    LONGEST_RUN, Profiling, ProfilingError, dram_bytes, first_pass_share, inputs, median_run, span,
};
use crate::seat::Seat;

/// Measures a group of models that differ in their weights alone, at every power of two of units and of entries up to
/// [`Profiling::largest_batch`]. The profile's memory is what the group takes besides what its members take. Entries are the
/// members' in turns, so that weights differ as they will. `progress` is told the share that is done.
pub fn measure_group(
    device: &dyn Device,
    members: &[Arc<dyn LoadedModel>],
    profiling: &Profiling<'_>,
    mut progress: impl FnMut(f64),
) -> Result<Profile, ProfilingError> {
    let Some(first) = members.first() else {
        return Err(DeviceError::Failed("a group has at least one member".into()).into());
    };
    let one = Dimensions { batch: 1, ..profiling.dimensions.clone() };
    let inputs = inputs(&**first, &one)?;
    let shapes = first.graph().input_shapes(&one)?;
    let unit_counts = bucket_sizes(profiling.units.len());
    let mut counts = bucket_sizes(profiling.largest_batch.max(1) as usize);
    let most = *counts.last().expect("there is one at least");
    let mut points: Vec<ProfilePoint> = Vec::new();
    let mut memory_bytes = 0;
    for (round, &unit_count) in unit_counts.iter().enumerate() {
        let units: UnitSet = profiling.units.iter().take(unit_count).collect();
        let partition = device.partition(&units)?;
        let alone = partition.prepare(&**first, &shapes)?;
        let report = alone.report();
        let seats = seats(&*partition, members, &shapes, most)?;
        memory_bytes = memory_bytes.max(seats[0].group.memory_bytes());
        let time = profiling.time_per_case / FEWEST_MOMENTS as u32;
        let timed = |count| median_run(|| run(&seats, &inputs, count), time);
        let mut cases: Vec<(usize, Moments)> = Vec::new();
        for (place, count) in counts.clone().into_iter().enumerate() {
            let mut moments = Moments::default();
            moments.push(timed(count)?);
            let is_long = moments.shortest() > Some(LONGEST_RUN);
            cases.push((count, moments));
            let done = round * counts.len() + place + 1;
            progress(first_pass_share(done, unit_counts.len() * counts.len()));
            // Fewer units come first and take longest, so that what is left out there is left out everywhere.
            if is_long {
                counts.truncate(place + 1);
                break;
            }
        }
        while cases.iter().any(|(_, moments)| moments.is_open()) {
            for (count, moments) in cases.iter_mut().filter(|(_, moments)| moments.is_open()) {
                moments.push(timed(*count)?);
            }
        }
        points.extend(cases.iter().map(|(count, moments)| ProfilePoint {
            batch: *count as u32,
            units: unit_count as u32,
            latency: span(moments.shortest().unwrap_or_default()),
            dram_bytes: dram_bytes(report) * *count as f64,
        }));
    }
    progress(1.0);
    points.retain(|point| counts.contains(&(point.batch as usize)));
    Ok(Profile::new(&points, memory_bytes as u64)?)
}

/// A group of the members, no more than can be in one run.
fn seats(
    partition: &dyn Partition,
    members: &[Arc<dyn LoadedModel>],
    shapes: &[Vec<usize>],
    most: usize,
) -> Result<Vec<Seat>, DeviceError> {
    let made = partition.prepare_group(&*members[0], shapes, most);
    let NewGroup { group, first } =
        made.unwrap_or_else(|| Err(DeviceError::Failed("the device has no groups".into())))?;
    let group: Arc<dyn Group> = Arc::from(group);
    let first = Seat { group: Arc::clone(&group), member: first };
    let others: Vec<_> = members.iter().take(most).skip(1).cloned().collect();
    let join = move |model: Arc<dyn LoadedModel>| Seat::in_group(group.clone(), &*model);
    let others = beside::spawn_all("weft-join", beside::thread_count(), others, join)
        .map_err(|error| DeviceError::Failed(format!("cannot start a thread: {error}")))?;
    iter::once(Ok(first)).chain(others).collect()
}

fn run(seats: &[Seat], inputs: &[Value], count: usize) -> Result<(), DeviceError> {
    let members = seats.iter().map(|seat| seat.member).cycle();
    let entries: Vec<GroupEntry<'_>> =
        members.take(count).map(|member| GroupEntry { member, inputs }).collect();
    seats[0].group.run(&entries).into_iter().try_for_each(|answer| answer.map(drop))
}
