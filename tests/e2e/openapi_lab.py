"""The OpenAPI document of weir, and a check of calls against it.

Every call that a test makes by Server.request is compared with the document: the answer, and also the request when it was
accepted. test_openapi.py loads this file as a plugin for its own tests. Any other suite can be run with it, too:

    python3 -m pytest -q -p openapi_lab tests/e2e/test_users.py
"""
import copy
import json
import re
import subprocess
import urllib.parse

import conftest
import jsonschema
import pytest

VERBS = ("get", "put", "post", "delete", "head", "patch")


def plain(schema):
    """A schema of OpenAPI 3.0 as a JSON Schema: `nullable` becomes one of the types."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: plain(value) for name, value in schema.items() if name != "nullable"}
    if schema.get("nullable") is True:
        made["type"] = [made["type"], "null"]
    return made


class Document:
    def __init__(self, text):
        self.json = json.loads(text)
        self.schemas = {"components": plain(copy.deepcopy(self.json["components"]))}
        self.resolver = jsonschema.RefResolver("", self.schemas)
        self.operations = {(verb.upper(), path): operation for path, verbs in self.json["paths"].items()
                           for verb, operation in verbs.items()}
        self.answered = set()   # operations that were answered with success

    def find(self, method, path):
        """The operation of a request and its path in the document; None when the document does not have it."""
        segments = path.split("/")
        best = None
        for verb, pattern in self.operations:
            names = pattern.split("/")
            fits = len(names) == len(segments) and all(
                name == urllib.parse.unquote(one) or (name.startswith("{") and one) for name, one in zip(names, segments))
            exact = [not name.startswith("{") for name in names]
            if verb == method and fits and (not best or exact > best[0]):
                best = exact, (verb, pattern)
        return best and best[1]

    def check(self, value, schema, what):
        errors = sorted(jsonschema.Draft4Validator(plain(schema), resolver=self.resolver).iter_errors(value), key=str)
        assert not errors, f"{what}: {'; '.join(f'{list(e.absolute_path)}: {e.message[:300]}' for e in errors[:5])}"

    def check_request(self, call, query, body):
        operation, what = self.operations[call], " ".join(call)
        parameters = {p["name"]: p for p in operation["parameters"] if p["in"] == "query"}
        given = dict(urllib.parse.parse_qsl(query))
        if operation["x-weir-who"] != "anyone":
            assert set(given) <= set(parameters), f"{what}: {set(given) - set(parameters)} is not described"
        for name in set(given) & set(parameters):
            schema = parameters[name]["schema"]
            numeric = schema.get("type") in ("integer", "number", "boolean")
            self.check(json.loads(given[name]) if numeric else given[name], schema, f"{what} ?{name}")
        if "requestBody" not in operation:
            assert not body or json.loads(body) == {}, f"{what} has a body that is not described"
        elif "application/json" in operation["requestBody"]["content"]:
            self.check(json.loads(body), operation["requestBody"]["content"]["application/json"]["schema"], what + " body")

    def check_answer(self, call, status, headers, body):
        operation, what = self.operations[call], f"{' '.join(call)}, status {status}"
        described = operation["responses"].get(str(status))
        if not described:
            assert status >= 400, f"{what} is not described"
            described = self.json["components"]["responses"]["Error"]
        if status < 300:
            self.answered.add(call)
        if "content" not in described:
            assert not body, f"{what} has a body that is not described"
            return
        (media, content), = described["content"].items()
        assert headers["Content-Type"] == media, f"{what}: {headers['Content-Type']} instead of {media}"
        if media == "application/json" and "$ref" in content["schema"]:
            self.check(json.loads(body), content["schema"], what)

    def exchanged(self, method, target, sent, status, headers, body):
        """Checks a request and its answer, if the document has them."""
        path, _, query = target.partition("?")
        call = self.find(method, path)
        if not call:
            return
        self.check_answer(call, status, headers, body)
        if status < 300:
            self.check_request(call, query, sent)

    def missing(self, tag):
        """The GETs of a room that were not answered with success."""
        return sorted(path for (verb, path), o in self.operations.items()
                      if verb == "GET" and tag in o["tags"] and (verb, path) not in self.answered)


@pytest.fixture(scope="session")
def document():
    text = subprocess.run([conftest.WEIR, "help", "--openapi"], capture_output=True, text=True, check=True).stdout
    return Document(text)


@pytest.fixture(autouse=True)
def every_call_is_as_described(document, monkeypatch):
    request = conftest.Server.request

    def checked(self, method, path, body=None, **more):
        answer = request(self, method, path, body=body, **more)
        sent = json.dumps(body) if isinstance(body, dict) else body
        document.exchanged(method, path, sent, answer.status, answer.headers, answer.body)
        return answer
    monkeypatch.setattr(conftest.Server, "request", checked)


# --- the document itself ---

SCHEMA_KEYS = {"description", "type", "format", "nullable", "enum", "pattern", "default", "minimum", "maximum", "minLength",
               "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "items", "properties", "required",
               "additionalProperties", "x-weir-min-ms", "x-weir-max-ms"}


def check_schema(schema, where):
    """The rules of OpenAPI 3.0.3 for a schema, as far as weir writes schemas."""
    if set(schema) == {"$ref"}:
        return
    assert set(schema) <= SCHEMA_KEYS, (where, set(schema) - SCHEMA_KEYS)
    assert schema.get("type", "string") in ("string", "integer", "number", "boolean", "array", "object"), where
    assert "nullable" not in schema or "type" in schema, where
    assert ("items" in schema) == (schema.get("type") == "array"), where
    assert "required" not in schema or (schema["required"] and set(schema["required"]) <= set(schema["properties"])), where
    assert "enum" not in schema or (schema["enum"] and len(set(schema["enum"])) == len(schema["enum"])), where
    re.compile(schema.get("pattern", ""))
    jsonschema.Draft4Validator.check_schema(plain(schema))
    for name, one in schema.get("properties", {}).items():
        check_schema(one, f"{where}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            check_schema(schema[name], f"{where}.{name}")


def walk(value, where=()):
    """All dictionaries of a document, each with its place."""
    if isinstance(value, dict):
        yield where, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in pairs:
        yield from walk(one, (*where, name))
