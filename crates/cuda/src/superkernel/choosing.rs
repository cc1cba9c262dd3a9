//! Which kernel is fastest for one product alone, for many side by side, and for many in one launch: all are run.

use super::bound::BoundProduct;
use super::{Chosen, TenantProducts};
use crate::driver::{CudaError, Event};
use crate::kernels::sgemm::{ProductKernel, candidates};
use crate::launch::KernelSource;

/// Times that the median is taken of.
const SAMPLES: usize = 5;
/// Launches that are timed together, so that what lies between two does not count.
const LAUNCHES: usize = 8;

impl TenantProducts<'_> {
    /// The fastest kernel of each way for the first `tenants`.
    pub(super) fn choose(&self, tenants: usize) -> Result<Chosen, CudaError> {
        let chip = self.gpu.context.chip();
        let [of_one, of_all] = [1, tenants].map(|tenants| candidates(&self.shape, tenants, &chip));
        let sources: Vec<&KernelSource> =
            of_one.iter().chain(&of_all).map(|candidate| &candidate.source).collect();
        self.gpu.kernels.prepare_all(&sources)?;
        Ok(Chosen {
            alone: self.fastest(&of_one, |product| {
                self.median_us(LAUNCHES, || {
                    // SAFETY: the table has an entry, and lives until `median_us` has waited.
                    unsafe { product.launch(&self.stream, self.table.address(), 1) }
                })
            })?,
            beside: self.fastest(&of_one, |product| {
                let graph = self.record(product, tenants)?;
                self.median_us(1, || graph.launch(&self.stream))
            })?,
            together: self.fastest(&of_all, |product| {
                self.median_us(LAUNCHES, || {
                    // SAFETY: the table has so many entries, and lives until `median_us` has waited.
                    unsafe { product.launch(&self.stream, self.table.address(), tenants) }
                })
            })?,
        })
    }

    fn fastest(
        &self,
        candidates: &[ProductKernel],
        time_us: impl Fn(&BoundProduct) -> Result<f64, CudaError>,
    ) -> Result<BoundProduct, CudaError> {
        let mut best: Option<(BoundProduct, f64)> = None;
        let mut failure = None;
        for candidate in candidates {
            let product = BoundProduct::new(candidate, &self.gpu.kernels)?;
            match time_us(&product) {
                Ok(time) if best.as_ref().is_none_or(|&(_, fastest)| time < fastest) => {
                    best = Some((product, time));
                }
                Ok(_) => {}
                Err(error) if error.is_lost() => return Err(error),
                // One candidate that cannot run leaves the others.
                Err(error) => failure = Some(error),
            }
        }
        let none = || CudaError::Refused(format!("no kernel for {:?}", self.shape));
        best.map(|(product, _)| product).ok_or_else(|| failure.unwrap_or_else(none))
    }

    /// The median time of what is started, in microseconds; it has ended when this returns.
    fn median_us(
        &self,
        launches: usize,
        start: impl Fn() -> Result<(), CudaError>,
    ) -> Result<f64, CudaError> {
        let (begin, end) = (Event::with_timing(&self.stream)?, Event::with_timing(&self.stream)?);
        let sample = || {
            begin.record(&self.stream)?;
            (0..launches).try_for_each(|_| start())?;
            end.record(&self.stream)?;
            end.synchronize()?;
            Ok(end.elapsed_us_since(&begin)? / launches as f64)
        };
        let samples = (0..=SAMPLES).map(|_| sample()).collect::<Result<Vec<f64>, CudaError>>();
        // Where a launch failed, others may still run.
        self.stream.synchronize()?;
        // The first one warms up.
        let mut samples = samples?.split_off(1);
        samples.sort_by(f64::total_cmp);
        Ok(samples[SAMPLES / 2])
    }
}
