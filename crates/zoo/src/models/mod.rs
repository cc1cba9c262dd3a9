//! The models, one file per family.

mod alexnet;
mod bert;
mod densenet;
mod efficientnet;
mod gpt2;
mod inception;
mod mobilenet_v2;
mod mobilenet_v3;
mod recurrent;
mod resnet;
mod shufflenet;
mod squeezenet;
mod unet;
mod vgg;
mod vit;
mod yolo;

use crate::entry::Entry;

pub(crate) const FAMILIES: &[&[Entry]] = &[
    alexnet::ENTRIES,
    vgg::ENTRIES,
    resnet::ENTRIES,
    mobilenet_v2::ENTRIES,
    mobilenet_v3::ENTRIES,
    squeezenet::ENTRIES,
    shufflenet::ENTRIES,
    densenet::ENTRIES,
    inception::ENTRIES,
    efficientnet::ENTRIES,
    unet::ENTRIES,
    yolo::ENTRIES,
    bert::ENTRIES,
    vit::ENTRIES,
    gpt2::ENTRIES,
    recurrent::ENTRIES,
];

/// The number of classes of the image classifiers, and of the tiny ones.
const CLASSES: usize = 1000;
const TINY_CLASSES: usize = 10;

/// A multiple of 8 near `channels`, and not under nine tenths of it: how MobileNets round.
fn divisible(channels: f32) -> usize {
    let rounded = ((channels + 4.0) as usize / 8 * 8).max(8);
    if (rounded as f32) < 0.9 * channels { rounded + 8 } else { rounded }
}

#[cfg(test)]
mod tests {
    #[test]
    fn channels_are_rounded_as_mobilenets_do() {
        for (channels, rounded) in
            [(3.0, 8), (8.0, 8), (18.0, 24), (16.0, 16), (30.0, 32), (168.0, 168)]
        {
            assert_eq!(super::divisible(channels), rounded, "{channels}");
        }
    }
}
