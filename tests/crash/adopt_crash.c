/* Windows that move between the shards of a bucket, under kill and loss of power (harness.h;
 * docs/local-storage.md, "Shards").
 *
 * Several threads put, upload and remove keys of their own, and one moves windows between three
 * buckets, each with one call; a change is told before it begins and after it was answered. Then
 *   1. all rows of a window are in one bucket: that of the last move that was answered, or of the
 *      one that was under way, which is sometimes undone;
 *   2. there every key has the bytes and the number of versions of the last change that was
 *      answered, or of the one that was under way;
 *   3. rows, counts and files agree (local_check_whole).
 * Liars move the keys of a window one by one. */
#include "base/hash.h"
#include "crash/harness.h"
#include "crash/power.h"
#include "object/local/local_adopt.h"
#include "object/local/local_int.h"
#include "unit/object/local_check.h"

#include <stdio.h>
#include <unistd.h>

enum {
    BUCKETS = 3,
    WINDOWS = 4,
    WRITERS = 4,
    MOVER = WRITERS,
    KEYS = 5, /* of a writer in a window */
    PARTS = 3,
    VERSIONS_KEPT = 30, /* then the checker removes them all */
    INLINE_MAX = 4 * 1024,
};

struct event {
    uint32_t who, number;
    bool done;
};

/* What a key has: the number of the operation that made its bytes, 0 for nothing. */
struct key_state {
    uint32_t value, versions;
};

struct progress {
    uint32_t begun, pending; /* numbers; pending 0: none */
    struct key_state keys[WINDOWS][KEYS];
};

struct state {
    struct crash crash;
    struct progress progress[WRITERS];
    uint32_t owners[WINDOWS]; /* the bucket that has the window */
    uint32_t moves, moving;   /* numbers; moving 0: no move is under way */
    uint32_t cut, cut_done;   /* how many moves were cut short by a kill, and were done then */
};

struct world {
    struct storage *storage;
    struct db *db;
    struct bucket *buckets[BUCKETS];
    struct mutex locks[WINDOWS]; /* stand for the passes of requests */
    uint32_t owners[WINDOWS];
};

struct worker {
    struct thread thread;
    struct world *world;
    uint32_t id, number;
    int pipe;
    bool lie;
};

/* --- operations: all follows from the number and who makes it --- */

enum action { PUT, UPLOAD, REMOVE };

struct operation {
    enum action action;
    uint32_t window, key;
};

static uint64_t mix(uint32_t who, uint32_t number)
{
    uint32_t both[2] = {who, number};
    return hash_xxh3(str_n(both, sizeof(both)), 1);
}

static struct operation operation_of(uint32_t writer, uint32_t number)
{
    static const enum action actions[] = {PUT, PUT, PUT, UPLOAD, UPLOAD, REMOVE};
    uint64_t h = mix(writer, number);

    return (struct operation){.action = actions[h % ARRAY_SIZE(actions)],
                              .window = (uint32_t)(h >> 8) % WINDOWS,
                              .key = (uint32_t)(h >> 16) % KEYS};
}

static uint32_t moved_window(uint32_t number)
{
    return (uint32_t)mix(MOVER, number) % WINDOWS;
}

static uint32_t moved_to(uint32_t number, uint32_t from)
{
    return (from + 1 + (uint32_t)(mix(MOVER, number) >> 16) % (BUCKETS - 1)) % BUCKETS;
}

static void body_of(struct buf *out, uint32_t writer, uint32_t number)
{
    uint64_t h = mix(writer, number);
    size_t len = 100 + (h >> 24) % (3 * INLINE_MAX);

    buf_reset(out);
    for (size_t i = 0; i < len; i += sizeof(h)) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        buf_append(out, &h, size_min(sizeof(h), len - i));
    }
}

static void apply(struct progress *p, uint32_t writer, uint32_t number)
{
    struct operation o = operation_of(writer, number);
    struct key_state *k = &p->keys[o.window][o.key];

    k->value = o.action == REMOVE ? 0 : number;
    k->versions++;
}

static struct str key_name(char out[32], uint32_t writer, uint32_t window, uint32_t key)
{
    return str_n(out, (size_t)snprintf(out, 32, "w%u/%u/%u", window, writer, key));
}

static struct key_window window_of(char borders[2][16], uint32_t window)
{
    snprintf(borders[0], 16, "w%u", window);
    snprintf(borders[1], 16, "w%u", window + 1);
    return (struct key_window){str_z(borders[0]), str_z(borders[1])};
}

/* --- the storage --- */

static const char *const names[BUCKETS] = {"whole", "shard", "other-shard"};

static struct bucket *open_bucket(struct world *w, uint32_t number)
{
    struct bucket_info info = {
        .name = str_z(names[0]), .owner = STR("owner"), .versions = VERSIONS_ON};
    struct bucket *b = NULL;
    struct err err = {0};
    int code = number ? local_make_shard(w->buckets[0], str_z(names[number]), &err)
                      : local_create_bucket(w->storage, &info, &err);

    must(code == ERR_EXISTS ? 0 : code, &err);
    must(local_open_bucket(&b, w->storage, STR_EMPTY, str_z(names[number]), &err), &err);
    return b;
}

static void world_open(struct world *w, const struct state *s)
{
    char path[128], folder[128];
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct local_options o = {.name = "crash",
                              .folder = folder,
                              .id = 1,
                              .inline_max = INLINE_MAX,
                              .part_min = 1,
                              .reserve_bytes = 1};
    struct err err = {0};

    *w = (struct world){0};
    snprintf(path, sizeof(path), "%s/db", s->crash.folder);
    snprintf(folder, sizeof(folder), "%s/storage", s->crash.folder);
    must(db_open(&w->db, &d, &err), &err);
    o.db = w->db;
    must(local_open(&w->storage, &o, &err), &err);
    for (uint32_t i = 0; i < BUCKETS; i++)
        w->buckets[i] = open_bucket(w, i);
    memcpy(w->owners, s->owners, sizeof(w->owners));
    for (uint32_t i = 0; i < WINDOWS; i++)
        mutex_init(&w->locks[i], "test.window");
}

static void world_close(struct world *w)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        w->buckets[i]->ops->unref(w->buckets[i]);
    w->storage->ops->close(w->storage);
    db_close(w->db);
}

/* --- the child --- */

static void tell(const struct worker *w, bool done)
{
    struct event e = {w->id, w->number, done};

    if (write(w->pipe, &e, sizeof(e)) != (ssize_t)sizeof(e))
        _exit(3);
}

static struct bucket *enter(struct worker *w, uint32_t window)
{
    mutex_lock(&w->world->locks[window]);
    return w->world->buckets[w->world->owners[window]];
}

static void leave(struct worker *w, uint32_t window)
{
    mutex_unlock(&w->world->locks[window]);
}

/* The window may move between any two steps of an upload. */
static void upload(struct worker *w, struct arena *a, uint32_t window, struct str key,
                   struct str body)
{
    struct upload_info u = {.key = key};
    struct upload_part parts[PARTS];
    struct object_meta meta = {0};
    struct put_options o = {0};
    struct put_result out;
    struct bucket *b = enter(w, window);
    struct err err = {0};

    must(b->ops->upload_begin(b, a, key, &meta, &u.id, &err), &err);
    leave(w, window);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct str part = i + 1 < PARTS ? str_head(body, body.len / 2) : body;
        struct str_reader r;
        str_reader_init(&r, part);
        body = str_skip(body, part.len);
        b = enter(w, window);
        must(b->ops->upload_part(b, a, &u, i + 1, &r.reader, part.len, &o, &parts[i], &err), &err);
        leave(w, window);
    }
    b = enter(w, window);
    must(b->ops->upload_finish(b, a, &u, parts, PARTS, &o, &out, &err), &err);
    leave(w, window);
}

static void change(struct worker *w, struct arena *a, const struct operation *o, struct str key,
                   struct str body)
{
    struct remove_options remove = {0};
    struct remove_result removed;
    struct put_options put = {0};
    struct put_result out;
    struct str_reader r;
    struct bucket *b = enter(w, o->window);
    struct err err = {0};

    str_reader_init(&r, body);
    must(o->action == PUT ? b->ops->put(b, a, key, &r.reader, body.len, &put, &out, &err)
                          : b->ops->remove(b, a, key, &remove, &removed, &err),
         &err);
    leave(w, o->window);
}

static void writer_main(void *ctx)
{
    struct worker *w = ctx;
    struct buf body = BUF_INIT(0);
    char name[32];

    for (;; w->number++) {
        struct operation o = operation_of(w->id, w->number);
        struct arena a = ARENA_INIT(0);
        struct str key = key_name(name, w->id, o.window, o.key);
        body_of(&body, w->id, w->number);
        tell(w, false);
        if (o.action == UPLOAD)
            upload(w, &a, o.window, key, buf_str(&body));
        else
            change(w, &a, &o, key, buf_str(&body));
        tell(w, true);
        arena_release(&a);
    }
}

static void adopt(struct world *w, uint32_t window, uint32_t to, uint32_t from, size_t limit)
{
    struct arena a = ARENA_INIT(0);
    char borders[2][16];
    struct key_window k = window_of(borders, window);
    bool more = true;
    struct err err = {0};

    while (more)
        must(local_adopt(w->buckets[to], w->buckets[from], k.after, k.upto, limit, &a, &k.after,
                         &more, &err),
             &err);
    arena_release(&a);
}

/* Makes a durable change, as a mover does with the map that gives the window away. So the rows that
 * were moved before are durable too. */
static void commit_move(struct world *w, uint32_t number)
{
    char text[16];
    struct bucket *b = w->buckets[0];
    struct err err = {0};

    snprintf(text, sizeof(text), "%u", number);
    must(b->ops->set_document(b, "moved", str_z(text), &err), &err);
}

static void mover_main(void *ctx)
{
    struct worker *w = ctx;

    for (;; w->number++) {
        uint32_t window = moved_window(w->number);
        enter(w, window);
        uint32_t from = w->world->owners[window], to = moved_to(w->number, from);
        tell(w, false);
        adopt(w->world, window, to, from, w->lie ? 1 : LOCAL_ADOPT_MAX);
        commit_move(w->world, w->number);
        tell(w, true);
        w->world->owners[window] = to;
        leave(w, window);
    }
}

static void work(const struct crash *c, int pipe)
{
    const struct state *s = container_of(c, struct state, crash);
    struct worker workers[WRITERS + 1] = {0};
    struct world world;
    struct err err = {0};

    world_open(&world, s);
    for (uint32_t i = 0; i <= WRITERS; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.world = &world, .id = i, .pipe = pipe, .lie = c->lie};
        w->number = 1 + (i == MOVER ? s->moves : s->progress[i].begun);
        must(thread_start(&w->thread, "crash", 0, i == MOVER ? mover_main : writer_main, w, &err),
             &err);
    }
    for (;;)
        pause();
}

/* --- the parent --- */

static void hear_mover(struct state *s, const struct event *e)
{
    uint32_t window = moved_window(e->number);

    s->moves = e->number;
    s->moving = e->done ? 0 : e->number;
    if (e->done)
        s->owners[window] = moved_to(e->number, s->owners[window]);
}

static bool hear(struct crash *c, int pipe)
{
    struct state *s = container_of(c, struct state, crash);
    struct event e;

    if (read(pipe, &e, sizeof(e)) != (ssize_t)sizeof(e) || e.who > MOVER)
        return false;
    c->changes += !e.done;
    if (e.who == MOVER) {
        hear_mover(s, &e);
        return true;
    }
    struct progress *p = &s->progress[e.who];
    p->begun = e.number;
    p->pending = e.done ? 0 : e.number;
    if (e.done)
        apply(p, e.who, e.number);
    return true;
}

/* --- the checker --- */

static bool has_rows(struct world *w, uint32_t bucket, uint32_t window)
{
    struct arena a = ARENA_INIT(0);
    char borders[2][16];
    struct key_window k = window_of(borders, window);
    struct str *sample;
    uint64_t count;
    size_t sampled;
    struct err err = {0};

    must(local_sample_keys(w->buckets[bucket], k.after, k.upto, 0, &a, &count, &sample, &sampled,
                           &err),
         &err);
    arena_release(&a);
    return count > 0;
}

/* Finds out which bucket has the window. A move that was under way is sometimes undone, which must
 * work whether or not it was done. */
static bool find_owner(struct state *s, struct world *w, uint32_t window)
{
    uint32_t from = s->owners[window], to = from, found = from, holders = 0;

    if (s->moving && moved_window(s->moving) == window)
        to = moved_to(s->moving, from);
    for (uint32_t b = 0; b < BUCKETS; b++)
        if (has_rows(w, b, window)) {
            found = b;
            holders++;
        }
    if (holders > 1 || (found != from && found != to)) {
        if (!s->crash.lie)
            printf("window %u is in %u buckets, at last in %u: not in %u or %u alone\n", window,
                   holders, found, from, to);
        return false;
    }
    s->cut += to != from;
    s->cut_done += to != from && found == to;
    if (to != from && next_random(&s->crash) % 2) {
        adopt(w, window, from, to, LOCAL_ADOPT_MAX);
        found = from;
    }
    s->owners[window] = found;
    return true;
}

static bool holds(struct bucket *b, struct str key, uint32_t writer, uint32_t value)
{
    struct arena a = ARENA_INIT(0);
    struct buf want = BUF_INIT(0), got = BUF_INIT(0);
    struct get_result r;
    struct err err = {0};
    int code = b->ops->get(b, &a, key, STR_EMPTY, NULL, NULL, &r, &err);
    bool same = code == ERR_NOT_FOUND && value == 0;

    if (code == 0) {
        code = reader_read_all(r.body, &got, &err);
        reader_close(r.body);
        body_of(&want, writer, value);
        same = code == 0 && value != 0 && str_eq(buf_str(&got), buf_str(&want));
    }
    buf_release(&want);
    buf_release(&got);
    arena_release(&a);
    return same;
}

static size_t versions_of(struct bucket *b, struct str key, bool remove)
{
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.prefix = key, .limit = OBJECT_LIST_MAX};
    struct list_result list;
    struct err err = {0};

    must(b->ops->list_versions(b, &a, &o, &list, &err), &err);
    for (size_t i = 0; remove && i < list.count; i++) {
        struct remove_options r = {.version = list.entries[i].info.version};
        struct remove_result out;
        must(b->ops->remove(b, &a, list.entries[i].info.key, &r, &out, &err), &err);
    }
    size_t count = list.count;
    arena_release(&a);
    return count;
}

static bool same_state(struct world *w, uint32_t writer, const struct progress *p)
{
    char name[32];

    for (uint32_t window = 0; window < WINDOWS; window++)
        for (uint32_t key = 0; key < KEYS; key++) {
            const struct key_state *k = &p->keys[window][key];
            struct bucket *b = w->buckets[w->owners[window]];
            struct str at = key_name(name, writer, window, key);
            if (!holds(b, at, writer, k->value) || versions_of(b, at, false) != k->versions)
                return false;
        }
    return true;
}

static void trim(struct world *w, uint32_t writer, struct progress *p)
{
    char name[32];

    for (uint32_t window = 0; window < WINDOWS; window++)
        for (uint32_t key = 0; key < KEYS; key++)
            if (p->keys[window][key].versions > VERSIONS_KEPT) {
                versions_of(w->buckets[w->owners[window]], key_name(name, writer, window, key),
                            true);
                p->keys[window][key] = (struct key_state){0};
            }
}

static bool check_writer(struct world *w, uint32_t writer, struct progress *p, bool quiet)
{
    struct progress with = *p;
    bool good = same_state(w, writer, p);

    if (!good && p->pending) {
        apply(&with, writer, p->pending);
        good = same_state(w, writer, &with);
        *p = with;
    }
    p->pending = 0;
    if (!good && !quiet)
        printf("writer %u: its keys are not as they were answered\n", writer);
    if (good)
        trim(w, writer, p);
    return good;
}

static void abort_uploads(struct bucket *b)
{
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct upload_list list;
    struct err err = {0};

    must(b->ops->list_uploads(b, &a, &o, &list, &err), &err);
    for (size_t i = 0; i < list.count; i++)
        must(b->ops->upload_abort(b, &list.uploads[i], &err), &err);
    arena_release(&a);
}

static bool check(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);
    struct world w;
    struct err err = {0};
    bool good = true;

    world_open(&w, s);
    for (uint32_t i = 0; i < WINDOWS; i++)
        good = find_owner(s, &w, i) && good;
    s->moving = 0;
    memcpy(w.owners, s->owners, sizeof(w.owners));
    for (uint32_t i = 0; i < WRITERS && good; i++)
        good = check_writer(&w, i, &s->progress[i], c->lie);
    for (uint32_t i = 0; i < BUCKETS; i++)
        abort_uploads(w.buckets[i]);
    local_collect(w.storage);
    if (good && local_check_whole(w.storage, &err) < 0) {
        good = false;
        printf("%s\n", err.text);
    }
    world_close(&w);
    return good;
}

static void db_folder(const struct crash *c, char out[128])
{
    snprintf(out, 128, "%s/db", c->folder);
}

static void before(struct crash *c)
{
    char folder[128];

    db_folder(c, folder);
    power_on(folder);
}

static void after(struct crash *c, bool power)
{
    char folder[128];

    db_folder(c, folder);
    if (power)
        power_loss(c, folder);
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    memset(s->progress, 0, sizeof(s->progress));
    memset(s->owners, 0, sizeof(s->owners));
    s->moves = s->moving = s->cut = s->cut_done = 0;
    power_reset();
}

static void tell_moves(const struct crash *c)
{
    const struct state *s = container_of(c, const struct state, crash);

    printf("%u moves; %u were cut short, of which %u were done\n", s->moves, s->cut, s->cut_done);
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test =
        CRASH_TEST("adopt_crash", s, .before = before, .after = after, .tell = tell_moves);

    power_init();
    return crash_main(argc, argv, &test);
}
