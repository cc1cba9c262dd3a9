"""Runs PyTorch for `weft bench gpu` and `weft bench regulation`: reads one JSON command per line, answers each with one line of JSON."""
import json
import os
import sys
import time

# Libraries may print; only answers go to whoever started this.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


class Subject:
    """One model at one input shape, in half precision with random weights."""

    def __init__(self, torch, name, network, shape):
        self.torch = torch
        self.network = network
        self.graph = None
        # Images have four axes, sentences two.
        if len(shape) == 4:
            images = torch.randn(shape, device="cuda", dtype=torch.float16)
            self.input = images.to(memory_format=torch.channels_last)
            self.result = lambda output: output
        elif len(shape) == 2:
            self.input = torch.randint(0, 30000, shape, device="cuda")
            self.result = lambda output: output.last_hidden_state
        else:
            raise ValueError(f"{name} takes neither images nor sentences: {shape}")

    def eager(self):
        return self.result(self.network(self.input))

    def captured(self):
        """What replays one pass that was recorded as a CUDA graph."""
        if self.graph is None:
            stream = self.torch.cuda.Stream()
            stream.wait_stream(self.torch.cuda.current_stream())
            with self.torch.cuda.stream(stream):
                for _ in range(3):
                    self.eager()
            stream.synchronize()
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph, stream=stream):
                self.eager()
            self.graph = graph
        return self.graph.replay


class Engine:
    """What was built so far."""

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("this PyTorch finds no GPU")
        # Kernels are chosen by measuring, as Weft's are.
        torch.backends.cudnn.benchmark = True
        self.torch = torch
        self.networks = {}
        self.subjects = {}

    def network(self, name):
        if name not in self.networks:
            torch = self.torch
            if name == "bert_base":
                from transformers import BertConfig, BertModel

                network = BertModel(BertConfig(), add_pooling_layer=False).eval().to("cuda", torch.float16)
            else:
                from torchvision import models

                network = models.get_model(name, weights=None).eval().to("cuda", torch.float16)
                network = network.to(memory_format=torch.channels_last)
            self.networks[name] = network
        return self.networks[name]

    def subject(self, name, shape):
        key = (name, tuple(shape))
        if key not in self.subjects:
            self.subjects[key] = Subject(self.torch, name, self.network(name), shape)
        return self.subjects[key]

    def measure(self, command):
        """Times of single passes, each waited for."""
        with self.torch.no_grad():
            subject = self.subject(command["model"], command["shape"])
            run = {"eager": lambda: subject.eager, "graph": subject.captured}[command["how"]]()
            return {"ms": self.times(run, command)}

    def mix(self, command):
        """Times until all models of a mix have ended: their graphs one after another, or each in a stream of its own."""
        torch = self.torch
        with torch.no_grad():
            # Models of which there are several have memory of their own.
            models = [(model["model"], model["shape"]) for model in command["models"]]
            replays = [Subject(torch, name, self.network(name), shape).captured() for name, shape in models]
            streams = [torch.cuda.Stream() for _ in replays]

            def in_turns():
                for replay in replays:
                    replay()

            def side_by_side():
                for replay, stream in zip(replays, streams):
                    with torch.cuda.stream(stream):
                        replay()

            return {"ms": self.times({"turns": in_turns, "streams": side_by_side}[command["how"]], command)}

    def times(self, run, command):
        """Milliseconds of single runs, each waited for, after some that do not count."""
        for _ in range(command["warm_up"]):
            run()
        self.torch.cuda.synchronize()
        times = []
        for _ in range(command["runs"]):
            start = time.perf_counter()
            run()
            self.torch.cuda.synchronize()
            times.append((time.perf_counter() - start) * 1e3)
        return times


def main():
    engine = None
    for line in sys.stdin:
        try:
            command = json.loads(line)
            engine = engine or Engine()
            if command["do"] == "hello":
                answer = {"version": engine.torch.__version__}
            elif command["do"] == "measure":
                answer = engine.measure(command)
            elif command["do"] == "mix":
                answer = engine.mix(command)
            else:
                raise ValueError(f"unknown command {command['do']}")
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
