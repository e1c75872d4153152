"""Lifecycle rules end to end, with days of a second."""
import json
import re

import pytest

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402
from conftest import wait_for  # noqa: E402

DAY = ("--s3.lifecycle.day", "1s", "--s3.storage_classes", "STANDARD,COLD,ICE")


def set_rules(s3, *rules):
    s3.put_bucket_lifecycle_configuration(Bucket="box", LifecycleConfiguration={"Rules": [
        {"ID": str(i), "Status": "Enabled", "Prefix": "", **rule} for i, rule in enumerate(rules)]})


def keys(s3):
    return [o["Key"] for o in s3.list_objects_v2(Bucket="box").get("Contents", [])]


def test_objects_versions_markers_and_uploads_go(serve, weir):
    server = serve(*DAY).ready()
    s3 = server.box()
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    for key in ("tmp/a", "tmp/a", "tmp/b", "keep"):
        s3.put_object(Bucket="box", Key=key, Body=b"x")
    s3.create_multipart_upload(Bucket="box", Key="tmp/up")
    set_rules(s3, {"Prefix": "tmp/", "Expiration": {"Days": 1}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                   "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}})

    def rest():
        found = s3.list_object_versions(Bucket="box")
        return ([v["Key"] for v in found.get("Versions", [])] == ["keep"] and "DeleteMarkers" not in found
                and "Uploads" not in s3.list_multipart_uploads(Bucket="box"))
    wait_for(rest, "all but one object to go")
    for name, count in (("expired", 2), ("removed", 3), ("markers", 2), ("uploads", 1)):  # counted a moment later
        wait_for(lambda: server.metric(f"weir_lifecycle_{name}_total") == count, f"{count} {name}")

    def shown():
        row = json.loads(weir("bucket", "show", "box", "--json", "--url", server.url, "--data", server.data).stdout)[0]
        return row["swept"] and row["examined"] == 0 and row
    assert wait_for(shown, "a sweep that found nothing")["lifecycle"] in ("idle", "sweeping")
    assert server.stop() == 0


def test_classes_change_in_turn_and_bytes_stay(serve):
    s3 = serve(*DAY).ready().box()
    s3.put_object(Bucket="box", Key="k", Body=b"bytes", Metadata={"a": "b"})
    before = s3.head_object(Bucket="box", Key="k")
    set_rules(s3, {"Transitions": [{"Days": 1, "StorageClass": "COLD"}, {"Days": 2, "StorageClass": "ICE"}]})
    seen = []

    def cold():
        seen.append(s3.head_object(Bucket="box", Key="k").get("StorageClass"))
        return seen[-1] == "ICE"
    wait_for(cold, "the last class")
    assert set(seen) <= {None, "COLD", "ICE"}
    got = s3.get_object(Bucket="box", Key="k")
    assert got["Body"].read() == b"bytes" and got["Metadata"] == {"a": "b"}
    assert got["LastModified"] == before["LastModified"] and got["ETag"] == before["ETag"]
    assert s3.list_objects_v2(Bucket="box")["Contents"][0]["StorageClass"] == "ICE"


def test_the_header_tells_when_and_by_which_rule(serve):
    s3 = serve().ready().box()
    set_rules(s3, {"Prefix": "t/", "Expiration": {"Days": 3}})
    pattern = r'expiry-date="\w+, \d\d \w+ \d+ 00:00:00 GMT", rule-id="0"'
    assert re.fullmatch(pattern, s3.put_object(Bucket="box", Key="t/k", Body=b"x")["Expiration"])
    assert re.fullmatch(pattern, s3.head_object(Bucket="box", Key="t/k")["Expiration"])
    s3.put_object(Bucket="box", Key="k", Body=b"x")
    assert "Expiration" not in s3.get_object(Bucket="box", Key="k")


def test_classes_are_those_of_the_configuration(serve):
    s3 = serve(*DAY).ready().box()
    s3.put_object(Bucket="box", Key="ice", Body=b"x", StorageClass="ICE")
    assert s3.head_object(Bucket="box", Key="ice")["StorageClass"] == "ICE"
    upload = s3.create_multipart_upload(Bucket="box", Key="parts", StorageClass="COLD")["UploadId"]
    part = s3.upload_part(Bucket="box", Key="parts", UploadId=upload, PartNumber=1, Body=b"x")
    s3.complete_multipart_upload(Bucket="box", Key="parts", UploadId=upload,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert s3.head_object(Bucket="box", Key="parts")["StorageClass"] == "COLD"
    s3.copy_object(Bucket="box", Key="copy", CopySource="box/ice")
    assert "StorageClass" not in s3.head_object(Bucket="box", Key="copy")
    with pytest.raises(ClientError, match="InvalidStorageClass"):
        s3.put_object(Bucket="box", Key="k", Body=b"x", StorageClass="GLACIER")
    with pytest.raises(ClientError, match="MalformedXML"):
        set_rules(s3, {"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]})


def test_a_gateway_alone_sweeps_nothing_and_a_worker_goes_on(serve, tmp_path):
    """--only gateway has no worker; the same folder under --only worker has one."""
    data = tmp_path / "shared"
    first = serve(*DAY, "--only", "gateway", data=data).ready()
    s3 = first.box()
    s3.put_object(Bucket="box", Key="k", Body=b"x")
    set_rules(s3, {"Expiration": {"Date": "2020-01-01T00:00:00Z"}})
    assert not re.search(r"^weir_lifecycle_sweeps_total ", first.get("/metrics").body, re.M)
    assert first.stop() == 0
    second = serve(*DAY, "--only", "worker", data=data).ready()
    wait_for(lambda: second.metric("weir_lifecycle_expired_total") == 1, "the object to go")
    assert second.stop() == 0
    third = serve(*DAY, "--only", "gateway", data=data).ready()
    assert keys(third.s3()) == []
