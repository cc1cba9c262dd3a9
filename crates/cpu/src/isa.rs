//! Owns the choice of instruction set: what the machine has, what the user allows, and entry into code compiled for it.

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{Portable, Simd};

/// Environment variable that lowers the instruction set: `portable`, `avx2` or `avx512`.
const ISA_VARIABLE: &str = "WEFT_CPU_ISA";

/// An instruction set that kernels are compiled for; a later one is wider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust that any target compiles.
    Portable,
    /// AVX2 with FMA, 8 lanes.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, 16 lanes.
    Avx512,
}

/// Why a name does not select an instruction set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// The name is none of `portable`, `avx2`, `avx512`.
    #[error("unknown instruction set `{0}`; known are portable, avx2 and avx512")]
    Unknown(String),
    /// The machine cannot run it.
    #[error("this machine does not support the instruction set {}", .0.name())]
    Unsupported(Isa),
}

/// Work that is compiled once per instruction set.
///
/// `run`, and everything hot that it calls, must be `#[inline(always)]`: only then does it become part of the function
/// for which the instructions are enabled.
pub trait SimdTask {
    /// What the work returns.
    type Output;

    /// Does the work with the given instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

impl Isa {
    /// All instruction sets, narrowest first.
    pub const ALL: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// The widest instruction set of this machine, lowered by `WEFT_CPU_ISA` if that names a supported one.
    pub fn detect() -> Isa {
        std::env::var(ISA_VARIABLE)
            .ok()
            .and_then(|name| Isa::parse(&name).ok())
            .unwrap_or_else(Isa::widest)
    }

    /// The widest instruction set of this machine.
    pub fn widest() -> Isa {
        Isa::ALL.into_iter().rfind(|isa| isa.is_supported()).unwrap_or(Isa::Portable)
    }

    /// The instruction set with the given name, if this machine supports it.
    pub fn parse(name: &str) -> Result<Isa, IsaError> {
        let isa = Isa::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| IsaError::Unknown(name.to_owned()))?;
        if isa.is_supported() { Ok(isa) } else { Err(IsaError::Unsupported(isa)) }
    }

    /// The name by which [`Isa::parse`] finds it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this machine can run it.
    pub fn is_supported(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// How many `f32` values one of its vectors holds.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Portable | Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }

    /// Runs `task` compiled for this instruction set.
    ///
    /// # Panics
    ///
    /// If the machine does not support it; [`Isa::detect`] and [`Isa::parse`] never return such a one.
    #[inline]
    pub fn run<T: SimdTask>(self, task: T) -> T::Output {
        match self {
            Isa::Portable => Portable.enter(task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::new().expect("the machine supports AVX2 and FMA").enter(task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::new().expect("the machine supports AVX-512").enter(task),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => panic!("this machine does not support {}", self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_or_say_why_not() {
        for isa in Isa::ALL {
            let expected =
                if isa.is_supported() { Ok(isa) } else { Err(IsaError::Unsupported(isa)) };
            assert_eq!(Isa::parse(isa.name()), expected);
        }
        for name in ["", "AVX2", "sse", "avx512 "] {
            assert_eq!(Isa::parse(name), Err(IsaError::Unknown(name.to_owned())));
        }
        assert!(Isa::detect() <= Isa::widest());
    }

    #[test]
    fn runs_a_task_with_the_lanes_it_names() {
        struct Lanes;
        impl SimdTask for Lanes {
            type Output = usize;
            #[inline(always)]
            fn run<S: Simd>(self, _: S) -> usize {
                S::LANES
            }
        }
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            assert_eq!(isa.run(Lanes), isa.lanes());
        }
    }
}
