//! Operators that combine the elements along axes.

mod arg;
mod cumulative;
mod fold;
mod lines;
mod reduce;
mod softmax;

pub use arg::ArgReduce;
pub use cumulative::Cumulative;
pub use reduce::{Reduce, ReduceAxes, ReduceFunction};
pub use softmax::{Hardmax, LogSoftmax, Softmax};

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("ArgMax", arg::build),
    Registration::standard("ArgMin", arg::build),
    Registration::standard("CumProd", cumulative::build),
    Registration::standard("CumSum", cumulative::build),
    Registration::standard("Hardmax", softmax::build_hard),
    Registration::standard("LogSoftmax", softmax::build_log),
    Registration::standard("ReduceL1", reduce::build),
    Registration::standard("ReduceL2", reduce::build),
    Registration::standard("ReduceLogSum", reduce::build),
    Registration::standard("ReduceLogSumExp", reduce::build),
    Registration::standard("ReduceMax", reduce::build),
    Registration::standard("ReduceMean", reduce::build),
    Registration::standard("ReduceMin", reduce::build),
    Registration::standard("ReduceProd", reduce::build),
    Registration::standard("ReduceSum", reduce::build),
    Registration::standard("ReduceSumSquare", reduce::build),
    Registration::standard("Softmax", softmax::build),
];
