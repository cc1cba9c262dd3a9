"""A model of Triton's Python back end that answers with its input: what the interpreter costs Triton, without any inference."""
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        inputs = [triton.get_input_tensor_by_name(request, "input") for request in requests]
        return [triton.InferenceResponse([triton.Tensor("output", tensor.as_numpy())]) for tensor in inputs]
