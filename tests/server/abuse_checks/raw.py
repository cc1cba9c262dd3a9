"""HTTP written by hand, so that it can be written wrongly."""
import json
import socket

GOOD = {"inputs": [{"name": "input", "shape": [1, 16], "datatype": "FP32", "data": [float(value) for value in range(16)]}]}
INFER = "/v2/models/identity/infer"
# What a server may say to a request that nobody should send: that it is wrong, that it does not offer this, or that it has no
# time. Never that the server itself is at fault.
ALLOWED = {200, *range(400, 500), 501, 503, 504}


def connected(server, timeout=30):
    host, port = server.http.split(":")
    return socket.create_connection((host, int(port)), timeout=timeout)


def head(path=INFER, length=None, method="POST", **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: weft", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def read_answer(stream):
    """Status and body of the next answer; None where the server hung up before it was whole."""
    received = b""
    try:
        while b"\r\n\r\n" not in received:
            part = stream.recv(65536)
            if not part:
                return None
            received += part
        top, body = received.split(b"\r\n\r\n", 1)
        lines = top.split(b"\r\n")
        headers = {name.strip().lower(): value.strip() for name, value in (line.split(b":", 1) for line in lines[1:])}
        length = int(headers.get(b"content-length", 0))
        while len(body) < length:
            part = stream.recv(65536)
            if not part:
                return None
            body += part
        return int(lines[0].split()[1]), body
    except ConnectionError:
        return None


def ask(server, request, timeout=30):
    """Sends bytes on a connection of their own and reads the answer."""
    with connected(server, timeout) as stream:
        try:
            stream.sendall(request)
        except ConnectionError:
            # The server may answer and close before it has read all; the answer is there to be read.
            pass
        return read_answer(stream)


def post(server, body, path=INFER, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(server, head(path, len(data), **headers) + data)


def typed(answer, status=None):
    """Whether an answer is one of the statuses and carries an error that a program can read."""
    if answer is None:
        return False
    code, body = answer
    if not (code == status if isinstance(status, int) else code in (status or range(400, 500))):
        return False
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(error, str) and bool(error)
