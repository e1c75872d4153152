"""Torrents of objects: `GET /bucket/key?torrent` beside libtorrent's own, and downloads by real clients from the
web seed alone. The names of the tests are those of the list of scenarios."""
import hashlib
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import libtorrent as lt
import pytest
from conftest import DEADLINE, free_port, wait_for
from swarm_clients import pattern
from swarm_lab import announce

PUBLIC = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTorrent",
                                                     "s3:GetObjectVersionTorrent"], "Resource": "arn:aws:s3:::pub/*"}]})


class Fetched:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def error(self):
        return self.body.decode().split("<Code>")[1].split("</Code>")[0]


def fetch(url):
    """GET as nobody in particular."""
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return Fetched(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as e:
        return Fetched(e.code, e.headers, e.read())


def torrent_of(server, bucket, key, query=""):
    return fetch(f"{server.s3_url}/{bucket}/{urllib.parse.quote(key)}?torrent{query}")


def with_bucket(server):
    """The bucket "pub", which everybody may read."""
    client = server.s3()
    client.create_bucket(Bucket="pub")
    client.put_bucket_policy(Bucket="pub", Policy=PUBLIC)
    return server, client


def track(*more):
    return "--tracker.http", f"127.0.0.1:{free_port()}", "--tracker.udp", f"127.0.0.1:{free_port()}", *more


@pytest.fixture
def public(serve):
    return with_bucket(serve(*track()).ready())


def libtorrent_makes(folder, name, body, flags, meta):
    """The file that libtorrent makes of these bytes, with the addresses of `meta`."""
    (folder / name).write_bytes(body)
    storage = lt.file_storage()
    lt.add_files(storage, str(folder / name))
    torrent = lt.create_torrent(storage, 0, flags)
    for tier, url in enumerate([meta[b"announce"]] + [t[0] for t in meta.get(b"announce-list", [])][1:]):
        torrent.add_tracker(url.decode(), tier)
    torrent.add_url_seed(meta[b"url-list"].decode())
    lt.set_piece_hashes(torrent, str(folder))
    made = torrent.generate()
    made.pop(b"creation date", None)
    return made


def test_s3_torrent_v1_equals_libtorrent_bytes(public, tmp_path):
    server, client = public
    body = pattern(3_000_000)
    client.put_object(Bucket="pub", Key="some/folder/obj.bin", Body=body)
    answer = torrent_of(server, "pub", "some/folder/obj.bin")
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-bittorrent"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="obj.bin.torrent"'
    meta = lt.bdecode(answer.body)
    made = libtorrent_makes(tmp_path, "obj.bin", body, lt.create_torrent.v1_only, meta)
    assert answer.body == lt.bencode(made)
    assert meta[b"url-list"].decode() == f"{server.s3_url}/pub/some/folder/obj.bin"
    assert meta[b"announce"].startswith(b"http://127.0.0.1:") and meta[b"announce"].endswith(b"/announce")
    assert meta[b"announce-list"][1][0].startswith(b"udp://127.0.0.1:")
    assert torrent_of(server, "pub", "some/folder/obj.bin").body == answer.body
    assert fetch(meta[b"url-list"].decode()).body == body


@pytest.mark.parametrize("kind,flags", [("2", lt.create_torrent.v2_only), ("hybrid", 0)])
def test_s3_torrent_v2_hybrid_roots(public, tmp_path, kind, flags):
    server, client = public
    for size in (1, 16384, 16385, 3_000_000):
        body = pattern(size)
        client.put_object(Bucket="pub", Key="obj.bin", Body=body)
        answer = torrent_of(server, "pub", "obj.bin", f"&v={kind}")
        assert answer.status == 200, answer.body
        meta = lt.bdecode(answer.body)
        made = libtorrent_makes(tmp_path, "obj.bin", body, flags, meta)
        made.setdefault(b"piece layers", {})
        assert lt.bencode(meta[b"info"]) == lt.bencode(made[b"info"]), size
        assert answer.body == lt.bencode(made), size
        info = lt.torrent_info(meta)
        assert info.info_hashes().has_v2() and info.info_hashes().has_v1() == (kind == "hybrid")
    assert torrent_of(server, "pub", "obj.bin", "&v=3").error == "InvalidArgument"


def test_s3_torrent_multipart_unaligned(public, tmp_path):
    server, client = public
    parts = [pattern(5 * 1024 * 1024 + 7), pattern(5 * 1024 * 1024 + 12345), b"tail"]
    upload = client.create_multipart_upload(Bucket="pub", Key="parts.bin")["UploadId"]
    done = [{"PartNumber": i, "ETag": client.upload_part(Bucket="pub", Key="parts.bin", UploadId=upload, PartNumber=i,
                                                         Body=part)["ETag"]} for i, part in enumerate(parts, 1)]
    client.complete_multipart_upload(Bucket="pub", Key="parts.bin", UploadId=upload, MultipartUpload={"Parts": done})
    for kind, flags in (("1", lt.create_torrent.v1_only), ("hybrid", 0)):
        answer = torrent_of(server, "pub", "parts.bin", f"&v={kind}")
        assert answer.status == 200, answer.body
        meta = lt.bdecode(answer.body)
        assert answer.body == lt.bencode(libtorrent_makes(tmp_path, "parts.bin", b"".join(parts), flags, meta))


def info_hash(answer):
    assert answer.status == 200, answer.body
    return hashlib.sha1(lt.bencode(lt.bdecode(answer.body)[b"info"])).hexdigest()


def test_s3_torrent_overwrite_new_infohash(public, weir):
    server, client = public
    client.put_object(Bucket="pub", Key="obj", Body=b"one")
    first = info_hash(torrent_of(server, "pub", "obj"))
    client.put_object(Bucket="pub", Key="obj", Body=b"two")
    second = info_hash(torrent_of(server, "pub", "obj"))
    assert first != second
    keys = server.keys
    assert server.get(f"/api/v1/torrents/{first}", keys=keys).status == 404
    assert server.get(f"/api/v1/torrents/{second}", keys=keys).status == 200
    # With versions both stay, and each names its own as the web seed.
    client.put_bucket_versioning(Bucket="pub", VersioningConfiguration={"Status": "Enabled"})
    ids = [client.put_object(Bucket="pub", Key="kept", Body=body)["VersionId"] for body in (b"old", b"new")]
    for version, body in zip(ids, (b"old", b"new")):
        answer = torrent_of(server, "pub", "kept", f"&versionId={version}")
        seed = lt.bdecode(answer.body)[b"url-list"].decode()
        assert seed.endswith(f"/pub/kept?versionId={version}")
        assert fetch(seed).body == body
    assert torrent_of(server, "pub", "kept").body == torrent_of(server, "pub", "kept", f"&versionId={ids[1]}").body


def test_s3_torrent_denied_private_object(public):
    server, client = public
    client.create_bucket(Bucket="own")
    client.put_object(Bucket="own", Key="obj", Body=b"private")
    url = client.generate_presigned_url("get_object", Params={"Bucket": "own", "Key": "obj"})
    assert fetch(url).status == 200
    # Nobody gets one, not even the owner: it would be of no use to anybody else.
    assert torrent_of(server, "own", "obj").error == "AccessDenied"
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.get_object_torrent(Bucket="own", Key="obj")
    assert refused.value.response["Error"]["Code"] == "AccessDenied"
    # By its list everybody may read it, and with the list it ends.
    client.put_object_acl(Bucket="own", Key="obj", ACL="public-read")
    assert torrent_of(server, "own", "obj").status == 200
    assert client.get_object_torrent(Bucket="own", Key="obj")["Body"].read() == torrent_of(server, "own", "obj").body
    client.put_object_acl(Bucket="own", Key="obj", ACL="private")
    assert torrent_of(server, "own", "obj").error == "AccessDenied"
    assert torrent_of(server, "pub", "absent").status in (403, 404)


def test_s3_torrent_of_encrypted_objects(public):
    server, client = public
    client.put_object(Bucket="pub", Key="sealed", Body=b"sealed by weir", ServerSideEncryption="AES256")
    answer = torrent_of(server, "pub", "sealed")
    assert lt.bdecode(answer.body)[b"info"][b"pieces"] == hashlib.sha1(b"sealed by weir").digest()
    client.put_object(Bucket="pub", Key="own", Body=b"sealed by a customer", SSECustomerAlgorithm="AES256",
                      SSECustomerKey=b"k" * 32)
    assert torrent_of(server, "pub", "own").error == "InvalidRequest"


def test_empty_and_16KiB_boundary_objects(public):
    server, client = public
    client.put_object(Bucket="pub", Key="empty", Body=b"")
    assert torrent_of(server, "pub", "empty").error == "InvalidRequest"
    for size in (1, 16383, 16384, 16385, 32768, 32769):
        body = pattern(size)
        client.put_object(Bucket="pub", Key="obj.bin", Body=body)
        for kind in ("1", "2", "hybrid"):
            info = lt.torrent_info(lt.bdecode(torrent_of(server, "pub", "obj.bin", f"&v={kind}").body))
            assert info.files().file_size(0) == size and info.num_pieces() == -(-size // 16384)
        meta = lt.bdecode(torrent_of(server, "pub", "obj.bin").body)
        pieces = [hashlib.sha1(body[i:i + 16384]).digest() for i in range(0, size, 16384)]
        assert meta[b"info"][b"pieces"] == b"".join(pieces)


def test_s3_torrent_hashed_once_by_many_who_ask(public):
    server, client = public
    client.put_object(Bucket="pub", Key="big", Body=pattern(20_000_000))
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(torrent_of(server, "pub", "big"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status for a in answers} == {200}
    assert len({a.body for a in answers}) == 1


def test_s3_torrent_names_and_addresses(serve):
    server, client = with_bucket(serve("--tracker.http", f":{free_port()}", "--tracker.udp", "off", "--s3.url",
                                       "https://s3.example.org/").ready())
    for key, name, seed in (("a/b ä\"c.iso", "b ä\"c.iso", "a/b%20%C3%A4%22c.iso"), ("folder/", "folder", "folder%2F"),
                            ("x?y&z", "x?y&z", "x%3Fy%26z")):
        client.put_object(Bucket="pub", Key=key, Body=b"bytes")
        answer = torrent_of(server, "pub", key)
        meta = lt.bdecode(answer.body)
        assert meta[b"info"][b"name"].decode() == name
        assert meta[b"url-list"].decode() == f"https://s3.example.org/pub/{seed}"
        assert meta[b"announce"].startswith(b"http://127.0.0.1:")
        assert b"announce-list" not in meta
    client.put_object(Bucket="pub", Key="a/b ä\"c", Body=b"bytes")
    assert torrent_of(server, "pub", "a/b ä\"c").headers["Content-Disposition"] == \
        "attachment; filename=\"b ___c.torrent\"; filename*=UTF-8''b%20%C3%A4%22c.torrent"


def test_s3_torrent_without_a_tracker(serve):
    server, client = with_bucket(serve("--tracker.http", "off", "--tracker.udp", "off").ready())
    client.put_object(Bucket="pub", Key="obj", Body=b"bytes")
    assert torrent_of(server, "pub", "obj").error == "NoSuchKey"
    assert server.get("/api/v1/torrents", keys=server.keys).status == 501


def test_s3_torrent_of_a_large_object_is_made_in_the_background(serve):
    server, client = with_bucket(serve(*track("--tracker.hash_at_once", "1MiB")).ready())
    body = pattern(30_000_000)
    client.put_object(Bucket="pub", Key="large", Body=body)
    answer = torrent_of(server, "pub", "large")
    assert answer.status == 503 and answer.error == "SlowDown" and answer.headers["Retry-After"]
    assert b"of 30000000 bytes" in answer.body

    def made():
        answer = torrent_of(server, "pub", "large")
        assert answer.status in (200, 503), answer.body
        return answer.status == 200 and answer
    meta = lt.bdecode(wait_for(made, "the torrent").body)
    assert meta[b"info"][b"pieces"][:20] == hashlib.sha1(body[:meta[b"info"][b"piece length"]]).digest()


def test_weir_torrent_create_show_list_remove(public, weir, tmp_path):
    server, client = public
    body = pattern(100_000)
    client.put_object(Bucket="pub", Key="a/obj.bin", Body=body)

    def run(*args):
        done = weir("torrent", *args, "--data", server.data, "--url", server.url, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None
    made = run("create", "pub", "a/obj.bin", "--out", tmp_path / "made.torrent")[0]
    assert made["state"] == "ready" and made["name"] == "obj.bin" and made["size"] == 100_000
    file = (tmp_path / "made.torrent").read_bytes()
    assert file == torrent_of(server, "pub", "a/obj.bin").body
    assert made["v1"] == str(lt.torrent_info(lt.bdecode(file)).info_hash())
    hybrid = run("create", "pub", "a/obj.bin", "--v", "hybrid")[0]
    assert hybrid["id"] == made["id"] and len(hybrid["v2"]) == 64 and hybrid["v1"] != made["v1"]
    listed = run("list")
    assert [row["id"] for row in listed] == [made["id"]] and listed[0]["percent"] == 100
    assert set(listed[0]["info_hashes"].split(",")) == {made["v1"], hybrid["v1"], hybrid["v2"]}
    magnet = lt.parse_magnet_uri(run("show", hybrid["v2"])[0]["magnet"])
    assert str(magnet.info_hashes.v1) == hybrid["v1"] and str(magnet.info_hashes.v2) == hybrid["v2"]
    assert magnet.url_seeds == [f"{server.s3_url}/pub/a/obj.bin"] and len(magnet.trackers) == 2
    run("show", made["id"], "--v", "2", "--out", tmp_path / "two.torrent")
    assert (tmp_path / "two.torrent").read_bytes() == torrent_of(server, "pub", "a/obj.bin", "&v=2").body
    run("show", made["v1"], "--passkey", "0123456789abcdef0123456789abcdef", "--out", tmp_path / "key.torrent")
    announce = lt.bdecode((tmp_path / "key.torrent").read_bytes())[b"announce"]
    assert announce.endswith(b"/0123456789abcdef0123456789abcdef/announce")
    run("remove", made["v1"])
    assert run("list") == []
    assert weir("torrent", "show", made["v1"], "--data", server.data, "--url", server.url).returncode == 1
    unknown = weir("torrent", "show", "xyz", "--data", server.data, "--url", server.url)
    assert "'xyz' is neither an info hash (40 or 64 hexadecimal digits) nor the id of a torrent" in unknown.stderr
    assert weir("torrent", "create", "pub", "absent", "--data", server.data, "--url", server.url).returncode == 1


def test_an_operator_takes_a_torrent_off_and_brings_it_back(public, weir):
    server, client = public
    client.put_object(Bucket="pub", Key="a/obj.bin", Body=pattern(50_000))
    client.put_object(Bucket="pub", Key="b/obj.bin", Body=pattern(50_000))  # the same info hash

    def run(*args):
        done = weir(*args, "--data", server.data, "--url", server.url, "--json")
        assert done.returncode == 0, done.stderr

    def asked(key, tail=""):
        answer = torrent_of(server, "pub", key, tail)
        return "served" if answer.status == 200 else (answer.error, b"operator" in answer.body)

    def tracked(info_hash):
        """By the real tracker, which hears of changes a little later."""
        return b"failure reason" not in announce(server, info_hash, 7777)
    withdrawn = ("AccessDenied", True)
    info_hash = bytes.fromhex(str(lt.torrent_info(lt.bdecode(torrent_of(server, "pub", "a/obj.bin").body)).info_hash()))
    wait_for(lambda: tracked(info_hash), "the tracker to know it")
    run("swarm", "torrent", "remove", info_hash.hex())
    wait_for(lambda: not tracked(info_hash), "the tracker to forget it")
    assert [asked("a/obj.bin"), asked("b/obj.bin"), asked("a/obj.bin", "&v=2")] == [withdrawn, withdrawn, "served"]
    client.put_object(Bucket="pub", Key="a/obj.bin", Body=pattern(50_000))
    assert asked("a/obj.bin") == withdrawn
    run("torrent", "create", "pub", "a/obj.bin")
    wait_for(lambda: tracked(info_hash), "the tracker to know it again")
    assert [asked("a/obj.bin"), asked("b/obj.bin")] == ["served", "served"]
    run("swarm", "torrent", "remove", info_hash.hex())
    assert asked("b/obj.bin") == withdrawn
    run("swarm", "torrent", "add", info_hash.hex())
    assert asked("b/obj.bin") == "served"
    run("torrent", "remove", info_hash.hex())  # forgotten, and made again
    run("torrent", "remove", info_hash.hex())
    wait_for(lambda: not tracked(info_hash), "the tracker to forget it")
    assert asked("a/obj.bin") == "served"
    wait_for(lambda: tracked(info_hash), "the tracker to know it again")


def test_torrents_of_the_api_need_an_administrator(public):
    server, _ = public
    for method, path in (("GET", "/api/v1/torrents"), ("POST", "/api/v1/torrents"), ("GET", "/api/v1/torrents/a:b:c:d"),
                         ("DELETE", "/api/v1/torrents/a:b:c:d"), ("GET", "/api/v1/torrents/a:b:c:d/file")):
        assert server.request(method, path).status == 401
    assert server.get("/api/v1/torrents/a:b:c:d", keys=server.keys).status == 404
    assert server.get("/api/v1/torrents/xyz", keys=server.keys).status == 400


# --- downloads by clients from the web seed alone ---

QUIET = {"enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
         "listen_interfaces": "127.0.0.1:0"}


def run_client(args, done, log):
    """Runs a program until done(); it is ended by its pid if it does not end by itself."""
    with open(log, "wb") as out:
        process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        wait_for(lambda: done() or process.poll(), args[0])
        assert done(), log.read_text(errors="replace")[-2000:]
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=DEADLINE)


def by_libtorrent(torrent, folder, have):
    session = lt.session(QUIET)
    handle = session.add_torrent({"ti": lt.torrent_info(str(torrent)), "save_path": str(folder)})
    wait_for(lambda: handle.status().is_seeding, "libtorrent")
    session.remove_torrent(handle)
    wait_for(have, "the bytes in the file, which libtorrent writes behind")


def by_aria2(torrent, folder, have):
    run_client(["aria2c", "--no-conf", "--enable-dht=false", "--enable-dht6=false", "--bt-enable-lpd=false",
                "--seed-time=0", "--listen-port", free_port(), "--dir", folder, "--file-allocation=none", torrent], have,
               folder / "log")


def by_transmission(torrent, folder, have):
    # It has no flag for the address of its port; no peer is told of it.
    run_client(["transmission-cli", "--config-dir", folder / "config", "--download-dir", folder, "--port", free_port(),
                "--no-portmap", torrent], have, folder / "log")


@pytest.mark.parametrize("client", [by_libtorrent, by_aria2, by_transmission], ids=["libtorrent", "aria2", "transmission"])
def test_webseed_only_download(public, tmp_path, client):
    server, s3 = public
    body = pattern(3_000_000)
    s3.put_object(Bucket="pub", Key="data/obj.bin", Body=body)
    torrent = tmp_path / "obj.torrent"
    torrent.write_bytes(torrent_of(server, "pub", "data/obj.bin").body)
    folder = tmp_path / "got"
    folder.mkdir()

    def have():
        path = folder / "obj.bin"
        return path.exists() and path.read_bytes() == body
    client(torrent, folder, have)


def test_webseed_only_download_of_version_2_and_hybrid(public, tmp_path):
    server, s3 = public
    body = pattern(3_000_000)
    s3.put_object(Bucket="pub", Key="obj.bin", Body=body)
    for kind in ("2", "hybrid"):
        torrent, folder = tmp_path / f"{kind}.torrent", tmp_path / kind
        folder.mkdir()
        torrent.write_bytes(torrent_of(server, "pub", "obj.bin", f"&v={kind}").body)
        by_libtorrent(torrent, folder, lambda: (folder / "obj.bin").read_bytes() == body)


def piece_of(server, key, info_hash, piece, more=""):
    return fetch(f"{server.s3_url}/pub/{key}?info_hash={urllib.parse.quote(info_hash)}&piece={piece}{more}")


def test_bep17_503_wait(serve, tmp_path):
    server, s3 = with_bucket(serve(*track("--tracker.hash_at_once", "1MiB")).ready())
    body = pattern(3_000_000)
    s3.put_object(Bucket="pub", Key="obj.bin", Body=body)
    answer = wait_for(lambda: (a := torrent_of(server, "pub", "obj.bin", "&httpseeds")).status == 200 and a, "a torrent")
    meta = lt.bdecode(answer.body)
    assert meta[b"httpseeds"].decode() == f"{server.s3_url}/pub/obj.bin" and b"url-list" not in meta
    raw, length = hashlib.sha1(lt.bencode(meta[b"info"])).digest(), meta[b"info"][b"piece length"]
    assert piece_of(server, "obj.bin", raw, 1).body == body[length:2 * length]
    last = len(body) // length
    assert piece_of(server, "obj.bin", raw, last).body == body[last * length:]
    assert piece_of(server, "obj.bin", raw, 2, "&ranges=5-9").body == body[2 * length + 5:2 * length + 10]
    assert piece_of(server, "obj.bin", raw, 0, "&ranges=0-1,100-101").body == body[:2] + body[100:102]
    assert piece_of(server, "obj.bin", raw, 0, f"&ranges=0-{length}").status == 416
    assert piece_of(server, "obj.bin", raw, last + 1).status == 404
    assert piece_of(server, "obj.bin", b"x" * 20, 0).status == 404
    # Forgotten hashes are made again, and who asks meanwhile is told how long to wait.
    assert server.request("DELETE", f"/api/v1/torrents/{raw.hex()}", keys=server.keys).status == 204
    wait = piece_of(server, "obj.bin", raw, 0)
    assert wait.status == 503 and int(wait.body) > 0 and wait.headers["Retry-After"]
    wait_for(lambda: piece_of(server, "obj.bin", raw, 0).status == 200, "the hashes")
    assert piece_of(server, "obj.bin", raw, 0).body == body[:length]
    torrent = tmp_path / "obj.torrent"
    torrent.write_bytes(answer.body)
    by_libtorrent(torrent, tmp_path, lambda: (tmp_path / "obj.bin").read_bytes() == body)


def test_s3_torrent_of_an_object_on_a_remote_storage(serve, weir, tmp_path):
    back, own = with_bucket(serve(*track()).ready())
    own.create_bucket(Bucket="private")
    front = serve(*track("--tracker.hash_at_once", "1MiB")).ready()
    done = weir("storage", "add", "back", "--endpoint", back.s3_url, "--user", "root", "--access-key", back.keys[0],
                "--secret-key", back.keys[1], "--main", "--data", front.data, "--url", front.url)
    assert done.returncode == 0, done.stderr
    s3 = front.s3()
    body = pattern(3_000_000)
    s3.put_object(Bucket="pub", Key="small", Body=body[:1000])
    s3.put_object(Bucket="pub", Key="obj.bin", Body=body)
    s3.put_object(Bucket="private", Key="obj", Body=b"private")
    answer = torrent_of(front, "pub", "small")
    assert answer.status == 200, answer.body
    small = lt.bdecode(answer.body)
    assert small[b"info"][b"pieces"] == hashlib.sha1(body[:1000]).digest()
    assert small[b"url-list"].decode() == f"{front.s3_url}/pub/small"
    # A task reads the large one; both as anybody would, so that what is private stays so.
    made = wait_for(lambda: (a := torrent_of(front, "pub", "obj.bin")).status == 200 and a, "a torrent").body
    assert made == lt.bencode(libtorrent_makes(tmp_path, "obj.bin", body, lt.create_torrent.v1_only, lt.bdecode(made)))
    assert torrent_of(front, "private", "obj").error == "AccessDenied"
    with pytest.raises(s3.exceptions.ClientError, match="AccessDenied|Forbidden|403"):
        s3.get_object_torrent(Bucket="private", Key="obj")
    assert torrent_of(front, "pub", "absent").status in (403, 404)
    # Its own tracker is not in it, and the web seed goes through the gateway.
    torrent, folder = tmp_path / "obj.torrent", tmp_path / "got"
    folder.mkdir()
    torrent.write_bytes(made)
    by_libtorrent(torrent, folder, lambda: (folder / "obj.bin").read_bytes() == body)


def test_e2e_spreads_from_the_web_seed_to_clients(serve, tmp_path):
    """The first client has the object alone to download from, the second the first client alone."""
    server, s3 = with_bucket(serve().ready())
    body = pattern(1_000_000)
    s3.put_object(Bucket="pub", Key="obj.bin", Body=body)
    torrent = tmp_path / "obj.torrent"
    torrent.write_bytes(torrent_of(server, "pub", "obj.bin").body)
    sessions = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        session = lt.session({**QUIET, "allow_multiple_connections_per_ip": True, "announce_to_all_tiers": True})
        handle = session.add_torrent({"ti": lt.torrent_info(str(torrent)), "save_path": str(folder)})
        wait_for(lambda: handle.status().is_seeding, f"the {name} client")
        wait_for(lambda: (folder / "obj.bin").read_bytes() == body, "the bytes in the file, which libtorrent writes behind")
        sessions.append((session, handle))
        if name == "first":
            s3.delete_bucket_policy(Bucket="pub")
            assert fetch(f"{server.s3_url}/pub/obj.bin").status == 403
            # The tracker has heard of it as a seeder before the second asks.
            wait_for(lambda: any(t["complete"] for t in scrape(torrent)), "the tracker")
    sessions[1][1].pause()
    sessions[0][1].pause()


def scrape(torrent):
    """What the tracker's HTTP side says of the torrent."""
    meta = lt.bdecode(torrent.read_bytes())
    raw = urllib.parse.quote(hashlib.sha1(lt.bencode(meta[b"info"])).digest())
    answer = fetch(meta[b"announce"].decode().replace("/announce", "/scrape") + f"?info_hash={raw}")
    return [{k.decode(): v for k, v in f.items()} for f in lt.bdecode(answer.body).get(b"files", {}).values()]
