use super::*;

/// What the kernel computes of one image in one channel block, by runs of neighbours in a region, with what lies outside of
/// the image as zero; NaN where nothing is stored.
fn computed(conv: &WindowConv, tile: &Tile, pixel: &dyn Fn(i64, i64) -> f64) -> Vec<f64> {
    let Image { size, output, kernel, pads_begin, .. } = conv.image;
    let inside = |at: i64, side: usize| (0..side as i64).contains(&at);
    let mut results = vec![f64::NAN; output[0] * output[1]];
    let [tile_rows, tile_columns] = tile.tiles(conv);
    let [_, pitch] = tile.region(conv);
    for number in 0..tile_rows * tile_columns {
        let first_x = number % tile_columns * tile.columns;
        let first_y = number / tile_columns * tile.rows * tile.pixel_groups;
        let copied = |place: usize| {
            let y = (first_y + place / pitch) as i64 - pads_begin[0] as i64;
            let x = (first_x + place % pitch) as i64 - pads_begin[1] as i64;
            if inside(y, size[0]) && inside(x, size[1]) { pixel(y, x) } else { 0.0 }
        };
        for group in 0..tile.pixel_groups {
            for at in 0..tile.run(conv) {
                let [y, x] = [at / pitch, at % pitch];
                let [row, column] = [first_y + group * tile.rows + y, first_x + x];
                let is_stored = y < tile.rows && x < tile.columns;
                if !is_stored || row >= output[0] || column >= output[1] {
                    continue;
                }
                let start = group * tile.rows * pitch + at;
                let taps = (0..kernel[0]).flat_map(|dy| (0..kernel[1]).map(move |dx| (dy, dx)));
                let sum = taps.map(|(dy, dx)| copied(start + dy * pitch + dx)).sum();
                let result = &mut results[row * output[1] + column];
                assert!(result.is_nan(), "pixel {row} {column} is stored twice by {tile:?}");
                *result = sum;
            }
        }
    }
    results
}

#[test]
fn runs_meet_the_pixels_of_their_windows() {
    let pixel = |y: i64, x: i64| (y * 131 + x * 7) as f64;
    let shapes = [([13, 19], [3, 3], [1, 1]), ([5, 9], [5, 3], [2, 0]), ([7, 7], [1, 3], [0, 1])];
    for (size, kernel, pads_begin) in shapes {
        let output = [0, 1].map(|axis: usize| size[axis] + 2 * pads_begin[axis] + 1 - kernel[axis]);
        let image = Image { size, output, kernel, pads_begin, ..example(1, 8, 64, 64).image };
        let conv = WindowConv { image, ..example(1, 8, 64, 128) };
        let mut expected = Vec::new();
        for row in 0..output[0] as i64 {
            for column in 0..output[1] as i64 {
                let [y, x] = [row - pads_begin[0] as i64, column - pads_begin[1] as i64];
                let mut sum = 0.0;
                for (dy, dx) in (0..kernel[0] as i64)
                    .flat_map(|dy| (0..kernel[1] as i64).map(move |dx| (dy, dx)))
                {
                    let is_inside = (0..size[0] as i64).contains(&(y + dy))
                        && (0..size[1] as i64).contains(&(x + dx));
                    sum += if is_inside { pixel(y + dy, x + dx) } else { 0.0 };
                }
                expected.push(sum);
            }
        }
        let tiles: Vec<Tile> = Tile::sensible(&conv).collect();
        assert!(tiles.len() >= 4, "{tiles:?}");
        for tile in tiles {
            assert_eq!(computed(&conv, &tile, &pixel), expected, "{tile:?} of {:?}", conv.image);
        }
    }
}

#[test]
fn pixels_that_are_pooled_lie_in_one_tile() {
    for side in [14, 28, 56, 112, 224, 30] {
        let conv = WindowConv { is_pooled: true, ..example(2, side, 64, 64) };
        let tiles: Vec<Tile> = Tile::sensible(&conv).collect();
        assert!(!tiles.is_empty(), "{side}");
        assert!(tiles.iter().all(|tile| tile.rows % 2 == 0 && tile.columns % 2 == 0), "{tiles:?}");
    }
}

#[test]
fn runs_stay_within_their_regions() {
    for conv in [example(1, 56, 64, 64), example(8, 14, 512, 512), example(2, 13, 128, 64)] {
        for tile in Tile::sensible(&conv) {
            let [rows, pitch] = tile.region(&conv);
            let last = ((tile.pixel_groups - 1) * tile.rows + 2) * pitch + 2 + tile.run(&conv);
            assert!(last * ROW_BYTES <= tile.region_bytes(&conv), "{tile:?}");
            assert!(rows <= 256 && pitch <= 256 && tile.run(&conv) <= 256, "{tile:?}");
        }
    }
}

#[test]
fn what_the_kernel_does_not_compute_is_refused() {
    let conv = example(1, 56, 64, 64);
    assert!(conv.is_supported(Chip::H200));
    assert!(!conv.is_supported(Chip { capability: 100, ..Chip::H200 }));
    assert!(!WindowConv { precision: Precision::Tf32, ..conv.clone() }.is_supported(Chip::H200));
    assert!(!WindowConv { filters: 96, ..conv.clone() }.is_supported(Chip::H200));
    let pooled = WindowConv { is_pooled: true, ..conv.clone() };
    assert!(pooled.is_supported(Chip::H200));
    assert!(!WindowConv { has_residual: true, ..pooled }.is_supported(Chip::H200));
    let image = conv.image;
    for image in [
        Image { channels: 96, ..image },
        Image { strides: [2, 1], ..image },
        Image { dilations: [1, 2], ..image },
        Image { kernel: [1, 1], ..image },
    ] {
        assert!(!WindowConv { image, ..conv.clone() }.is_supported(Chip::H200), "{image:?}");
    }
}

#[test]
fn many_pixels_are_cut_into_long_runs_and_few_into_short_ones() {
    let operands = WindowOperands {
        image: Argument::Input(0),
        weights: Argument::Null,
        bias: Argument::Null,
        residual: Argument::Null,
        output: Argument::Output(0),
    };
    let first = |conv: &WindowConv, sms| {
        let best = conv.candidates(&operands, Chip::H200.with_sms(sms), 1, false);
        best[0].candidate.launches[0].grid[0]
    };
    // One image on all SMs is cut into more parts than on few of them.
    let conv = example(1, 56, 64, 64);
    assert!(first(&conv, 132) > first(&conv, 8));
}
