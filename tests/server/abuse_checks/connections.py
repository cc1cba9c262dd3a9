"""Connections that are held open, fed slowly, or dropped in the middle."""
import json
import select
import socket
import struct
import time

from abuse_checks.raw import GOOD, INFER, connected, head, read_answer
from checks import Checks, holds

checks = Checks()


@checks.add("many idle connections")
def idle(context):
    before = context.server.resident_bytes()
    streams = []
    try:
        for number in range(context.idle_connections):
            streams.append(connected(context.server))
            if number % 2:
                streams[-1].sendall(head("/v2/health/live", method="GET"))
        for stream in streams[1::2]:
            holds(read_answer(stream)[0] == 200)
        with context.good_clients("while connections idle"):
            context.probe.wait_for(20)
        each = (context.server.resident_bytes() - before) / len(streams)
        holds(each < 32_768, f"{each:.0f} bytes of memory for each idle connection")
        body = json.dumps(GOOD).encode()
        for stream in streams[:: max(1, len(streams) // 50)]:
            stream.sendall(head(INFER, len(body)) + body)
            answer = read_answer(stream)
            holds(answer and answer[0] == 200, f"a connection that idled was answered with {answer}")
        context.note(f"{len(streams)} idle connections: {each / 1024:.1f} KiB each")
    finally:
        for stream in streams:
            stream.close()


def trickled(context, start, rest):
    """Many clients that send `start` at once and `rest` at a byte a second."""
    streams = [connected(context.server) for _ in range(context.slow_clients)]
    try:
        for stream in streams:
            stream.sendall(start)
        with context.good_clients("beside slow clients"):
            for second in range(context.slow_s):
                for stream in streams:
                    try:
                        stream.sendall(rest[second:second + 1])
                    except ConnectionError:
                        pass
                time.sleep(1)
    finally:
        for stream in streams:
            stream.close()


@checks.add("heads that arrive a byte a second")
def slow_heads(context):
    trickled(context, b"POST ", (INFER + " HTTP/1.1\r\nHost: weft\r\n" + "X: y\r\n" * 100).encode())


@checks.add("bodies that arrive a byte a second")
def slow_bodies(context):
    body = json.dumps(GOOD).encode()
    trickled(context, head(INFER, len(body)), body)


@checks.add("a body that comes in pieces is answered")
def pieces(context):
    body = json.dumps(GOOD).encode()
    with connected(context.server) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (head(INFER, len(body)), *(body[at:at + 40] for at in range(0, len(body), 40))):
            stream.sendall(part)
            select.select([], [], [], 0.005)
        answer = read_answer(stream)
    holds(answer and answer[0] == 200, answer)


@checks.add("half-sent bodies")
def half_sent(context):
    body = json.dumps(GOOD).encode()
    with context.good_clients("beside broken clients"):
        for number in range(context.broken_clients):
            stream = connected(context.server)
            stream.sendall(head(INFER, len(body)) + body[: len(body) * (number % 7) // 7])
            if number % 2:
                # The connection is reset, not closed in order.
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()


@checks.add("answers that nobody reads")
def unread(context):
    body = json.dumps(GOOD).encode()
    request = head(INFER, len(body)) + body
    streams = [connected(context.server) for _ in range(context.slow_clients)]
    try:
        with context.good_clients("beside clients that do not read"):
            for stream in streams:
                stream.setblocking(False)
                try:
                    for _ in range(2000):
                        stream.send(request)
                except (BlockingIOError, ConnectionError):
                    pass
    finally:
        for stream in streams:
            stream.close()


@checks.add("connections that speak something else")
def nonsense(context):
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    openings = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), b"\x00" * 500, b"SSH-2.0-x\r\n", b"GET\r\n\r\n", b"\r\n" * 1000,
                preface, preface + bytes(range(256)) * 8, preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff" * 400,
                b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 200_000 + b"\r\n\r\n", b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n"]
    with context.good_clients("beside nonsense"):
        for _ in range(5):
            for opening in openings:
                with connected(context.server) as stream:
                    try:
                        stream.sendall(opening)
                        stream.shutdown(socket.SHUT_WR)
                        stream.settimeout(10)
                        stream.recv(65536)
                    except (ConnectionError, OSError):
                        pass
