//! The profiles that come with Weft can be used as they are.

use std::fs;
use std::path::Path;

use weft_scheduler::{ProfileSet, Span};

fn shipped(file: &str) -> ProfileSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles").join(file);
    let text = fs::read_to_string(&path).unwrap();
    ProfileSet::from_toml(&text).unwrap_or_else(|problems| panic!("{file}:\n{problems}"))
}

#[test]
fn every_shipped_file_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert!(files.contains(&"h200.toml".to_string()), "{files:?}");
    for file in files.iter().filter(|file| file.ends_with(".toml")) {
        assert!(!shipped(file).profiles.is_empty(), "{file}");
    }
}

fn assert_knees(set: &ProfileSet, knees: &[(&str, u32, u32)]) {
    for &(model, batch, knee) in knees {
        assert_eq!(set.profiles[model].knee(batch, 0.1), knee, "{model} at batch {batch}");
    }
}

#[test]
fn the_h200_has_what_was_measured_of_wefts_kernels() {
    let set = shipped("h200.toml");
    assert_eq!((set.device.units, set.profiles.len()), (16, 20));
    assert!((4.2e12..4.3e12).contains(&set.device.bandwidth_bytes_per_s));
    for (model, batch, units, us) in [
        ("resnet50", 1, 16, 268.02),
        ("resnet50", 1, 1, 578.601),
        ("vgg16", 8, 16, 698.502),
        ("bert_base", 32, 1, 24_833.262),
    ] {
        assert_eq!(set.profiles[model].latency(batch, units), Span::from_us(us), "{model}");
    }
    assert_knees(
        &set,
        &[
            ("resnet50", 1, 4),
            ("resnet50", 32, 16),
            ("vgg16", 1, 16),
            ("mobilenet_v3_large", 1, 2),
            ("bert_base", 1, 4),
            ("minilm_l6", 1, 2),
        ],
    );
}

#[test]
fn the_h200_has_the_knees_that_were_measured_of_pytorch() {
    let set = shipped("h200-pytorch.toml");
    assert_eq!((set.device.units, set.device.bandwidth_bytes_per_s), (16, 4.8e12));
    assert_eq!(set.profiles["vgg16"].latency(8, 16), Span::from_us(1210.0));
    assert_knees(
        &set,
        &[
            ("resnet50", 1, 4),
            ("resnet50", 32, 16),
            ("vgg16", 1, 16),
            ("mobilenet_v3_large", 1, 1),
            ("bert_base", 1, 4),
        ],
    );
}
