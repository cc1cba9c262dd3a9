//! Operators with bodies: branches, loops and maps.

mod batched_scan;
mod body;
mod branch;
mod repeat;
mod scan;
mod sequence_map;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("If", branch::build),
    Registration::standard("Loop", repeat::build),
    Registration::standard("Scan", scan::build),
    Registration::standard("SequenceMap", sequence_map::build),
];
