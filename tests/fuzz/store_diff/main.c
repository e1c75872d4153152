/* The differential fuzz of the store: random steps go into the embedded engine and a real
 * redis-server, and every reply and the state must be the same.
 *
 *     store_diff [--commands N] [--seed S] [--shrink]
 *     store_diff --record FILE...      fill in what Redis answers to a file of steps
 *
 * Steps come in episodes that begin with empty stores and a seed of their own. An episode that
 * differs is shrunk (--shrink) and kept in tests/unit/store/regressions, which the conformance
 * suite plays for ever. */
#include "tests_folder.h"
#include "store_diff/compare.h"
#include "store_diff/generate.h"
#include "unit/store/redis_server.h"

#include "base/ids.h"
#include "db/db.h"
#include "os/file.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DEFAULT_COMMANDS = 20000 };
#else
enum { DEFAULT_COMMANDS = 200000 };
#endif

enum { EPISODE = 2000, MAX_FAILURES = 5, SHOWN = 400 };

struct episode {
    struct arena arena;
    VEC(struct play_step) steps;
    size_t commands;
};

struct fuzz {
    uint64_t seed;
    size_t commands; /* to play */
    bool shrink;
    char dir[64];
    struct redis_server server;
    struct db *db;
    struct pair pair;
};

/* --- shrinking --- */

/* Takes out chunks, ever smaller, as long as what is left still differs. */
static void shrink(const struct pair *p, struct episode *e, struct difference *d)
{
    struct play_step *rest = xcalloc(e->steps.len + 1, sizeof(*rest));

    e->steps.len = size_min(e->steps.len, d->at + 1);
    for (size_t chunk = e->steps.len / 2; chunk > 0;) {
        bool smaller = false;
        for (size_t from = 0; from < e->steps.len;) {
            size_t to = size_min(from + chunk, e->steps.len), n = 0;
            for (size_t i = 0; i < e->steps.len; i++)
                if (i < from || i >= to)
                    rest[n++] = e->steps.items[i];
            if (n > 0 && !compare_play(p, rest, n, d)) {
                memcpy(e->steps.items, rest, n * sizeof(*rest));
                e->steps.len = size_min(n, d->at + 1);
                smaller = true;
            } else {
                from = to;
            }
        }
        chunk = smaller && chunk > 1 ? size_min(chunk, e->steps.len) : chunk / 2;
    }
    free(rest);
    compare_play(p, e->steps.items, e->steps.len, d);
}

static void write_step(struct buf *out, const struct play_step *step)
{
    static const char *const begin[] = {"", "> MULTI\n", "> PIPELINE\n"}, *const end[] = {
                                                                              "", "> EXEC\n",
                                                                              "> END\n"};

    buf_append_z(out, begin[step->kind]);
    vec_each (&step->commands, struct store_args *, command) {
        buf_append_z(out, "> ");
        play_write_command(out, command);
        buf_append_char(out, '\n');
    }
    buf_append_z(out, end[step->kind]);
}

/* Plays the text into an empty Redis and adds its replies. */
static int record_text(struct fuzz *f, struct str text, struct buf *out, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;
    int rc = store_call(f->pair.theirs, &arena, &reply, err, STR("FLUSHDB"));

    if (rc == 0)
        rc = store_call(f->pair.theirs, &arena, &reply, err, STR("SCRIPT"), STR("FLUSH"));
    if (rc == 0)
        rc = play_record(text, f->pair.theirs, out, err);
    arena_release(&arena);
    return rc;
}

/* Reading every key at the end makes a difference of state one of replies. */
static int write_regression(struct fuzz *f, const struct episode *e, uint64_t seed, struct err *err)
{
    struct buf steps = {0}, text = {0};
    char path[512];
    int rc;

    vec_each (&e->steps, struct play_step *, step)
        write_step(&steps, step);
    rc = record_text(f, buf_str(&steps), &text, err);
    if (rc == 0) {
        compare_write_reads(f->pair.theirs, &steps);
        buf_reset(&text);
        rc = record_text(f, buf_str(&steps), &text, err);
    }
    snprintf(path, sizeof(path), "%s/unit/store/regressions/%016llx.txt", tests_folder,
             (unsigned long long)seed);
    if (rc == 0)
        rc = file_write_durable(path, buf_str(&text), 0644, err);
    if (rc == 0)
        printf("kept as %s\n", path);
    buf_release(&steps);
    buf_release(&text);
    return rc;
}

/* A random choice has no reply that could be written down; an error instead of one has. */
static void keep(struct fuzz *f, const struct episode *e, const struct difference *d, uint64_t seed)
{
    bool is_error = str_starts(buf_str(&d->theirs), STR("(error)"));
    struct err err = {0};
    struct buf text = {0};

    for (size_t i = 0; i < e->steps.len; i++) {
        const struct play_step *step = &e->steps.items[i];
        write_step(&text, step);
        if (step->kind == PLAY_COMMAND && is_random_command(step->commands.items) &&
            !(i == d->at && is_error))
            err_set(&err, ERR_UNSUPPORTED, "it holds a random choice");
    }
    printf("%s", text.p ? text.p : "");
    if (err.code || write_regression(f, e, seed, &err) < 0)
        printf("not kept: %s\n", err.text);
    buf_release(&text);
}

/* --- episodes --- */

static void generate(struct episode *e, uint64_t seed, size_t commands)
{
    struct generator g;

    e->arena = ARENA_INIT(1 * GIB);
    generator_init(&g, seed, &e->arena);
    while (e->commands < commands) {
        struct play_step step;
        generate_step(&g, &step);
        e->commands += step.commands.len;
        vec_push(&e->steps, step);
    }
}

static void show(struct fuzz *f, struct episode *e, struct difference *d, uint64_t seed)
{
    struct buf line = {0};

    if (f->shrink) {
        shrink(&f->pair, e, d);
        keep(f, e, d, seed);
    }
    if (d->at < e->steps.len)
        write_step(&line, &e->steps.items[d->at]);
    else
        buf_append_z(&line, "> (the state at the end)\n");
    printf("episode %016llx differs at step %zu of %zu:\n%s  embedded %.*s\n  redis    %.*s\n",
           (unsigned long long)seed, d->at, e->steps.len, line.p, (int)size_min(d->ours.len, SHOWN),
           d->ours.p, (int)size_min(d->theirs.len, SHOWN), d->theirs.p);
    buf_release(&line);
}

static bool run_episode(struct fuzz *f, uint64_t seed, size_t commands)
{
    struct episode e = {0};
    struct difference d = {0};
    VEC(struct play_step) all = {0};
    bool ok;

    generate(&e, seed, commands);
    vec_each (&e.steps, struct play_step *, step)
        vec_push(&all, *step);
    ok = compare_play(&f->pair, e.steps.items, e.steps.len, &d);
    if (!ok)
        show(f, &e, &d, seed);
    vec_each (&all, struct play_step *, step)
        vec_release(&step->commands);
    vec_release(&all);
    vec_release(&e.steps);
    arena_release(&e.arena);
    difference_release(&d);
    return ok;
}

static int run(struct fuzz *f)
{
    size_t passed = 0, failed = 0;

    printf("seed %llu, %zu commands\n", (unsigned long long)f->seed, f->commands);
    for (size_t done = 0; done < f->commands && failed < MAX_FAILURES; done += EPISODE) {
        uint64_t seed = f->seed * 1000003u + done / EPISODE;
        if (run_episode(f, seed, size_min(EPISODE, f->commands - done)))
            passed++;
        else
            failed++;
    }
    if (failed)
        printf("again with: store_diff --seed %llu --commands %zu --shrink\n",
               (unsigned long long)f->seed, f->commands);
    printf("%zu passed, %zu failed\n", passed, failed);
    return failed || passed == 0;
}

static int record(struct fuzz *f, char **paths, int count)
{
    int failed = 0;

    for (int i = 0; i < count; i++) {
        struct buf text = {0}, out = {0};
        struct err err = {0};
        int rc = file_read(paths[i], &text, &err);
        if (rc == 0)
            rc = record_text(f, buf_str(&text), &out, &err);
        if (rc == 0)
            rc = file_write_durable(paths[i], buf_str(&out), 0644, &err);
        if (rc < 0)
            fprintf(stderr, "%s: %s\n", paths[i], err.text);
        failed += rc < 0;
        buf_release(&text);
        buf_release(&out);
    }
    return failed != 0;
}

/* --- start and end --- */

static int open_stores(struct fuzz *f, struct err *err)
{
    char path[128];
    struct db_options db = {.path = path, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
    int rc;

    snprintf(f->dir, sizeof(f->dir), "/tmp/weir-diff-XXXXXX");
    if (!mkdtemp(f->dir))
        return err_set(err, ERR_IO, "no folder of my own");
    f->server.dir = f->dir;
    if (!redis_server_start(&f->server))
        return err_set(err, ERR_UNAVAILABLE, "no redis-server");
    struct store_redis_options redis = {.url = str_z(f->server.unix_url), .timeout_ms = 60 * 1000};
    rc = store_open_redis(&f->pair.theirs, &redis, err);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof(path), "%s/db", f->dir);
    rc = db_open(&f->db, &db, err);
    if (rc < 0)
        return rc;
    return store_open_embedded(&f->pair.ours, f->db, 0, STORE_VOLATILE, NULL, err);
}

static void close_stores(struct fuzz *f)
{
    store_close(f->pair.ours);
    store_close(f->pair.theirs);
    if (f->db)
        db_close(f->db);
    redis_server_kill(&f->server);
    if (f->dir[0] && dir_remove_tree(f->dir, NULL) < 0)
        fprintf(stderr, "%s is left behind\n", f->dir);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"commands", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},
        {"shrink", no_argument, NULL, 'k'},
        {"record", no_argument, NULL, 'r'},
        {0},
    };
    struct fuzz f = {.seed = random_below(1000000000), .commands = DEFAULT_COMMANDS};
    struct err err = {0};
    bool recording = false;
    int opt, status = 2;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (opt == 'c')
            f.commands = strtoull(optarg, NULL, 10);
        else if (opt == 's')
            f.seed = strtoull(optarg, NULL, 10);
        else if (opt == 'k')
            f.shrink = true;
        else if (opt == 'r')
            recording = true;
        else
            return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (open_stores(&f, &err) < 0)
        fprintf(stderr, "store_diff: %s\n", err.text);
    else
        status = recording ? record(&f, argv + optind, argc - optind) : run(&f);
    close_stores(&f);
    return status;
}
