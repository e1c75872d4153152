/* Reads all policies from the store, and lists them. */
#include "route/route_int.h"

#include <stdlib.h>

static const struct str POLICY = {"p:route:", 8}, BLOCK = {"p:route_block:", 14},
                        SWITCH = {"p:switch:", 9};

void routes_key(struct buf *out, const char *prefix, struct str first, struct str second)
{
    buf_append_z(out, prefix);
    store_key_part(out, first);
    if (second.len) {
        buf_append_char(out, ':');
        store_key_part(out, second);
    }
}

/* --- reading --- */

void routes_view_free(struct routes_view *view)
{
    if (!view)
        return;
    map_release(&view->policies);
    map_release(&view->blocks);
    map_release(&view->switches);
    map_release(&view->pins);
    map_release(&view->reserved);
    map_release(&view->named);
    map_release(&view->copies);
    arena_release(&view->arena);
    free(view);
}

/* Adds a policy to the view. `key` is "<user>" or "<user>:<bucket>". */
static void view_add_policy(struct routes_view *view, struct str key, struct str storage)
{
    map_put(&view->policies, arena_str(&view->arena, key), arena_z(&view->arena, storage));
}

/* Fills the view's maps whose keys are names of buckets. The list of pins (policies that a
 * replication made) was read after the policies. A pin that was made between the two reads has no
 * policy in this view. So no pin is ever mistaken for an administrator's policy. */
static void name_buckets(struct routes_view *view)
{
    struct str key, user, bucket;
    void *value;

    for (size_t at = 0; map_next(&view->policies, &at, &key, &value);) {
        if (!str_cut(key, ':', &user, &bucket))
            continue;
        map_put(&view->reserved, bucket, view);
        if (map_get(&view->pins, key))
            continue;
        const char *other = map_get(&view->named, bucket);
        bool differs = other && !str_eq(str_z(other), str_z(value));
        map_put(&view->named, bucket, differs ? (void *)"" : value);
    }
}

static int read_pins(struct routes *r, struct routes_view *view, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;
    int code = store_call(r->store, &arena, &reply, err, STR("SMEMBERS"), STR("w:pins"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < reply->count; i++)
        map_put(&view->pins, arena_str(&view->arena, reply->items[i].str), view);
    arena_release(&arena);
    return code;
}

/* Reads the policies among the keys, all in one call, because each replicated bucket has a
 * policy. */
static int read_policies(struct routes *r, struct routes_view *view, const struct reply *keys,
                         struct err *err)
{
    VEC(struct str) argv = {0};
    struct arena arena = {0};
    struct reply *reply;
    int code = 0;

    vec_push(&argv, STR("MGET"));
    for (size_t i = 0; i < keys->count; i++)
        if (str_starts(keys->items[i].str, POLICY))
            vec_push(&argv, keys->items[i].str);
    size_t wanted = argv.len - 1;
    if (wanted)
        code = store_command(r->store, &arena, &reply, argv.items, argv.len, err);
    if (wanted && code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < wanted && i < reply->count; i++)
        if (reply->items[i].type == REPLY_BULK)
            view_add_policy(view, str_skip(argv.items[i + 1], POLICY.len), reply->items[i].str);
    vec_release(&argv);
    arena_release(&arena);
    return code;
}

static int read_block(struct routes *r, struct routes_view *view, struct str key, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;
    struct str storage = str_skip(key, BLOCK.len);
    int code = store_call(r->store, &arena, &reply, err, STR("SMEMBERS"), key);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < reply->count; i++) {
        struct buf text = {0};
        buf_append_str(&text, storage);
        buf_append_char(&text, ':');
        store_key_part(&text, reply->items[i].str);
        map_put(&view->blocks, arena_str(&view->arena, buf_str(&text)), view);
        buf_release(&text);
    }
    arena_release(&arena);
    return code;
}

/* Adds both sides of a switch that has downtime, or had downtime until now (docs/replication.md,
 * S11), to view->switches. The blocks on these sides end with the switch; all other blocks stay
 * until somebody removes them. */
static void add_switch(struct routes_view *view, struct str id)
{
    struct str user, bucket, from, to;

    str_cut(id, ':', &user, &id);
    str_cut(id, ':', &bucket, &id);
    str_cut(id, ':', &from, &to);
    const struct str sides[] = {from, to};
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
        map_put(&view->switches,
                arena_fmt(&view->arena, STR_FMT ":" STR_FMT, STR_ARG(sides[i]), STR_ARG(bucket)),
                view);
}

static int read_switch(struct routes *r, struct routes_view *view, struct str key, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;
    int code = store_call(r->store, &arena, &reply, err, STR("HMGET"), key, STR("replicationID"),
                          STR("lastStatus"), STR("multipartTTL"), STR("blocked"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count == 4 &&
        (str_eq(reply->items[2].str, STR("0")) || str_eq(reply->items[3].str, STR("1"))) &&
        (str_eq(reply->items[1].str, STR("in_progress")) ||
         str_eq(reply->items[1].str, STR("check_in_progress"))))
        add_switch(view, reply->items[0].str);
    arena_release(&arena);
    return code;
}

struct route_reading {
    struct routes *routes;
    struct routes_view *view;
};

/* Reads the policies, blocks and switches among the keys. SCAN may give a key twice, which changes
 * nothing. */
static int route_read_keys(void *ctx, const struct reply *keys, struct arena *a, struct err *err)
{
    struct routes *r = ((const struct route_reading *)ctx)->routes;
    struct routes_view *view = ((const struct route_reading *)ctx)->view;
    int code = read_policies(r, view, keys, err);

    (void)a;
    for (size_t i = 0; code == 0 && i < keys->count; i++) {
        struct str key = keys->items[i].str;
        if (str_starts(key, BLOCK))
            code = read_block(r, view, key, err);
        else if (str_starts(key, SWITCH))
            code = read_switch(r, view, key, err);
    }
    return code == 0 && arena_error(&view->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

static int read_like(struct routes *r, struct routes_view *view, struct str pattern,
                     struct err *err)
{
    return store_scan(r->store, pattern, route_read_keys, &(struct route_reading){r, view}, err);
}

/* Reads the hash of copies. Each field is "<storage>:<bucket>" and each value a user; all are
 * escaped. */
static int read_copies(struct routes *r, struct routes_view *view, struct err *err)
{
    struct arena arena = {0};
    struct buf user = {0};
    struct reply *reply;
    int code = store_call(r->store, &arena, &reply, err, STR("HGETALL"), STR("w:copies"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2) {
        buf_reset(&user);
        code = store_key_unescape(&user, reply->items[i + 1].str);
        if (code < 0)
            err_set(err, code, "w:copies names a user that is none");
        else
            map_put(&view->copies, arena_str(&view->arena, reply->items[i].str),
                    arena_z(&view->arena, buf_str(&user)));
    }
    buf_release(&user);
    arena_release(&arena);
    return code;
}

/* Reads the whole view while other processes may change what is read. The order of the reads makes
 * that safe:
 * - A switch sets the new route and removes the block in one step. Blocks are read before routes,
 *   so a view with the old route also has the block.
 * - Switches are read before and after the blocks, so the view has the switch of every block that a
 *   switch has set.
 * - Copies and routes change in one step. A view that has one of them from before the change and
 *   the other from after it refuses the bucket (docs/forward.md, B2) until the view is loaded
 *   again, which the change has asked for. */
static int view_read_all(struct routes *r, struct routes_view *view, struct err *err)
{
    static const char *const patterns[] = {"p:switch:*", "p:route_block:*", "p:switch:*",
                                           "p:route:*"};
    int code = read_copies(r, view, err);

    for (size_t i = 0; i < ARRAY_SIZE(patterns) && code == 0; i++)
        code = read_like(r, view, str_z(patterns[i]), err);
    if (code == 0)
        code = read_pins(r, view, err);
    if (code == 0)
        name_buckets(view);
    return code;
}

static struct routes_view *view_new(void)
{
    struct routes_view *view = xcalloc(1, sizeof(*view));

    view->refs = 1;
    arena_init(&view->arena, 256 * MIB);
    map_init(&view->policies);
    map_init(&view->blocks);
    map_init(&view->switches);
    map_init(&view->pins);
    map_init(&view->reserved);
    map_init(&view->named);
    map_init(&view->copies);
    return view;
}

int routes_load(struct routes *r, struct err *err)
{
    struct routes_view *view = view_new(), *old = view;
    int code;

    mutex_lock(&r->lock);
    while (r->loading)
        cond_wait(&r->loaded, &r->lock);
    r->loading = true;
    view->serial = ++r->views;
    bool first = !r->view;
    mutex_unlock(&r->lock);

    code = first ? store_is_known(r->store, err) : 0; /* nothing is written to an unknown store */
    if (code == 0 && first)
        code = routes_pin(r->store, err);
    if (code == 0)
        code = view_read_all(r, view, err);
    if (code == 0)
        code = store_is_known(r->store, err);

    mutex_lock(&r->lock);
    if (code == 0) {
        old = r->view;
        r->view = view;
        atomic_fetch_add(&r->generation, 1);
    }
    r->loading = false;
    cond_broadcast(&r->loaded);
    mutex_unlock(&r->lock);
    routes_view_put(r, old);
    return code;
}

/* --- listing --- */

static struct str policy_unescape(struct arena *a, struct str part)
{
    struct buf text = {0};
    struct str copy = arena_str(a, store_key_unescape(&text, part) == 0 ? buf_str(&text) : part);

    buf_release(&text);
    return copy;
}

static int by_user_bucket_storage(const void *one, const void *two)
{
    const struct route_policy *a = one, *b = two;
    int order = str_cmp(a->user, b->user);

    if (order == 0)
        order = str_cmp(a->bucket, b->bucket);
    return order ? order : str_cmp(a->storage, b->storage);
}

int route_list(struct routes *r, struct arena *a, struct route_policy **out, size_t *count,
               struct err *err)
{
    struct routes_view *view;
    struct route_policy *list;
    struct str key, first, second;
    void *value;
    size_t n = 0;
    int code = routes_view_get(r, &view, err);

    if (code < 0)
        return code;
    list = arena_array(a, view->policies.len + view->blocks.len + 1, sizeof(*list));
    for (size_t at = 0; list && map_next(&view->policies, &at, &key, &value); n++) {
        str_cut(key, ':', &first, &second);
        list[n] = (struct route_policy){.user = policy_unescape(a, first),
                                        .bucket = policy_unescape(a, second),
                                        .storage = arena_str(a, str_z(value))};
    }
    for (size_t at = 0; list && map_next(&view->blocks, &at, &key, &value); n++) {
        str_cut(key, ':', &first, &second);
        list[n] = (struct route_policy){.bucket = policy_unescape(a, second),
                                        .storage = policy_unescape(a, first),
                                        .blocked = true};
    }
    routes_view_put(r, view);
    if (!list || arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    qsort(list, n, sizeof(*list), by_user_bucket_storage);
    *out = list;
    *count = n;
    return 0;
}
