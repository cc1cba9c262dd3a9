//! Recurrent layers: the input's share of every gate at once, then a walk over the steps.

use bytemuck::{Pod, Zeroable, bytes_of};

use super::flat::flat_launch;
use crate::Storage;
use crate::launch::{Argument, Candidate, KernelSource, Launch};

const TEXT: &str = include_str!("../../kernels/recurrent.cu");

/// Steps whose sums one thread of the projection computes, as the template has them.
const TOKENS: usize = 4;
/// The largest state: what shared memory holds of it.
const MAX_HIDDEN: usize = 2048;
const MAX_THREADS: usize = 512;

/// What a layer computes at each step, with the functions that the standard has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Rnn,
    Gru {
        /// The hidden gate's recurrence comes before the reset gate is applied.
        linear_before_reset: bool,
    },
    Lstm,
}

impl Cell {
    /// How many gates the weights are stacked of.
    pub(crate) fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm => 4,
        }
    }
}

/// Which ways the sequences are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Reverse,
    Both,
}

impl Direction {
    /// How many walks there are.
    pub(crate) fn count(self) -> usize {
        if self == Direction::Both { 2 } else { 1 }
    }

    fn first_reversed(self) -> usize {
        if self == Direction::Reverse { 0 } else { 1 }
    }
}

/// A layer on sequences of equal shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrent {
    pub(crate) cell: Cell,
    pub(crate) direction: Direction,
    pub(crate) storage: Storage,
    pub(crate) steps: usize,
    pub(crate) sequences: usize,
    pub(crate) features: usize,
    pub(crate) hidden: usize,
    /// The sequences stand before the steps.
    pub(crate) batch_first: bool,
}

/// What a layer reads and writes; null where it is absent.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentOperands {
    pub(crate) input: Argument,
    /// `[direction][feature][row]`.
    pub(crate) weights: Argument,
    /// `[direction][hidden][row]`.
    pub(crate) recurrence: Argument,
    pub(crate) bias: Argument,
    pub(crate) lengths: Argument,
    pub(crate) first_hidden: Argument,
    pub(crate) first_cell: Argument,
    pub(crate) all: Argument,
    pub(crate) last_hidden: Argument,
    pub(crate) last_cell: Argument,
}

/// The structure `Walk` of `recurrent.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Walk {
    steps: u32,
    sequences: u32,
    directions: u32,
    first_reversed: u32,
    token_step: u32,
    token_sequence: u32,
    all_step: u32,
    all_sequence: u32,
    all_direction: u32,
    state_sequence: u32,
    state_direction: u32,
}

/// Weights `[direction, rows, columns]` as the kernels read them: `[direction][column][row]`.
pub(crate) fn by_column(weights: &[f32], rows: usize, columns: usize) -> impl Iterator<Item = f32> {
    let of_direction = move |matrix: &[f32]| -> Vec<f32> {
        let row = |column: usize| (0..rows).map(move |row| row * columns + column);
        (0..columns).flat_map(row).map(|place| matrix[place]).collect()
    };
    weights.chunks_exact(rows * columns).flat_map(of_direction)
}

impl Recurrent {
    /// True where there is a kernel, and something to compute.
    pub(crate) fn supports(&self) -> bool {
        let sizes = [self.steps, self.sequences, self.features, self.hidden];
        let projected = self.projected_elements();
        self.hidden <= MAX_HIDDEN && !sizes.contains(&0) && projected < 1 << 29
    }

    fn rows(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    fn projected_elements(&self) -> usize {
        self.steps * self.sequences * self.direction.count() * self.rows()
    }

    fn walk(&self) -> Walk {
        let &Self { steps, sequences, batch_first, .. } = self;
        let directions = self.direction.count();
        let (token_step, token_sequence) = if batch_first { (1, steps) } else { (sequences, 1) };
        let (all_step, all_sequence, all_direction) = match batch_first {
            true => (directions, steps * directions, 1),
            false => (directions * sequences, 1, sequences),
        };
        let (state_sequence, state_direction) =
            if batch_first { (directions, 1) } else { (1, sequences) };
        Walk {
            steps: steps as u32,
            sequences: sequences as u32,
            directions: directions as u32,
            first_reversed: self.direction.first_reversed() as u32,
            token_step: token_step as u32,
            token_sequence: token_sequence as u32,
            all_step: all_step as u32,
            all_sequence: all_sequence as u32,
            all_direction: all_direction as u32,
            state_sequence: state_sequence as u32,
            state_direction: state_direction as u32,
        }
    }

    /// The launches.
    pub(crate) fn candidate(&self, operands: RecurrentOperands) -> Candidate {
        let tokens = self.steps * self.sequences;
        let projected = Argument::Workspace { offset_bytes: 0 };
        let directions = self.direction.count();
        let project = flat_launch(
            self.source("recurrent_project"),
            tokens.div_ceil(TOKENS) * directions * self.rows(),
            vec![
                operands.input,
                operands.weights,
                operands.bias.clone(),
                projected.clone(),
                Argument::u32(directions),
                Argument::u32(tokens),
                Argument::u32(self.features),
            ],
        );
        let walk = Launch {
            source: self.source("recurrent_walk"),
            grid: [(directions * self.sequences) as u32, 1, 1],
            threads: self.hidden.next_multiple_of(32).min(MAX_THREADS) as u32,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments: vec![
                projected,
                operands.recurrence,
                operands.bias,
                operands.lengths,
                operands.first_hidden,
                operands.first_cell,
                operands.all,
                operands.last_hidden,
                operands.last_cell,
                Argument::Bytes(bytes_of(&self.walk()).to_vec()),
                Argument::Fault,
            ],
        };
        let workspace_bytes = self.projected_elements() * size_of::<f32>();
        Candidate::new("recurrent", vec![project, walk], workspace_bytes)
    }

    fn source(&self, entry: &'static str) -> KernelSource {
        let (cell, is_linear) = match self.cell {
            Cell::Rnn => ("CELL_RNN", false),
            Cell::Gru { linear_before_reset } => ("CELL_GRU", linear_before_reset),
            Cell::Lstm => ("CELL_LSTM", false),
        };
        let defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("CELL", cell.to_string()),
            ("HIDDEN", self.hidden.to_string()),
            ("LINEAR_BEFORE_RESET", u8::from(is_linear).to_string()),
        ];
        KernelSource::new("recurrent.cu", TEXT, entry, defines)
    }
}

fn example() -> Recurrent {
    Recurrent {
        cell: Cell::Lstm,
        direction: Direction::Both,
        storage: Storage::F16,
        steps: 7,
        sequences: 3,
        features: 5,
        hidden: 32,
        batch_first: false,
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let gru = |linear_before_reset| Cell::Gru { linear_before_reset };
    let layers = [
        example(),
        Recurrent { cell: gru(true), storage: Storage::F32, ..example() },
        Recurrent { cell: gru(false), storage: Storage::Bf16, hidden: 600, ..example() },
        Recurrent { cell: Cell::Rnn, ..example() },
    ];
    let entries = ["recurrent_project", "recurrent_walk"];
    layers.iter().flat_map(|layer| entries.map(|entry| layer.source(entry))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_lie_where_the_layout_says() {
        let steps_first = example().walk();
        assert_eq!((steps_first.token_step, steps_first.token_sequence), (3, 1));
        let all = (steps_first.all_step, steps_first.all_direction, steps_first.all_sequence);
        assert_eq!(all, (6, 3, 1));
        let batch_first = Recurrent { batch_first: true, ..example() }.walk();
        assert_eq!((batch_first.token_step, batch_first.token_sequence), (1, 7));
        let all = (batch_first.all_sequence, batch_first.all_step, batch_first.all_direction);
        assert_eq!(all, (14, 2, 1));
        assert_eq!((batch_first.state_sequence, batch_first.state_direction), (2, 1));
    }

    #[test]
    fn weights_are_transposed_by_direction() {
        let weights: Vec<f32> = (0..12).map(|x| x as f32).collect();
        let turned: Vec<f32> = by_column(&weights, 2, 3).collect();
        assert_eq!(turned, [0., 3., 1., 4., 2., 5., 6., 9., 7., 10., 8., 11.]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(example().supports());
        assert!(!Recurrent { hidden: MAX_HIDDEN + 1, ..example() }.supports());
        assert!(!Recurrent { steps: 0, ..example() }.supports());
    }
}
