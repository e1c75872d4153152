/* Parses the url of a Redis: the address of the server and the login. */
#include "http/wire.h"
#include "store/redis_int.h"

#include <stdlib.h>

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379, MAX_DATABASE = 1 << 20, MAX_PART = 4096 };

/* The parts of a redis url, some of them from its query. */
struct parts {
    struct url url;
    struct str more_hosts;                       /* the hosts after the first comma */
    struct str sentinel_user, sentinel_password; /* NULL pointer: not given */
};

typedef int parse_fn(struct redis_target *t, const struct parts *p, struct err *err);

static parse_fn target_parse_unix, target_parse_network, parse_sentinels;

static const struct scheme {
    const char *name;
    parse_fn *parse;
    bool tls, sentinels;
} schemes[] = {
    {"redis", target_parse_network, false, false},
    {"rediss", target_parse_network, true, false},
    {"redis+sentinel", parse_sentinels, false, true},
    {"rediss+sentinel", parse_sentinels, true, true},
    {"unix", target_parse_unix, false, false},
};

/* Makes a percent-decoded copy. *out stays NULL when `in` has a NULL pointer (the part is absent).
 * A NUL byte is an error, because it would cut the C string. */
static int target_decode(char **out, struct str in, const char *what, struct err *err)
{
    struct buf b = BUF_INIT(MAX_PART);
    int rc;

    if (!in.p)
        return 0;
    rc = url_decode(&b, in, false);
    if (rc == 0)
        rc = buf_error(&b);
    if (rc < 0 || (b.len && memchr(b.p, 0, b.len))) {
        buf_release(&b);
        return err_set(err, ERR_INVALID, "the %s of the redis url is malformed", what);
    }
    *out = buf_take(&b);
    return 0;
}

static int target_parse_database(struct redis_target *t, struct str digits, struct err *err)
{
    uint64_t n;

    if (str_u64(digits, &n) < 0 || n > MAX_DATABASE)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a redis database number",
                       STR_ARG(digits));
    t->database = (int)n;
    return 0;
}

static int target_parse_query(struct redis_target *t, struct parts *p, const struct scheme *scheme,
                              struct err *err)
{
    struct str query = p->url.query, name, value;

    while (url_query_next(&query, &name, &value)) {
        int rc = 0;
        if (str_eq(name, STR("db")))
            rc = target_parse_database(t, value, err);
        else if (scheme->sentinels && str_eq(name, STR("sentinel_user")))
            p->sentinel_user = value;
        else if (scheme->sentinels && str_eq(name, STR("sentinel_password")))
            p->sentinel_password = value;
        else
            rc = err_set(err, ERR_INVALID, "the redis url knows no '" STR_FMT "='", STR_ARG(name));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Sets the login: user and password, only a user, or only a password. An empty user means Redis's
 * default user. */
static int parse_login(struct redis_target *t, struct str user, struct str password,
                       struct err *err)
{
    int rc = target_decode(&t->user, user.len ? user : STR_EMPTY, "user", err);

    if (rc == 0)
        rc = target_decode(&t->password, password.len ? password : STR_EMPTY, "password", err);
    if (rc == 0 && t->user && !t->password)
        rc = err_set(err, ERR_INVALID, "the redis url has a user without a password");
    return rc;
}

static int target_parse_unix(struct redis_target *t, const struct parts *p, struct err *err)
{
    if (p->url.host.len || p->url.path.len == 0)
        return err_set(err, ERR_INVALID, "the redis url names a socket by its path: unix:///path");
    return target_decode(&t->path, p->url.path, "path", err);
}

static int target_parse_host(struct redis_target *t, const struct url *url, uint16_t port,
                             struct err *err)
{
    if (url->host.len == 0)
        return err_set(err, ERR_INVALID, "the redis url names no host");
    if (url->host.len > REDIS_HOST_MAX)
        return err_set(err, ERR_INVALID, "a host of the redis url is too long");
    t->port = url->port ? url->port : port;
    return target_decode(&t->host, url->host, "host", err);
}

static int target_parse_network(struct redis_target *t, const struct parts *p, struct err *err)
{
    struct str database = str_skip(p->url.path, 1);
    int rc = target_parse_host(t, &p->url, REDIS_PORT, err);

    if (rc == 0 && database.len)
        rc = target_parse_database(t, database, err);
    return rc;
}

/* --- parsing urls with sentinels --- */

/* Sets the login for a sentinel: the sentinels' own login if the url has one, else the login for
 * Redis. A sentinel that wants no login refuses it, which does no harm. An empty sentinel_password
 * means no login. */
static int sentinel_login(struct redis_target *s, const struct redis_target *t,
                          const struct parts *p, struct err *err)
{
    if (p->sentinel_user.len && !p->sentinel_password.len)
        return err_set(err, ERR_INVALID,
                       "the redis url has a sentinel_user without a "
                       "sentinel_password");
    s->tls = t->tls;
    if (p->sentinel_password.p)
        return parse_login(s, p->sentinel_user, p->sentinel_password, err);
    s->try_login = true;
    s->user = t->user ? xstrdup(t->user) : NULL;
    s->password = t->password ? xstrdup(t->password) : NULL;
    return 0;
}

static int add_sentinel(struct redis_target *t, const struct url *url, struct err *err)
{
    if (t->sentinel_count == REDIS_MAX_SENTINELS)
        return err_set(err, ERR_INVALID, "the redis url names more than %d sentinels",
                       REDIS_MAX_SENTINELS);
    return target_parse_host(&t->sentinels[t->sentinel_count++], url, SENTINEL_PORT, err);
}

/* Adds a sentinel for each host. A host is parsed as if it had a url of its own. */
static int add_hosts(struct redis_target *t, struct str hosts, struct err *err)
{
    struct buf text = BUF_INIT(MAX_PART);
    struct str host, rest = hosts;
    int rc = 0;

    while (rc == 0 && rest.p) {
        struct url url = {0};
        if (!str_cut(rest, ',', &host, &rest))
            rest = STR_EMPTY, rest.p = NULL;
        buf_reset(&text);
        buf_append_z(&text, "redis://");
        buf_append_str(&text, host);
        if (buf_error(&text) < 0 || url_parse(&url, buf_str(&text), NULL) < 0 || url.user.p ||
            url.path.len || url.query.len)
            rc = err_set(err, ERR_INVALID, "a host of the redis url is malformed");
        else
            rc = add_sentinel(t, &url, err);
    }
    buf_release(&text);
    return rc;
}

static int parse_sentinels(struct redis_target *t, const struct parts *p, struct err *err)
{
    struct str name, database;
    int rc;

    str_cut(str_skip(p->url.path, 1), '/', &name, &database);
    if (name.len == 0)
        return err_set(err, ERR_INVALID,
                       "the redis url names no master: "
                       "redis+sentinel://host:port,host:port/name");
    t->sentinels = xcalloc(REDIS_MAX_SENTINELS, sizeof(*t->sentinels));
    rc = target_decode(&t->master, name, "master's name", err);
    if (rc == 0 && database.len)
        rc = target_parse_database(t, database, err);
    if (rc == 0)
        rc = add_sentinel(t, &p->url, err);
    if (rc == 0)
        rc = add_hosts(t, p->more_hosts, err);
    return rc;
}

/* --- parsing the whole url --- */

static const struct scheme *find_scheme(struct str text)
{
    ptrdiff_t mark = str_find(text, STR("://"));

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
        if (mark > 0 && str_eq(str_head(text, (size_t)mark), str_z(schemes[i].name)))
            return &schemes[i];
    return NULL;
}

/* Removes the hosts after the first from scheme://login@host,host,.../path?query. *out is the rest;
 * *more, which points into `text`, has the removed hosts; its pointer is NULL when there is only
 * one host. */
static void take_hosts(struct buf *out, struct str *more, struct str text)
{
    struct str rest = str_skip(text, (size_t)str_find(text, STR("://")) + 3);
    size_t end = 0, host = 0, comma;

    for (; end < rest.len && rest.p[end] != '/' && rest.p[end] != '?'; end++)
        if (rest.p[end] == '@')
            host = end + 1;
    for (comma = host; comma < end && rest.p[comma] != ','; comma++)
        ;
    *more = comma < end ? str_n(rest.p + comma + 1, end - comma - 1) : (struct str){0};
    buf_append_str(out, str_head(text, text.len - rest.len + comma));
    buf_append_str(out, str_skip(rest, end));
}

static int parse_parts(struct redis_target *t, struct parts *p, const struct scheme *scheme,
                       struct err *err)
{
    int rc = parse_login(t, p->url.user, p->url.password, err);

    t->tls = scheme->tls;
    if (rc == 0)
        rc = scheme->parse(t, p, err);
    if (rc == 0)
        rc = target_parse_query(t, p, scheme, err);
    for (size_t i = 0; i < t->sentinel_count && rc == 0; i++)
        rc = sentinel_login(&t->sentinels[i], t, p, err);
    return rc;
}

int redis_target_parse(struct redis_target *out, struct str text, int number, struct err *err)
{
    const struct scheme *scheme = find_scheme(text);
    struct redis_target t = {.database = number};
    struct buf one = BUF_INIT(64 * KIB);
    struct parts p = {0};
    int rc = 0;

    if (scheme && scheme->sentinels)
        take_hosts(&one, &p.more_hosts, text);
    else
        buf_append_str(&one, text);
    if (!scheme || buf_error(&one) < 0 || url_parse(&p.url, buf_str(&one), NULL) < 0)
        rc = err_set(err, ERR_INVALID,
                     "a redis url is redis://host[:port][/db], rediss://..., unix:///path or "
                     "redis+sentinel://host[:port],.../name");
    if (rc == 0)
        rc = parse_parts(&t, &p, scheme, err);
    if (one.p)
        secure_zero(one.p, one.len);
    buf_release(&one);
    if (rc < 0)
        redis_target_release(&t);
    else
        *out = t;
    return rc;
}

void redis_target_release(struct redis_target *t)
{
    for (size_t i = 0; i < t->sentinel_count; i++)
        redis_target_release(&t->sentinels[i]);
    free(t->sentinels);
    free(t->master);
    if (t->password)
        secure_zero(t->password, strlen(t->password));
    free(t->host);
    free(t->path);
    free(t->user);
    free(t->password);
    *t = (struct redis_target){0};
}

static bool has_sentinel(const struct redis_target *t, const struct redis_target *sentinel)
{
    for (size_t i = 0; i < t->sentinel_count; i++)
        if (redis_target_is_same(&t->sentinels[i], sentinel))
            return true;
    return false;
}

/* Whether `a` has every sentinel of `b`, in any order. */
static bool has_sentinels_of(const struct redis_target *a, const struct redis_target *b)
{
    for (size_t i = 0; i < b->sentinel_count; i++)
        if (!has_sentinel(a, &b->sentinels[i]))
            return false;
    return true;
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool redis_target_is_same(const struct redis_target *a, const struct redis_target *b)
{
    return is_same_text(a->path, b->path) && is_same_text(a->host, b->host) && a->port == b->port &&
           a->tls == b->tls && is_same_text(a->master, b->master) && has_sentinels_of(a, b) &&
           has_sentinels_of(b, a);
}
