/* Requests of a bucket that several processes serve (shard/access.h). */
#include "shard/access.h"
#include "shard/log.h"

int access_begin(struct access *out, const struct access_rules *r, struct str key,
                 enum pass_use use, struct err *err)
{
    *out = (struct access){.rules = r};
    int code = lease_take(r->lease, &out->lease, err);

    out->leased = code == 0;
    if (code < 0 && use == PASS_WRITE)
        return code;
    return pass_take(r->bucket->table, key, use, true, &out->pass, err);
}

int access_begin_after(struct access *out, const struct access_rules *r, struct str after,
                       struct err *err)
{
    struct err none = {0};

    *out = (struct access){.rules = r};
    out->leased = lease_take(r->lease, &out->lease, &none) == 0;
    return pass_take_after(r->bucket->table, after, &out->pass, err);
}

/* Installs the newest map of the log, so that the request that is done again obeys it. */
static int access_catch_up(struct sharded *s, struct err *err)
{
    struct shard_map *head = NULL;
    int code = log_head(s->log, &head, err);

    if (code < 0)
        return code;
    table_install(s->table, head);
    map_unref(head);
    return 0;
}

static int access_prove(struct access *x, struct err *err)
{
    uint64_t newest = 0;
    int code = proof_look(x->rules->proof, &newest, err);

    if (code < 0 || newest == x->pass.map->number)
        return code;
    code = access_catch_up(x->rules->bucket, err);
    return code < 0 ? code : err_code(err, ERR_AGAIN);
}

int access_head(struct access *x, struct err *err)
{
    struct err over = {0};

    if (!x->leased || lease_check(x->rules->lease, x->lease, &over) < 0) {
        int code = access_prove(x, err);
        if (code < 0)
            return code;
    }
    pass_head(&x->pass);
    return 0;
}

int access_wrote(const struct access *x, struct err *err)
{
    return lease_check(x->rules->lease, x->lease, err);
}

void access_end(struct access *x)
{
    pass_leave(&x->pass);
}
