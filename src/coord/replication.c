/* Opens the replications, keeps their newest view (coord/replication.h), and makes the names of
 * policies in keys. */
#include "coord/gateways.h"
#include "coord/replication_int.h"

#include <stdlib.h>

enum { PART_MAX = 255 }; /* most bytes of one part of a name */

static reload_heard_fn replications_heard;
static reload_fn replications_load_again;

int replications_open(struct replications **out, const struct replications_options *o,
                      struct err *err)
{
    struct replications *r = xcalloc(1, sizeof(*r));

    r->o = *o;
    mutex_init(&r->lock, "replications");
    cond_init(&r->loaded);
    int code = reload_open(&r->reload,
                           &(struct reload_options){.store = o->config,
                                                    .channel = REPLICATIONS_CHANNEL,
                                                    .load = replications_load_again,
                                                    .heard = replications_heard,
                                                    .ctx = r,
                                                    .log = o->log,
                                                    .failed = "replications.not_loaded",
                                                    .done = "replications.loaded",
                                                    .fatal = RELOAD_EXPECTED},
                           err);
    if (code < 0)
        replications_close(r);
    else
        *out = r;
    return code;
}

void replications_close(struct replications *r)
{
    if (!r)
        return;
    reload_close(&r->reload);
    replication_view_unref(r->view);
    cond_release(&r->loaded);
    mutex_release(&r->lock);
    free(r);
}

int replications_refresh(struct replications *r, struct err *err)
{
    return reload_now(&r->reload, err);
}

static bool replications_heard(void *ctx, struct str channel, struct str message)
{
    struct replications *r = ctx;

    if (!channel.p || str_eq(message, STR("all")))
        /* Another server may answer from now on, or the store may have lost changes. */
        atomic_store(&r->doubt, true);
    return true;
}

static int replications_load_again(void *ctx, struct err *err)
{
    return replications_load(ctx, err);
}

int replication_is_known(struct replications *r, const struct replication_id *id, bool *out,
                         struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct id_parts p;
    int code = replication_parts(&a, id, &p, err);

    if (code == 0) {
        struct str name = str_skip(replication_status_key(&a, &p), strlen("p:repl_st:"));
        code = gateways_reached_name(r->o.config, name, out, err);
    }
    arena_release(&a);
    return code;
}

bool replication_init_done(const struct replication_status *s)
{
    return s->listing_started && s->init_done_ms && s->done + s->failed >= s->listed;
}

/* --- names --- */

struct str replication_escaped(struct arena *a, struct str part)
{
    struct buf b = {0};

    store_key_part(&b, part);
    struct str out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return out;
}

static int replication_check_id(const struct replication_id *id, struct err *err)
{
    const struct str parts[] = {id->user, id->bucket, id->from, id->to, id->to_bucket};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].len > PART_MAX)
            return err_set(err, ERR_INVALID, "a name of %zu bytes is too long", parts[i].len);
    if (id->user.len == 0 || id->from.len == 0 || id->to.len == 0)
        return err_set(err, ERR_INVALID, "a replication needs a user, a source and a destination");
    if (id->bucket.len == 0 && id->to_bucket.len)
        return err_set(err, ERR_INVALID, "a user's buckets keep their names at the destination");
    if (str_eq(id->from, id->to) && (id->to_bucket.len == 0 || str_eq(id->bucket, id->to_bucket)))
        return err_set(err, ERR_INVALID, "source and destination are the same");
    return 0;
}

int replication_parts(struct arena *a, const struct replication_id *id, struct id_parts *out,
                      struct err *err)
{
    int code = replication_check_id(id, err);

    if (code < 0)
        return code;
    *out = (struct id_parts){.user = replication_escaped(a, id->user),
                             .bucket = replication_escaped(a, id->bucket),
                             .from = replication_escaped(a, id->from),
                             .to = replication_escaped(a, id->to)};
    if (!str_eq(id->bucket, id->to_bucket))
        out->to_bucket = replication_escaped(a, id->to_bucket);
    return arena_error(a) == 0 ? 0 : err_code(err, ERR_NO_MEMORY);
}

struct str replication_status_key(struct arena *a, const struct id_parts *p)
{
    return arena_fmt(a, "p:repl_st:" STR_FMT ":" STR_FMT ":" STR_FMT ":" STR_FMT "%s" STR_FMT,
                     STR_ARG(p->user), STR_ARG(p->bucket), STR_ARG(p->from), STR_ARG(p->to),
                     p->to_bucket.len ? ":" : "", STR_ARG(p->to_bucket));
}
