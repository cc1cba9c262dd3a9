//! Tensors, operators, graphs, shape inference and graph rewrites: everything a model is before it meets a device.

mod activation;
mod array;
mod attribute;
pub mod axis;
pub mod broadcast;
pub mod buffers;
mod builder;
mod data_type;
mod error;
mod fact;
mod facts;
mod graph;
pub mod narrow;
mod operator;
pub mod operators;
pub mod reference;
mod rewrites;
mod specialise;
mod structure;
mod tensor;
mod value;

pub use activation::Activation;
pub use array::Array;
pub use attribute::{Attribute, Attributes};
pub use builder::{GraphBuilder, standard_operator};
pub use data_type::DataType;
pub use error::{GraphError, OperatorError};
pub use fact::Fact;
pub use facts::Facts;
pub use graph::{Dimension, Graph, Node, Origin, TensorType, ValueId, ValueInfo};
pub use operator::{InputFacts, Inputs, NodeSource, Operator, Registration};
pub use rewrites::Applied;
pub use specialise::{Dimensions, OptimizedGraph};
pub use tensor::{
    Element, MAX_TENSOR_BYTES, Tensor, TensorData, checked_count, element_count, strides,
};
pub use value::Value;
