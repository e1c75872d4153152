/* Intents of changes at remote storages. tap.h says why there are three kinds. This file chooses
 * between them, and implements the first kind: a task that records the changes if the request has
 * not done so. The codes E4, R1, R4, R5, S1 and S5 are those of docs/replication.md. */
#include "base/ids.h"
#include "base/json.h"
#include "base/vec.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum {
    POSTPONE_BATCH = 500,
    ASTRAY_MAX = 10000, /* most intents of changes that ended after their lease (E4) */
};

/* --- payloads --- */

/* Writes the payload of the intent's task. `again` true: it is the intent's second task, which
 * records the change once more later (R4). */
static void intent_write(struct buf *out, const struct intent *in, bool again)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "Storage", in->storage);
    json_out_member_str(&w, "Bucket", in->what.bucket);
    json_out_member_str(&w, "User", in->what.user);
    json_out_member_u64(&w, "Changes", in->what.changes);
    json_out_member_bool(&w, "Again", again);
    json_out_key(&w, "Objects");
    json_out_open(&w, '[');
    for (size_t i = 0; i < in->what.key_count; i++)
        json_out_str(&w, in->what.keys[i]);
    json_out_close(&w, ']');
    json_out_close(&w, '}');
}

/* Returns the largest number of keys whose changes fit into one record. */
static size_t keys_max(unsigned changes)
{
    unsigned each = (unsigned)__builtin_popcount(changes & THINGS_OF_OBJECT);

    return each ? (QUEUE_BATCH_MAX - TAP_PER_BUCKET) / each : 0;
}

static int intent_read_keys(struct intent *in, const json_t *list, struct err *err)
{
    size_t count = json_array_size(list);
    struct str *keys = count ? arena_array(&in->a, count, sizeof(*keys)) : NULL;

    if (count > keys_max(in->what.changes) || (count && !keys))
        return err_set(err, ERR_INVALID, "an intent of too many objects");
    for (size_t i = 0; i < count; i++) {
        const json_t *key = json_array_get(list, i);
        if (!json_is_string(key))
            return err_set(err, ERR_INVALID, "an intent's object is not a name");
        keys[i] = arena_str(&in->a, str_n(json_string_value(key), json_string_length(key)));
    }
    in->what.keys = keys;
    in->what.key_count = count;
    return arena_error(&in->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int intent_read(struct intent *in, struct str payload, struct err *err)
{
    json_t *json = NULL;
    int code = json_read(&json, payload, err);

    if (code < 0)
        return err_wrap(err, ERR_INVALID, "an intent that cannot be read");
    in->storage = arena_str(&in->a, json_get_str(json, "Storage", STR_EMPTY));
    in->what.bucket = arena_str(&in->a, json_get_str(json, "Bucket", STR_EMPTY));
    in->what.user = arena_str(&in->a, json_get_str(json, "User", STR_EMPTY));
    in->what.changes = (unsigned)json_get_i64(json, "Changes", 0);
    in->again = json_get_bool(json, "Again", false);
    code = intent_read_keys(in, json_object_get(json, "Objects"), err);
    json_decref(json);
    if (code == 0 && (!in->storage.len || !in->what.bucket.len))
        code = err_set(err, ERR_INVALID, "an intent without a bucket");
    return code;
}

/* --- recording --- */

/* Records the changes of an intent if `happened` is true. `ends` true: the intent's task ends in
 * the same script. `ends` false: the outcome is not known, the task stays, and the changes are
 * recorded as late (R4). */
static int intent_record(struct taps *t, struct intent *in, bool happened, bool ends,
                         struct err *err)
{
    struct arena a = ARENA_INIT(0);
    const struct str id = str_z(in->id);
    struct record rec = {.intents = &id, .intent_count = ends};
    const struct intended *w = &in->what;
    struct changes_out out;
    int code = changes_out_init(&out, &a, err);

    for (size_t i = 0; i < w->key_count && code == 0 && happened; i++)
        changes_add(&out, w->changes & THINGS_OF_OBJECT, in->storage, w->bucket, w->keys[i], 0);
    if (code == 0 && happened)
        changes_add(&out, w->changes & ~(unsigned)THINGS_OF_OBJECT, in->storage, w->bucket,
                    STR_EMPTY, 0);
    if (code == 0 && happened && w->changes & CHANGE_BUCKET_MADE)
        code = changes_new_bucket(t, &a, in->storage, w->bucket, w->user, err);
    if (code == 0 && arena_error(&a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; code == 0 && i < out.count; i++)
        out.items[i].late = !ends;
    rec.changes = out.items;
    rec.count = out.count;
    if (code == 0)
        code = taps_record(t, &rec, err);
    arena_release(&a);
    return code;
}

/* --- writes that are under way --- */

/* Counts a write as under way, and returns the phase in which it begins. If the phase changes
 * meanwhile, the write is counted again in the new phase; otherwise keep_epoch() might not wait for
 * the write. */
unsigned phase_enter(struct taps *t)
{
    for (;;) {
        unsigned phase = atomic_load(&t->phase);
        atomic_fetch_add(&t->under_way[phase % 2], 1);
        if (atomic_load(&t->phase) == phase)
            return phase;
        atomic_fetch_sub(&t->under_way[phase % 2], 1);
    }
}

void phase_leave(struct taps *t, unsigned phase)
{
    atomic_fetch_sub(&t->under_way[phase % 2], 1);
}

/* --- intents --- */

void intent_free(struct intent *in)
{
    arena_release(&in->a);
    free(in);
}

size_t intent_key_len(struct str key)
{
    size_t len = 3;

    for (size_t i = 0; i < key.len; i++) {
        bool plain = (unsigned char)key.p[i] >= 0x20 && key.p[i] != '"' && key.p[i] != '\\';
        len += plain ? 1 : JSON_ESCAPE_MAX;
    }
    return len;
}

struct intent *intent_new(const struct intended *like, const struct str *keys, size_t count)
{
    struct intent *in = xcalloc(1, sizeof(*in));

    in->a = ARENA_INIT(0);
    id_hex(in->id);
    list_init(&in->node);
    in->what = *like;
    in->what.storage = NULL;
    in->what.bucket = arena_str(&in->a, like->bucket);
    in->what.user = arena_str(&in->a, like->user);
    in->storage = arena_str(&in->a, like->storage->name);
    struct str *own = arena_array(&in->a, count + 1, sizeof(*own));
    in->what.keys = own;
    in->what.key_count = own ? count : 0; /* if the arena is full, intent_announce() fails */
    for (size_t i = 0; own && i < count; i++)
        own[i] = arena_str(&in->a, keys[i]);
    return in;
}

/* Makes an intent of as many keys as fit, beginning with the key at *at, and advances *at. */
static struct intent *intent_some(const struct intended *i, size_t *at)
{
    size_t first = *at, bytes = 0;

    while (*at < i->key_count && *at - first < keys_max(i->changes)) {
        bytes += intent_key_len(i->keys[*at]);
        if (bytes > INTENT_PAYLOAD_MAX && *at > first)
            break;
        ++*at;
    }
    return intent_new(i, i->keys + first, *at - first);
}

int intent_announce(struct taps *t, struct intent *in, int64_t delay_s, struct err *err)
{
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX);
    struct task task = {.type = STR(INTENT_TYPE), .id = str_z(in->id), .queue = INTENT_QUEUE};

    intent_write(&payload, in, false);
    task.payload = buf_str(&payload);
    int code = buf_error(&payload);
    if (code == 0)
        code = arena_error(&in->a);
    if (code == 0)
        code = queue_add(t->o.queue, &task, delay_s, err);
    buf_release(&payload);
    return code;
}

void intent_keep(struct taps *t, struct intent *in)
{
    atomic_fetch_add(&t->count_intents, 1);
    mutex_lock(&t->lock);
    list_push(&t->open, &in->node);
    mutex_unlock(&t->lock);
}

void intent_let_go(struct taps *t, struct intent *in)
{
    mutex_lock(&t->lock);
    list_remove(&in->node);
    mutex_unlock(&t->lock);
}

/* What the policies say about the bucket of a change. */
struct concerned {
    bool replicated, switching;
    bool has_switch;  /* the changed bucket has a switch that is not done */
    struct str owner; /* owner of the bucket, in the arena; empty: not replicated */
};

/* Looks up the policies for a change. The filter alone is not enough, because it may be wrong. */
static int intended_look_up(struct taps *t, struct arena *a, const struct intended *i,
                            struct concerned *out, struct err *err)
{
    const struct replication *const *found = NULL;
    struct replication_view *view = NULL;
    struct str storage = i->storage->name;
    int code = replications_view(t->o.replications, &view, err);

    if (code < 0)
        return code;
    const struct replication *moving = replication_view_switch(view, storage, i->bucket);
    size_t count = replication_view_from(view, storage, i->bucket, &found);
    const struct replication *one = moving  ? moving
                                    : count ? found[0]
                                            : replication_view_blocked(view, storage, i->bucket);
    *out = (struct concerned){.replicated = one, .switching = moving, .has_switch = moving};
    for (size_t k = 0; k < count; k++)
        out->has_switch |= found[k]->has_switch;
    if (one)
        out->owner = arena_str(a, one->id.user);
    else
        out->replicated = i->changes & CHANGE_BUCKET_MADE &&
                          replication_view_user(view, i->user, storage, &found) > 0;
    replication_view_unref(view);
    return 0;
}

/* Sets the error that the client gets when a change cannot be captured (R5). */
static int intended_refuse(int code, struct err *err)
{
    if (code == ERR_BUSY || code == ERR_STORE)
        return code;
    return store_cannot(err, "The change cannot be recorded", err ? store_refusal(err) : NULL);
}

static int announce_all(struct taps *t, const struct intended *i, struct intent **out,
                        struct err *err)
{
    size_t at = 0;
    int code;

    do {
        struct intent *in = intent_some(i, &at);
        code = intent_announce(t, in, INTENT_DELAY_S, err);
        if (code < 0) {
            intent_free(in);
            break;
        }
        intent_keep(t, in);
        in->next = *out;
        *out = in;
    } while (at < i->key_count);
    return code;
}

/* Returns whether the request may share its intent. The request must change one object, and its
 * bucket must not be in a switch without downtime. */
static bool can_share(const struct concerned *c, const struct intended *i)
{
    return !c->switching && i->key_count == 1 && !(i->changes & ~(unsigned)THINGS_OF_OBJECT);
}

/* Begins a change of a bucket in a switch without downtime. `now` is the storage to which the route
 * leads now. If the change is for another storage, because the route has changed since the request
 * came, it is refused. */
static int begin_switching(struct taps *t, const struct intended *i, const struct storage *now,
                           struct capture *out, struct err *err)
{
    if (now != i->storage && !i->ends_upload)
        return err_set(err, ERR_BUSY, "the bucket is being switched to another storage");
    return tap_locks_take(t, i, &out->locks, err);
}

/* Begins a change of a replicated bucket. From now on the change counts as under way. So the route
 * is looked up again here, because it may have changed since the request came (S1, S5). */
static int begin_replicated(struct taps *t, const struct intended *i, struct capture *out,
                            struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct intent *intents = NULL;
    struct concerned c = {0};
    struct storage *now = i->storage;
    bool tells = storage_can(i->storage, STORAGE_TELLS_CHANGES);
    int code = intended_look_up(t, &a, i, &c, err);

    if (code == 0 && c.owner.len) {
        int routed = route_storage(t->o.routes, c.owner, i->bucket, &now, err);
        now = routed < 0 ? NULL : now;
        code = routed == ERR_BUSY ? routed : 0;
    }
    if (code == 0 && c.switching)
        code = begin_switching(t, i, now, out, err);
    if (code == 0 && c.replicated && tells)
        code = taps_ready(t, i->storage)
                   ? 0
                   : store_cannot(err, "Changes of the bucket cannot be recorded",
                                  lease_trouble(t->o.lease));
    else if (code == 0 && c.replicated && can_share(&c, i))
        code = !c.has_switch && note_begin(t, i, out) ? 0 : shared_begin(t, i, out, err);
    else if (code == 0 && c.replicated)
        code = announce_all(t, i, &intents, err);
    if (intents)
        out->intent = intents;
    arena_release(&a);
    return code;
}

static void end_captured(struct taps *t, struct capture *c, enum outcome outcome);

int intent_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err)
{
    struct taps *t = ctx;
    uint64_t lease = 0;

    *out = (struct capture){.phase = phase_enter(t), .begun = true};
    int code = lease_take(t->o.lease, &lease, err);
    if (code == 0 && lease && !storage_can(i->storage, STORAGE_TELLS_CHANGES)) {
        out->lease = lease;
        out->what = *i;
    }
    struct filtered what = {i->storage->name, i->bucket, i->user, i->changes};
    if (code == 0 && filter_has(&t->filter, &what))
        code = begin_replicated(t, i, out, err);
    if (code == 0)
        return 0;
    end_captured(t, out, OUTCOME_REFUSED); /* nothing was sent to the storage */
    return intended_refuse(code, err);
}

int intent_check(void *ctx, const struct capture *c, struct err *err)
{
    const struct taps *t = ctx;

    return c->lease ? lease_check(t->o.lease, c->lease, err) : 0;
}

/* Ends one intent. If the change cannot be recorded now, the intent's task records the change when
 * the task comes due. */
static void intent_end_one(struct taps *t, struct intent *in, enum outcome outcome)
{
    struct err err = {0};
    int code = intent_record(t, in, outcome != OUTCOME_REFUSED, outcome != OUTCOME_UNKNOWN, &err);

    if (code < 0)
        log_warn(t->o.log, "replica.intent_left", log_s("bucket", in->what.bucket),
                 log_s("storage", in->storage), log_z("error", err.text));
    intent_let_go(t, in);
    intent_free(in);
}

static void end_captured(struct taps *t, struct capture *c, enum outcome outcome)
{
    struct intent *shared = c->intent, *next;

    if (c->noted || (shared && shared->shared)) {
        shared_end(t, c, outcome);
        *c = (struct capture){0};
        return;
    }
    for (struct intent *in = c->intent; in; in = next) {
        next = in->next;
        intent_end_one(t, in, outcome);
    }
    if (c->locks)
        tap_locks_release(t, c->locks);
    phase_leave(t, c->phase);
    *c = (struct capture){0};
}

static void tell_astray(struct taps *t, const struct intent *in, const char *why)
{
    log_error(t->o.log, "replica.change_astray", log_s("bucket", in->what.bucket),
              log_s("storage", in->storage), log_z("error", why));
}

/* Gives a change an intent after its request has ended (E4). The request began without an intent,
 * because its bucket was not replicated. But the lease has ended since, so another process may have
 * made a replication without this process. The outcome counts as not known. The store probably
 * cannot be reached now, so the keeper announces the intent later. */
static void leave_intent(struct taps *t, const struct intended *i)
{
    size_t at = 0;

    do {
        struct intent *in = intent_some(i, &at);
        mutex_lock(&t->lock);
        bool fits = t->astray_count < ASTRAY_MAX;
        if (fits)
            list_push(&t->astray, &in->node);
        t->astray_count += fits;
        mutex_unlock(&t->lock);
        loop_wake(&t->keeper);
        if (!fits) {
            tell_astray(t, in, "too many others wait for the store");
            intent_free(in);
        }
    } while (at < i->key_count);
}

static struct intent *take_astray(struct taps *t)
{
    struct intent *in = NULL;

    mutex_lock(&t->lock);
    if (!list_empty(&t->astray)) {
        in = list_entry(list_shift(&t->astray), struct intent, node);
        t->astray_count--;
    }
    mutex_unlock(&t->lock);
    return in;
}

static void put_astray(struct taps *t, struct intent *in)
{
    mutex_lock(&t->lock);
    list_push(&t->astray, &in->node);
    t->astray_count++;
    mutex_unlock(&t->lock);
}

int intents_announce_astray(struct taps *t, struct err *err)
{
    struct intent *in;
    int code = 0;

    while (code == 0 && (in = take_astray(t))) {
        code = intent_announce(t, in, INTENT_DELAY_S, err);
        if (code < 0)
            put_astray(t, in);
        else
            intent_free(in);
    }
    return code;
}

void intents_forget_astray(struct taps *t)
{
    struct err err = {0};
    struct intent *in;

    if (intents_announce_astray(t, &err) == 0)
        return;
    while ((in = take_astray(t))) {
        tell_astray(t, in, err.text);
        intent_free(in);
    }
}

int intent_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err)
{
    struct taps *t = ctx;

    if (!c->begun)
        return 0;
    int code = outcome == OUTCOME_REFUSED ? 0 : intent_check(t, c, err);
    if (code < 0 && !c->intent && !c->noted)
        leave_intent(t, &c->what);
    end_captured(t, c, code < 0 ? OUTCOME_UNKNOWN : outcome);
    return code;
}

/* --- work of the keeper --- */

struct intent_id {
    char text[ID_HEX_LEN + 1];
};

static size_t open_ids(struct taps *t, struct intent_id **out)
{
    VEC(struct intent_id) ids = {0};
    struct intent_id id;

    mutex_lock(&t->lock);
    list_each (&t->open, struct intent, node, in) {
        memcpy(id.text, in->id, sizeof(id.text));
        vec_push(&ids, id);
    }
    mutex_unlock(&t->lock);
    *out = ids.items;
    return ids.len;
}

void intents_postpone(struct taps *t)
{
    struct intent_id *ids = NULL;
    size_t count = open_ids(t, &ids);
    struct str batch[POSTPONE_BATCH];
    struct err err = {0};
    int code = 0;

    for (size_t at = 0, n; at < count && code == 0; at += n) {
        n = size_min(POSTPONE_BATCH, count - at);
        for (size_t i = 0; i < n; i++)
            batch[i] = str_z(ids[at + i].text);
        code = queue_postpone(t->o.queue, INTENT_QUEUE, batch, n, INTENT_DELAY_S, &err);
    }
    /* A failure does little harm: intents that come due are recorded once more than needed. */
    if (code < 0)
        log_warn(t->o.log, "replica.intents_not_postponed", log_z("error", err.text));
    free(ids);
}

/* --- the handler of an intent's task --- */

/* Queues the intent's second task, which records the change once more later. The storage may still
 * be working on the request: the connection broke, or the process that had sent the request
 * died. */
static int intent_look_again(struct taps *t, const struct intent *in, struct str id,
                             struct err *err)
{
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX), again_id = BUF_INIT(0);
    struct task task = {.type = STR(INTENT_TYPE), .queue = INTENT_QUEUE};

    intent_write(&payload, in, true);
    buf_appendf(&again_id, STR_FMT ":again", STR_ARG(id));
    task.payload = buf_str(&payload);
    task.id = buf_str(&again_id);
    int code = queue_add(t->o.queue, &task, INTENT_AGAIN_S, err);
    buf_release(&payload);
    buf_release(&again_id);
    return code == ERR_EXISTS ? 0 : code;
}

/* Sets *out to whether any policy concerns the bucket. There may be none for an intent that
 * leave_intent() made (E4). */
static int intent_is_concerned(struct taps *t, const struct intent *in, bool *out, struct err *err)
{
    struct replication_view *view = NULL;
    int code = replications_refresh(t->o.replications, err);

    if (code == 0)
        code = replications_view(t->o.replications, &view, err);
    if (code == 0)
        *out = replication_view_any(view, in->storage, in->what.bucket) ||
               in->what.changes & CHANGE_BUCKET_MADE;
    replication_view_unref(view);
    return code;
}

int taps_intent_run(struct task_run *run, struct err *err)
{
    struct taps *t = run->ctx;
    struct intent in = {.a = ARENA_INIT(0)};
    bool concerned = false;
    int code = intent_read(&in, run->task->payload, err);

    if (code == 0)
        code = intent_is_concerned(t, &in, &concerned, err);
    if (code == 0 && !in.again && concerned)
        code = intent_look_again(t, &in, run->task->id, err);
    if (code == 0 && concerned)
        code = intent_record(t, &in, true, false, err);
    arena_release(&in.a);
    return code;
}
