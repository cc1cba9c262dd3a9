//! Tensors, operators, graphs, shape inference and graph rewrites: everything a model is before it meets a device.
