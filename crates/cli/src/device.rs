//! The device named on the command line.

use std::fmt;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use weft_cpu::{CpuDevice, peak_gflops};
use weft_cuda::compiler::Helpers;
use weft_cuda::{CudaDevice, CudaOptions, Precision};
use weft_device::{Device, DeviceError, LoadedModel, TunableDevice, UnitSet};
use weft_ir::Graph;

use crate::kernel_options::KernelOptions;

/// Which device a command uses, and how.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    /// The device: cpu, cuda, or cuda:NUMBER where there are several GPUs
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: DeviceName,
    /// What models run at on a GPU: f16, bf16, tf32 or f32 [default: f16]
    #[arg(long, value_name = "PRECISION")]
    pub(crate) precision: Option<Precision>,
}

/// A device by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceName {
    Cpu,
    /// A GPU by its number.
    Cuda(usize),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("'{text}' is no device; it is one of cpu, cuda, cuda:NUMBER");
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", number)) => number.parse().map(Self::Cuda).map_err(|_| refuse()),
            _ => Err(refuse()),
        }
    }
}

/// Loads a model at the device's precision, or another one.
pub(crate) type LoadAt = Box<
    dyn Fn(&str, &Graph, Option<Precision>) -> Result<Arc<dyn LoadedModel>, DeviceError>
        + Send
        + Sync,
>;

/// A device as those hold it who share it.
pub(crate) struct SharedDevice {
    pub(crate) device: Arc<dyn Device>,
    /// The same, for those who tune its kernels.
    pub(crate) tunable: Arc<dyn TunableDevice>,
    pub(crate) load: LoadAt,
}

/// A device that is ready to be used.
pub(crate) enum OpenDevice {
    Cpu(CpuDevice),
    Cuda(CudaDevice),
}

impl DeviceOptions {
    /// Opens the device.
    pub(crate) fn open(&self) -> Result<OpenDevice> {
        self.open_as(|options| options)
    }

    /// Opens the device with kernels chosen as asked for.
    pub(crate) fn open_choosing(&self, kernels: KernelOptions) -> Result<OpenDevice> {
        if self.device == DeviceName::Cpu {
            ensure!(!kernels.is_given(), "--choice and --no-libraries are for GPUs");
        }
        self.open_as(|options| kernels.applied_to(options))
    }

    /// Opens the device for somebody who tunes it: a process on every core compiles kernels, where the device compiles
    /// any; on fewer of them where several processes share the cores. They get ready while the device is opened.
    pub(crate) fn open_to_tune(&self, sharing: usize) -> Result<OpenDevice> {
        if self.device == DeviceName::Cpu {
            return self.open();
        }
        let program = std::env::current_exe().context("where this program lies")?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // One more, for what candidates are compared with: all wait for that.
        let count = (cores / sharing.max(1)).max(1) + 1;
        let helpers = Helpers::start(count, || {
            let mut command = Command::new(&program);
            command.arg("compile-kernels");
            command
        })?;
        let device = self.open()?;
        if let OpenDevice::Cuda(device) = &device {
            device.use_compile_helpers(helpers);
        }
        Ok(device)
    }

    fn open_as(&self, choose: impl FnOnce(CudaOptions) -> CudaOptions) -> Result<OpenDevice> {
        match self.device {
            DeviceName::Cpu => {
                ensure!(self.precision.is_none(), "--precision is for GPUs; a CPU runs at f32");
                Ok(OpenDevice::Cpu(CpuDevice::new()?))
            }
            DeviceName::Cuda(number) => {
                let precision = self.precision.unwrap_or_default();
                let options = choose(CudaOptions { precision, ..Default::default() });
                Ok(OpenDevice::Cuda(CudaDevice::open(number, options)?))
            }
        }
    }
}

impl OpenDevice {
    pub(crate) fn as_device(&self) -> &dyn Device {
        match self {
            OpenDevice::Cpu(device) => device,
            OpenDevice::Cuda(device) => device,
        }
    }

    /// The device, for those who tune its kernels.
    pub(crate) fn as_tunable(&self) -> &dyn TunableDevice {
        match self {
            OpenDevice::Cpu(device) => device,
            OpenDevice::Cuda(device) => device,
        }
    }

    /// The device, for those who share it.
    pub(crate) fn into_shared(self) -> SharedDevice {
        match self {
            OpenDevice::Cpu(device) => {
                let device = Arc::new(device);
                let onto = device.clone();
                // Settings are the same on every machine; precisions are for those with a GPU.
                let load: LoadAt = Box::new(move |name, graph, _| onto.load(name, graph));
                SharedDevice { device: device.clone(), tunable: device, load }
            }
            OpenDevice::Cuda(device) => {
                let device = Arc::new(device);
                let onto = device.clone();
                let load: LoadAt = Box::new(move |name, graph, precision| {
                    let precision = precision.unwrap_or(onto.precision());
                    Ok(onto.load_with_precision(name, graph, precision))
                });
                SharedDevice { device: device.clone(), tunable: device, load }
            }
        }
    }

    /// What models are computed at that say nothing of it.
    pub(crate) fn precision(&self) -> Precision {
        match self {
            OpenDevice::Cpu(_) => Precision::F32,
            OpenDevice::Cuda(device) => device.precision(),
        }
    }

    /// All its units.
    pub(crate) fn units(&self) -> UnitSet {
        match self {
            OpenDevice::Cpu(device) => device.units(),
            OpenDevice::Cuda(device) => device.layout().all(),
        }
    }

    /// What shares of it are counted in.
    pub(crate) fn counted_in(&self) -> &'static str {
        match self {
            OpenDevice::Cpu(_) => "cores",
            OpenDevice::Cuda(_) => "SMs",
        }
    }

    /// How many cores or SMs a set of units is.
    pub(crate) fn size_of(&self, units: &UnitSet) -> usize {
        self.as_tunable().size_of(units)
    }

    /// The units that a command asks for, as cores or as a number of SMs; all where it asks for none.
    pub(crate) fn chosen_units(
        &self,
        cores: Option<&UnitSet>,
        sms: Option<usize>,
    ) -> Result<UnitSet> {
        match (self, cores, sms) {
            (OpenDevice::Cuda(_), Some(_), _) => bail!("--cores is for CPUs; give --sms"),
            (OpenDevice::Cpu(_), _, Some(_)) => bail!("--sms is for GPUs; give --cores"),
            (OpenDevice::Cpu(_), Some(cores), None) => Ok(cores.clone()),
            (OpenDevice::Cuda(_), None, Some(count)) => self.units_of_size(count),
            (_, None, None) => Ok(self.units()),
        }
    }

    /// The sizes of partitions that a command asks for; `otherwise` where it asks for none.
    pub(crate) fn chosen_sizes(
        &self,
        cores: &[usize],
        sms: &[usize],
        otherwise: usize,
    ) -> Result<Vec<usize>> {
        let (asked, other, option) = match self {
            OpenDevice::Cpu(_) => (cores, sms, "--cores"),
            OpenDevice::Cuda(_) => (sms, cores, "--sms"),
        };
        ensure!(other.is_empty(), "partitions of this device are given by {option}");
        Ok(if asked.is_empty() { vec![otherwise] } else { asked.to_vec() })
    }

    /// The first so many cores, or units with at least so many SMs.
    pub(crate) fn units_of_size(&self, count: usize) -> Result<UnitSet> {
        let too_many = || {
            let all = self.size_of(&self.units());
            format!("{count} {} asked for, the device has {all}", self.counted_in())
        };
        let units = match self {
            OpenDevice::Cpu(device) => Some(device.units().iter().take(count).collect::<UnitSet>())
                .filter(|units| count > 0 && units.len() == count),
            OpenDevice::Cuda(device) => {
                u32::try_from(count).ok().and_then(|count| device.layout().units_for_sms(count))
            }
        };
        units.with_context(too_many)
    }

    /// The first so many cores of a CPU; all units where no number is given.
    pub(crate) fn first_units(&self, cores: Option<usize>) -> Result<UnitSet> {
        match (self, cores) {
            (OpenDevice::Cuda(_), Some(_)) => bail!("--cores is for CPUs"),
            (_, Some(count)) => self.units_of_size(count),
            (_, None) => Ok(self.units()),
        }
    }

    /// A set of units for people.
    pub(crate) fn in_words(&self, units: &UnitSet) -> String {
        match self {
            OpenDevice::Cpu(_) => format!("cores {units}"),
            OpenDevice::Cuda(device) => {
                format!("{} SMs of {}", self.size_of(units), device.description().name)
            }
        }
    }

    /// Peak of one core in f32; `None` where it depends on more than the number of SMs.
    pub(crate) fn peak_gflops(&self) -> Option<f64> {
        match self {
            OpenDevice::Cpu(device) => Some(peak_gflops(device.isa())),
            OpenDevice::Cuda(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        for (text, name) in [
            ("cpu", DeviceName::Cpu),
            ("cuda", DeviceName::Cuda(0)),
            ("cuda:0", DeviceName::Cuda(0)),
            ("cuda:3", DeviceName::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(name), "{text}");
        }
        for text in ["", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1"] {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
    }

    #[test]
    fn options_of_the_other_device_are_refused() {
        let options = |precision| DeviceOptions { device: DeviceName::Cpu, precision };
        assert!(options(Some(Precision::F16)).open().is_err());
        let device = options(None).open().unwrap();
        assert!(device.chosen_units(None, Some(8)).is_err());
        assert!(device.chosen_sizes(&[], &[8], 1).is_err());
        assert_eq!(device.chosen_sizes(&[], &[], 1).unwrap(), [1]);
        assert_eq!(device.chosen_units(None, None).unwrap(), device.units());
        assert!(device.units_of_size(0).is_err() && device.units_of_size(1 << 20).is_err());
    }
}
