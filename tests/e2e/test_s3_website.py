"""Websites: configured with boto3, read with plain HTTP by their host."""
import json

import pytest

pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from botocore.exceptions import ClientError  # noqa: E402


@pytest.fixture
def site(serve):
    server = serve("--s3.website_domain", "web.test").ready()
    s3 = server.box()
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::box/*"}
    s3.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    def get(path, method="GET", **headers):
        return requests.request(method, server.s3_url + path, headers={"Host": "box.web.test", **headers}, allow_redirects=False)
    return s3, get


def test_a_site_is_read_as_a_browser_does(site):
    s3, get = site
    with pytest.raises(ClientError, match="NoSuchWebsiteConfiguration"):
        s3.get_bucket_website(Bucket="box")
    s3.put_bucket_website(Bucket="box", WebsiteConfiguration={
        "IndexDocument": {"Suffix": "index.html"}, "ErrorDocument": {"Key": "error.html"},
        "RoutingRules": [{"Condition": {"KeyPrefixEquals": "old/"}, "Redirect": {"ReplaceKeyPrefixWith": "new/"}}]})
    assert s3.get_bucket_website(Bucket="box")["IndexDocument"] == {"Suffix": "index.html"}
    s3.put_object(Bucket="box", Key="index.html", Body=b"home", ContentType="text/html")
    s3.put_object(Bucket="box", Key="docs/index.html", Body=b"docs" * 100000, ContentType="text/html")
    s3.put_object(Bucket="box", Key="moved", WebsiteRedirectLocation="/docs/")
    home = get("/")
    assert home.text == "home" and home.headers["Content-Type"] == "text/html"
    assert get("/", **{"If-None-Match": home.headers["ETag"]}).status_code == 304
    assert get("/docs/", **{"Range": "bytes=0-3"}).text == "docs" and get("/docs/").content == b"docs" * 100000
    assert get("/docs/", "HEAD").headers["Content-Length"] == "400000"
    assert (get("/docs").status_code, get("/docs").headers["Location"]) == (302, "/docs/")
    assert (get("/moved").status_code, get("/moved").headers["Location"]) == (301, "/docs/")
    assert get("/old/x").headers["Location"] == "http://box.web.test/new/x"
    missing = get("/none")
    assert missing.status_code == 403 and "<li>Code: AccessDenied</li>" in missing.text
    s3.put_object(Bucket="box", Key="error.html", Body=b"oops", ContentType="text/html")
    assert (get("/none").status_code, get("/none").text) == (403, "oops")
    assert get("/", "POST").status_code == 405
    s3.delete_bucket_website(Bucket="box")
    assert get("/").status_code == 404


def test_everything_can_be_sent_elsewhere(site):
    s3, get = site
    s3.put_bucket_website(Bucket="box", WebsiteConfiguration={
        "RedirectAllRequestsTo": {"HostName": "other.test", "Protocol": "https"}})
    assert get("/a b").headers["Location"] == "https://other.test/a%20b"
