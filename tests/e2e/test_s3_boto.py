"""boto3 against the S3 endpoint: what a program in the field does, end to end."""
import io
import json
import os
import urllib.request

import pytest

pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from botocore.exceptions import ClientError  # noqa: E402
from conftest import body  # noqa: E402

KEY = "a key ü+%&=.txt"


@pytest.fixture
def s3(server):
    return server.box()


def test_an_object_comes_back_and_is_listed(s3):
    s3.put_object(Bucket="box", Key=KEY, Body=b"hello", Metadata={"a": "b"}, ContentType="text/plain", Tagging="x=1")
    got = s3.get_object(Bucket="box", Key=KEY)
    assert got["Body"].read() == b"hello" and got["Metadata"] == {"a": "b"} and got["ContentType"] == "text/plain"
    assert s3.head_object(Bucket="box", Key=KEY)["ContentLength"] == 5
    for listing in (s3.list_objects, s3.list_objects_v2):
        assert [o["Key"] for o in listing(Bucket="box")["Contents"]] == [KEY]
    assert s3.get_object_tagging(Bucket="box", Key=KEY)["TagSet"] == [{"Key": "x", "Value": "1"}]
    assert urllib.request.urlopen(s3.generate_presigned_url("get_object", {"Bucket": "box", "Key": KEY})).read() == b"hello"
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="box", Key="none")


def test_large_bodies_go_in_parts_and_are_copied(s3):
    big = os.urandom(20 * 1024 * 1024)
    s3.upload_fileobj(io.BytesIO(big), "box", "big")
    assert s3.head_object(Bucket="box", Key="big")["ETag"].endswith('-3"')
    s3.copy({"Bucket": "box", "Key": "big"}, "box", "copy")
    assert body(s3, "copy") == big and body(s3, "big", Range="bytes=100-199") == big[100:200]


def test_checksums_are_kept(s3):
    s3.put_object(Bucket="box", Key="sum", Body=b"hello", ChecksumAlgorithm="SHA256")
    head = s3.head_object(Bucket="box", Key="sum", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="
    upload = s3.create_multipart_upload(Bucket="box", Key="mp", ChecksumAlgorithm="CRC32")["UploadId"]
    part = s3.upload_part(Bucket="box", Key="mp", UploadId=upload, PartNumber=1, Body=b"x" * 100, ChecksumAlgorithm="CRC32")
    parts = [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]
    done = s3.complete_multipart_upload(Bucket="box", Key="mp", UploadId=upload, MultipartUpload={"Parts": parts})
    assert done["ChecksumCRC32"].endswith("-1")


def test_a_signed_form_uploads(s3):
    post = s3.generate_presigned_post("box", "posted", Fields={"acl": "private"},
                                      Conditions=[{"acl": "private"}, ["content-length-range", 0, 100]])
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"posted!")})
    assert answer.status_code == 204 and body(s3, "posted") == b"posted!"
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"p" * 101)})
    assert answer.status_code == 400 and "EntityTooLarge" in answer.text
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(Bucket="box", LifecycleConfiguration={"Rules": [rule]})
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"again")})
    assert answer.headers["x-amz-expiration"].endswith('rule-id="r"')
    head = s3.head_object(Bucket="box", Key="posted", ChecksumMode="ENABLED")["ResponseMetadata"]["HTTPHeaders"]
    assert len(head["x-amz-checksum-crc64nvme"]) == 12


def test_versions_are_listed_and_removed_together(s3):
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    for text in (b"1", b"2"):
        s3.put_object(Bucket="box", Key="v", Body=text)
    s3.delete_object(Bucket="box", Key="v")
    found = s3.list_object_versions(Bucket="box")
    assert len(found["Versions"]) == 2 and len(found["DeleteMarkers"]) == 1
    all_of_them = [{"Key": v["Key"], "VersionId": v["VersionId"]} for v in found["Versions"] + found["DeleteMarkers"]]
    assert "Errors" not in s3.delete_objects(Bucket="box", Delete={"Objects": all_of_them})
    s3.delete_bucket(Bucket="box")


def test_what_buckets_hold_is_told_and_how_many_there_may_be(serve):
    server = serve("--s3.max_buckets", "2").ready()
    s3 = server.s3()
    for name in ("one", "two"):
        s3.create_bucket(Bucket=name)
    with pytest.raises(ClientError, match="TooManyBuckets"):
        s3.create_bucket(Bucket="three")
    s3.put_bucket_versioning(Bucket="two", VersioningConfiguration={"Status": "Enabled"})
    for text in (b"1", b"22"):
        s3.put_object(Bucket="two", Key="k", Body=text)
    told = server.get("/api/v1/buckets/two", keys=server.keys)
    bucket = json.loads(told.body)["buckets"][0]
    assert [bucket[n] for n in ("objects", "bytes", "old_versions", "old_bytes")] == [1, 2, 1, 1]
