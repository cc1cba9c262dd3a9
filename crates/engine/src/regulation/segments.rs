//! A schedule as the device knows it.

use weft_device::{MixChunks, MixSegment, UnitSet};
use weft_scheduler::UnitMask;
use weft_scheduler::regulate::{Form, MixSchedule, Segment};

/// The segments of a schedule, on what each of its units is on the device.
pub(super) fn segments(
    schedule: &MixSchedule,
    units: &[UnitSet],
    can_fill: bool,
) -> Vec<MixSegment> {
    // Units that run one thing at a time go through their segments in order without being told, and each joins the next as
    // soon as it is free.
    let waits = match can_fill {
        true => schedule.dependencies(),
        false => vec![Vec::new(); schedule.segments.len()],
    };
    let segment = |(segment, waits): (&Segment, Vec<usize>)| MixSegment {
        model: segment.model,
        steps: segment.steps.clone(),
        chunks: chunks(segment, units),
        units: device_units(segment.units, units),
        is_filler: segment.is_filler,
        waits,
    };
    schedule.segments.iter().zip(waits).map(segment).collect()
}

/// What units of schedules are on the device.
pub(super) fn device_units(mask: UnitMask, units: &[UnitSet]) -> UnitSet {
    mask.iter().flat_map(|unit| units[unit as usize].iter()).collect()
}

fn chunks(segment: &Segment, units: &[UnitSet]) -> Option<MixChunks> {
    let shares = segment.shares().into_iter().map(|share| device_units(share, units));
    let shares: Vec<UnitSet> = shares.collect();
    let Form { chunks, until } = segment.form;
    (!shares.is_empty()).then_some(MixChunks { count: chunks as usize, until, shares })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(units: &[usize]) -> UnitSet {
        units.iter().copied().collect()
    }

    #[test]
    fn units_are_those_of_the_device_and_waits_are_said_where_units_are_shared() {
        let units = [set(&[4]), set(&[6]), set(&[8, 9])];
        let on = |model, first, count, form| {
            let units = UnitMask::range(first, count);
            Segment { model, steps: 0..3, form, units, is_filler: false }
        };
        let chunked = Form { chunks: 2, until: 2 };
        let schedule =
            MixSchedule { segments: vec![on(0, 1, 2, chunked), on(1, 0, 3, Form::WHOLE)] };
        let found = segments(&schedule, &units, true);
        assert_eq!([&found[0].units, &found[1].units], [&set(&[6, 8, 9]), &set(&[4, 6, 8, 9])]);
        let shares = vec![set(&[6]), set(&[8, 9])];
        assert_eq!(found[0].chunks, Some(MixChunks { count: 2, until: 2, shares }));
        assert_eq!(found[1].chunks, None);
        assert_eq!([&found[0].waits, &found[1].waits], [&vec![], &vec![0]]);
        assert!(segments(&schedule, &units, false).iter().all(|segment| segment.waits.is_empty()));
    }
}
