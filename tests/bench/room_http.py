"""http/: the server against nginx, both serving the same files from the same folder."""
import os
import re
import shutil
import subprocess

from lab import Measure, Unmeasured, accepts, free_port, median, ratios, wrk_figures

BOUNDS = {"http/get4k_cpu": ("<=", 1.0), "http/get64m_throughput": (">=", 1.0)}
SMALL, LARGE = 4096, 64 * 1024 * 1024

NGINX = """
daemon off; worker_processes 2; pid nginx-{name}.pid; error_log stderr; {user}
events {{ worker_connections 16384; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 600;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    {cache}
    server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""


def find_nginx():
    nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not nginx:
        raise Unmeasured("nginx is not installed (tools/setup bench)")
    return nginx


def start_nginx(lab, root, name, cache=""):
    port = free_port()
    config = os.path.join(lab.dir, f"nginx-{name}.conf")
    with open(config, "w") as f:
        user = "user root;" if os.geteuid() == 0 else ""
        f.write(NGINX.format(name=name, port=port, root=root, cache=cache, user=user))
    server = lab.start("nginx-" + name, [find_nginx(), "-p", lab.dir, "-c", config])
    lab.wait(server, lambda: accepts(port))
    server.port = port
    return server


def start_weir(lab, root):
    server = lab.start("weir", [lab.program("tests/bench/bench_http_server"), root])
    found = lab.wait(server, lambda: re.search(r"127\.0\.0\.1:(\d+)", lab.output(server)))
    server.port = int(found.group(1))
    return server


def wrk(lab, server, connections, headers=()):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(lab.seconds))}s"]  # whole seconds only
    for header in headers:
        command += ["-H", header]
    command.append(f"http://127.0.0.1:{server.port}/small")

    def load():
        done = subprocess.run(command, capture_output=True, text=True)
        return wrk_figures(done.stdout + done.stderr)
    figures = lab.served(server, load)
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def drain(lab, server, connections=4, path="/large"):
    command = [lab.program("tests/bench/bench_http_load"), "-c", str(connections), "-t", f"{lab.seconds:g}",
               "127.0.0.1", str(server.port), path]
    figures = lab.served(server, lambda: lab.run(command))
    figures["rate"] = figures["bytes"] / figures["seconds"]
    figures["cpu_gb"] = figures["cpu"] / (figures["bytes"] / 1e9)
    return figures


def small_text(results, name):
    return (f"{median(results, name, 'cpu_us'):.1f} us CPU, {median(results, name, 'rate') / 1000:.1f}k/s, "
            f"{median(results, name, 'rss') / 1e6:.0f} MB")


def large_text(results, name):
    return (f"{median(results, name, 'rate') / 1e6:.0f} MB/s, {median(results, name, 'cpu_gb'):.3f} CPU s/GB, "
            f"{median(results, name, 'rss') / 1e6:.0f} MB")


def small(lab, name, servers, *load):
    results = lab.interleave({s: lambda s=s: wrk(lab, servers[s], *load) for s in servers})
    yield Measure(name, ratios(results, "weir", "nginx", "cpu_us"), small_text(results, "weir"),
                  small_text(results, "nginx"))
    if "cached" in servers:
        yield Measure(name + "_open_file_cache", ratios(results, "weir", "cached", "cpu_us"),
                      small_text(results, "weir"), small_text(results, "cached"))


def large(lab, servers):
    results = lab.interleave({s: lambda s=s: drain(lab, servers[s]) for s in ("weir", "nginx")})
    texts = large_text(results, "weir"), large_text(results, "nginx")
    yield Measure("http/get64m_throughput", ratios(results, "weir", "nginx", "rate"), *texts)
    yield Measure("http/get64m_cpu", ratios(results, "weir", "nginx", "cpu_gb"), *texts)


def files(lab):
    root = lab.folder("www")
    os.makedirs(os.path.join(lab.dir, "tmp"), exist_ok=True)
    for name, size in (("small", SMALL), ("large", LARGE)):
        with open(os.path.join(root, name), "wb") as f:
            f.write(os.urandom(1024 * 1024)[:size] * max(1, size // (1024 * 1024)))
    return root


def measure(lab):
    root = files(lab)
    servers = {"nginx": start_nginx(lab, root, "plain"),
               "cached": start_nginx(lab, root, "cached", "open_file_cache max=1000 inactive=60s;"),
               "weir": start_weir(lab, root)}
    two = {name: servers[name] for name in ("nginx", "weir")}
    yield from small(lab, "http/get4k_cpu", servers, 32)
    yield from small(lab, "http/get4k_close", two, 32, ("Connection: close",))
    yield from small(lab, "http/conn1000", two, 1000)
    yield from large(lab, servers)
