/* Redis replies: never crashes, limits hold, and the result does not depend on how bytes are cut.
 * Then the input cut at its zeroes is written as a command and must read back the same. */
#include "store/resp.h"

enum { ARENA_LIMIT = 256 * 1024 };

static size_t depth_of(const struct reply *r)
{
    size_t deepest = 0;

    for (size_t i = 0; i < r->count; i++)
        deepest = size_max(deepest, depth_of(&r->items[i]));
    return deepest + (r->count > 0);
}

/* Prints every reply of the stream and how it ended; bytes come in steps of step, step + 1, ... */
static void print_stream(struct str in, size_t step, bool grow, struct buf *out)
{
    struct arena arena = ARENA_INIT(ARENA_LIMIT);
    struct reply *reply;
    struct resp r;
    int rc = 0;

    resp_init(&r);
    resp_begin(&r, &arena);
    while (in.len && (rc == 0 || rc == ERR_AGAIN)) {
        size_t used = 0;
        rc = resp_read(&r, str_head(in, step), &used, &reply, NULL);
        BUG_ON(rc == ERR_AGAIN && used != size_min(step, in.len));
        in = str_skip(in, used);
        step += grow;
        if (rc != 0)
            continue;
        BUG_ON(depth_of(reply) > RESP_MAX_DEPTH);
        reply_print(out, reply);
        buf_append_char(out, '\n');
        arena_reset(&arena);
        resp_begin(&r, &arena);
    }
    BUG_ON(arena.used > ARENA_LIMIT);
    buf_append_z(out, rc ? err_name(rc) : "end");
    resp_release(&r);
    arena_release(&arena);
}

static void check_cuts(struct str in)
{
    struct buf whole = {0}, cut = {0};

    print_stream(in, size_max(in.len, 1), false, &whole);
    for (size_t step = 1; step < 6; step++) {
        buf_reset(&cut);
        print_stream(in, step, step % 2, &cut);
        BUG_ON(!str_eq(buf_str(&whole), buf_str(&cut)));
    }
    buf_release(&whole);
    buf_release(&cut);
}

static void check_round_trip(struct str in)
{
    struct arena arena = {0};
    struct buf wire = {0};
    struct str argv[16], rest = in;
    struct reply *reply;
    struct resp r;
    size_t argc = 0, used;

    while (argc < ARRAY_SIZE(argv) && rest.len)
        str_cut(rest, 0, &argv[argc++], &rest);
    resp_write(&wire, argv, argc);
    resp_init(&r);
    resp_begin(&r, &arena);
    BUG_ON(resp_read(&r, buf_str(&wire), &used, &reply, NULL) != 0 || used != wire.len);
    BUG_ON(reply->type != REPLY_ARRAY || reply->count != argc);
    for (size_t i = 0; i < argc; i++)
        BUG_ON(!str_eq(reply->items[i].str, argv[i]));
    resp_release(&r);
    buf_release(&wire);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n(data, size);

    if (size > 128 * KIB)
        return 0;
    check_cuts(in);
    check_round_trip(in);
    return 0;
}
