"""The asyncio clients of tritonclient, over HTTP and over gRPC."""
import asyncio

import numpy
import tritonclient.grpc.aio as grpc_client
import tritonclient.http.aio as http_client

import client_models
from checks import Checks, holds, same
from client_checks.protocols import Grpc, Http, near
from tritonclient.utils import InferenceServerException

checks = Checks()


def on_both(name):
    """Registers a check for each protocol; it is a coroutine of the context, the protocol and an open client."""
    def register(function):
        for protocol, module, address in ((Http, http_client, "http"), (Grpc, grpc_client, "grpc")):
            def run(context, protocol=protocol, module=module, address=address):
                async def with_client():
                    async with module.InferenceServerClient(getattr(context.server, address)) as client:
                        await function(context, context.protocol(protocol), client)
                asyncio.run(with_client())
            checks.add(f"{protocol.name} asyncio: {name}")(run)
        return function
    return register


@on_both("health, metadata, configuration, statistics")
async def about(context, protocol, client):
    holds(await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("image"))
    holds(not await client.is_model_ready("nobody"))
    for method, arguments in (("get_server_metadata", ()), ("get_model_metadata", ("image",)), ("get_model_config", ("image",)),
                              ("get_inference_statistics", ("image",)), ("get_model_repository_index", ())):
        holds(await getattr(client, method)(*arguments), method)


@on_both("many requests at once")
async def concurrent(context, protocol, client):
    arrays = [client_models.image(1 + seed % 3, seed) for seed in range(16)]
    answers = await asyncio.gather(*(client.infer("image", [protocol.input("input", array)]) for array in arrays))
    for array, answer in zip(arrays, answers):
        near(answer.as_numpy("output"), context.expected.run("image", input=array)["output"])


@on_both("a wrong request is an error")
async def wrong(context, protocol, client):
    try:
        await client.infer("image", [protocol.input("input", client_models.image(1)[:, :2])])
    except InferenceServerException as error:
        holds("input" in str(error), error)
    else:
        raise AssertionError("not refused")


@on_both("models are unloaded and loaded again")
async def repository(context, protocol, client):
    await client.unload_model("pair")
    context.eventually(lambda: not protocol.client.is_model_ready("pair"))
    await client.load_model("pair")
    context.eventually(lambda: protocol.client.is_model_ready("pair"))


@checks.add("gRPC asyncio: a stream of requests")
def stream(context):
    protocol, count = context.protocol(Grpc), 10

    async def run():
        async def requests():
            for seed in range(count):
                yield {"model_name": "image", "inputs": [protocol.input("input", client_models.image(1, seed))], "request_id": str(seed)}

        seen = set()
        async with grpc_client.InferenceServerClient(context.server.grpc) as client:
            async for result, error in client.stream_infer(requests()):
                holds(error is None, error)
                seed = int(result.get_response().id)
                near(result.as_numpy("output"), context.expected.run("image", input=client_models.image(1, seed))["output"])
                seen.add(seed)
                if len(seen) == count:
                    break
        same(seen, set(range(count)))

    asyncio.run(asyncio.wait_for(run(), 60))


@checks.add("gRPC asyncio: a cancelled call leaves the server as it was")
def cancelled(context):
    protocol = context.protocol(Grpc)
    tensor = protocol.input("input", numpy.zeros((1, 256, 1024), dtype=numpy.float32))

    async def run():
        async with grpc_client.InferenceServerClient(context.server.grpc) as client:
            task = asyncio.ensure_future(client.infer("slow", [tensor]))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except (asyncio.CancelledError, InferenceServerException):
                pass
            array = client_models.image(1)
            answer = await client.infer("image", [protocol.input("input", array)])
            near(answer.as_numpy("output"), context.expected.run("image", input=array)["output"])

    asyncio.run(asyncio.wait_for(run(), 60))
