//! Instructions as they are run.

/// A number of one of a kernel's registers. Registers hold bits; an instruction's kind says what they mean.
pub(in crate::machine) type Register = u32;

/// A number of one of a kernel's predicates.
pub(in crate::machine) type Predicate = u32;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum Kind {
    U8,
    S8,
    U16,
    S16,
    F16,
    Bf16,
    U32,
    S32,
    F32,
    U64,
    S64,
    F64,
    /// Two in a word.
    F16x2,
    Bf16x2,
}

impl Kind {
    /// Bits without a meaning count as unsigned numbers.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "u8" | "b8" => Self::U8,
            "s8" => Self::S8,
            "u16" | "b16" => Self::U16,
            "s16" => Self::S16,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "u32" | "b32" => Self::U32,
            "s32" => Self::S32,
            "f32" => Self::F32,
            "u64" | "b64" => Self::U64,
            "s64" => Self::S64,
            "f64" => Self::F64,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            _ => return None,
        })
    }

    pub(in crate::machine) fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    /// Two numbers at once, of which there are few instructions here.
    pub(super) fn is_pair(self) -> bool {
        matches!(self, Self::F16x2 | Self::Bf16x2)
    }

    /// Integers of twice the size, as wide products have them.
    pub(super) fn wide(self) -> Option<Self> {
        Some(match self {
            Self::U16 => Self::U32,
            Self::S16 => Self::S32,
            Self::U32 => Self::U64,
            Self::S32 => Self::S64,
            _ => return None,
        })
    }
}

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Operand {
    Register(Register),
    Immediate(u64),
    Special(Special),
}

/// What a thread can ask of its place and of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    /// Blocks of a cluster along an axis.
    ClusterShape(usize),
    Lane,
    Warp,
    Sm,
    SmCount,
    RankInCluster,
    BlocksOfCluster,
    LanesBelow,
    /// The address of the shared memory that is asked for at launch.
    DynamicShared,
    Nanoseconds,
}

/// A kind of memory. Addresses of shared memory are small numbers; those of all others can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Space {
    Any,
    Shared,
    Parameters,
    Constants,
    Local,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) struct Address {
    pub(in crate::machine) base: Operand,
    pub(in crate::machine) offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Unary {
    Negate,
    Absolute,
    Not,
    CountOnes,
    CountLeadingZeros,
    ReverseBits,
    Reciprocal,
    SquareRoot,
    ReciprocalSquareRoot,
    Exponential2,
    Logarithm2,
    Sine,
    Cosine,
    Tanh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Binary {
    Add,
    Subtract,
    MultiplyLow,
    MultiplyHigh,
    /// Of integers of half the size of the kind.
    MultiplyWide,
    Divide,
    Remainder,
    Minimum,
    Maximum,
    /// Not a number where one of them is not.
    MinimumOrNan,
    MaximumOrNan,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    CopySign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Ternary {
    MultiplyAddLow,
    MultiplyAddHigh,
    /// Of integers of half the size of the kind, and one of the kind.
    MultiplyAddWide,
    FusedMultiplyAdd(Rounding),
    Permute,
    ExtractBits,
    FunnelLeft,
    FunnelRight,
    /// Three words by the truth table.
    Logic(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// One of them is not a number.
    Unordered,
    Ordered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Logic {
    And,
    Or,
    Xor,
}

/// How a number becomes one that has fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

/// One number as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) struct Conversion {
    pub(in crate::machine) to: Kind,
    pub(in crate::machine) from: Kind,
    pub(in crate::machine) rounding: Rounding,
    /// To an integer, though it stays a float.
    pub(in crate::machine) is_integral: bool,
    /// Within what the kind can hold; floats from zero to one.
    pub(in crate::machine) is_saturating: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Vote {
    All,
    Any,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Atomic {
    Add,
    Minimum,
    Maximum,
    And,
    Or,
    Exchange,
    CompareAndSwap,
}

/// What tensor cores multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Factors {
    F16,
    Bf16,
    Tf32,
}

/// What the copy engine moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Bulk {
    /// A box of a tensor to shared memory.
    LoadBox { to: Operand, map: Operand, at: Vec<Operand>, barrier: Operand },
    /// Windows of images to shared memory, at an offset within each.
    LoadWindows {
        to: Operand,
        map: Operand,
        at: Vec<Operand>,
        barrier: Operand,
        offsets: Vec<Operand>,
    },
    /// Neighbouring bytes to shared memory.
    LoadBytes { to: Operand, from: Operand, bytes: Operand, barrier: Operand },
    /// A box of a tensor from shared memory.
    StoreBox { map: Operand, at: Vec<Operand>, from: Operand },
}

/// What a barrier in shared memory is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum PhaseBarrier {
    Start {
        arrivals: Operand,
    },
    End,
    Arrive {
        count: Operand,
    },
    ArriveExpecting {
        bytes: Operand,
    },
    /// Whether the phase of a parity has ended. Whoever asks may be made to wait for that, or is answered at once.
    Test {
        parity: Operand,
        to: Predicate,
        may_wait: bool,
    },
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Operation {
    Move {
        to: Register,
        from: Operand,
    },
    /// Several values of so many bits each as one, the first lowest.
    Pack {
        to: Register,
        from: Vec<Operand>,
        bits: u32,
    },
    Unpack {
        to: Vec<Option<Register>>,
        from: Operand,
        bits: u32,
    },
    Unary {
        of: Unary,
        /// Numbers that are less than normal ones count as zero.
        flushes: bool,
        kind: Kind,
        to: Register,
        a: Operand,
    },
    Binary {
        of: Binary,
        /// As for one number.
        flushes: bool,
        kind: Kind,
        to: Register,
        a: Operand,
        b: Operand,
    },
    Ternary {
        of: Ternary,
        kind: Kind,
        to: Register,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    InsertBits {
        kind: Kind,
        to: Register,
        a: Operand,
        b: Operand,
        start: Operand,
        count: Operand,
    },
    Convert {
        conversion: Conversion,
        to: Register,
        a: Operand,
    },
    /// Two floats as one word, the second lowest.
    ConvertPair {
        kind: Kind,
        to: Register,
        high: Operand,
        low: Operand,
    },
    /// As tensor cores take it: 10 bits of mantissa, rounded half away from zero.
    ConvertTf32 {
        to: Register,
        a: Operand,
    },
    Compare {
        of: Comparison,
        /// It also holds where one of the floats is not a number.
        or_unordered: bool,
        kind: Kind,
        to: Predicate,
        a: Operand,
        b: Operand,
        and: Option<(Logic, Condition)>,
    },
    Select {
        to: Register,
        a: Operand,
        b: Operand,
        by: Predicate,
    },
    SetPredicate {
        to: Predicate,
        from: Condition,
    },
    CombinePredicates {
        of: Logic,
        to: Predicate,
        a: Predicate,
        b: Predicate,
    },
    /// From an address in one space to one in any.
    ToAny {
        space: Space,
        to: Register,
        a: Operand,
    },
    FromAny {
        space: Space,
        to: Register,
        a: Operand,
    },
    Load {
        space: Space,
        kind: Kind,
        to: Vec<Option<Register>>,
        from: Address,
        /// Nothing behind it is done before.
        is_acquire: bool,
    },
    Store {
        space: Space,
        kind: Kind,
        to: Address,
        from: Vec<Operand>,
        /// All before it is done before.
        is_release: bool,
    },
    Atomic {
        of: Atomic,
        space: Space,
        kind: Kind,
        to: Option<Register>,
        at: Address,
        a: Operand,
        b: Option<Operand>,
    },
    Branch {
        target: u32,
    },
    Exit,
    Shuffle {
        of: Shuffle,
        to: Register,
        is_valid: Option<Predicate>,
        a: Operand,
        b: Operand,
        c: Operand,
        members: Operand,
    },
    Vote {
        of: Vote,
        to: Destination,
        a: Condition,
        members: Operand,
    },
    ActiveLanes {
        to: Register,
    },
    /// One of the lanes, the same whenever the same ask.
    Elect {
        to: Predicate,
        members: Operand,
    },
    AwaitWarp {
        members: Operand,
    },
    /// A barrier of a block, for so many threads or all.
    AwaitBlock {
        barrier: Operand,
        threads: Option<Operand>,
        waits: bool,
        /// A warp is there as a whole.
        is_aligned: bool,
    },
    ArriveAtCluster,
    AwaitCluster,
    /// An address of shared memory as that of another block of the cluster.
    MapToBlock {
        to: Register,
        a: Operand,
        rank: Operand,
    },
    LoadMatrices {
        to: Vec<Register>,
        at: Address,
        is_transposed: bool,
    },
    StoreMatrices {
        from: Vec<Register>,
        at: Address,
        is_transposed: bool,
    },
    /// Of 16 rows and 8 columns.
    MultiplyMatrices {
        factors: Factors,
        depth: usize,
        to: [Register; 4],
        a: Vec<Register>,
        b: Vec<Register>,
        c: [Register; 4],
    },
    /// Of 64 rows, by four warps, with operands in shared memory.
    MultiplyByWarpgroup {
        factors: Factors,
        columns: usize,
        sums: Vec<Register>,
        a: Operand,
        b: Operand,
        is_added: Condition,
    },
    CommitWarpgroup,
    /// Until at most so many groups are left.
    AwaitWarpgroup {
        left: u32,
    },
    /// Bytes to shared memory, of which so many are read and the others are zero.
    CopyAsync {
        to: Address,
        from: Address,
        bytes: u32,
        read: Option<Operand>,
    },
    CommitCopies,
    AwaitCopies {
        left: u32,
    },
    Bulk(Bulk),
    CommitStores,
    AwaitStores {
        left: u32,
    },
    Phase {
        barrier: Address,
        of: PhaseBarrier,
    },
    /// What is before it is done before what is behind it.
    Fence,
    /// What changes nothing here: hints and the order of launches.
    Nothing,
    Trap,
}

/// Where a truth value goes, or all of a warp's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Destination {
    Predicate(Predicate),
    Register(Register),
}

/// A predicate, or its opposite, or what is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Condition {
    Is(Predicate),
    IsNot(Predicate),
    Known(bool),
}

/// An instruction, who runs it, and the line that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::machine) struct Instruction {
    pub(in crate::machine) guard: Option<Condition>,
    pub(in crate::machine) operation: Operation,
    pub(in crate::machine) line: u32,
}
