/* Stores which epoch of the policies each process holds, and up to which time the changes of each
 * local storage are recorded (coord/gateways.h). */
#include "coord/gateways.h"
#include "coord/queue_int.h"

enum { CALL_ARENA_MAX = 64 * 1024 };

int gateways_forget(struct store *config, struct str id, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct reply *reply;
    int code = store_call(config, &a, &reply, err, STR("HDEL"), STR("w:gateways"), id);

    arena_release(&a);
    return code;
}

static int gateways_ask(struct store *config, struct arena *a, struct str wanted, bool *out,
                        struct err *err)
{
    const struct str args[] = {wanted, queue_number(a, GATEWAY_LIFE_S)};
    struct reply *reply;
    int64_t answer = 0;
    int code = coord_eval(config, a, &reply, SCRIPT_gateways_reached, args, ARRAY_SIZE(args), err);

    if (code == 0)
        code = queue_integer(reply, &answer, err);
    *out = answer == 1;
    return code;
}

int gateways_reached(struct store *config, int64_t epoch, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code = gateways_ask(config, &a, queue_number(&a, epoch), out, err);

    arena_release(&a);
    return code;
}

int gateways_reached_name(struct store *config, struct str name, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code = gateways_ask(config, &a, arena_fmt(&a, "n:" STR_FMT, STR_ARG(name)), out, err);

    arena_release(&a);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): three inputs and a result */
int gateways_settle(struct store *config, const struct str *storages, size_t count,
                    int64_t since_ms, int64_t *now_ms, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str *args = arena_array(&a, count + 1, sizeof(*args));
    struct reply *reply;

    if (!args)
        return err_code(err, ERR_NO_MEMORY);
    args[0] = queue_number(&a, since_ms);
    for (size_t i = 0; i < count; i++)
        args[1 + i] = storages[i];
    int code = coord_eval(config, &a, &reply, SCRIPT_gateways_settle, args, count + 1, err);
    if (code == 0)
        code = queue_integer(reply, now_ms, err);
    arena_release(&a);
    return code;
}

int gateways_settled(struct store *config, struct str storage, int64_t *settled_ms, int64_t *now_ms,
                     struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct reply *reply;
    int code = coord_eval(config, &a, &reply, SCRIPT_gateways_settled, &storage, 1, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != 2)
        code = err_set(err, ERR_TYPE, "the store gave a malformed answer about a storage");
    if (code == 0)
        code = queue_integer(&reply->items[0], settled_ms, err);
    if (code == 0)
        code = queue_integer(&reply->items[1], now_ms, err);
    arena_release(&a);
    return code;
}
