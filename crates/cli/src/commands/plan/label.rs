//! Labels that fit where they stand.

use super::mosaic::Band;

/// Names are cut with a sign for what is missing only where enough of them is left.
const SHORTEST_CUT: usize = 4;

/// A name in at most so many characters. What tells copies apart stands at the end, so a number there stays.
pub(super) fn abbreviated(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_string();
    }
    let digits = name.chars().rev().take_while(char::is_ascii_digit).count();
    let digits = if digits < width { digits } else { 0 };
    let room = width - digits;
    let (kept, sign) = if room >= SHORTEST_CUT { (room - 1, "…") } else { (room, "") };
    let head: String = name.chars().take(kept).collect();
    let tail: String = name.chars().skip(length - digits).collect();
    format!("{}{sign}{tail}", head.trim_end())
}

/// The first of several texts that fits; nothing where none does.
pub(super) fn fitting(texts: &[String], width: usize) -> Option<&String> {
    texts.iter().find(|text| text.chars().count() <= width)
}

/// A rate in a few characters.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0/s".into(),
        ..9.95 => format!("{per_s:.1}/s"),
        ..9_950.0 => format!("{per_s:.0}/s"),
        _ => format!("{:.1}k/s", per_s / 1e3),
    }
}

/// The lines of a band's label, from the top: as many and as long as fit.
pub(super) fn lines(band: &Band, width: usize, height: usize) -> Vec<String> {
    if width == 0 || height == 0 {
        return Vec::new();
    }
    let Band { name, batch, rate_per_s, busy, .. } = band;
    let rate = rate(*rate_per_s);
    let batch = batch.map(|batch| format!("b{batch}"));
    let both = batch.as_ref().map(|batch| format!("{batch} {rate}"));
    if height == 1 {
        let whole = both.map(|both| format!("{name} {both}"));
        let texts: Vec<String> =
            whole.into_iter().chain([format!("{name} {rate}"), name.clone()]).collect();
        return vec![fitting(&texts, width).cloned().unwrap_or_else(|| abbreviated(name, width))];
    }
    let details: Vec<String> = both.into_iter().chain([rate]).chain(batch).collect();
    let mut lines = vec![abbreviated(name, width)];
    lines.extend(fitting(&details, width).cloned());
    lines.extend(fitting(&[format!("{:.0} % busy", busy * 100.0)], width).cloned());
    lines.truncate(height);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_numbers_at_their_end_stay() {
        for (name, width, short) in [
            ("vgg16", 5, "vgg16"),
            ("resnet50", 5, "res50"),
            ("resnet50", 6, "res…50"),
            ("mobilenet_v3_large", 8, "mobilen…"),
            ("bert_base", 3, "ber"),
            ("net 117", 4, "n117"),
            ("net 117", 3, "net"),
            ("net 117", 1, "n"),
            ("größe", 4, "grö…"),
        ] {
            assert_eq!(abbreviated(name, width), short, "{name} in {width}");
        }
    }

    #[test]
    fn labels_never_overflow_and_always_name_the_model() {
        let band = Band {
            name: "mobilenet_v3_large 12".into(),
            colour: 0,
            batch: Some(32),
            rate_per_s: 12_345.6,
            busy: 0.456,
        };
        for width in 1..40 {
            for height in 1..6 {
                let lines = lines(&band, width, height);
                assert!((1..=height).contains(&lines.len()), "{width} x {height}: {lines:?}");
                assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
                assert!(lines[0].starts_with('m'), "{lines:?}");
            }
        }
        assert_eq!(lines(&band, 40, 1), ["mobilenet_v3_large 12 b32 12.3k/s"]);
        assert_eq!(lines(&band, 30, 3), ["mobilenet_v3_large 12", "b32 12.3k/s", "46 % busy"]);
        assert_eq!(lines(&band, 6, 2), ["mob…12", "b32"]);
    }

    #[test]
    fn rates_are_short() {
        let rates = [0.0, 0.25, 9.96, 400.4, 12_000.0].map(rate);
        assert_eq!(rates, ["0/s", "0.2/s", "10/s", "400/s", "12.0k/s"]);
    }
}
