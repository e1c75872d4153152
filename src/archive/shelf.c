/* The shelf of an account: its two sides, and reading from them. */
#include "archive/shelf_int.h"

#include "coord/lock.h"
#include "object/merge.h"

enum { SHELF_ROUNDS = 3 }; /* most times that a read tries both sides while objects may be moving */

/* --- opening --- */

struct satellite_site shelf_site(const struct shelf *s, enum shelf_side side)
{
    return side == SHELF_TO ? (struct satellite_site){s->satellite, s->user, s->bucket}
                            : (struct satellite_site){s->leaves, s->leaves_user, s->bucket};
}

bool shelf_has(const struct shelf *s, enum shelf_side side)
{
    return side == SHELF_TO ? s->satellite.len > 0 : s->leaves.len > 0;
}

static int shelf_take_side(struct shelf *s, struct str *name, struct str *user, const char *from,
                           struct err *err)
{
    *name = arena_str(s->arena, str_z(from));
    return satellites_user(s->satellites, s->arena, *name, user, err);
}

int shelf_look(struct shelf *s, bool make, struct err *err)
{
    struct slots t;
    unsigned slot = s->account.hash[0];
    int code = satellites_current(s->satellites, &t, make, err);

    if (code < 0 || t.epoch == s->epoch)
        return code;
    s->leaves = s->leaves_user = STR_EMPTY;
    code = shelf_take_side(s, &s->satellite, &s->user, t.names[t.of[slot]], err);
    if (code == 0 && slots_moves(&t, slot))
        code = shelf_take_side(s, &s->leaves, &s->leaves_user, t.names[t.leaves[slot]], err);
    s->epoch = code == 0 ? t.epoch : 0;
    return code;
}

int shelf_open_in(struct shelf *out, struct satellites *s, struct arena *a,
                  const struct archive_account *c, struct str bucket, struct err *err)
{
    *out =
        (struct shelf){.satellites = s, .account = *c, .arena = a, .bucket = arena_str(a, bucket)};
    out->account.host = arena_str(a, c->host);
    out->account.login = arena_str(a, c->login);
    return shelf_look(out, false, err);
}

int shelf_open(struct shelf *out, struct satellites *s, struct arena *a,
               const struct archive_account *c, struct err *err)
{
    struct str bucket;
    int code = satellites_bucket(s, a, c->host, &bucket, err);

    *out = (struct shelf){0};
    return code < 0 ? code : shelf_open_in(out, s, a, c, bucket, err);
}

int shelf_open_claimed(struct shelf *out, struct satellites *s, struct arena *a,
                       const struct archive_account *c, struct lock *lock, struct err *err)
{
    int code = shelf_open(out, s, a, c, err);

    out->lock = lock;
    if (code == 0)
        code = shelf_look(out, true, err);
    if (code == 0 && shelf_has(out, SHELF_FROM))
        code = shelf_move(out, err);
    /* The old side is empty now. It stays empty, because only the holder of the account's lock
     * writes objects of the account. */
    out->leaves = out->leaves_user = STR_EMPTY;
    out->claimed = true;
    return code;
}

void shelf_close(struct shelf *s)
{
    *s = (struct shelf){0};
}

/* --- one side --- */

static int shelf_absent(struct str key, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no object " STR_FMT, STR_ARG(str_head(key, 255)));
}

int shelf_open_read(struct object_place *p, struct shelf *s, struct arena *a, enum shelf_side side,
                    struct str key, struct err *err)
{
    struct satellite_site site = shelf_site(s, side);
    int code = shelf_has(s, side)
                   ? satellite_site_open(p, s->satellites, a, &site, key, PLACE_READ, err)
                   : ERR_NO_BUCKET;

    if (code != ERR_NO_BUCKET)
        return code;
    shelf_absent(key, err);
    return ERR_NOT_FOUND;
}

/* Ends a read. A bucket that was removed meanwhile counts as empty. */
static int shelf_end_read(struct shelf *s, struct object_place *p, enum shelf_side side, int code,
                          struct err *err)
{
    satellites_note(s->satellites, shelf_site(s, side).name, code);
    code = object_place_end(p, code, err);
    return code == ERR_NO_BUCKET ? shelf_absent(STR("here"), err) : code;
}

int shelf_side_head(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                    struct object_info *out, struct err *err)
{
    struct get_result got = {0};
    struct object_place p;
    int code = shelf_open_read(&p, s, a, side, key, err);

    if (code < 0)
        return code;
    code = p.bucket->ops->head(p.bucket, a, p.key, STR_EMPTY, NULL, &got, err);
    code = shelf_end_read(s, &p, side, code, err);
    if (code == 0)
        *out = got.info;
    return code;
}

int shelf_side_get(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                   struct str etag, const struct object_range *range, struct shelf_body *out,
                   struct err *err)
{
    struct object_conditions c = {0};
    struct get_result got = {0};
    struct object_place p;
    int code = shelf_open_read(&p, s, a, side, key, err);

    if (code < 0)
        return code;
    if (etag.len)
        c.if_match = arena_fmt(a, "\"" STR_FMT "\"", STR_ARG(etag));
    code = p.bucket->ops->get(p.bucket, a, p.key, STR_EMPTY, &c, range, &got, err);
    if (code == 0)
        code = object_place_unlock(&p, &got, err);
    code = shelf_end_read(s, &p, side, code, err);
    if (code < 0) {
        reader_close(got.body);
        return code;
    }
    *out = (struct shelf_body){got.body, got.info, got.first, got.len};
    return 0;
}

int shelf_side_list(struct shelf *s, struct arena *a, enum shelf_side side,
                    const struct list_options *o, struct list_result *out, struct err *err)
{
    struct object_place p;
    int code = shelf_open_read(&p, s, a, side, o->prefix, err);

    *out = (struct list_result){0};
    if (code == 0) {
        code = p.bucket->ops->list(p.bucket, a, o, out, err);
        code = shelf_end_read(s, &p, side, code, err);
    }
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* --- both sides --- */

/* A request for an object to one side: the function that sends it, and its arguments. */
struct shelf_question {
    struct str key;
    int (*ask)(struct shelf *s, struct arena *a, enum shelf_side side,
               const struct shelf_question *q, struct err *err);
    void *out;
    struct str etag;
    const struct object_range *range;
};

static int shelf_ask_sides(struct shelf *s, struct arena *a, const struct shelf_question *q,
                           struct err *err)
{
    int code = q->ask(s, a, SHELF_TO, q, err);

    if (code == ERR_NOT_FOUND && shelf_has(s, SHELF_FROM))
        code = q->ask(s, a, SHELF_FROM, q, err);
    return code;
}

/* Asks the side that the slot goes to for an object, and then the side that it leaves. If neither
 * has the object, it may have moved between the two requests, or the slot may have begun to move.
 * So both are asked again until the table is unchanged and the slot does not move (H2). */
static int shelf_ask(struct shelf *s, struct arena *a, const struct shelf_question *q,
                     struct err *err)
{
    int code = ERR_NOT_FOUND;

    for (int i = 0; i < SHELF_ROUNDS && code == ERR_NOT_FOUND; i++) {
        uint32_t epoch = s->epoch;
        bool moving = shelf_has(s, SHELF_FROM);
        code = shelf_ask_sides(s, a, q, err);
        if (code != ERR_NOT_FOUND || s->claimed)
            return code;
        int looked = shelf_look(s, false, err);
        if (looked < 0)
            return looked;
        if (!moving && s->epoch == epoch)
            break;
    }
    return code == ERR_NOT_FOUND ? shelf_absent(q->key, err) : code;
}

static int ask_head(struct shelf *s, struct arena *a, enum shelf_side side,
                    const struct shelf_question *q, struct err *err)
{
    return shelf_side_head(s, a, side, q->key, q->out, err);
}

int shelf_head(struct shelf *s, struct arena *a, struct str key, struct object_info *out,
               struct err *err)
{
    struct shelf_question q = {.key = key, .ask = ask_head, .out = out};

    return shelf_ask(s, a, &q, err);
}

static int ask_get(struct shelf *s, struct arena *a, enum shelf_side side,
                   const struct shelf_question *q, struct err *err)
{
    return shelf_side_get(s, a, side, q->key, q->etag, q->range, q->out, err);
}

int shelf_get(struct shelf *s, struct arena *a, struct str key, const struct object_range *range,
              struct shelf_body *out, struct err *err)
{
    struct shelf_question q = {.key = key, .ask = ask_get, .out = out, .range = range};

    return shelf_ask(s, a, &q, err);
}

int shelf_get_if(struct shelf *s, struct arena *a, const struct object_info *of,
                 const struct object_range *range, struct shelf_body *out, struct err *err)
{
    struct shelf_question q = {
        .key = of->key, .ask = ask_get, .out = out, .etag = of->etag, .range = range};

    return shelf_ask(s, a, &q, err);
}

void shelf_body_close(struct shelf_body *b)
{
    reader_close(b->body);
    b->body = NULL;
}

int shelf_read(struct shelf *s, struct arena *a, struct str key, size_t max, struct buf *out,
               struct object_info *info, struct err *err)
{
    struct shelf_body body = {0};
    int code = shelf_get(s, a, key, NULL, &body, err);

    if (code < 0)
        return code;
    if (body.len > max)
        code = err_set(err, ERR_TOO_LARGE, "the object " STR_FMT " has more than %zu bytes",
                       STR_ARG(str_head(key, 255)), max);
    if (code == 0)
        code = reader_read_all(body.body, out, err);
    if (info)
        *info = body.info;
    shelf_body_close(&body);
    return code;
}

/* --- listing --- */

/* If both sides have the key, the side that the slot goes to counts, because objects move only
 * towards it. */
static int list_choose(void *ctx, struct arena *a, struct merge_key *keys, size_t count,
                       struct err *err)
{
    for (size_t i = 0; i < count; i++)
        keys[i].from = MERGE_FIRST;
    return 0;
}

static int shelf_list_both(struct shelf *s, struct arena *a, struct object_place places[2],
                           const struct list_options *o, struct list_result *out, struct err *err)
{
    struct bucket *buckets[] = {places[SHELF_TO].bucket, places[SHELF_FROM].bucket};
    struct merge m = {.buckets = buckets, .count = SHELF_SIDES, .choose = list_choose};
    int code = merge_list(&m, a, o, false, out, err);

    code = shelf_end_read(s, &places[SHELF_FROM], SHELF_FROM, code, err);
    return shelf_end_read(s, &places[SHELF_TO], SHELF_TO, code, err);
}

int shelf_list(struct shelf *s, struct arena *a, const struct list_options *o,
               struct list_result *out, struct err *err)
{
    struct object_place places[SHELF_SIDES];
    int code = s->claimed ? 0 : shelf_look(s, false, err);

    *out = (struct list_result){0};
    if (code < 0 || !shelf_has(s, SHELF_FROM))
        return code < 0 ? code : shelf_side_list(s, a, SHELF_TO, o, out, err);
    code = shelf_open_read(&places[SHELF_FROM], s, a, SHELF_FROM, o->prefix, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? shelf_side_list(s, a, SHELF_TO, o, out, err) : code;
    code = shelf_open_read(&places[SHELF_TO], s, a, SHELF_TO, o->prefix, err);
    if (code == 0)
        return shelf_list_both(s, a, places, o, out, err);
    code = shelf_end_read(s, &places[SHELF_FROM], SHELF_FROM, code, err);
    return code == ERR_NOT_FOUND ? shelf_side_list(s, a, SHELF_FROM, o, out, err) : code;
}
