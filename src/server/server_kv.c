/* Opens the key-value store of the lake, at the place that kv.engine and kv.url name
 * (docs/kv.md). */
#include "kv/kv.h"
#include "server/server_int.h"

static int open_embedded_kv(struct server *s, struct err *err)
{
    return kv_open_embedded(&s->services.kv, s->db, &s->log, err);
}

static int open_kv_store(struct server *s, struct err *err)
{
    const struct conf *c = s->conf;
    struct store_redis_options options = {
        .url = str_z(c->kv.url),
        .max_connections = c->kv.connections,
        .timeout_ms = c->kv.timeout_ms,
        .ca_file = *c->store.redis.ca ? c->store.redis.ca : NULL,
        .tls_insecure = c->store.redis.insecure,
        .log = &s->log,
    };

    return store_open_redis(&s->kv_store, &options, err);
}

/* Records the identity of this store in the data folder. */
static int know_kv(struct server *s, struct err *err)
{
    struct buf path = {0};

    services_path(&s->services, "kv.known", &path);
    int code = kv_know(s->services.kv, path.p, err);
    buf_release(&path);
    return code;
}

/* Opens the key-value store on the Redis of the coordination store, because the configuration names
 * no other place. The key-value store needs a Redis that neither evicts keys nor hides INFO; the
 * coordination store accepts any Redis. If the Redis does one of these things, only the lake fails,
 * and weir starts all the same. */
static int open_kv_beside(struct server *s, struct err *err)
{
    struct err why = {0};

    kv_open_redis_later(&s->services.kv, s->services.stores[APP_DB]);
    int code = know_kv(s, err);
    if (code == 0 && kv_probe(s->services.kv, &why) < 0)
        log_warn(&s->log, "kv.not_ready", log_z("error", why.text));
    return code;
}

static int open_redis_kv(struct server *s, struct err *err)
{
    struct store *store = s->services.stores[APP_DB];
    int code = 0;

    if (*s->conf->kv.url) {
        code = open_kv_store(s, err);
        store = s->kv_store;
    } else if (s->conf->store.engine != CONF_ENGINE_REDIS) {
        code = err_set(err, ERR_INVALID, "redis needs kv.url, or store.engine redis");
    }
    if (code == 0)
        code = kv_open_redis(&s->services.kv, store, &s->log, err);
    return code < 0 ? code : know_kv(s, err);
}

static int open_postgres_kv(struct server *s, struct err *err)
{
    struct kv_postgres_options options = {.url = s->conf->kv.url,
                                          .max_connections = s->conf->kv.connections,
                                          .timeout_ms = s->conf->kv.timeout_ms,
                                          .log = &s->log};

    if (!*options.url)
        return err_set(err, ERR_INVALID, "postgres needs kv.url");
    int code = kv_open_postgres(&s->services.kv, &options, err);
    return code < 0 ? code : know_kv(s, err);
}

static int check_kv_ready(void *ctx, struct err *err)
{
    return kv_probe(ctx, err);
}

/* The place of the key-value store. If `asked` is set, the configuration names a server, and weir
 * is not ready without it. */
struct kv_place {
    int (*open)(struct server *s, struct err *err);
    bool asked;
};

static struct kv_place kv_place_of(const struct conf *c)
{
    static const struct kv_place embedded = {open_embedded_kv, false},
                                 beside = {open_kv_beside, false}, redis = {open_redis_kv, true},
                                 postgres = {open_postgres_kv, true};

    switch (c->kv.engine) {
    case CONF_KV_EMBEDDED:
        return embedded;
    case CONF_KV_REDIS:
        return redis;
    case CONF_KV_POSTGRES:
        return postgres;
    default: /* CONF_KV_AUTO */
        break;
    }
    if (*c->kv.url)
        return str_starts(str_z(c->kv.url), STR("postgres")) ? postgres : redis;
    return c->store.engine == CONF_ENGINE_REDIS ? beside : embedded;
}

int server_start_kv(struct server *s, struct err *err)
{
    struct kv_place place = kv_place_of(s->conf);
    int code = place.open(s, err);

    if (code < 0) {
        server_stop_kv(s);
        return services_blame_key(&s->services, *s->conf->kv.url ? "kv.url" : "kv.engine", code,
                                  err);
    }
    if (place.asked)
        ready_add(&s->ready, (struct ready_part){"kv", check_kv_ready, s->services.kv});
    return 0;
}

void server_stop_kv(struct server *s)
{
    kv_close(s->services.kv);
    store_close(s->kv_store);
    s->services.kv = NULL;
    s->kv_store = NULL;
}
