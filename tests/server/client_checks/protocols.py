"""HTTP and gRPC as tritonclient offers them, brought to one shape where they differ, so that a check is written once."""
import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import np_to_triton_dtype


def plain(value):
    """JSON made from gRPC messages holds 64-bit numbers as texts; here they are numbers again."""
    if isinstance(value, dict):
        return {name: plain(of) for name, of in value.items()}
    if isinstance(value, list):
        return [plain(of) for of in value]
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


class Http:
    name = "HTTP"
    module = http_client

    def __init__(self, server):
        self.client = http_client.InferenceServerClient(server.http, concurrency=4, network_timeout=120, connection_timeout=120)

    def input(self, name, array, datatype=None, binary=True):
        tensor = http_client.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
        return tensor.set_data_from_numpy(array, binary_data=binary)

    def output(self, name, binary=True, class_count=0):
        return http_client.InferRequestedOutput(name, binary_data=binary, class_count=class_count)

    def ask(self, method, *arguments, **options):
        return plain(getattr(self.client, method)(*arguments, **options))

    def config(self, model):
        return self.ask("get_model_config", model)

    def index(self):
        return {entry["name"]: entry for entry in self.ask("get_model_repository_index")}

    def regions(self):
        return {region["name"]: region for region in self.ask("get_system_shared_memory_status")}

    def carries(self, answer, output):
        """Whether the elements of an output are in the message."""
        of = answer.get_output(output)
        return "data" in of or "binary_data_size" in of.get("parameters", {})

    compressions = [
        {"request_compression_algorithm": request, "response_compression_algorithm": response}
        for request, response in (("gzip", None), ("deflate", None), (None, "gzip"), (None, "deflate"), ("gzip", "deflate"))
    ]


class Grpc:
    name = "gRPC"
    module = grpc_client

    def __init__(self, server):
        self.client = grpc_client.InferenceServerClient(server.grpc)

    def input(self, name, array, datatype=None, binary=True):
        tensor = grpc_client.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
        return tensor.set_data_from_numpy(array)

    def output(self, name, binary=True, class_count=0):
        return grpc_client.InferRequestedOutput(name, class_count=class_count)

    def ask(self, method, *arguments, **options):
        return plain(getattr(self.client, method)(*arguments, as_json=True, **options))

    def config(self, model):
        return self.ask("get_model_config", model)["config"]

    def index(self):
        return {entry["name"]: entry for entry in self.ask("get_model_repository_index")["models"]}

    def regions(self):
        return self.ask("get_system_shared_memory_status").get("regions", {})

    def carries(self, answer, output):
        """Whether the elements of an output are in the message."""
        return any(answer.get_response().raw_output_contents)

    compressions = [{"compression_algorithm": "gzip"}, {"compression_algorithm": "deflate"}]


def near(got, expected):
    """Equal where the type is exact, and up to the last digits of single precision where it is not."""
    if expected.dtype.kind == "f":
        numpy.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
    else:
        numpy.testing.assert_array_equal(got, expected)
