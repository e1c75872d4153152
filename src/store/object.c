/* Keys: the owner row, its life and expiry time, and the rows that belong to it (docs/store.md,
 * invariants 1 to 6). */
#include "store/embedded_int.h"

/* A change deletes the rows of a collection of at most this many members itself. The rows of a
 * larger collection become garbage, which the collector deletes. */
enum { DROP_DIRECTLY = 64 };

static struct owner_slot *owner_slot(const struct run *run, const struct object *o)
{
    if (!run->owners || o->key.len > OWNER_KEY_MAX)
        return NULL;
    return &run->owners->slots[o->hash % OWNER_SLOTS];
}

static bool recall_owner(const struct run *run, struct object *o)
{
    const struct owner_slot *slot = owner_slot(run, o);

    if (!slot || !slot->used || slot->hash != o->hash || slot->database != run->e->base.number ||
        !str_eq(str_n(slot->key, slot->key_len), o->key))
        return false;
    o->m = slot->m;
    return true;
}

static void note_owner(const struct run *run, const struct object *o, const struct meta *m)
{
    struct owner_slot *slot = owner_slot(run, o);

    if (!slot)
        return;
    slot->used = m->type != TYPE_STRING;
    slot->key_len = (unsigned char)o->key.len;
    slot->database = (unsigned char)run->e->base.number;
    slot->hash = o->hash;
    slot->m = *m;
    if (o->key.len)
        memcpy(slot->key, o->key.p, o->key.len);
    if (m->small && m->value.len) {
        char *pairs = run->owners->pairs[slot - run->owners->slots];
        memmove(pairs, m->value.p, m->value.len);
        slot->m.value.p = pairs;
    }
}

static bool load_row(struct call *c, struct str key, struct object *o)
{
    struct row row;
    struct str value;

    *o = (struct object){.key = key, .hash = run_hash(c->run, key)};
    if (!recall_owner(c->run, o)) {
        row_meta(&row, c->arena, o->hash, key);
        if (run_get(c->run, row.key, &value) && meta_decode(&o->m, value) < 0)
            run_fail(c->run, err_set(c->run->err, ERR_CORRUPT, "a key's row is damaged"));
        if (c->run->code < 0)
            return false;
        note_owner(c->run, o, &o->m);
    }
    o->was = o->m.type;
    o->was_expire_ms = o->m.expire_ms;
    return true;
}

bool object_load(struct call *c, struct str key, struct object *o)
{
    struct run *run = c->run;

    if (!load_row(c, key, o))
        return false;
    if (o->m.expire_ms && o->m.expire_ms <= run->now_ms) {
        if (run->tx)
            object_drop(c, o);
        *o = (struct object){.key = key, .hash = o->hash};
    }
    run->last_owner = o->m;
    return run->code == 0;
}

bool object_want(struct call *c, struct str key, enum value_type type, struct object *o)
{
    if (!object_load(c, key, o))
        return false;
    if (o->m.type == TYPE_NONE || o->m.type == type)
        return true;
    answer_wrong_type(c);
    return false;
}

void object_create(struct call *c, struct object *o, enum value_type type)
{
    BUG_ON(o->m.type != TYPE_NONE);
    o->m = (struct meta){.type = type, .small = type == TYPE_HASH};
    if (!o->m.small)
        o->m.version = run_new_version(c->run);
}

static void object_put_meta(struct call *c, const struct object *o)
{
    struct buf value = BUF_INIT(META_MAX + 512 * MIB);
    char head[META_MAX];
    struct row row;

    row_meta(&row, c->arena, o->hash, o->key);
    buf_append(&value, head, meta_encode(&o->m, head));
    buf_append_str(&value, o->m.value);
    run_put(c->run, row.key, buf_str(&value));
    buf_release(&value);
    note_owner(c->run, o, &o->m);
}

static void delete_meta(struct call *c, const struct object *o)
{
    struct row row;
    row_meta(&row, c->arena, o->hash, o->key);
    run_delete(c->run, row.key);
    note_owner(c->run, o, &(struct meta){0});
}

static bool object_is_indexed(enum value_type type, int64_t expire_ms)
{
    return type > TYPE_STRING && expire_ms;
}

/* Replaces the key's expiry row by the one that `type` and `expire_ms` need. Only a collection that
 * expires has an expiry row (docs/store.md, invariant 6). */
static void index_expiry(struct call *c, const struct object *o, enum value_type type,
                         int64_t expire_ms)
{
    bool before = object_is_indexed(o->was, o->was_expire_ms),
         after = object_is_indexed(type, expire_ms);
    struct row row;

    if (before && after && o->was_expire_ms == expire_ms)
        return;
    if (before) {
        row_expiry(&row, c->arena, o->was_expire_ms, o->hash, o->key);
        run_delete(c->run, row.key);
    }
    if (after) {
        row_expiry(&row, c->arena, expire_ms, o->hash, o->key);
        run_put(c->run, row.key, STR_EMPTY);
    }
}

static void stored(struct object *o)
{
    o->was = o->m.type;
    o->was_expire_ms = o->m.expire_ms;
    o->changed = false;
}

void object_save(struct call *c, struct object *o)
{
    if (o->m.type > TYPE_STRING && o->m.count == 0) {
        index_expiry(c, o, TYPE_NONE, 0);
        if (o->was != TYPE_NONE)
            delete_meta(c, o);
        o->m = (struct meta){0};
    } else {
        index_expiry(c, o, o->m.type, o->m.expire_ms);
        object_put_meta(c, o);
    }
    stored(o);
}

/* Deletes the rows of a version that have this tag, at most DROP_DIRECTLY. Their keys are copied
 * first: a row that the same change has written is in the change's batch, and its bytes move when a
 * delete is added to the batch. */
static void object_delete_rows(struct call *c, enum row_tag tag, uint64_t version)
{
    struct version_range range;
    struct str keys[DROP_DIRECTLY];
    struct walk w;
    size_t count = 0;

    version_range(&range, tag, version);
    walk_version(&w, c->run, &range, false);
    while (count < DROP_DIRECTLY && walk_next(&w))
        keys[count++] = arena_str(c->arena, w.key);
    walk_close(&w);
    for (size_t i = 0; i < count && !c->arena->failed; i++)
        run_delete(c->run, keys[i]);
}

static void drop_members(struct call *c, const struct meta *m)
{
    enum row_tag other, tag = type_tag(m->type, &other);
    char type = (char)m->type;
    struct row row;

    if (m->small)
        return;
    if (m->count > DROP_DIRECTLY) {
        row_prefix(&row, ROW_GARBAGE, m->version);
        run_put(c->run, row.key, str_n(&type, 1));
        c->run->garbage[c->run->e->base.number] = true;
        return;
    }
    object_delete_rows(c, tag, m->version);
    if (other)
        object_delete_rows(c, other, m->version);
}

void object_drop(struct call *c, struct object *o)
{
    if (o->m.type == TYPE_NONE)
        return;
    index_expiry(c, o, TYPE_NONE, 0);
    if (o->m.type > TYPE_STRING)
        drop_members(c, &o->m);
    delete_meta(c, o);
    o->m = (struct meta){0};
    stored(o);
}

void object_set_string(struct call *c, struct object *o, struct str value, int64_t expire_ms)
{
    if (o->m.type > TYPE_STRING)
        object_drop(c, o);
    o->m = (struct meta){.type = TYPE_STRING, .value = value, .expire_ms = expire_ms};
    object_put_meta(c, o);
    stored(o);
}

void object_set_expire(struct call *c, struct object *o, int64_t expire_ms)
{
    o->m.expire_ms = expire_ms;
    object_save(c, o);
}

void object_rename(struct call *c, struct object *o, struct object *to)
{
    object_drop(c, to);
    index_expiry(c, o, TYPE_NONE, 0);
    delete_meta(c, o);
    to->m = o->m;
    object_save(c, to);
}

const char *type_name(enum value_type type)
{
    static const char *const names[] = {"none", "string", "list", "set", "zset", "hash"};
    return names[type];
}
