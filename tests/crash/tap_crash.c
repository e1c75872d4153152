/* A local storage's tap under kill (harness.h).
 *
 * Several threads put, copy and remove keys of their own in a bucket that is captured; a change is
 * told before it begins and after it was answered. The changes are recorded in the embedded store
 * by a script that keeps them in a list, behind the number of the last row as docs/replication.md
 * has it. Then, with a new start's taps,
 *   1. every change that was answered is in the list, and of those that were not at most the one
 *      that was under way;
 *   2. none is there twice, and their numbers go up;
 *   3. an object is there exactly when the last change of its key in the list made one.
 * Liars forget a row without recording it now and then. */
#include "crash/harness.h"
#include "os/thread.h"
#include "replica/tap/tap.h"
#include "route/route.h"
#include "unit/server_db.h"

#include <stdio.h>
#include <unistd.h>

enum { WRITERS = 6 };

struct event {
    uint32_t writer, number;
    bool done;
};

struct progress {
    uint32_t begun, done; /* numbers of its changes */
    uint32_t seen;        /* up to here they were found recorded, or need not be */
    uint32_t missing;     /* the last that was never made: its removal changes nothing */
};

struct state {
    struct crash crash;
    struct progress progress[WRITERS];
    uint64_t row; /* the last that was found recorded */
};

struct server {
    struct db *db;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct replications *replications;
    struct routes *routes;
    struct storage *local;
    struct bucket *bucket;
    struct taps *taps;
};

struct writer {
    struct thread thread;
    struct bucket *bucket;
    uint32_t id, number;
    int pipe;
};

static struct store *recorded_in;
static bool lying;
static _Atomic(unsigned) lies;

/* --- the record --- */

/* "<row> <kind><key>" of each change behind the last, in order. */
static struct script script = {
    .name = "test/record",
    .source = STR("local last = tonumber(redis.call('GET', 'last') or '0')\n"
                  "for i = 2, #ARGV, 2 do\n"
                  "    if tonumber(ARGV[i]) > last then\n"
                  "        redis.call('RPUSH', 'list', ARGV[i] .. ' ' .. ARGV[i + 1])\n"
                  "    end\n"
                  "end\n"
                  "if tonumber(ARGV[1]) > last then\n"
                  "    redis.call('SET', 'last', ARGV[1])\n"
                  "end\n"
                  "return 1\n"),
};

static int record(struct replications *r, const struct record *rec, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct str *args = arena_array(&a, 2 * rec->count + 1, sizeof(*args));
    struct reply *reply;
    size_t n = 0;

    (void)r;
    args[n++] = arena_fmt(&a, "%llu", (unsigned long long)rec->log_last);
    for (size_t i = 0; i < rec->count; i++) {
        const struct change *c = &rec->changes[i];
        if (c->thing.kind != THING_OBJECT || (lying && atomic_fetch_add(&lies, 1) % 4 == 3))
            continue;
        args[n++] = arena_fmt(&a, "%llu", (unsigned long long)c->row);
        args[n++] = c->thing.object;
    }
    struct script_run run = {.script = &script, .args = {args, n}, .relaxed = rec->relaxed};
    int code = store_eval(recorded_in, &a, &reply, &run, err);
    arena_release(&a);
    return code;
}

/* --- the server --- */

static void open_server(const struct crash *c, struct server *s)
{
    struct bucket_info info = {.name = STR("box"), .owner = STR("alice")};
    struct err err = {0};
    char folder[128];
    struct local_options local = {.name = "local", .folder = folder, .reserve_bytes = 1};

    *s = (struct server){0};
    must(server_db_open(&s->db, c->folder, &err), &err);
    for (int i = 0; i < STORE_DATABASES; i++)
        must(store_open_embedded(&s->stores[i], s->db, i, STORE_DURABLE, NULL, &err), &err);
    must(store_join(s->stores, STORE_DATABASES, &err), &err);
    s->queue = queue_new(s->stores[1]);
    struct replications_options o = {
        .app = s->stores[0], .queue = s->stores[1], .config = s->stores[3]};
    must(replications_open(&s->replications, &o, &err), &err);
    snprintf(folder, sizeof(folder), "%s/objects", c->folder);
    local.db = s->db;
    must(routes_open(&s->routes, s->stores[3], NULL, &err), &err);
    must(routes_open_local(s->routes, &local, &err), &err);
    s->local = routes_main(s->routes);
    int code = s->local->ops->create_bucket(s->local, &info, &err);
    must(code == ERR_EXISTS ? 0 : code, &err);
    must(s->local->ops->open_bucket(&s->bucket, s->local, STR_EMPTY, info.name, &err), &err);
}

/* The bucket is replicated before anything is written. */
static void open_taps(struct server *s)
{
    struct replication_new n = {.id = {STR("alice"), STR("box"), STR("local"), STR("far"), STR("")},
                                .init_done = true};
    struct err err = {0};
    int code = replication_add(s->replications, &n, STR("local"), &err);

    must(code == ERR_EXISTS ? 0 : code, &err);
    script_init(&script);
    recorded_in = s->stores[0];
    struct taps_options o = {
        .replications = s->replications, .queue = s->queue, .routes = s->routes, .record = record};
    must(taps_open(&s->taps, &o, &err), &err);
}

static void close_server(struct server *s)
{
    taps_close(s->taps);
    s->bucket->ops->unref(s->bucket);
    replications_close(s->replications);
    routes_close(s->routes);
    queue_free(s->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(s->stores[i]);
    db_close(s->db);
}

/* --- the child --- */

static bool removes(uint32_t writer, uint32_t number)
{
    return (writer + number) % 5 == 4;
}

/* Every change names its number in the key, so that it can be told apart: a removal of key n is of
 * what change n - 1 put. */
static struct str key_of(char out[32], uint32_t writer, uint32_t number)
{
    uint32_t key = removes(writer, number) ? number - 1 : number;

    return str_n(out, (size_t)snprintf(out, 32, "%u/%u", writer, key));
}

static void operate(struct writer *w)
{
    struct arena a = ARENA_INIT(0);
    struct put_options put = {0};
    struct put_result made;
    struct remove_options remove = {0};
    struct remove_result removed;
    struct str_reader body;
    char name[32];
    struct str key = key_of(name, w->id, w->number);
    struct bucket *b = w->bucket;
    struct err err = {0};

    str_reader_init(&body, STR("hello"));
    if (removes(w->id, w->number))
        must(b->ops->remove(b, &a, key, &remove, &removed, &err), &err);
    else
        must(b->ops->put(b, &a, key, &body.reader, 5, &put, &made, &err), &err);
    arena_release(&a);
}

static void tell(const struct writer *w, bool done)
{
    struct event e = {w->id, w->number, done};

    if (write(w->pipe, &e, sizeof(e)) != (ssize_t)sizeof(e))
        _exit(3);
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;

    for (;; w->number++) {
        tell(w, false);
        operate(w);
        tell(w, true);
    }
}

static void work(const struct crash *c, int pipe)
{
    const struct state *state = container_of(c, struct state, crash);
    struct server s;
    struct writer writers[WRITERS] = {0};
    struct err err = {0};

    lying = c->lie;
    open_server(c, &s);
    open_taps(&s);
    for (uint32_t i = 0; i < WRITERS; i++) {
        struct writer *w = &writers[i];
        *w = (struct writer){.bucket = s.bucket, .id = i, .pipe = pipe};
        w->number = state->progress[i].begun + 1;
        must(thread_start(&w->thread, "crash", 0, writer_main, w, &err), &err);
    }
    for (;;)
        pause();
}

/* --- the parent --- */

static bool hear(struct crash *c, int pipe)
{
    struct state *s = container_of(c, struct state, crash);
    struct event e;

    if (read(pipe, &e, sizeof(e)) != (ssize_t)sizeof(e) || e.writer >= WRITERS)
        return false;
    struct progress *p = &s->progress[e.writer];
    p->begun = e.number;
    c->changes += !e.done;
    if (e.done)
        p->done = e.number;
    return true;
}

static bool complain(const struct crash *c, const char *what, struct str entry)
{
    if (!c->lie)
        printf("%s: " STR_FMT "\n", what, STR_ARG(entry));
    return false;
}

/* Killed before its commit, or of an object that was never made. */
static bool may_be_missing(const struct progress *p, uint32_t writer, uint32_t number)
{
    return (number == p->begun && p->done < number) ||
           (removes(writer, number) && p->missing == number - 1);
}

/* The writer's changes come one after another. */
static bool follow_writer(struct progress *p, uint32_t id, struct str key)
{
    char name[32];

    while (p->seen < p->begun) {
        uint32_t next = ++p->seen;
        if (str_eq(key, key_of(name, id, next)))
            return true;
        if (!may_be_missing(p, id, next))
            return false;
        p->missing = next;
    }
    return false;
}

/* One entry, "<row> <writer>/<key>". */
static bool follow(struct crash *c, struct str entry)
{
    struct state *state = container_of(c, struct state, crash);
    struct str number, key, writer, name;
    uint64_t row, id;

    str_cut(entry, ' ', &number, &key);
    str_cut(key, '/', &writer, &name);
    if (str_u64(number, &row) < 0 || str_u64(writer, &id) < 0 || id >= WRITERS)
        return complain(c, "an entry that nobody made", entry);
    if (row <= state->row)
        return complain(c, "recorded twice or out of order", entry);
    state->row = row;
    return follow_writer(&state->progress[id], (uint32_t)id, key) ||
           complain(c, "not the writer's next change", entry);
}

static bool object_there(struct server *s, struct str key)
{
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};
    int code = s->bucket->ops->head(s->bucket, &a, key, STR_EMPTY, NULL, &got, &err);

    must(code == ERR_NOT_FOUND ? 0 : code, &err);
    arena_release(&a);
    return code == 0;
}

/* What was made is there exactly when it is recorded. */
static bool check_writer(struct crash *c, struct server *s, uint32_t id)
{
    struct state *state = container_of(c, struct state, crash);
    struct progress *p = &state->progress[id];
    char name[32];

    if (p->seen == p->begun && p->begun > 0 && p->missing != p->begun &&
        object_there(s, key_of(name, id, p->begun)) == removes(id, p->begun))
        return complain(c, "the object is not what was recorded", key_of(name, id, p->begun));
    for (; p->seen < p->begun; p->seen++) {
        uint32_t next = p->seen + 1;
        if (!may_be_missing(p, id, next))
            return complain(c, "a change was not recorded", key_of(name, id, next));
        if (!removes(id, next) && object_there(s, key_of(name, id, next)))
            return complain(c, "an object is there without a record", key_of(name, id, next));
        p->missing = next;
    }
    p->done = p->begun;
    return true;
}

static bool check_list(struct crash *c, struct server *s)
{
    struct arena a = ARENA_INIT(0);
    struct reply *reply = NULL;
    bool good = true;
    struct err err = {0};

    must(
        store_call(s->stores[0], &a, &reply, &err, STR("LRANGE"), STR("list"), STR("0"), STR("-1")),
        &err);
    for (size_t i = 0; i < reply->count && good; i++)
        good = follow(c, reply->items[i].str);
    for (uint32_t i = 0; i < WRITERS && good; i++)
        good = check_writer(c, s, i);
    must(store_call(s->stores[0], &a, &reply, &err, STR("DEL"), STR("list")), &err);
    arena_release(&a);
    return good;
}

/* The new start records what was left; then it is looked at. */
static bool check(struct crash *c)
{
    struct server s;
    struct arena a = ARENA_INIT(0);
    struct tapped *rows;
    size_t count = 1;
    struct err err = {0};

    lying = c->lie; /* a child that was slow to start may have recorded nothing */
    open_server(c, &s);
    open_taps(&s);
    while (count > 0) {
        must(local_tap_read(s.local, &a, 0, 1, &rows, &count, &err), &err);
        arena_reset(&a);
        usleep(1000);
    }
    bool good = check_list(c, &s);
    close_server(&s);
    arena_release(&a);
    return good;
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    memset(s->progress, 0, sizeof(s->progress));
    s->row = 0;
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test = CRASH_TEST("tap_crash", s);

    return crash_main(argc, argv, &test);
}
