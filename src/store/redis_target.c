/* Which Redis, and as whom: the url of the store's configuration. */
#include "http/wire.h"
#include "store/redis_int.h"

#include <stdlib.h>

enum { REDIS_PORT = 6379, MAX_DATABASE = 1 << 20, MAX_PART = 4096 };

/* A percent-decoded copy; *out stays NULL when `in` has a NULL pointer (the part is absent). A NUL
 * would cut the C string that it becomes. */
static int decode(char **out, struct str in, const char *what, struct err *err)
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

static int parse_database(struct redis_target *t, struct str digits, struct err *err)
{
    uint64_t n;

    if (str_u64(digits, &n) < 0 || n > MAX_DATABASE)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a redis database number",
                       STR_ARG(digits));
    t->database = (int)n;
    return 0;
}

static int parse_query(struct redis_target *t, struct str query, struct err *err)
{
    struct str name, value;

    while (url_query_next(&query, &name, &value)) {
        int rc;
        if (!str_eq(name, STR("db")))
            return err_set(err, ERR_INVALID, "the redis url knows no '" STR_FMT "='",
                           STR_ARG(name));
        rc = parse_database(t, value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* user:password, user, or :password; an empty user is none (Redis's default user). */
static int parse_login(struct redis_target *t, struct str user, struct str password,
                       struct err *err)
{
    int rc = decode(&t->user, user.len ? user : STR_EMPTY, "user", err);

    if (rc == 0)
        rc = decode(&t->password, password.len ? password : STR_EMPTY, "password", err);
    if (rc == 0 && t->user && !t->password)
        rc = err_set(err, ERR_INVALID, "the redis url has a user without a password");
    return rc;
}

static int parse_unix(struct redis_target *t, const struct url *url, struct err *err)
{
    if (url->host.len || url->path.len == 0)
        return err_set(err, ERR_INVALID, "the redis url names a socket by its path: unix:///path");
    return decode(&t->path, url->path, "path", err);
}

static int parse_network(struct redis_target *t, const struct url *url, struct err *err)
{
    struct str database = str_skip(url->path, 1);
    int rc;

    if (url->host.len == 0)
        return err_set(err, ERR_INVALID, "the redis url names no host");
    t->port = url->port ? url->port : REDIS_PORT;
    t->tls = str_eq(url->scheme, STR("rediss"));
    rc = decode(&t->host, url->host, "host", err);
    if (rc == 0 && database.len)
        rc = parse_database(t, database, err);
    return rc;
}

int redis_target_parse(struct redis_target *out, struct str text, int number, struct err *err)
{
    struct redis_target t = {.database = number};
    struct url url = {0};
    int rc;

    if (url_parse(&url, text, NULL) < 0)
        url.scheme = STR_EMPTY;
    if (str_eq(url.scheme, STR("unix")))
        rc = parse_unix(&t, &url, err);
    else if (str_eq(url.scheme, STR("redis")) || str_eq(url.scheme, STR("rediss")))
        rc = parse_network(&t, &url, err);
    else
        rc = err_set(err, ERR_INVALID,
                     "a redis url is redis://host[:port][/db], rediss://... or unix:///path");
    if (rc == 0)
        rc = parse_login(&t, url.user, url.password, err);
    if (rc == 0)
        rc = parse_query(&t, url.query, err);
    if (rc < 0)
        redis_target_release(&t);
    else
        *out = t;
    return rc;
}

void redis_target_release(struct redis_target *t)
{
    if (t->password)
        secure_zero(t->password, strlen(t->password));
    free(t->host);
    free(t->path);
    free(t->user);
    free(t->password);
    *t = (struct redis_target){0};
}
