//! Signal processing: Fourier transforms, windows and filter banks.

mod dft;
mod fourier;
mod mel_weight_matrix;
mod scalar;
mod stft;
mod window;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("BlackmanWindow", window::build_blackman),
    Registration::standard("DFT", dft::build),
    Registration::standard("HammingWindow", window::build_hamming),
    Registration::standard("HannWindow", window::build_hann),
    Registration::standard("MelWeightMatrix", mel_weight_matrix::build),
    Registration::standard("STFT", stft::build),
];
