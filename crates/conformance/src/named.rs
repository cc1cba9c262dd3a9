//! Executors by the names that they have on the command line.

use std::sync::Arc;

use weft_cpu::CpuDevice;
use weft_cuda::{CudaDevice, CudaOptions, Precision};
use weft_device::{DeviceError, UnitSet};

use crate::executor::{Executor, Reference, RoundTrip};
use crate::on_device::OnDevice;

/// Opens the executor of a name: `reference`, `round-trip`, `cpu:UNITS`, or `cuda:SMS` with an optional precision.
pub fn executor(name: &str) -> Result<Box<dyn Executor>, String> {
    let parts: Vec<&str> = name.split(':').collect();
    match parts[..] {
        ["reference"] => Ok(Box::new(Reference)),
        ["round-trip"] => Ok(Box::new(RoundTrip)),
        ["cpu", units] => {
            let device = CpuDevice::new().map_err(|error| error.to_string())?;
            let units: UnitSet = units.parse().map_err(|error| format!("{error}"))?;
            Ok(Box::new(OnDevice::new(Arc::new(device), &units)?))
        }
        ["cuda", sms] => cuda(sms, Precision::F32),
        ["cuda", sms, precision] => {
            cuda(sms, precision.parse().map_err(|error| format!("{error}"))?)
        }
        _ => Err(format!("there is no executor '{name}'")),
    }
}

fn cuda(sms: &str, precision: Precision) -> Result<Box<dyn Executor>, String> {
    let sms = match sms {
        "all" => None,
        number => {
            let refuse = |_| format!("'{number}' is neither a number of SMs nor all");
            Some(number.parse::<u32>().map_err(refuse)?)
        }
    };
    let executor = on_cuda(sms, precision).map_err(|error| error.to_string())?;
    let executor = executor.ok_or("the GPU has fewer SMs than that")?;
    Ok(Box::new(executor))
}

/// A partition of the first GPU with at least so many SMs, or with all of them; `None` where it has fewer.
pub fn on_cuda(sms: Option<u32>, precision: Precision) -> Result<Option<OnDevice>, DeviceError> {
    let device = CudaDevice::open(0, CudaOptions { precision, ..Default::default() })?;
    let units = match sms {
        None => Some(device.layout().all()),
        Some(count) => device.layout().units_for_sms(count),
    };
    let Some(units) = units else { return Ok(None) };
    let executor = OnDevice::new(Arc::new(device), &units).map_err(DeviceError::Failed)?;
    Ok(Some(executor))
}

#[cfg(test)]
mod tests {
    use super::executor;

    #[test]
    fn names_that_mean_nothing_are_refused() {
        for name in ["", "gpu", "cpu", "cpu:x", "cuda", "cuda:x", "cuda:8:f8", "cuda:8:f32:1"] {
            assert!(executor(name).is_err(), "{name}");
        }
        for name in ["reference", "round-trip", "cpu:0"] {
            assert!(executor(name).is_ok(), "{name}");
        }
    }
}
