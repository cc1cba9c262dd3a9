"""Trains ResNet-50 on a GPU for `weft bench training`, until its input ends; says its rate as lines of JSON.

Arguments: the batch size, and the seconds between lines.
"""
import json
import os
import sys
import threading
import time

# Libraries may print; only rates go to whoever started this.
rates = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

# Steps between two looks at the clock: the GPU never waits for Python, and Python runs ahead no further.
STEPS_AHEAD = 4
WARM_UP_STEPS = 12


def end_with_input():
    sys.stdin.read()
    os._exit(0)


def main():
    batch, window_s = int(sys.argv[1]), float(sys.argv[2])
    threading.Thread(target=end_with_input, daemon=True).start()
    import torch
    from torchvision import models

    if not torch.cuda.is_available():
        raise RuntimeError("this PyTorch finds no GPU")
    torch.backends.cudnn.benchmark = True
    network = models.resnet50(weights=None).cuda().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(network(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    while True:
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < window_s:
            for _ in range(STEPS_AHEAD):
                step()
            torch.cuda.synchronize()
            steps += STEPS_AHEAD
        print(json.dumps({"steps_per_s": steps / (time.perf_counter() - start)}), file=rates, flush=True)


main()
