"""Server-side encryption as boto3 uses it, what is then on the disk, and a backup of it."""
import base64
import io
import os
import urllib.request

import pytest

pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from boto3.s3.transfer import TransferConfig  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402
from conftest import body, secret  # noqa: E402

MIB = 1024 * 1024
ONE, TWO = b"1" * 32, b"2" * 32
for text in (ONE, TWO):
    secret(text.decode())
    secret(base64.b64encode(text).decode())
KINDS = {
    "none": {},
    "c": {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": ONE},
    "s3": {"ServerSideEncryption": "AES256"},
    "kms": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "payroll"},
}


def reading(kind):
    return KINDS[kind] if kind == "c" else {}


@pytest.fixture
def s3(server):
    keys = server.data / "encryption.keys"
    with open(os.open(keys, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f"payroll 1 {secret(os.urandom(32).hex())}\n")
    return server.box()


def on_disk(server, needle):
    """Whether a file of the storage or of the database has these bytes."""
    return any(needle in file.read_bytes() for file in server.data.rglob("*") if file.is_file())


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_large_and_small_come_back_and_are_not_on_the_disk(s3, server, kind):
    for size in (0, 1, 65535, 65536, 65537, 3 * MIB):
        data = os.urandom(size)
        s3.put_object(Bucket="box", Key="key", Body=data, **KINDS[kind])
        assert body(s3, "key", **reading(kind)) == data
        assert s3.head_object(Bucket="box", Key="key", **reading(kind))["ContentLength"] == size
        assert s3.list_objects_v2(Bucket="box")["Contents"][0]["Size"] == size
        if size > 16:
            assert on_disk(server, data[1000:1032]) == (kind == "none")
            assert body(s3, "key", Range="bytes=60000-70000", **reading(kind)) == data[60000:70001]


@pytest.mark.parametrize("kind", KINDS)
def test_uploads_in_parts_are_read_in_ranges_and_copied(s3, kind):
    data = os.urandom(12 * MIB + 1)
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=3)
    s3.upload_fileobj(io.BytesIO(data), "box", "big", ExtraArgs=KINDS[kind], Config=config)
    got = io.BytesIO()
    s3.download_fileobj("box", "big", got, ExtraArgs=reading(kind), Config=config)
    assert got.getvalue() == data
    assert body(s3, "big", PartNumber=2, **reading(kind)) == data[5 * MIB:10 * MIB]
    assert body(s3, "big", Range=f"bytes={5 * MIB - 10}-{5 * MIB + 9}", **reading(kind)) == data[5 * MIB - 10:5 * MIB + 10]
    source = {f"CopySource{name}": value for name, value in reading(kind).items()}
    for to in KINDS:
        s3.copy_object(Bucket="box", Key="copy", CopySource={"Bucket": "box", "Key": "big"}, **source, **KINDS[to])
        assert body(s3, "copy", **reading(to)) == data


def test_a_wrong_key_reads_nothing(s3):
    s3.put_object(Bucket="box", Key="key", Body=b"secret", **KINDS["c"])
    for wrong in ({}, {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": TWO}):
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket="box", Key="key", **wrong)
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert "secret" not in str(error.value)


def test_forms_and_signed_urls_are_encrypted_by_the_default(s3, server):
    s3.put_bucket_encryption(Bucket="box", ServerSideEncryptionConfiguration={"Rules": [
        {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]})
    data = os.urandom(1000)
    post = s3.generate_presigned_post("box", "posted")
    assert requests.post(post["url"], data=post["fields"], files={"file": ("x", data)}).status_code == 204
    url = s3.generate_presigned_url("put_object", {"Bucket": "box", "Key": "put"})
    answer = requests.put(url, data=data)
    assert answer.status_code == 200 and answer.headers["x-amz-server-side-encryption"] == "AES256"
    for key in ("posted", "put"):
        assert s3.head_object(Bucket="box", Key=key)["ServerSideEncryption"] == "AES256"
        url = s3.generate_presigned_url("get_object", {"Bucket": "box", "Key": key})
        assert urllib.request.urlopen(url).read() == data
    assert not on_disk(server, data[:32])
    fields = {"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "payroll"}
    post = s3.generate_presigned_post("box", "named", Fields=fields, Conditions=[{k: v} for k, v in fields.items()])
    assert requests.post(post["url"], data=post["fields"], files={"file": ("x", data)}).status_code == 204
    head = s3.head_object(Bucket="box", Key="named")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "payroll")


def test_checksums_are_of_the_plain_bytes(s3):
    for kind in KINDS:
        s3.put_object(Bucket="box", Key="sum", Body=b"hello", ChecksumAlgorithm="SHA256", **KINDS[kind])
        head = s3.head_object(Bucket="box", Key="sum", ChecksumMode="ENABLED", **reading(kind))
        assert head["ChecksumSHA256"] == "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="


def test_a_backup_opens_what_it_holds_and_a_lost_key_is_named(s3, server, serve, weir, tmp_path):
    s3.put_object(Bucket="box", Key="key", Body=b"hello", **KINDS["s3"])
    run = weir("backup", tmp_path / "copy", "--data", server.data, "--api.listen", server.url.removeprefix("http://"))
    assert run.returncode == 0, run.stderr
    restored = serve(data=tmp_path / "copy").ready()
    again = restored.s3()
    assert body(again, "key") == b"hello"
    restored.stop()
    (tmp_path / "copy/encryption.keys").unlink()
    lost = serve(data=tmp_path / "copy").ready()
    with pytest.raises(ClientError, match="InternalError"):
        lost.s3().get_object(Bucket="box", Key="key")
    assert "encryption.keys" in lost.err_path.read_text() + lost.out
