/* The lake killed at every named step (src/lake/step.h), on each driver.
 *
 * A child plays a script of operations on one repository and says in shared memory which of them
 * have ended. It is killed before or behind the n-th time of a step. A second child opens the lake
 * again. The branch, with and without its staged changes, must be as after the operations that had
 * ended, or as after one more (L4, L6). Every commit record is in the history (L7). The second
 * child plays the rest of the script, cleans, and finds exactly what the whole script makes. Under
 * the embedded driver it also counts the rows: nothing may be left over.
 *
 * A program run is: lake_crash [--runs N] [--seed S]. N is the greatest number of kills under each
 * driver. The last line is "N passed, N failed". */
#include "crash/harness.h"
#include "db/db.h"
#include "lake/change.h"
#include "os/file.h"
#include "store/store.h"
#include "unit/kv/postgres_server.h"
#include "unit/store/redis_server.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 30000, LIST_BYTES = 512 };
enum driver { EMBEDDED, REDIS, POSTGRES, DRIVERS };

static const char *const driver_names[] = {"embedded", "redis", "postgres"};

/* What children and the parent share. */
static struct shared {
    _Atomic(unsigned) ended; /* operations of the script that have ended */
} * shared;

static struct redis_server redis;
static struct postgres_server postgres = {.durable = false};
static char folder[64], nodes[80], redis_folder[80];
static bool is_failed;

/* --- the kill --- */

void __wrap_lake_step_begin(const char *step);
void __wrap_lake_step_end(const char *step);
int64_t __wrap_clock_wall_ms(void);
int64_t __real_clock_wall_ms(void);

static struct point {
    bool is_after;
    const char *step;
    unsigned number;
} kill_at;
static _Atomic(unsigned) came;
static int64_t clock_ahead_ms;

static void come(bool is_after, const char *step)
{
    if (kill_at.step && is_after == kill_at.is_after && strcmp(step, kill_at.step) == 0 &&
        atomic_fetch_add(&came, 1) + 1 == kill_at.number)
        kill(getpid(), SIGKILL);
}

void __wrap_lake_step_begin(const char *step)
{
    come(false, step);
}

void __wrap_lake_step_end(const char *step)
{
    come(true, step);
}

/* Drafts are dropped when they are old. */
int64_t __wrap_clock_wall_ms(void)
{
    return __real_clock_wall_ms() + clock_ahead_ms;
}

/* --- the lake --- */

static int node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/" STR_FMT, nodes, STR_ARG(id));
    return file_read(path, out, err);
}

static int node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/" STR_FMT, nodes, STR_ARG(id));
    lake_step_begin("lake.node");
    int code = file_write_durable(path, bytes, 0600, err);
    lake_step_end("lake.node");
    return code;
}

static int node_write_all(void *ctx, const struct node_bytes *files, size_t count, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = node_write(ctx, files[i].id, files[i].bytes, err);
    return code;
}

static int node_folder(void *ctx, const struct lake_repo *r, struct node_place *out,
                       struct err *err)
{
    *out = (struct node_place){.read = node_read, .write = node_write, .write_all = node_write_all};
    return 0;
}

struct world {
    struct db *db; /* embedded */
    struct kv *kv;
    struct lake *lake;
    struct lake_repo repo;
    struct arena arena;
    struct err err;
};

static void world_open_kv(struct world *w, enum driver driver)
{
    struct db_options db = {
        .path = folder, .cfs = kv_cf_spec(), .cf_count = 1, .memtable_bytes = MIB};
    struct store_redis_options store_options = {.url = str_z(redis.unix_url),
                                                .timeout_ms = TIMEOUT_MS};
    struct kv_postgres_options sql = {.url = postgres.url, .timeout_ms = TIMEOUT_MS};
    struct store *store = NULL;

    if (driver == EMBEDDED) {
        must(db_open(&w->db, &db, &w->err), &w->err);
        must(kv_open_embedded(&w->kv, w->db, NULL, &w->err), &w->err);
    } else if (driver == REDIS) {
        must(store_open_redis(&store, &store_options, &w->err), &w->err);
        must(kv_open_redis(&w->kv, store, NULL, &w->err), &w->err);
    } else {
        must(kv_open_postgres(&w->kv, &sql, &w->err), &w->err);
    }
}

static void world_open(struct world *w, enum driver driver, unsigned run)
{
    struct lake_options o = {.place = node_folder, .cache = {.memory_bytes = MIB}};
    struct lake_repo_options repo = {
        .space = STR("s3://lake-data/crash"), .owner = STR("owner"), .claimed = true};

    memset(w, 0, sizeof(*w));
    world_open_kv(w, driver);
    o.kv = w->kv;
    must(lake_open(&w->lake, &o, &w->err), &w->err);
    loop_stop(&w->lake->cleaner); /* the script says when tokens are dropped */
    repo.id = arena_fmt(&w->arena, "crash%u", run);
    int code = lake_repo_create(w->lake, &w->arena, &repo, &w->repo, &w->err);
    if (code == ERR_EXISTS)
        code = lake_repo_get(w->lake, &w->arena, repo.id, &w->repo, &w->err);
    must(code, &w->err);
}

/* --- the script --- */

/* `staged` and `head` are the paths of main behind the operation, with and without staged changes;
 * NULL: as before. */
struct operation {
    enum { PUT, REMOVE, COMMIT, SEAL, RESET, COMPACT, CHOOSE, BRANCH, UNBRANCH, MERGE, CLEAN } what;
    const char *branch, *path;
    const char *staged, *head;
};

static const struct operation script[] = {
    {PUT, "main", "a", "a"},
    {PUT, "main", "b", "a b"},
    {COMMIT, "main", NULL, NULL, "a b"},
    {CLEAN},
    {PUT, "main", "c", "a b c"},
    {REMOVE, "main", "a", "b c"},
    {COMMIT, "main", NULL, NULL, "b c"},
    {PUT, "main", "undone/x", "b c undone/x"},
    {PUT, "main", "d", "b c d undone/x"},
    {RESET, "main", "undone/", "b c d"},
    {CLEAN},
    {BRANCH, "side"},
    {PUT, "side", "s"},
    {COMMIT, "side"},
    {PUT, "main", "e", "b c d e"},
    {SEAL, "main"},
    {PUT, "main", "f", "b c d e f"},
    {SEAL, "main"},
    {REMOVE, "main", "b", "c d e f"},
    {SEAL, "main"},
    {PUT, "main", "g", "c d e f g"},
    {SEAL, "main"},
    {COMPACT, "main"},
    {CHOOSE, "main", "d", NULL, "b c d"},
    {CLEAN},
    {COMMIT, "main", NULL, NULL, "c d e f g"},
    {MERGE, "main", "side", "c d e f g s", "c d e f g s"},
    {UNBRANCH, "side"},
    {CLEAN},
};

static int play_put(struct world *w, const struct operation *o)
{
    struct lake_entry e = {.address = str_z(o->path), .address_type = LAKE_RELATIVE, .size = 1};
    struct lake_put put = {str_z(o->path), o->what == PUT ? &e : NULL};

    return lake_stage(w->lake, &w->arena, &w->repo, str_z(o->branch), &put, 1, NULL, &w->err);
}

static int play_commit(struct world *w, const struct operation *o)
{
    struct str path = str_z(o->path);
    struct lake_commit_options options = {.message = STR("m"),
                                          .paths = o->what == CHOOSE ? &path : NULL,
                                          .path_count = o->what == CHOOSE};
    struct lake_commit c;

    return lake_commit(w->lake, &w->arena, &w->repo, str_z(o->branch), &options, &c, &w->err);
}

static int play_branch(struct world *w, const struct operation *o)
{
    struct lake_branch_options options = {.name = str_z(o->branch), .source = STR("main")};
    struct lake_branch b;

    return o->what == BRANCH
               ? lake_branch_create(w->lake, &w->arena, &w->repo, &options, &b, &w->err)
               : lake_branch_delete(w->lake, &w->arena, &w->repo, options.name, false, &w->err);
}

static int play_merge(struct world *w, const struct operation *o)
{
    struct lake_merge_options options = {0};
    struct lake_conflicts conflicts;
    struct lake_commit c;

    return lake_merge(w->lake, &w->arena, &w->repo, str_z(o->path), str_z(o->branch), &options, &c,
                      &conflicts, &w->err);
}

static int play_clean(struct world *w, const struct operation *o)
{
    int code = lake_clean(w->lake, &w->err);

    return code < 0 ? code : lake_clean(w->lake, &w->err); /* the second drop */
}

static int play_seal(struct world *w, const struct operation *o)
{
    struct lake_branch b;
    struct lake_repo repo;

    return o->what == SEAL
               ? lake_seal(w->lake, &w->arena, &w->repo, str_z(o->branch), &repo, &b, &w->err)
               : lake_compact(w->lake, &w->arena, &w->repo, str_z(o->branch), &w->err);
}

static int play_reset(struct world *w, const struct operation *o)
{
    return lake_reset(w->lake, &w->arena, &w->repo, str_z(o->branch), LAKE_RESET_PREFIX,
                      str_z(o->path), false, &w->err);
}

/* Plays the script from operation `from` on. `is_again`: the first one may have been done. */
static void play(struct world *w, unsigned from, bool is_again)
{
    static int (*const plays[])(struct world * w, const struct operation *o) = {
        [PUT] = play_put,       [REMOVE] = play_put,    [COMMIT] = play_commit,
        [SEAL] = play_seal,     [RESET] = play_reset,   [COMPACT] = play_seal,
        [CHOOSE] = play_commit, [BRANCH] = play_branch, [UNBRANCH] = play_branch,
        [MERGE] = play_merge,   [CLEAN] = play_clean,
    };

    for (unsigned i = from; i < ARRAY_SIZE(script); i++, is_again = false) {
        w->err = (struct err){0};
        int code = plays[script[i].what](w, &script[i]);
        bool is_done = code == ERR_NOT_MODIFIED || code == ERR_EXISTS || code == ERR_NOT_FOUND;
        if (!(is_again && is_done))
            must(code, &w->err);
        shared->ended = i + 1;
    }
}

/* --- checking --- */

static void fail(const char *what, const char *got, const char *want)
{
    printf("    %s is '%s', not '%s'\n", what, got, want);
    is_failed = true;
}

static void list(struct world *w, const char *ref, char out[LIST_BYTES])
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page;
    size_t len = 0;

    must(lake_list(w->lake, &w->arena, &w->repo, str_z(ref), &o, &page, &w->err), &w->err);
    out[0] = '\0';
    for (size_t i = 0; i < page.count; i++)
        len += (size_t)snprintf(out + len, LIST_BYTES - len, "%s" STR_FMT, i ? " " : "",
                                STR_ARG(page.items[i].path));
}

/* What the branch has behind the first `count` operations. */
static void expected(unsigned count, const char **staged, const char **head)
{
    *staged = *head = "";
    for (unsigned i = 0; i < count; i++) {
        *staged = script[i].staged ? script[i].staged : *staged;
        *head = script[i].head ? script[i].head : *head;
    }
}

/* All is as after the operations that had ended, or as after one more. */
static void check_state(struct world *w, unsigned ended)
{
    char staged[LIST_BYTES], head[LIST_BYTES];
    const char *want_staged, *want_head;

    list(w, "main", staged);
    list(w, "main@", head);
    for (unsigned more = 0; more <= 1; more++) {
        expected(ended + more, &want_staged, &want_head);
        if (strcmp(staged, want_staged) == 0 && strcmp(head, want_head) == 0)
            return;
    }
    fail("the branch", staged, want_staged);
    fail("its head", head, want_head);
}

static size_t count_rows(struct world *w, struct str partition, struct str prefix)
{
    struct kv_range range = {.prefix = prefix};
    struct kv_scan *scan = NULL;
    struct str key, value;
    size_t count = 0;

    must(kv_scan_open(&scan, w->kv, NULL, partition, &range, &w->err), &w->err);
    while (kv_scan_next(scan, &key, &value, &w->err) == 0)
        count++;
    kv_scan_free(scan);
    return count;
}

/* There is no commit record without its head: all of them are in the log of the branches. */
static void check_history(struct world *w, const char *ref, size_t side)
{
    struct lake_log_options o = {.limit = LAKE_LIST_MAX};
    struct lake_commit *commits;
    char got[32], want[32];
    size_t count;
    bool more;

    must(lake_log(w->lake, &w->arena, &w->repo, str_z(ref), &o, &commits, &count, &more, &w->err),
         &w->err);
    size_t rows = count_rows(w, w->repo.partition, STR("commits/"));
    if (rows != count && rows != count + side) {
        snprintf(got, sizeof(got), "%zu", rows);
        snprintf(want, sizeof(want), "%zu", count);
        fail("the number of commits", got, want);
    }
}

/* Nothing is left over: the schema's row, the repository, its branch, its commits and marks. */
static void check_rows(struct world *w)
{
    struct db_range all = {0};
    struct db_iter *it = NULL;
    struct str key, value;
    char got[32], want[32];
    size_t count = 0, own = count_rows(w, w->repo.partition, STR_EMPTY);

    must(db_iter_open(&it, db_latest(w->db), db_cf(w->db, kv_cf_spec()->name), &all, &w->err),
         &w->err);
    while (db_iter_next(it, &key, &value, &w->err) == 0)
        count++;
    db_iter_close(it);
    if (count == own + 2)
        return;
    snprintf(got, sizeof(got), "%zu", count);
    snprintf(want, sizeof(want), "%zu", own + 2);
    fail("the number of rows", got, want);
}

static void check(enum driver driver, unsigned run)
{
    const char *want_staged, *want_head;
    char staged[LIST_BYTES], head[LIST_BYTES];
    unsigned ended = shared->ended;
    struct world w;

    world_open(&w, driver, run);
    check_state(&w, ended);
    check_history(&w, "main", 1);
    play(&w, ended, true);
    clock_ahead_ms = 2 * MS_PER_HOUR;
    for (unsigned i = 0; i < 3; i++)
        must(lake_clean(w.lake, &w.err), &w.err);
    expected(ARRAY_SIZE(script), &want_staged, &want_head);
    list(&w, "main", staged);
    list(&w, "main@", head);
    if (strcmp(staged, want_staged) != 0 || strcmp(head, want_head) != 0)
        fail("the branch in the end", staged, want_staged);
    check_history(&w, "main", 0);
    if (driver == EMBEDDED)
        check_rows(&w);
    else if (count_rows(&w, LAKE_CLEANUP, STR_EMPTY) > 0)
        fail("the cleanup list", "not empty", "empty");
}

/* --- the runs --- */

/* Runs a function in a child; returns its status. */
static int in_child(void (*fn)(enum driver driver, unsigned run), enum driver driver, unsigned run)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        fn(driver, run);
        fflush(stdout);
        _exit(is_failed);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void work(enum driver driver, unsigned run)
{
    struct world w;

    world_open(&w, driver, run);
    play(&w, 0, false);
    _exit(42); /* the step did not come so often */
}

/* Kills and checks once. Returns whether the step came so often. */
static bool run_point(enum driver driver, unsigned run, unsigned *passed, unsigned *failed)
{
    struct err err = {0};

    if (driver == EMBEDDED) {
        must(dir_remove_tree(folder, &err), &err);
        must(dir_make(folder, 0700, &err), &err);
        must(dir_make(nodes, 0700, &err), &err);
    }
    shared->ended = 0;
    int status = in_child(work, driver, run);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 42)
        return false;
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    struct point was = kill_at;
    kill_at.step = NULL;
    bool is_good = is_killed && in_child(check, driver, run) == 0;
    kill_at = was;
    *(is_good ? passed : failed) += 1;
    if (!is_good)
        printf("FAIL %s, killed %s %s the %u. time, operation %u%s\n", driver_names[driver],
               kill_at.is_after ? "behind" : "before", kill_at.step, kill_at.number, shared->ended,
               is_killed ? "" : ": it was not killed");
    return true;
}

/* The first kill at every step, then the second at every step, and so on. */
static void run_driver(enum driver driver, unsigned runs, unsigned *passed, unsigned *failed)
{
    static const char *const steps[] = {"lake.stage",   "lake.seal",         "lake.node",
                                        "lake.publish", "lake.drop",         "lake.reset",
                                        "lake.compact", "lake.delete_branch"};
    static unsigned run = 100;
    unsigned done = 0;
    bool came_once = true;

    for (unsigned number = 1; came_once && done < runs; number++) {
        came_once = false;
        for (unsigned i = 0; i < 2 * ARRAY_SIZE(steps) && done < runs; i++) {
            kill_at = (struct point){i % 2, steps[i / 2], number};
            if (run_point(driver, ++run, passed, failed)) {
                came_once = true;
                done++;
            }
        }
    }
    if (done < 2 * ARRAY_SIZE(steps) && done < runs) {
        printf("FAIL %s: only %u kills\n", driver_names[driver], done);
        ++*failed;
    }
}

static void start_servers(void)
{
    struct err err = {0};

    must(dir_make(redis_folder, 0700, &err), &err);
    redis.dir = redis_folder;
    if (!redis_server_start(&redis) || !postgres_server_start(&postgres))
        must(err_set(&err, ERR_UNAVAILABLE, "a server did not start"), &err);
}

int main(int argc, char **argv)
{
    unsigned runs = 20, passed = 0, failed = 0;
    struct err err = {0};
    char base[] = "/tmp/lake_crash.XXXXXX";

    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--runs") == 0)
            runs = (unsigned)strtoul(argv[i + 1], NULL, 10);
    if (!mkdtemp(base))
        return 2;
    snprintf(folder, sizeof(folder), "%s/db", base);
    snprintf(nodes, sizeof(nodes), "%s/nodes", folder);
    snprintf(redis_folder, sizeof(redis_folder), "%s/redis", base);
    shared = shared_memory(sizeof(*shared));
    start_servers();
    for (enum driver d = 0; d < DRIVERS; d++)
        run_driver(d, runs, &passed, &failed);
    redis_server_kill(&redis);
    postgres_server_remove(&postgres);
    must(dir_remove_tree(base, &err), &err);
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
