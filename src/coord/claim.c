/* Claims: which data folder owns the name of a local storage (coord/claim.h). */
#include "coord/claim.h"
#include "coord/replication_int.h"

enum { CALL_ARENA_MAX = 64 * 1024 };

static int taken(const struct claim *c, struct str where, struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "in this store the storage " STR_FMT " is the folder " STR_FMT ", not " STR_FMT
                   "; if that one is gone: weir storage claim " STR_FMT,
                   STR_ARG(c->storage), STR_ARG(where), STR_ARG(c->where), STR_ARG(c->storage));
}

int claim_take(struct replications *r, const struct claim *c, bool force, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    const struct str args[] = {queue_number(&a, store_number(r->o.app)),
                               queue_number(&a, store_number(r->o.config)),
                               replication_escaped(&a, c->storage),
                               c->folder,
                               c->where,
                               force ? STR("1") : STR("0")};
    struct reply *reply = NULL;
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;

    if (code == 0)
        code = coord_eval(r->o.config, &a, &reply, SCRIPT_claim_take, args, ARRAY_SIZE(args), err);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && reply->str.len)
        code = taken(c, reply->str, err);
    arena_release(&a);
    return code;
}

int claim_check(struct replications *r, const struct claim *c, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct reply *reply = NULL;
    struct str folder, where;
    int code = store_call(r->o.config, &a, &reply, err, STR("HGET"), STR("w:storages"),
                          replication_escaped(&a, c->storage));

    if (code == 0 && reply_is_nil(reply))
        code = err_set(err, ERR_NOT_FOUND, "no folder has the name " STR_FMT, STR_ARG(c->storage));
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0) {
        (void)str_cut(reply->str, ' ', &folder, &where);
        code = str_eq(folder, c->folder) ? 0 : taken(c, where, err);
    }
    arena_release(&a);
    return code;
}
