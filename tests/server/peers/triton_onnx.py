"""A model of Triton's Python back end that runs the ONNX file beside it with onnxruntime.

The wheel that carries Triton has no onnxruntime back end. `threads` in the model's parameters is the number of threads within one
model; without it onnxruntime chooses.
"""
import json
import os

import numpy
import onnxruntime
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, arguments):
        parameters = json.loads(arguments["model_config"])["parameters"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(parameters.get("threads", {"string_value": "0"})["string_value"])
        path = os.path.join(arguments["model_repository"], arguments["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.outputs = [value.name for value in self.session.get_outputs()]

    def execute(self, requests):
        """Requests that Triton's dynamic batcher put together run as one batch."""
        given = [[triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs] for request in requests]
        rows = [arrays[0].shape[0] for arrays in given]
        batch = {name: numpy.concatenate([arrays[index] for arrays in given]) for index, name in enumerate(self.inputs)}
        # Triton hands texts over as bytes, of which onnxruntime would take the representation.
        texts = {name: numpy.vectorize(bytes.decode, otypes=[object])(array) for name, array in batch.items() if array.dtype == object}
        results = self.session.run(self.outputs, {**batch, **texts})
        answers, start = [], 0
        for count in rows:
            tensors = [triton.Tensor(name, result[start:start + count]) for name, result in zip(self.outputs, results)]
            answers.append(triton.InferenceResponse(tensors))
            start += count
        return answers
