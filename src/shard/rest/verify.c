/* Routes that compare a log with the shards, and that make new maps. */
#include "shard/rest/rest.h"
#include "shard/verify.h"

enum { EXAMPLES_MAX = 100 };

struct finding_list {
    struct json_out *w;
    uint64_t count;
};

static void finding_write(void *ctx, const struct verify_finding *f)
{
    struct finding_list *l = ctx;

    l->count++;
    json_out_open(l->w, '{');
    json_out_member_str(l->w, "finding", str_z(verify_kind_text(f->kind)));
    json_out_member_str(l->w, "shard", f->shard);
    json_out_member_str(l->w, "text", f->text);
    shard_rest_key(l->w, "after", f->window.after);
    shard_rest_key(l->w, "upto", f->window.upto);
    json_out_member_u64(l->w, "keys", f->keys);
    shard_rest_key(l->w, "key", f->key);
    json_out_member_bool(l->w, "known", f->known);
    json_out_close(l->w, '}');
}

int shard_verify_run(struct rest_call *c, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct finding_list list = {.w = c->w};
    struct storage *home = NULL;
    struct str name = rest_text(c, "bucket");
    uint64_t removed = 0;
    int code = shard_rest_home(c, &home, err);

    if (code == 0 && rest_bool(c, "clean"))
        code = shard_clean(r->shards, home, name, &removed, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "bucket", name);
    json_out_member_u64(c->w, "removed", removed);
    json_out_key(c->w, "findings");
    json_out_open(c->w, '[');
    code = shard_verify(r->shards, home, name, finding_write, &list, err);
    json_out_close(c->w, ']');
    json_out_member_u64(c->w, "count", list.count);
    return code;
}

/* --- rebuilding --- */

struct twice_list {
    struct arena *a;
    struct str examples[EXAMPLES_MAX];
    size_t count;
};

static void twice_add(void *ctx, struct str key, struct str one, struct str other)
{
    struct twice_list *l = ctx;

    if (l->count < EXAMPLES_MAX)
        l->examples[l->count++] = arena_fmt(l->a, STR_FMT " is in " STR_FMT " and in " STR_FMT,
                                            STR_ARG(key), STR_ARG(one), STR_ARG(other));
}

/* Adds to the text of the error the first keys that two shards have. */
static int twice_explain(const struct twice_list *l, int code, struct err *err)
{
    struct buf text = BUF_INIT(0);

    if (code != ERR_CONFLICT || l->count == 0)
        return code;
    buf_append_z(&text, err->text);
    for (size_t i = 0; i < l->count && text.len + l->examples[i].len + 3 < sizeof(err->text); i++)
        buf_appendf(&text, "; " STR_FMT, STR_ARG(l->examples[i]));
    err_set(err, code, STR_FMT, STR_ARG(buf_str(&text)));
    buf_release(&text);
    return code;
}

/* Writes the answer. `m` is the bucket's map; NULL: it was removed. */
static void rebuild_write(struct rest_call *c, const struct shard_map *m,
                          const struct rebuild_result *result, const struct twice_list *l)
{
    json_out_member_str(c->w, "bucket", rest_text(c, "bucket"));
    json_out_member_u64(c->w, "map", m ? m->number : 0);
    json_out_member_u64(c->w, "shard_count", m ? m->place_count : 0);
    json_out_member_u64(c->w, "segment_count", m ? m->segment_count : 0);
    json_out_member_u64(c->w, "keys", result->keys);
    json_out_member_u64(c->w, "twice", result->twice);
    json_out_key(c->w, "examples");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < l->count; i++)
        json_out_str(c->w, l->examples[i]);
    json_out_close(c->w, ']');
}

/* Does what the call asks for. */
static int rebuild_do(struct rest_call *c, struct storage *home, struct twice_list *l,
                      struct rebuild_result *result, struct err *err)
{
    const struct shard_room *r = c->ctx;
    struct rebuild_options o = {.newest = rest_bool(c, "newest"), .twice = twice_add, .ctx = l};
    struct str name = rest_text(c, "bucket");

    if (rest_bool(c, "remove") + rest_bool(c, "take_over") + rest_bool(c, "from_contents") > 1)
        return err_set(err, ERR_INVALID,
                       "choose one of \"remove\", \"take_over\" and \"from_contents\"");
    if (rest_bool(c, "remove"))
        return shard_remove_left(r->shards, home, name, err);
    if (rest_bool(c, "take_over"))
        return shard_take_over(r->shards, home, name, err);
    if (rest_bool(c, "from_contents"))
        return twice_explain(l, shard_rebuild(r->shards, home, name, &o, result, err), err);
    return shard_reload(r->shards, home, name, err);
}

int shard_rebuild_run(struct rest_call *c, struct err *err)
{
    struct twice_list *list = arena_new(c->arena, struct twice_list);
    struct rebuild_result result = {0};
    struct storage *home = NULL;
    struct shard_map *m = NULL;
    struct sharded *x = NULL;
    int code = list ? shard_rest_home(c, &home, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    *list = (struct twice_list){.a = c->arena};
    code = rebuild_do(c, home, list, &result, err);
    if (code == 0 && !rest_bool(c, "remove"))
        code = shard_rest_bucket(c, &x, err);
    if (x)
        m = table_map(x->table);
    if (code == 0)
        rebuild_write(c, m, &result, list);
    map_unref(m);
    sharded_unref(x);
    return code;
}
