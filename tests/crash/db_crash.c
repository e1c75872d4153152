/* The database under kill and loss of power (harness.h).
 *
 * Several threads make changes of several rows each, over two families; a change is told only after
 * db_apply returned. A loss of power cuts off, zeroes or overwrites what lies behind the last sync
 * of a file (power.h). Then
 *   1. every change that was told is there: all of them after SIGKILL; after a loss of power the
 *      durable ones and all that the same thread had made before them;
 *   2. no change is there in part, and each row has the bytes it was given;
 *   3. nothing is there that was not made, and what is there of a thread has no gaps.
 * So an acknowledgement that came before its sync is found. Liars call their volatile changes
 * durable.
 */
#include "base/hash.h"
#include "crash/harness.h"
#include "crash/power.h"
#include "db/db.h"
#include "os/thread.h"

#include <stdio.h>
#include <unistd.h>

enum {
    WRITERS = 8,
    ROWS = 5, /* of one change, alternating between the families */
    MAX_VALUE_BYTES = 2000,
};

struct ack {
    uint32_t writer;
    uint32_t sequence; /* from 1 */
};

/* What is known of one writer's changes: [1, checked) are there, [checked, durable) must be, and
 * [durable, made) may be; the first without an answer is `made`. */
struct progress {
    uint32_t checked, durable, made;
};

struct writer {
    struct thread thread;
    struct db *db;
    uint32_t id;
    uint32_t sequence;
    int pipe;
    bool fail;
};

struct state {
    struct crash crash;
    struct progress progress[WRITERS];
};

static const struct db_cf_spec families[] = {{"a", NULL}, {"b", NULL}};

static bool volatile_change(uint32_t sequence)
{
    return sequence % 7 == 0;
}

/* --- the child --- */

static struct db *open_db(const struct crash *c)
{
    /* Small write buffers, so that flushes, new logs and compactions are hit too. */
    struct db_options o = {.path = c->folder,
                           .cfs = families,
                           .cf_count = ARRAY_SIZE(families),
                           .memtable_bytes = MIB};
    struct db *db = NULL;
    struct err err = {0};

    must(db_open(&db, &o, &err), &err);
    return db;
}

static struct str row_key(char out[32], uint32_t writer, uint32_t sequence, int row)
{
    int len = snprintf(out, 32, "%02u.%08u.%d", writer, sequence, row);
    return str_n(out, (size_t)len);
}

/* Bytes that follow from the row's name: any mix of two rows shows. */
static void row_value(struct buf *out, struct str key)
{
    uint64_t h = hash_xxh3(key, 1);
    size_t len = h % MAX_VALUE_BYTES;

    buf_reset(out);
    for (size_t i = 0; i < len; i += sizeof(h)) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        buf_append(out, &h, sizeof(h));
    }
}

static struct db_cf *row_family(struct db *db, int row)
{
    return db_cf(db, families[row % 2].name);
}

static int write_rows(struct db_tx *tx, void *ctx, struct err *err)
{
    struct writer *w = ctx;
    struct buf value = BUF_INIT(0);
    char key[32];

    for (int row = 0; row < ROWS; row++) {
        struct str k = row_key(key, w->id, w->sequence, row);
        row_value(&value, k);
        db_tx_put(tx, row_family(w->db, row), k, buf_str(&value));
    }
    buf_release(&value);
    return w->fail ? err_code(err, ERR_CONFLICT) : 0;
}

/* Every seventh change is volatile, and before every fifth one is tried that fails. */
static void write_forever(struct writer *w, bool lie)
{
    struct err err = {0};

    for (;; w->sequence++) {
        bool fast = lie || volatile_change(w->sequence);
        w->fail = w->sequence % 5 == 0;
        if (w->fail && db_apply(w->db, DB_DURABLE, write_rows, w, &err) != ERR_CONFLICT)
            _exit(3);
        w->fail = false;
        must(db_apply(w->db, fast ? DB_VOLATILE : DB_DURABLE, write_rows, w, &err), &err);
        struct ack ack = {w->id, w->sequence};
        if (write(w->pipe, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
            _exit(3);
    }
}

static void honest_main(void *ctx)
{
    write_forever(ctx, false);
}

static void liar_main(void *ctx)
{
    write_forever(ctx, true);
}

static void work(const struct crash *c, int pipe)
{
    const struct state *s = container_of(c, struct state, crash);
    struct db *db = open_db(c);
    struct writer writers[WRITERS] = {0};
    struct err err = {0};

    for (uint32_t i = 0; i < WRITERS; i++) {
        struct writer *w = &writers[i];
        *w = (struct writer){.db = db, .id = i, .sequence = s->progress[i].made, .pipe = pipe};
        must(thread_start(&w->thread, "crash", 0, c->lie ? liar_main : honest_main, w, &err), &err);
    }
    for (;;)
        pause();
}

/* --- the parent --- */

static bool hear(struct crash *c, int pipe)
{
    struct state *s = container_of(c, struct state, crash);
    struct ack ack;

    if (read(pipe, &ack, sizeof(ack)) != (ssize_t)sizeof(ack) || ack.writer >= WRITERS)
        return false;
    s->progress[ack.writer].made = ack.sequence + 1;
    c->changes++;
    if (!volatile_change(ack.sequence))
        s->progress[ack.writer].durable = ack.sequence + 1;
    return true;
}

/* How many of the change's rows are there; -1 when one is wrong. */
static int rows_there(struct db *db, uint32_t writer, uint32_t sequence)
{
    struct buf got = BUF_INIT(0), want = BUF_INIT(0);
    struct err err = {0};
    char key[32];
    int found = 0;

    for (int row = 0; row < ROWS && found >= 0; row++) {
        struct str k = row_key(key, writer, sequence, row);
        buf_reset(&got);
        int code = db_get(db_latest(db), row_family(db, row), k, &got, &err);
        if (code == ERR_NOT_FOUND)
            continue;
        must(code, &err);
        row_value(&want, k);
        found = str_eq(buf_str(&got), buf_str(&want)) ? found + 1 : -1;
    }
    buf_release(&got);
    buf_release(&want);
    return found;
}

/* Walks the changes from the first unchecked to one behind the last that can have been begun. */
static bool check_writer(struct db *db, uint32_t writer, struct progress *p, bool quiet)
{
    uint32_t end = p->checked;
    const char *wrong = NULL;

    for (uint32_t n = p->checked; n <= p->made + 1 && !wrong; n++) {
        int rows = rows_there(db, writer, n);
        if (rows == ROWS && end == n)
            end = n + 1;
        else if (rows == ROWS)
            wrong = "is there though one before it is not";
        else if (rows != 0)
            wrong = "is torn";
        else if (n < p->durable)
            wrong = "was acknowledged and is gone";
        if (wrong && !quiet)
            printf("writer %u: change %u %s (%d of %d rows)\n", writer, n, wrong, rows, ROWS);
    }
    if (!wrong && end > p->made + 1) {
        wrong = "was never made";
        printf("writer %u: change %u %s\n", writer, end - 1, wrong);
    }
    *p = (struct progress){end, end, end};
    return !wrong;
}

static bool check(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);
    struct db *db = open_db(c);
    bool good = true;

    for (uint32_t i = 0; i < WRITERS; i++)
        good = check_writer(db, i, &s->progress[i], c->lie) && good;
    db_close(db);
    return good;
}

static void before(struct crash *c)
{
    power_on(c->folder);
}

static void after(struct crash *c, bool power)
{
    struct state *s = container_of(c, struct state, crash);

    if (power)
        power_loss(c, c->folder);
    else
        for (int i = 0; i < WRITERS; i++) /* the kernel has all that was written */
            s->progress[i].durable = s->progress[i].made;
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    for (int i = 0; i < WRITERS; i++)
        s->progress[i] = (struct progress){1, 1, 1};
    power_reset();
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test =
        CRASH_TEST("db_crash", s, .before = before, .after = after, .kill_within_ms = 200);

    power_init();
    return crash_main(argc, argv, &test);
}
