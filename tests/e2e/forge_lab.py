"""A forge of our own for tests: an HTTP server on loopback that answers like GitHub, GitLab or Gitea.

    forge = Forge("github", git="http://127.0.0.1:4000")     # clone URLs lead to a git server (git_lab.py)
    forge.add_account("octocat")
    forge.add_repo("octocat", "Hello-World", pushed_at="2026-01-01T00:00:00Z")
    forge.answer(r"/users/octocat/repos", status=502, times=2)
    ...
    assert forge.count(r"/users/octocat/repos", status=304) == 1
    forge.stop()

The answers have the form that the forges document. Every request is counted in `requests`. `answer()` puts a scripted
answer before the usual one: a status, headers, a delay, a body that is cut. Tokens have quotas of their own, and so have
requests without a token; an answer 304 to a request with a token is free, as at GitHub. Fields of a repository may be
changed at any time; names and owners are changed by the functions."""
import base64
import collections
import hashlib
import http.server
import itertools
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse

PER_PAGE = {"github": 100, "gitlab": 100, "gitea": 50}   # most items on a page
DEFAULT = {"github": 30, "gitlab": 20, "gitea": 30}
PREFIX = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
DOCS = "https://docs.github.com/rest"

Seen = collections.namedtuple("Seen", "method path query headers token status time")


class Answer:
    """An answer. `cut`: the connection is closed after so many bytes of the body. `delay`: seconds before the head.
    `drip`: seconds between single bytes of the body."""

    def __init__(self, status=200, body=None, headers=None, delay=0, cut=None, drip=None):
        self.status, self.headers, self.delay, self.cut, self.drip = status, dict(headers or {}), delay, cut, drip
        self.body = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()


class Rule:
    def __init__(self, path, times, method, token, make):
        self.path, self.times, self.method, self.token, self.make = re.compile(path), times, method, token, make

    def takes(self, call):
        if self.times == 0 or (self.method and self.method != call.command) or (self.token and self.token != call.token):
            return False
        return bool(self.path.search(call.path_only))


class Token:
    """A token, or with the name None the requests without one."""

    def __init__(self, name, limit, window=3600):
        self.name, self.limit, self.remaining = name, limit, limit
        self.reset = int(time.time()) + window
        self.window = window
        self.dead = False

    def count(self):
        if time.time() >= self.reset:
            self.remaining, self.reset = self.limit, int(time.time()) + self.window
        if self.remaining == 0:
            return False
        self.remaining -= 1
        return True


class Account(dict):
    """login, id, type, members (logins), gists; `full` is the path of a GitLab group."""


class Repo(dict):
    """name, id, owner (key of the account), and the fields that the listing shows. `blocked`: the reason of a 451.
    `issues`, `pulls`, `releases`, `comments` are lists of objects; None: the feature is switched off."""


class Forge:
    def __init__(self, kind="github", git=None, root=None, window=3600, anonymous=60, etags=None):
        """`git`: base URL of the clone URLs. `root`: a folder of bare repositories <owner>/<name>.git, which the forge
        serves itself below /git by git http-backend; it has an LFS server too (`lfs`)."""
        self.kind, self.root, self.window = kind, root, window
        self.etags = kind != "gitea" if etags is None else etags
        self.accounts, self.repos, self.tokens, self.rules, self.requests = {}, {}, {}, [], []
        self.lfs, self.assets = {}, {}            # oid -> bytes; id of an asset -> bytes
        self.ids = itertools.count(1000)
        self.lock = threading.RLock()
        self.anonymous = Token(None, anonymous, window)
        self.running, self.most_at_once = 0, 0
        lab = self

        class Handler(Call):
            forge = lab

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self.api = self.url + PREFIX[kind]
        self.git = git or self.url + "/git"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- what there is ---

    def add_account(self, login, type="User", id=None, members=()):
        with self.lock:
            account = Account(login=login, type=type, id=id or next(self.ids), members=list(members), repos=[], gists=[])
            self.accounts[login.lower()] = account
            return account

    def add_repo(self, login, name, id=None, **fields):
        with self.lock:
            account = self.accounts[login.lower()]
            repo = Repo(name=name, id=id or next(self.ids), owner=account, pushed_at="2026-01-01T00:00:00Z", size=1,
                        default_branch="main", issues=[], pulls=[], releases=[], comments=[], reviews=[], **{})
            repo.update(fields)
            self.repos[repo["id"]] = repo
            account["repos"].append(repo["id"])
            account.pop("order", None)
            return repo

    def add_many(self, login, count, name="r{:06}", **fields):
        for i in range(count):
            self.add_repo(login, name.format(i), **fields)

    def find_repo(self, login, name):
        account = self.accounts.get(login.lower())
        for id in account["repos"] if account else ():
            if self.repos[id]["name"].lower() == name.lower():
                return self.repos[id]
        return None

    def rename_repo(self, login, old, new):
        with self.lock:
            repo = self.find_repo(login, old)
            repo["name"] = new
            repo["owner"].pop("order", None)

    def rename_account(self, old, new):
        with self.lock:
            account = self.accounts.pop(old.lower())
            account["login"] = new
            self.accounts[new.lower()] = account

    def remove_account(self, login):
        with self.lock:
            for id in self.accounts.pop(login.lower())["repos"]:
                self.repos.pop(id)

    def remove_repo(self, login, name):
        with self.lock:
            repo = self.find_repo(login, name)
            repo["owner"]["repos"].remove(repo["id"])
            repo["owner"].pop("order", None)
            del self.repos[repo["id"]]

    def transfer_repo(self, login, name, to):
        with self.lock:
            repo = self.find_repo(login, name)
            repo["owner"]["repos"].remove(repo["id"])
            repo["owner"].pop("order", None)
            repo["owner"] = self.accounts[to.lower()]
            repo["owner"]["repos"].append(repo["id"])
            repo["owner"].pop("order", None)

    def push(self, login, name, at=None):
        """The repository was pushed to."""
        self.find_repo(login, name)["pushed_at"] = at or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def add_token(self, name, limit=5000):
        self.tokens[name] = Token(name, limit, self.window)
        return name

    # --- scripted answers ---

    def answer(self, path, status=200, body=None, headers=None, times=-1, method=None, token=None, delay=0, cut=None,
               drip=None, make=None):
        """Answers requests whose path matches the expression, `times` times (-1: always). `make(call)` makes the answer,
        or returns None for the usual one."""
        fixed = Answer(status, body, headers, delay, cut, drip)
        with self.lock:
            rule = Rule(path, times, method, token, make or (lambda call: fixed))
            self.rules.insert(0, rule)
            return rule

    def primary_limit(self, path=r"", times=-1, reset_in=60, token=None, **more):
        """GitHub's answer when no request is left."""
        return self.answer(path, 403, {"message": "API rate limit exceeded for user ID 1.", "documentation_url": DOCS},
                           {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0",
                            "x-ratelimit-reset": str(int(time.time()) + reset_in)}, times, token=token, **more)

    def secondary_limit(self, path=r"", times=-1, retry_after=None, status=403, token=None, **more):
        return self.answer(path, status, {"message": "You have exceeded a secondary rate limit. Please wait a few minutes "
                                          "before you try again.", "documentation_url": DOCS},
                           {} if retry_after is None else {"Retry-After": str(retry_after)}, times, token=token, **more)

    def blocked(self, path, reason="dmca", status=451, **more):
        return self.answer(path, status, {"message": "Repository access blocked", "block": {
            "reason": reason, "created_at": "2026-01-01T00:00:00Z", "html_url": "https://github.com/github/" + reason}},
            **more)

    # --- what was asked ---

    def count(self, path=r"", status=None, method=None, token=False, since=0):
        with self.lock:
            return sum(1 for r in self.requests[since:]
                       if re.search(path, r.path) and status in (None, r.status) and method in (None, r.method)
                       and token in (False, r.token))

    def mark(self):
        with self.lock:
            return len(self.requests)


class Call(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True      # head and body are two writes, and the second would wait for the first one's ACK
    forge = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        forge = self.forge
        path, _, self.query_text = self.path.partition("?")
        self.path_only = path                     # with its escapes
        self.query = dict(urllib.parse.parse_qsl(self.query_text, keep_blank_values=True))
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0) or 0))
        self.token = self.read_token()
        with forge.lock:
            forge.running += 1
            forge.most_at_once = max(forge.most_at_once, forge.running)
        try:
            answer = self.decide()
            with forge.lock:
                forge.requests.append(Seen(self.command, path, self.query, dict(self.headers), self.token, answer.status,
                                           time.monotonic()))
            if answer.delay:
                time.sleep(answer.delay)
        finally:
            with forge.lock:
                forge.running -= 1
        self.send(answer)

    do_POST = do_HEAD = do_GET

    def read_token(self):
        given = self.headers.get("Authorization", "")
        if self.headers.get("PRIVATE-TOKEN"):
            return self.headers["PRIVATE-TOKEN"]
        if given.lower().startswith("basic "):
            return base64.b64decode(given[6:]).decode().partition(":")[2] or None
        return given.partition(" ")[2] or None

    def send(self, answer):
        body = answer.body
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in (204, 304):
            if "Content-Type" not in answer.headers:
                self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if answer.status in (204, 304) or self.command == "HEAD":
            return
        try:
            if answer.drip:
                for i in range(len(body)):
                    self.wfile.write(body[i:i + 1])
                    self.wfile.flush()
                    time.sleep(answer.drip)
            else:
                self.wfile.write(body if answer.cut is None else body[:answer.cut])
        except OSError:
            self.close_connection = True
        if answer.cut is not None:
            self.close_connection = True

    def decide(self):
        forge = self.forge
        with forge.lock:
            for rule in forge.rules:
                if rule.takes(self):
                    answer = rule.make(self)
                    if answer is not None:
                        rule.times -= rule.times > 0
                        answer.headers.setdefault("X-GitHub-Request-Id", f"REQ:{len(forge.requests)}")
                        return answer
            if not self.path_only.startswith("/git/"):
                return self.counted()
        return serve_git(self)

    def counted(self):
        """The usual answer, with the quota of its token."""
        forge = self.forge
        token = forge.tokens.get(self.token) if self.token else forge.anonymous
        path = self.path_only[len(PREFIX[forge.kind]):] if self.path_only.startswith(PREFIX[forge.kind]) else None
        if path is None:
            return not_found()
        if forge.kind == "github" and not self.headers.get("User-Agent"):
            return Answer(403, {"message": "Request forbidden by administrative rules."})
        if token is None or token.dead:
            return Answer(401, {"message": "Bad credentials", "documentation_url": DOCS})
        if path == "/rate_limit":
            return self.with_quota(Answer(200, {"resources": {"core": {
                "limit": token.limit, "remaining": token.remaining, "reset": token.reset}}}), token)
        answer = KINDS[forge.kind](self, path)
        if answer.status == 200 and forge.etags and self.command == "GET" and "ETag" not in answer.headers:
            answer.headers["ETag"] = 'W/"' + hashlib.sha256(answer.body).hexdigest() + '"'
        given = self.headers.get("If-None-Match")
        if given and given == answer.headers.get("ETag"):
            answer = Answer(304, headers={"ETag": given})   # GitHub sends no Link with it
        if not (answer.status == 304 and self.token) and not token.count():
            answer = Answer(403 if forge.kind == "github" else 429,
                            {"message": "API rate limit exceeded for user ID 1.", "documentation_url": DOCS})
        return self.with_quota(answer, token)

    def with_quota(self, answer, token):
        prefix = {"github": "x-ratelimit-", "gitlab": "RateLimit-"}.get(self.forge.kind)
        if prefix:
            answer.headers.update({prefix + "limit": str(token.limit), prefix + "remaining": str(token.remaining),
                                   prefix + "reset": str(token.reset)})
        if self.forge.kind == "github":
            answer.headers.update({"x-ratelimit-resource": "core",
                                   "X-GitHub-Request-Id": f"REQ:{len(self.forge.requests)}"})
        return answer

    def page(self, items, show, own=None):
        """One page of a list, with the header Link. `own`: the path that the links have, as GitHub's have the id."""
        kind = self.forge.kind
        size = self.query.get("limit" if kind == "gitea" else "per_page", "")
        size = min(int(size) if size.isdigit() and int(size) > 0 else DEFAULT[kind], PER_PAGE[kind])
        number = int(self.query.get("page", "1") or 1)
        last = max(1, (len(items) + size - 1) // size)
        answer = Answer(200, [show(i) for i in items[(number - 1) * size:number * size]])
        path = PREFIX[kind] + own if own else self.path_only
        links = {"next": number + 1 if number < last else None, "last": last if number < last else None,
                 "first": 1 if number > 1 else None, "prev": number - 1 if number > 1 else None}
        text = ", ".join('<{}{}?{}>; rel="{}"'.format(self.forge.url, path,
                                                        urllib.parse.urlencode({**self.query, "page": n}), rel)
                         for rel, n in links.items() if n)
        if text:
            answer.headers["Link"] = text
        if kind == "gitea":
            answer.headers["X-Total-Count"] = str(len(items))
        return answer


def not_found():
    return Answer(404, {"message": "Not Found", "documentation_url": DOCS})


def updated_since(items, since, key="updated_at"):
    return [i for i in items if not since or i.get(key, "") >= since]


# --- GitHub ---

def github_repo(forge, r):
    owner = r["owner"]["login"]
    clone = r.get("clone_url", f"{forge.git}/{owner}/{r['name']}.git")
    return {"id": r["id"], "node_id": f"R_{r['id']}", "name": r["name"], "full_name": f"{owner}/{r['name']}",
            "private": r.get("private", False),
            "owner": {"login": owner, "id": r["owner"]["id"], "type": r["owner"]["type"], "site_admin": False},
            "html_url": f"{forge.url}/{owner}/{r['name']}", "description": r.get("description"),
            "fork": r.get("fork", False), "created_at": "2020-01-01T00:00:00Z",
            "updated_at": r.get("updated_at", r["pushed_at"]), "pushed_at": r["pushed_at"],
            "git_url": f"git://github.com/{owner}/{r['name']}.git", "clone_url": clone, "size": r["size"],
            "stargazers_count": 1, "language": "C", "has_issues": r["issues"] is not None,
            "has_wiki": r.get("has_wiki", True), "mirror_url": None, "archived": r.get("archived", False),
            "disabled": r.get("disabled", False), "license": {"key": "mit", "name": "MIT License"},
            "topics": ["a", "b"], "visibility": "public", "default_branch": r["default_branch"]}


def github_account(a):
    return {"login": a["login"], "id": a["id"], "node_id": "U_1", "type": a["type"], "site_admin": False,
            "public_repos": len(a["repos"]), "name": None}


def sorted_repos(forge, account):
    if "order" not in account:                    # is kept, because an account may have 100,000 repositories
        account["order"] = sorted((forge.repos[i] for i in account["repos"]), key=lambda r: r["name"].lower())
    return account["order"]


def github(call, path):
    forge = call.forge
    part = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
    if part[0] == "users" and len(part) >= 2:
        account = forge.accounts.get(part[1].lower())
        return github_of_account(call, account, part[2:]) if account else not_found()
    if part[0] == "user" and len(part) >= 2:
        account = next((a for a in forge.accounts.values() if str(a["id"]) == part[1]), None)
        return github_of_account(call, account, part[2:]) if account else not_found()
    if part[0] == "orgs" and len(part) == 3 and part[2] == "members":
        account = forge.accounts.get(part[1].lower())
        if not account or account["type"] != "Organization":
            return not_found()
        return call.page(account["members"], lambda m: {"login": m, "id": 1, "type": "User"})
    if part[0] == "repositories" and len(part) == 2:
        return github_one_repo(call, forge.repos.get(int(part[1])), [])
    if part[0] == "repos" and len(part) >= 3:
        return github_one_repo(call, forge.find_repo(part[1], part[2]), part[3:])
    return not_found()


def github_of_account(call, account, rest):
    if rest == ["repos"]:
        return call.page(sorted_repos(call.forge, account), lambda r: github_repo(call.forge, r),
                         f"/user/{account['id']}/repos")
    if rest == ["gists"]:
        return call.page(updated_since(account["gists"], call.query.get("since")), dict)
    return Answer(200, github_account(account)) if not rest else not_found()


def github_one_repo(call, repo, rest):
    if not repo:
        return not_found()
    if repo.get("blocked"):
        return Answer(451, {"message": "Repository access blocked", "block": {
            "reason": repo["blocked"], "created_at": "2026-01-01T00:00:00Z", "html_url": "https://github.com/github/dmca"}})
    since = call.query.get("since")
    if not rest:
        return Answer(200, github_repo(call.forge, repo))
    if rest == ["issues"]:
        if repo["issues"] is None:
            return Answer(410, {"message": "Issues has been disabled in this repository.", "documentation_url": DOCS})
        return call.page(sorted(updated_since(repo["issues"], since), key=lambda i: i["updated_at"]), dict)
    if rest == ["issues", "comments"]:
        return call.page(sorted(updated_since(repo["comments"], since), key=lambda i: i["updated_at"]), dict)
    if rest == ["pulls"]:
        if repo["pulls"] is None:
            return not_found()
        newest = call.query.get("direction", "desc") == "desc"
        return call.page(sorted(repo["pulls"], key=lambda i: i["updated_at"], reverse=newest), dict)
    if rest == ["pulls", "comments"]:
        return call.page(sorted(updated_since(repo["reviews"], since), key=lambda i: i["updated_at"]), dict)
    if rest == ["releases"]:
        return call.page(repo["releases"], dict)
    if rest[:2] == ["releases", "assets"] and len(rest) == 3:
        return asset(call, rest[2])
    return not_found()


def asset(call, id):
    body = call.forge.assets.get(int(id))
    if isinstance(body, Answer):
        return body
    return Answer(200, body, {"Content-Type": "application/octet-stream"}) if body is not None else not_found()


# --- GitLab ---

def gitlab_project(forge, r):
    owner = r["owner"]["login"]
    return {"id": r["id"], "description": None, "name": r["name"].title(), "path": r["name"],
            "path_with_namespace": f"{owner}/{r['name']}", "default_branch": r["default_branch"],
            "http_url_to_repo": r.get("clone_url", f"{forge.git}/{owner}/{r['name']}.git"),
            "namespace": {"id": r["owner"]["id"], "full_path": owner, "kind": r["owner"]["type"].lower()},
            "last_activity_at": r["pushed_at"], "empty_repo": r.get("empty", False), "archived": r.get("archived", False),
            "visibility": r.get("visibility", "public"), "wiki_enabled": r.get("has_wiki", True),
            "repository_access_level": "disabled" if r.get("disabled") else "enabled"}


def gitlab_find(forge, word, group):
    for account in forge.accounts.values():
        if (account["type"] == "Group") == group and word.lower() in (account["login"].lower(), str(account["id"])):
            return account
    return None


def gitlab_group(a):
    return {"id": a["id"], "full_path": a["login"], "path": a["login"].rpartition("/")[2]}


def gitlab(call, path):
    forge = call.forge
    part = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
    if part == ["user"]:
        return Answer(200, {"id": 1, "username": "owner"})
    if part == ["users"]:
        account = gitlab_find(forge, call.query.get("username", ""), False)
        return Answer(200, [{"id": account["id"], "username": account["login"]}] if account else [])
    if part[0] in ("users", "groups") and len(part) >= 2:
        account = gitlab_find(forge, part[1], part[0] == "groups")
        if not account:
            return Answer(404, {"message": "404 Not Found"})
        if part[2:] == ["projects"]:
            repos = sorted((forge.repos[i] for i in account["repos"]), key=lambda r: r["id"])
            return call.page(repos, lambda r: gitlab_project(forge, r))
        if part[2:] == ["members", "all"]:
            return call.page(account["members"], lambda m: {"id": 1, "username": m})
        if part[2:] == ["descendant_groups"]:
            below = [a for a in forge.accounts.values() if a["login"].lower().startswith(account["login"].lower() + "/")]
            return call.page(below, gitlab_group)
        if len(part) == 2:
            return Answer(200, gitlab_group(account) if part[0] == "groups"
                          else {"id": account["id"], "username": account["login"]})
    if part[0] == "projects" and len(part) >= 2 and part[1].isdigit() and int(part[1]) in forge.repos:
        return gitlab_of_project(call, forge.repos[int(part[1])], part[2:])
    return Answer(404, {"message": "404 Not Found"})


def gitlab_of_project(call, repo, rest):
    since = call.query.get("updated_after")
    if not rest:
        return Answer(200, gitlab_project(call.forge, repo))
    if rest in (["issues"], ["merge_requests"]):
        items = repo["issues" if rest == ["issues"] else "pulls"]
        if items is None:
            return Answer(404, {"message": "404 Not Found"})
        return call.page(sorted(updated_since(items, since), key=lambda i: i["updated_at"]), dict)
    if rest == ["releases"]:
        return call.page(repo["releases"], dict)
    return Answer(404, {"message": "404 Not Found"})


# --- Gitea, Forgejo ---

def gitea_repo(forge, r):
    owner = r["owner"]["login"]
    return {"id": r["id"], "name": r["name"], "full_name": f"{owner}/{r['name']}",
            "owner": {"id": r["owner"]["id"], "login": owner, "username": owner},
            "clone_url": r.get("clone_url", f"{forge.git}/{owner}/{r['name']}.git"), "empty": r.get("empty", False),
            "private": r.get("private", False), "fork": r.get("fork", False), "size": r["size"],
            "default_branch": r["default_branch"], "archived": r.get("archived", False), "updated_at": r["pushed_at"],
            "has_wiki": r.get("has_wiki", True), "mirror": False, "object_format_name": r.get("format", "sha1")}


def gitea_account(a):
    return {"id": a["id"], "login": a["login"], "username": a["login"]}


def gitea(call, path):
    forge = call.forge
    part = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
    if part == ["user"]:
        return Answer(200, {"id": 1, "login": "owner"})
    if part == ["users", "search"]:
        found = [a for a in forge.accounts.values() if str(a["id"]) == call.query.get("uid")]
        return Answer(200, {"ok": True, "data": [gitea_account(a) for a in found]})
    if part[0] == "users" and len(part) >= 2:
        account = forge.accounts.get(part[1].lower())
        if not account:
            return Answer(404, {"message": "user redirect does not exist", "url": "/api/swagger"})
        if part[2:] == ["repos"]:
            return call.page(sorted_repos(forge, account), lambda r: gitea_repo(forge, r))
        if len(part) == 2:
            return Answer(200, gitea_account(account))
    if part[0] == "orgs" and len(part) == 3 and part[2] == "members":
        account = forge.accounts.get(part[1].lower())
        if account and account["type"] == "Organization":
            return call.page(account["members"], lambda m: {"id": 1, "login": m, "username": m})
    if part[0] == "repositories" and len(part) == 2 and int(part[1]) in forge.repos:
        return Answer(200, gitea_repo(forge, forge.repos[int(part[1])]))
    if part[0] == "repos" and len(part) == 4:
        return gitea_of_repo(call, forge.find_repo(part[1], part[2]), part[3])
    return Answer(404, {"message": "Not Found", "url": "/api/swagger"})


def gitea_of_repo(call, repo, what):
    if not repo or repo.get(what, 0) in (None, 0):
        return Answer(404, {"message": "Not Found", "url": "/api/swagger"})
    items = repo[what]
    if what == "issues":
        items = sorted(updated_since(items, call.query.get("since")), key=lambda i: i["updated_at"])
    return call.page(items, dict)


KINDS = {"github": github, "gitlab": gitlab, "gitea": gitea}


# --- git and LFS ---

def serve_git(call):
    """git http-backend for the folder `root`, and an LFS server."""
    forge, path = call.forge, call.path_only[len("/git"):]
    if path.endswith("/info/lfs/objects/batch"):
        return lfs_batch(call)
    if "/lfs-object/" in path:
        body = forge.lfs.get(path.rpartition("/")[2])
        return Answer(200, body, {"Content-Type": "application/octet-stream"}) if body is not None else not_found()
    if not forge.root:
        return not_found()
    env = {**os.environ, "GIT_PROJECT_ROOT": str(forge.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": urllib.parse.unquote(path),
           "QUERY_STRING": call.query_text, "REQUEST_METHOD": call.command, "CONTENT_LENGTH": str(len(call.body)),
           "CONTENT_TYPE": call.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": call.headers.get("Content-Encoding", ""),
           "GIT_PROTOCOL": call.headers.get("Git-Protocol", ""), "GIT_CONFIG_NOSYSTEM": "1", "REMOTE_ADDR": "127.0.0.1"}
    done = subprocess.run(["git", "-c", "safe.directory=*", "http-backend"], input=call.body, env=env, capture_output=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
    status = int(headers.pop("Status", "200 OK").split()[0])
    return Answer(status, body, headers)


def lfs_batch(call):
    forge, wanted = call.forge, json.loads(call.body)
    objects = []
    for one in wanted["objects"]:
        entry = {"oid": one["oid"], "size": one["size"]}
        if one["oid"] in forge.lfs:
            entry["actions"] = {"download": {"href": f"{forge.url}/git/lfs-object/{one['oid']}", "header": {}}}
        else:
            entry["error"] = {"code": 404, "message": "Object does not exist"}
        objects.append(entry)
    return Answer(200, {"transfer": "basic", "objects": objects}, {"Content-Type": "application/vnd.git-lfs+json"})
