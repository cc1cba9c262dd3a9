//! Products of many tenants on a GPU, or on one in software, in every way and by every kernel that may be chosen. Where there is none the
//! tests say so and pass, unless `WEFT_REQUIRE_GPU` is `1`.
#![allow(clippy::print_stderr)]

use std::env;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_cuda::superkernel::{ProductGpu, ProductShape, TenantProducts, Way};

/// The GPU, or `None` where there is none and none is required; no other test uses it meanwhile.
fn gpu() -> Option<(ProductGpu, MutexGuard<'static, ()>)> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match ProductGpu::open(0) {
        Ok(gpu) => Some((gpu, turn)),
        Err(why) => {
            let is_required = env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn shape([m, n, k]: [usize; 3]) -> ProductShape {
    ProductShape { m, n, k }
}

/// Sizes that tiles divide, all or only small ones, that only vectors divide, and that nothing divides; long and short sums;
/// one column.
const SHAPES: [[usize; 3]; 13] = [
    [256, 128, 1152],
    [256, 256, 256],
    [192, 64, 352],
    [128, 384, 32],
    [100, 36, 44],
    [77, 35, 45],
    [130, 2, 1027],
    [1, 3, 1],
    [129, 132, 8],
    [512, 1, 512],
    [33, 1, 129],
    [1, 1, 1],
    [510, 1, 2050],
];

#[test]
fn every_kernel_computes_the_products() {
    let Some((gpu, _turn)) = gpu() else { return };
    for sizes in SHAPES {
        for tenants in [1, 3] {
            let products = TenantProducts::new(&gpu, shape(sizes), tenants).unwrap();
            for (kernel, deviation) in products.check_all(tenants).unwrap() {
                assert!(
                    !deviation.is_wrong(),
                    "{sizes:?}, {tenants} tenants: {kernel}: {deviation:?}"
                );
            }
        }
    }
}

#[test]
fn every_way_computes_the_products() {
    let Some((mut gpu, _turn)) = gpu() else { return };
    assert_eq!(gpu.open_contexts(3).unwrap(), 3);
    // Each way times every kernel, which takes long in software. More tenants than contexts all the same.
    let is_software = env::var("WEFT_EMULATED").is_ok_and(|value| value == "1");
    let (sizes, tenants): (&[[usize; 3]], &[usize]) = match is_software {
        false => (&[[256, 128, 1152], [77, 35, 45], [510, 1, 514]], &[1, 2, 7]),
        true => (&[[10, 9, 12]], &[1, 7]),
    };
    for &sizes in sizes {
        let products = TenantProducts::new(&gpu, shape(sizes), 7).unwrap();
        for &tenants in tenants {
            let prepared = products.prepare(tenants).unwrap();
            for way in Way::ALL {
                let deviation = prepared.check(way).unwrap();
                let kernel = prepared.kernel(way);
                assert!(!deviation.is_wrong(), "{sizes:?}, {way}, {kernel}: {deviation:?}");
                assert_eq!(prepared.times_us(way, 0, 2).unwrap().len(), 2);
            }
        }
        assert!(products.prepare(8).is_err() && products.prepare(0).is_err());
    }
}
