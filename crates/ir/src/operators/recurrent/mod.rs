//! Recurrent layers.

mod activation;
mod gru;
mod layer;
mod lstm;
mod rnn;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("GRU", gru::build),
    Registration::standard("LSTM", lstm::build),
    Registration::standard("RNN", rnn::build),
];
