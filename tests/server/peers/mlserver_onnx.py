"""A runtime for MLServer that runs an ONNX file with onnxruntime. Parameters: `threads` within one model (0: as onnxruntime chooses)."""
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class OnnxModel(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = (self.settings.parameters.extra or {}).get("threads", 0)
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        inputs = {tensor.name: NumpyCodec.decode_input(tensor) for tensor in payload.inputs}
        results = self.session.run(self.names, inputs)
        outputs = [NumpyCodec.encode_output(name, result) for name, result in zip(self.names, results)]
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=outputs)
