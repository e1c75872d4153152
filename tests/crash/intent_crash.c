/* Intents of puts to a remote storage under kill and loss of power (harness.h; docs/replication.md,
 * R1 and R6).
 *
 * Several threads announce puts of keys of their own, tell that the storage has done them, which it
 * keeps whatever happens to weir, and end them. Then
 *   1. after SIGKILL every put that was done is recorded, or an intent of it is there;
 *   2. after a loss of power as well, or the next start begins to copy the bucket anew.
 * Liars take the marks of their buckets away. */
#include "crash/harness.h"
#include "base/clock.h"
#include "crash/power.h"
#include "os/thread.h"
#include "replica/tap/tap.h"
#include "route/route.h"
#include "unit/server_db.h"

#include <stdio.h>
#include <unistd.h>

enum { WRITERS = 6 };

struct event {
    uint32_t writer, number;
};

struct state {
    struct crash crash;
    uint32_t done[WRITERS], checked[WRITERS]; /* numbers of their puts */
    unsigned boot;                            /* starts of the machine */
    int64_t resynced_ms;
};

struct server {
    struct db *db;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct replications *replications;
    struct routes *routes;
    struct taps *taps;
    struct storage far;
    struct arena a;
};

struct writer {
    struct thread thread;
    struct server *server;
    uint32_t id, number;
    int pipe;
    bool lie;
};

static const struct replication_id box = {{"alice", 5}, {"box", 3}, {"far", 3}, {"other", 5}, {0}};

/* --- the server --- */

static int forward(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err)
{
    (void)s, (void)r, (void)out;
    return err_code(err, ERR_UNSUPPORTED);
}

static void open_server(const struct crash *c, struct server *s)
{
    static const struct storage_ops far_ops = {
        .kind = "remote", .can = STORAGE_FORWARDS, .forward = forward};
    const struct state *state = container_of(c, struct state, crash);
    struct err err = {0};

    *s = (struct server){.a = ARENA_INIT(0), .far = {.ops = &far_ops, .name = STR("far")}};
    must(server_db_open(&s->db, c->folder, &err), &err);
    for (int i = 0; i < STORE_DATABASES; i++)
        must(store_open_embedded(&s->stores[i], s->db, i, STORE_DURABLE, NULL, &err), &err);
    must(store_join(s->stores, STORE_DATABASES, &err), &err);
    s->queue = queue_new(s->stores[1]);
    struct replications_options o = {
        .app = s->stores[0], .queue = s->stores[1], .config = s->stores[3]};
    must(replications_open(&s->replications, &o, &err), &err);
    must(routes_open(&s->routes, s->stores[3], NULL, &err), &err);
    struct replication_new n = {.id = box, .init_done = true};
    int code = replication_add(s->replications, &n, STR("far"), &err);
    must(code == ERR_EXISTS ? 0 : code, &err);
    struct taps_options taps = {.replications = s->replications,
                                .queue = s->queue,
                                .routes = s->routes,
                                .boot = arena_fmt(&s->a, "boot %u", state->boot),
                                .journal = arena_fmt(&s->a, "%s/intents", c->folder).p,
                                .postpone_ms = 10,
                                .mark_idle_ms = 1}; /* marks come and go */
    must(taps_open(&s->taps, &taps, &err), &err);
}

static void close_server(struct server *s)
{
    taps_close(s->taps);
    replications_close(s->replications);
    routes_close(s->routes);
    queue_free(s->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(s->stores[i]);
    db_close(s->db);
    arena_release(&s->a);
}

static int64_t ask(struct server *s, struct store *store, const char *command, struct str key,
                   struct str field)
{
    struct reply *reply;
    struct err err = {0};

    must(field.len ? store_call(store, &s->a, &reply, &err, str_z(command), key, field)
                   : store_call(store, &s->a, &reply, &err, str_z(command), key),
         &err);
    must(reply_expect(reply, REPLY_INTEGER, &err), &err);
    return reply->integer;
}

/* --- the child --- */

static struct str key_of(char out[32], uint32_t writer, uint32_t number)
{
    return str_n(out, (size_t)snprintf(out, 32, "%u/%u", writer, number));
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;
    const struct change_capture *capture = taps_capture(w->server->taps);
    struct capture c;
    struct err err = {0};
    char name[32];

    for (;; w->number++) {
        struct event e = {w->id, w->number};
        struct str key = key_of(name, w->id, w->number);
        struct intended i = {.storage = &w->server->far,
                             .bucket = box.bucket,
                             .user = box.user,
                             .changes = THINGS_OF_OBJECT,
                             .keys = &key,
                             .key_count = 1};
        must(capture->begin(capture->ctx, &i, &c, &err), &err);
        if (w->lie && w->id == 0)
            ask(w->server, w->server->stores[1], "HDEL", STR("w:marks"), STR("far:box"));
        if (write(w->pipe, &e, sizeof(e)) != (ssize_t)sizeof(e))
            _exit(3);
        enum outcome outcome = w->number % 16 == 7 ? OUTCOME_UNKNOWN : OUTCOME_DONE;
        must(capture->end(capture->ctx, &c, outcome, &err), &err);
        if (w->number % 64 == 63) /* now and then nobody holds the mark */
            must(taps_await(w->server->taps, NULL, UINT64_MAX, &err), &err);
    }
}

static void work(const struct crash *c, int pipe)
{
    const struct state *state = container_of(c, struct state, crash);
    struct writer writers[WRITERS] = {0};
    struct server s;
    struct err err = {0};

    open_server(c, &s);
    for (uint32_t i = 0; i < WRITERS; i++) {
        struct writer *w = &writers[i];
        *w = (struct writer){
            .server = &s, .id = i, .number = state->done[i] + 1, .pipe = pipe, .lie = c->lie};
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
    s->done[e.writer] = e.number;
    c->changes++;
    return true;
}

/* All payloads of intents, one after another. */
static struct str intents(struct server *s)
{
    struct queue_page page = {INTENT_QUEUE, TASK_SCHEDULED, 0, 100 * 1000};
    struct task_info *list = NULL;
    struct buf all = {0};
    size_t count = 0;
    struct err err = {0};
    int code = queue_tasks(s->queue, &s->a, &page, &list, &count, &err);

    must(code == ERR_NOT_FOUND ? 0 : code, &err);
    for (size_t i = 0; i < count; i++)
        buf_append_str(&all, list[i].task.payload);
    struct str out = arena_str(&s->a, buf_str(&all));
    buf_release(&all);
    return out;
}

/* How many puts are neither recorded nor announced. */
static unsigned count_lost(struct state *state, struct server *s)
{
    struct str open = intents(s);
    unsigned lost = 0;
    char name[32];

    for (uint32_t w = 0; w < WRITERS; w++)
        for (uint32_t n = state->checked[w] + 1; n <= state->done[w]; n++) {
            struct str key = key_of(name, w, n);
            struct str vector = arena_fmt(&s->a, "box:" STR_FMT, STR_ARG(key));
            struct str quoted = arena_fmt(&s->a, "\"" STR_FMT "\"", STR_ARG(key));
            lost += ask(s, s->stores[0], "HEXISTS", vector, STR("far")) == 0 &&
                    str_find(open, quoted) < 0;
        }
    return lost;
}

static bool check(struct crash *c)
{
    struct state *state = container_of(c, struct state, crash);
    struct replication_status status;
    struct server s;
    struct err err = {0};

    open_server(c, &s);
    must(taps_await(s.taps, NULL, UINT64_MAX, &err), &err); /* what was left is handed over */
    unsigned lost = count_lost(state, &s);
    taps_close(s.taps); /* what it begins at its start has begun */
    s.taps = NULL;
    must(replication_read(s.replications, &s.a, &box, &status, &err), &err);
    bool anew = status.resynced_ms > state->resynced_ms;
    if (!c->lie && lost && !anew)
        printf("%u puts were lost\n", lost);
    if (!c->lie && ask(&s, s.stores[1], "HLEN", STR("w:marks"), STR_EMPTY))
        printf("a mark is left\n"), lost++, anew = false;
    state->resynced_ms = status.resynced_ms;
    memcpy(state->checked, state->done, sizeof(state->checked));
    close_server(&s);
    return !lost || anew;
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
    struct state *s = container_of(c, struct state, crash);
    char folder[128];

    db_folder(c, folder);
    if (!power)
        return;
    power_loss(c, folder);
    s->boot++;
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    memset(s->done, 0, sizeof(s->done));
    memset(s->checked, 0, sizeof(s->checked));
    s->boot = 0;
    s->resynced_ms = 0;
    power_reset();
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test = CRASH_TEST("intent_crash", s, .before = before, .after = after,
                                        .kill_from_ms = 50, .kill_within_ms = 300);

    power_init();
    return crash_main(argc, argv, &test);
}
