"""A tracker's client of the tests' own: announces and scrapes over HTTP, and a strict bencode reader."""
import http.client
import re
import socket
import struct
import urllib.parse


class Malformed(Exception):
    pass


def read_bencode(text):
    """The value; keys must be sorted, and nothing may follow."""
    value, at = _read(text, 0)
    if at != len(text):
        raise Malformed(f"{len(text) - at} bytes behind the end")
    return value


def _read(text, at):
    kind = text[at:at + 1]
    if kind == b"i":
        end = text.index(b"e", at)
        return int(text[at + 1:end]), end + 1
    if kind == b"l":
        items, at = [], at + 1
        while text[at:at + 1] != b"e":
            item, at = _read(text, at)
            items.append(item)
        return items, at + 1
    if kind == b"d":
        items, at, last = {}, at + 1, None
        while text[at:at + 1] != b"e":
            key, at = _read(text, at)
            if last is not None and key <= last:
                raise Malformed(f"{key} behind {last}")
            items[key], at = _read(text, at)
            last = key
        return items, at + 1
    colon = text.index(b":", at)
    length = int(text[at:colon])
    return text[colon + 1:colon + 1 + length], colon + 1 + length


def address(server):
    """Of the tracker over HTTP: (host, port)."""
    found = re.search(r"^  tracker +http://([^/]+):(\d+)/announce$", server.out, re.M)
    return found.group(1).strip("[]"), int(found.group(2))


def ask(server, path, headers=None):
    """The body of a GET, whose status is 200."""
    connection = http.client.HTTPConnection(*address(server), timeout=60)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body)
        assert answer.headers.get("Content-Encoding") is None
        return body
    finally:
        connection.close()


def query(values):
    return "&".join(f"{name}={urllib.parse.quote(value, safe='')}" if isinstance(value, (bytes, str)) else f"{name}={value}"
                    for name, value in values.items() if value is not None)


def announce(server, info_hash, port, left=0, path="/announce", headers=None, **more):
    """The answer, read. `more`: further values of the query, None to leave one out."""
    values = {"info_hash": info_hash, "peer_id": f"-TR3000-{port:012d}", "port": port, "uploaded": 0, "downloaded": 0,
              "left": left, "compact": 1, **more}
    return read_bencode(ask(server, f"{path}?{query(values)}", headers))


def scrape(server, *hashes, path="/scrape"):
    pairs = "&".join(query({"info_hash": info_hash}) for info_hash in hashes)
    return read_bencode(ask(server, f"{path}?{pairs}"))


def peers(answer):
    """The set of (ip, port), of both families."""
    if isinstance(answer[b"peers"], list):
        return {(peer[b"ip"].decode(), peer[b"port"]) for peer in answer[b"peers"]}
    found = set()
    for text, size, family in ((answer[b"peers"], 6, socket.AF_INET), (answer.get(b"peers6", b""), 18, socket.AF_INET6)):
        assert len(text) % size == 0
        for at in range(0, len(text), size):
            entry = text[at:at + size]
            found.add((socket.inet_ntop(family, entry[:-2]), struct.unpack(">H", entry[-2:])[0]))
    return found
