/* Starts the coordination store, the queue, and the check that the store is the one that this data
 * folder has used before. */
#include "server/server_int.h"
#include "coord/replication.h"

static const char *const store_names[STORE_DATABASES] = {
    "store.appDB", "store.queueDB", "store.lockDB", "store.configDB", "store.swarmDB"};

/* --- the stores --- */

/* Checks that the store accepts writes. A store that answers but refuses writes (a replica, or a
 * full store) is not ready. */
static int check_store_ready(void *ctx, struct err *err)
{
    return store_probe(ctx, err);
}

/* Opens a database on Redis. Its configuration key holds either the number of a database at
 * store.redis.url, or another URL. */
static int open_redis_store(struct server *s, int i, struct err *err)
{
    static const char *const keys[STORE_DATABASES] = {"store.redis.appDB", "store.redis.queueDB",
                                                      "store.redis.lockDB", "store.redis.configDB",
                                                      "store.redis.swarmDB"};
    const char *key = "store.redis.url";
    const struct conf *c = s->conf;
    struct store_redis_options options = {
        .url = str_z(c->store.redis.url),
        .number = i,
        .max_connections = c->store.redis.connections,
        .timeout_ms = c->store.redis.timeout_ms,
        .ca_file = *c->store.redis.ca ? c->store.redis.ca : NULL,
        .tls_insecure = c->store.redis.insecure,
        .beside = s->services.stores[0],
        .log = &s->log,
    };
    uint64_t number;

    if (str_u64(str_z(c->store.redis.database[i]), &number) == 0)
        options.number = (int)number;
    else
        options.url = str_z(c->store.redis.database[i]), key = keys[i];
    int code = store_open_redis(&s->services.stores[i], &options, err);
    return code < 0 ? services_blame_key(&s->services, key, code, err) : 0;
}

static int open_embedded_store(struct server *s, int i, struct err *err)
{
    /* Locks expire anyway, so they need not survive a crash of the machine. */
    enum store_durability d = i == LOCK_DB ? STORE_VOLATILE : STORE_DURABLE;
    int code = store_open_embedded(&s->services.stores[i], s->db, i, d, &s->log, err);

    return code < 0 ? err_wrap(err, code, "%s", store_names[i]) : 0;
}

/* Finds out whether one script can use several databases together. Replication needs such scripts,
 * so it is off if this is not possible. */
static void join_stores(struct server *s)
{
    struct err err = {0};

    s->services.joined = store_join(s->services.stores, JOINED_DATABASES, &err) == 0;
    if (!s->services.joined)
        log_warn(&s->log, "replication.off", log_z("error", err.text),
                 log_z("why", "it needs four databases of the store on one server: give "
                              "store.redis.appDB, queueDB, lockDB and configDB as numbers"));
}

int server_start_stores(struct server *s, struct err *err)
{
    for (int i = 0; i < STORE_DATABASES; i++) {
        bool redis = s->conf->store.engine == CONF_ENGINE_REDIS;
        int code = redis ? open_redis_store(s, i, err) : open_embedded_store(s, i, err);
        if (code < 0) {
            server_stop_stores(s);
            return code;
        }
        ready_add(&s->ready,
                  (struct ready_part){store_names[i], check_store_ready, s->services.stores[i]});
    }
    join_stores(s);
    return 0;
}

void server_stop_stores(struct server *s)
{
    for (int i = 0; i < STORE_DATABASES; i++) {
        store_close(s->services.stores[i]);
        s->services.stores[i] = NULL;
    }
}

/* --- the installation --- */

static int check_installation(void *ctx, struct err *err)
{
    struct installation_status status;

    installation_status(ctx, &status);
    return status.state == INSTALLATION_KNOWN ? 0 : installation_why(ctx, err);
}

int server_start_installation(struct server *s, struct err *err)
{
    struct installation_options o = {
        .config = s->services.stores[CONFIG_DB],
        .app = s->services.joined ? s->services.stores[APP_DB] : NULL,
        .queue = s->services.joined ? s->services.stores[QUEUE_DB] : NULL,
        .folder = s->conf->data,
        .shared = s->conf->store.engine == CONF_ENGINE_REDIS,
        .log = &s->log,
    };
    process_boot(s->services.boot);
    o.boot = str_z(s->services.boot);
    int code = installation_open(&s->services.installation, &o, err);
    if (code < 0)
        return err_wrap(err, code, "the store's installation");
    struct store_watch watch = {.halted = installation_halted(s->services.installation),
                                .why = installation_why,
                                .check = installation_check,
                                .ctx = s->services.installation};
    for (int i = 0; i < STORE_DATABASES; i++)
        store_set_watch(s->services.stores[i], &watch);
    ready_add(&s->ready,
              (struct ready_part){"store", check_installation, s->services.installation});
    return 0;
}

/* Stops the checks of the store. The parts that stop after this one only close the stores. */
void server_stop_installation(struct server *s)
{
    installation_close(s->services.installation);
}

/* --- the queue --- */

static int open_queue(struct services *s, struct err *err)
{
    struct locks_options locks = {.store = s->stores[LOCK_DB], .log = s->log};
    struct replications_options replications = {
        .app = s->stores[APP_DB],
        .queue = s->stores[QUEUE_DB],
        .config = s->stores[CONFIG_DB],
        .seen = installation_seen(s->installation),
        .log = s->log,
    };
    s->queue = queue_new(s->stores[QUEUE_DB]);
    queue_number_steps(s->queue, installation_seen(s->installation));
    int code = locks_open(&s->locks, &locks, err);

    if (code < 0)
        return err_wrap(err, code, "locks");
    if (s->joined)
        code = replications_open(&s->replications, &replications, err);
    return code < 0 ? err_wrap(err, code, "replications") : 0;
}

int server_start_queue(struct server *s, struct err *err)
{
    int code = open_queue(&s->services, err);

    if (code < 0)
        server_stop_queue(s);
    return code;
}

void server_stop_queue(struct server *s)
{
    replications_close(s->services.replications);
    if (s->services.locks)
        locks_close(s->services.locks);
    queue_free(s->services.queue);
}
