//! Sequences and optionals.

mod access;
mod concat_from_sequence;
mod construct;
mod optional;
mod split_to_sequence;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("ConcatFromSequence", concat_from_sequence::build),
    Registration::standard("Optional", optional::build),
    Registration::standard("OptionalGetElement", optional::build),
    Registration::standard("OptionalHasElement", optional::build),
    Registration::standard("SequenceAt", access::build),
    Registration::standard("SequenceConstruct", construct::build_construct),
    Registration::standard("SequenceEmpty", construct::build_empty),
    Registration::standard("SequenceErase", access::build),
    Registration::standard("SequenceInsert", access::build),
    Registration::standard("SequenceLength", access::build),
    Registration::standard("SplitToSequence", split_to_sequence::build),
];
