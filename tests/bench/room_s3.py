"""The S3 gateway over a local storage: against nginx, s3rver, RGW, and the limits of disk and processor."""
import os
import re
import subprocess

from lab import Measure, Unmeasured, accepts, free_port, median, ratios, wrk_figures
from room_http import LARGE, SMALL, drain, files, find_nginx, large_text, small_text, start_nginx
from s3_client import Endpoint, Keys, headers, keep, query_of
from s3_peers import start_rgw, start_s3rver

FULL = os.environ.get("FULL") == "1"
SIZES = {"10k": 10_000, "1m": 1_000_000, **({"10m": 10_000_000} if FULL else {})}
LISTINGS = {f"s3/list_{name}{kind}": ("<=", 1.5) for name in list(SIZES)[1:] for kind in ("", "_delimiter")}
BOUNDS = {
    "s3/get4k_cpu": ("<=", 1.3), "s3/get4k_signed_cpu": ("<=", 1.3), "s3/get64m_throughput": (">=", 1.0),
    "s3/put64m_vs_md5": (">=", 0.9), "s3/put64m_4_vs_md5": (">=", 1.0),
    **LISTINGS,
    "s3/put4k_vs_s3rver": (">=", 10), "s3/put4k_vs_rgw": (">=", 10),
    "s3/proxy_get4k_cpu": ("<=", 1.3), "s3/proxy_get4k_signed_cpu": ("<=", 1.3),
    "s3/proxy_get64m_throughput": (">=", 1.0), "s3/proxy_put64m_throughput": (">=", 1.0),
}
PUT_KEYS, CLIENTS, PAGES = 512, 32, 64
INLINE_SIZES = [4, 16, 32, 64, 128]  # KiB


def start_weir(lab, name="weir", data=None, *more):
    data = data or lab.folder(name)
    server = lab.start(name, [lab.program("weir"), "serve", "--data", data, "--s3.listen", "127.0.0.1:0",
                              "--tracker.http", "off", "--tracker.udp", "off",
                              "--api.listen", "127.0.0.1:0", *more])
    found = lab.wait(server, lambda: re.search(r"S3 +http://127\.0\.0\.1:(\d+)\n(?:.*\n)*try: ", lab.output(server)), 60)
    with open(os.path.join(data, "credentials")) as f:
        keys = Keys(*(line.split("=", 1)[1] for line in f.read().split()))
    return Endpoint(server, int(found.group(1)), keys)


def guarded(names, part, *args):
    """What one part cannot measure must not take the others with it."""
    done = set()
    try:
        for measure in part(*args):
            done.add(measure.name)
            yield measure
    except Unmeasured as why:
        for name in names:
            if name not in done:
                yield Measure(name, [], failed=str(why))


# --- reading ---

def wrk(lab, endpoint, path, more=()):
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{max(1, round(lab.seconds))}s"]
    for name, value in more:
        command += ["-H", f"{name}: {value}"]
    command.append(f"http://127.0.0.1:{endpoint.port}{path}")

    def load():
        done = subprocess.run(command, capture_output=True, text=True)
        return wrk_figures(done.stdout + done.stderr)
    figures = lab.served(endpoint.server, load)
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def get_small(lab, weir, nginx):
    def signed():
        more = headers(weir.keys, "GET", weir.host, "/box/small")
        return wrk(lab, weir, "/box/small", [h for h in more if h[0] != "host"])
    results = lab.interleave({"nginx": lambda: wrk(lab, nginx, "/small"), "weir": lambda: wrk(lab, weir, "/box/open"),
                              "signed": signed})
    for name, ours in (("s3/get4k_cpu", "weir"), ("s3/get4k_signed_cpu", "signed")):
        yield Measure(name, ratios(results, ours, "nginx", "cpu_us"), small_text(results, ours),
                      small_text(results, "nginx"))


def get_large(lab, weir, nginx):
    results = lab.interleave({"nginx": lambda: drain(lab, nginx.server, path="/large"),
                              "weir": lambda: drain(lab, weir.server, path="/box/large")})
    texts = large_text(results, "weir"), large_text(results, "nginx")
    yield Measure("s3/get64m_throughput", ratios(results, "weir", "nginx", "rate"), *texts)
    yield Measure("s3/get64m_cpu", ratios(results, "weir", "nginx", "cpu_gb"), *texts)


def reads(lab, weir):
    root = files(lab)
    nginx = start_nginx(lab, root, "plain")
    nginx = Endpoint(nginx, nginx.port, None)
    weir.server.port = weir.port
    for name, file, more in (("small", "small", ()), ("open", "small", (("x-amz-acl", "public-read"),)),
                             ("large", "large", (("x-amz-acl", "public-read"),))):
        with open(os.path.join(root, file), "rb") as f:
            weir.need("PUT", f"/box/{name}", f.read(), more)
    yield from get_small(lab, weir, nginx)
    yield from get_large(lab, weir, nginx)
    lab.stop(nginx.server)


# --- writing ---

def push(lab, weir, connections, body):
    heads = [weir.raw("PUT", f"/box/upload-{i}", length=LARGE, body_hash="UNSIGNED-PAYLOAD") for i in range(connections)]
    command = [lab.program("tests/bench/bench_http_push"), "-c", str(connections), "-t", f"{lab.seconds:g}",
               "127.0.0.1", str(weir.port), keep(os.path.join(lab.dir, "heads"), heads), body]
    figures = lab.served(weir.server, lambda: lab.run(command))
    figures["rate"] = figures["bytes"] / figures["seconds"]
    figures["cpu_gb"] = figures["cpu"] / (figures["bytes"] / 1e9)
    return figures


def md5_limit(lab):
    figures = lab.run([lab.program("tests/bench/bench_md5_limit"), f"{min(lab.seconds, 1):g}"])
    figures["rate"] = figures["bytes"] / figures["seconds"]
    return figures


def put_large(lab, weir):
    body = os.path.join(lab.folder("www"), "large")
    results = lab.interleave({"md5": lambda: md5_limit(lab), "one": lambda: push(lab, weir, 1, body),
                              "four": lambda: push(lab, weir, 4, body)})
    limit = f"MD5 {median(results, 'md5', 'rate') / 1e6:.0f} MB/s"
    yield Measure("s3/put64m_vs_md5", ratios(results, "one", "md5", "rate"), large_text(results, "one"), limit)
    yield Measure("s3/put64m_4_vs_md5", ratios(results, "four", "md5", "rate"), large_text(results, "four"), limit)


def put_small(lab, endpoint, body, folder="/box"):
    requests = [endpoint.raw("PUT", f"{folder}/small-{i}", body=body) for i in range(PUT_KEYS)]
    command = [lab.program("tests/bench/bench_http_load"), "-c", str(CLIENTS), "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, "puts"), requests), "127.0.0.1", str(endpoint.port)]
    figures = lab.served(endpoint.server, lambda: lab.run(command))
    if not figures["ops"]:
        raise Unmeasured(f"{endpoint.server.name} answered nothing")
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def storage_alone(lab, kind, size, inline):
    return lab.run([lab.program("tests/bench/bench_local"), lab.folder("alone"), kind, str(size), str(inline),
                    f"{lab.seconds:g}", str(CLIENTS)])


def put_text(results, name):
    return f"{median(results, name, 'rate') / 1000:.2f}k/s, p50 {median(results, name, 'p50_us'):.0f} us"


def puts(lab, weir):
    body = os.urandom(SMALL)
    results = lab.interleave({"weir": lambda: put_small(lab, weir, body),
                              "alone": lambda: storage_alone(lab, "put", SMALL, 0)})
    yield Measure("s3/put4k_vs_storage", ratios(results, "weir", "alone", "rate"), put_text(results, "weir"),
                  put_text(results, "alone"))


def puts_beside(lab, weir, name, start):
    peer = start(lab)
    peer.need("PUT", "/box")
    body = os.urandom(SMALL)
    for i in range(CLIENTS):  # what it makes only once
        peer.need("PUT", f"/box/small-{i}", body)
    results = lab.interleave({"weir": lambda: put_small(lab, weir, body), name: lambda: put_small(lab, peer, body)})
    yield Measure(f"s3/put4k_vs_{name}", ratios(results, "weir", name, "rate"), put_text(results, "weir"),
                  put_text(results, name))
    for server in list(lab.servers):
        if server is not weir.server:
            lab.stop(server)


def inline_bodies(lab):
    """Bodies in rows against bodies in files: what inline_max is chosen by."""
    for kib in INLINE_SIZES:
        for kind in ("put", "get"):
            size = kib * 1024
            results = lab.interleave({"row": lambda: storage_alone(lab, kind, size, 128 * 1024),
                                      "file": lambda: storage_alone(lab, kind, size, 1)}, rounds=min(lab.rounds, 3))
            yield Measure(f"s3/inline_{kib}k_{kind}", ratios(results, "row", "file", "rate"), put_text(results, "row"),
                          put_text(results, "file"))


# --- listing ---

PAGE_KINDS = {
    "": {"list-type": "2"},
    "_delimiter": {"list-type": "2", "delimiter": "/"},
    "_versions_delimiter": {"versions": "", "delimiter": "/"},  # a seek for each prefix, every time
}


def list_pages(lab, weir, name, kind):
    requests = []
    for i in range(PAGES):
        asked = {**PAGE_KINDS[kind], "max-keys": "1000"}
        if not kind:
            asked["start-after"] = f"d{i * 1000 // PAGES:03}/k{i * SIZES[name] // PAGES:08}"
        requests.append(weir.raw("GET", f"/list{name}", query_of(asked)))
    command = [lab.program("tests/bench/bench_http_load"), "-c", "1", "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, "pages"), requests), "127.0.0.1", str(weir.port)]
    figures = lab.served(weir.server, lambda: lab.run(command))
    if not figures["ops"]:
        raise Unmeasured(f"no page of /list{name} in {lab.seconds:g} s")
    return figures


def page_text(results, name):
    return f"p50 {median(results, name, 'p50_us') / 1000:.2f} ms"


def listings(lab, data):
    for name, keys in SIZES.items():
        lab.run([lab.program("tests/bench/bench_local"), data, "fill", f"list{name}", "root", str(keys)])
    weir = start_weir(lab, "weir-list", data)
    for kind, asked in PAGE_KINDS.items():
        for name in SIZES:  # from disk into the caches
            weir.need("GET", f"/list{name}", query=query_of(asked))
        results = lab.interleave({name: lambda name=name: list_pages(lab, weir, name, kind) for name in SIZES})
        for name in list(SIZES)[1:]:
            yield Measure(f"s3/list_{name}{kind}", ratios(results, name, "10k", "p50_us"), page_text(results, name),
                          page_text(results, "10k"))
    lab.stop(weir.server)


# --- in front of another server ---

PROXY = """
daemon off; worker_processes 2; pid nginx-proxy.pid; error_log stderr; {user}
events {{ worker_connections 16384; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 600;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    client_max_body_size 0; proxy_request_buffering off; proxy_max_temp_file_size 0;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""


def start_origin(lab):
    """Serves files and drops uploads, for both proxies alike."""
    root = lab.folder("origin/box")
    for name, size in (("small", SMALL), ("large", LARGE)):
        with open(os.path.join(root, name), "wb") as f:
            f.write(bytes(1024 * 1024)[:size] * max(1, size // (1024 * 1024)))
    server = lab.start("origin", [lab.program("tests/bench/bench_http_server"), os.path.dirname(root)])
    found = lab.wait(server, lambda: re.search(r"127\.0\.0\.1:(\d+)", lab.output(server)))
    return Endpoint(server, int(found.group(1)), None)


def start_proxy(lab, origin):
    port = free_port()
    os.makedirs(os.path.join(lab.dir, "tmp"), exist_ok=True)
    config = os.path.join(lab.dir, "nginx-proxy.conf")
    with open(config, "w") as f:
        f.write(PROXY.format(user="user root;" if os.geteuid() == 0 else "", port=port, origin=origin.port))
    server = lab.start("nginx-proxy", [find_nginx(), "-p", lab.dir, "-c", config])
    lab.wait(server, lambda: accepts(port))
    server.port = port
    return Endpoint(server, port, None)


def start_gateway(lab, origin):
    weir = start_weir(lab, "weir-proxy")
    api = re.search(r"API +(http://\S+)", lab.output(weir.server)).group(1)
    done = subprocess.run([lab.program("weir"), "storage", "add", "origin", "--endpoint", f"http://{origin.host}", "--user",
                           "root", "--access-key", "ORIGINORIGIN", "--secret-key", "originsecret", "--main", "--url", api,
                           "--data", lab.folder("weir-proxy")], capture_output=True, text=True, cwd=lab.dir)
    if done.returncode != 0:
        raise Unmeasured("weir storage add: " + (done.stderr or done.stdout)[-300:].strip())
    weir.server.port = weir.port
    return weir


def proxied(lab):
    origin = start_origin(lab)
    nginx, weir = start_proxy(lab, origin), start_gateway(lab, origin)
    body = os.path.join(lab.folder("origin/box"), "large")

    def signed():
        more = headers(weir.keys, "GET", weir.host, "/box/small")
        return wrk(lab, weir, "/box/small", [h for h in more if h[0] != "host"])
    results = lab.interleave({"nginx": lambda: wrk(lab, nginx, "/box/small"), "weir": lambda: wrk(lab, weir, "/box/small"),
                              "signed": signed})
    for name, ours in (("s3/proxy_get4k_cpu", "weir"), ("s3/proxy_get4k_signed_cpu", "signed")):
        yield Measure(name, ratios(results, ours, "nginx", "cpu_us"), small_text(results, ours),
                      small_text(results, "nginx"))
    for name, load in (("get", lambda e: drain(lab, e.server, path="/box/large")), ("put", lambda e: push(lab, e, 4, body))):
        results = lab.interleave({"nginx": lambda: load(nginx), "weir": lambda: load(weir)})
        texts = large_text(results, "weir"), large_text(results, "nginx")
        yield Measure(f"s3/proxy_{name}64m_throughput", ratios(results, "weir", "nginx", "rate"), *texts)
        yield Measure(f"s3/proxy_{name}64m_cpu", ratios(results, "weir", "nginx", "cpu_gb"), *texts)
    for endpoint in (weir, nginx, origin):
        lab.stop(endpoint.server)


# --- memory ---

def memory(lab, weir):
    import socket
    before = weir.server.rss()
    idle = [socket.create_connection(("127.0.0.1", weir.port)) for _ in range(1000)]
    for s in idle:
        s.sendall(weir.raw("GET", "/box/open", signed=False))
    for s in idle:
        s.recv(65536)
    each = (weir.server.rss() - before) / len(idle)
    for s in idle:
        s.close()
    yield Measure("s3/memory_connection", [max(each, 0) / 1000], unit="kB", ours="idle, after a GET")
    before = weir.server.rss()
    head = weir.raw("PUT", "/box/slow", length=LARGE, body_hash="UNSIGNED-PAYLOAD")
    uploads = [socket.create_connection(("127.0.0.1", weir.port)) for _ in range(CLIENTS)]
    for s in uploads:
        s.sendall(head + bytes(8 * 1024 * 1024))
    each = (weir.server.rss() - before) / len(uploads)
    for s in uploads:
        s.close()
    yield Measure("s3/memory_upload", [max(each, 0) / 1000], unit="kB", ours="8 of 64 MiB received")


def measure(lab):
    yield from guarded(LISTINGS, listings, lab, lab.folder("listings"))
    yield from guarded([name for name in BOUNDS if name.startswith("s3/proxy_")], proxied, lab)
    weir = start_weir(lab)
    weir.need("PUT", "/box")
    yield from guarded(("s3/get4k_cpu", "s3/get4k_signed_cpu", "s3/get64m_throughput"), reads, lab, weir)
    yield from guarded(("s3/put64m_vs_md5", "s3/put64m_4_vs_md5"), put_large, lab, weir)
    yield from guarded(("s3/memory_connection", "s3/memory_upload"), memory, lab, weir)
    yield from guarded(("s3/put4k_vs_storage",), puts, lab, weir)
    yield from guarded(("s3/put4k_vs_s3rver",), puts_beside, lab, weir, "s3rver", start_s3rver)
    yield from guarded(("s3/put4k_vs_rgw",), puts_beside, lab, weir, "rgw", start_rgw)
    lab.stop(weir.server)
    yield from guarded((), inline_bodies, lab)
