/* The lake under kills, pauses and loss of power (harness.h), checked against a model.
 *
 * Eight threads make random operations on three branches: they stage, remove, stage batches, reset
 * paths, prefixes and whole branches, commit all or some paths, merge, revert, cherry-pick, set
 * heads back, make and delete branches and tags, raise counters and win prizes by conditional
 * writes, list and read. Other branches, and a repository, are deleted and made again all the time
 * (lake_twins.c). Threads wait at random at the named steps of the lake (lake/step.h). Then the
 * process is killed, at a random moment or before or behind a step. In every second run the power
 * fails too. The engines take turns: embedded, Redis, PostgreSQL. On the servers the threads are
 * two processes in every second run.
 *
 * Each read is judged by the model (lake_model.h) while the threads work, and what is left after
 * the kill is judged by lake_chaos_check.c: L1 to L8 of docs/lake.md, and that nothing is left over
 * in the key-value store. Liars acknowledge changes before they make them. */
#include "crash/lake_worker.h"

#include "base/clock.h"
#include "os/file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Under a sanitizer the lake opens slowly, and a run would end before it has begun. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOWNESS = 6 };
#else
enum { SLOWNESS = 1 };
#endif

enum {
    RUNS_EACH = 2, /* of an engine before the next one has its turn */
    KILL_FROM_MS = 150 * SLOWNESS,
    KILL_WITHIN_MS = 900 * SLOWNESS,
    STEPS_MAX = 40, /* how often the step of a kill is passed before */
    DROP_AGAIN_MS = 3000,
    CACHE_BYTES = 4 << 20,
    SETUP_WAIT_US = 1000,
};

struct model *chaos_model(struct chaos *s)
{
    return &s->models[s->engine];
}

/* --- the lake --- */

static void chaos_node_path(char out[256], const struct chaos_lake *l, struct str id)
{
    snprintf(out, 256, "%s/" STR_FMT, l->folder, STR_ARG(id));
}

static int chaos_node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    char path[256];

    chaos_node_path(path, ctx, id);
    return file_exists(path) ? file_read(path, out, err) : err_code(err, ERR_NOT_FOUND);
}

static int chaos_node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    char path[256];

    chaos_node_path(path, ctx, id);
    lake_step_begin("lake.node");
    int code = file_write_durable(path, bytes, 0600, err);
    lake_step_end("lake.node");
    return code;
}

static int chaos_place(void *ctx, const struct lake_repo *r, struct node_place *out,
                       struct err *err)
{
    *out = (struct node_place){.read = chaos_node_read, .write = chaos_node_write, .ctx = ctx};
    return 0;
}

void chaos_lake_open(struct chaos_lake *out, struct chaos *s, uint64_t drop_again_ms)
{
    struct lake_options o = {.place = chaos_place,
                             .place_ctx = out,
                             .cache = {.memory_bytes = CACHE_BYTES},
                             .drop_again_ms = drop_again_ms,
                             .writers = 2};
    struct err err = {0};

    *out = (struct chaos_lake){.chaos = s, .model = chaos_model(s)};
    mutex_init(&out->notes, "lake-chaos.notes");
    snprintf(out->folder, sizeof(out->folder), "%s/nodes-%d", s->crash.folder, (int)s->engine);
    must(dir_make(out->folder, 0700, &err), &err);
    o.kv = out->kv = kv_engine_open(s->engine, &s->crash);
    must(lake_open(&out->lake, &o, &err), &err);
}

int chaos_content(struct chaos_lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
                  struct content *out, struct err *err)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page;
    int code = lake_list(l->lake, a, r, ref, &o, &page, err);

    *out = (struct content){0};
    for (size_t i = 0; i < page.count && code == 0; i++)
        if (!content_add(out, page.items[i].path, page.items[i].entry.etag))
            code = err_set(err, ERR_CORRUPT, STR_FMT " = " STR_FMT, STR_ARG(page.items[i].path),
                           STR_ARG(page.items[i].entry.etag));
    return code;
}

/* --- the child that works --- */

static const struct {
    unsigned weight;
    void (*fn)(struct worker *w);
} operations[] = {
    {36, worker_stage_one},
    {12, worker_stage_many},
    {8, worker_count},
    {5, worker_prize},
    {3, worker_reset_path},
    {2, worker_reset_prefix},
    {1, worker_reset_all},
    {1, worker_hard_reset_same},
    {1, worker_hard_reset_back},
    {1, worker_revert},
    {1, worker_cherry_pick},
    {12, worker_list},
    {14, worker_stat},
    {8, worker_commit},
    {2, worker_commit_own},
    {3, worker_merge},
    {1, worker_tag},
    {1, worker_fleeting},
    {10, worker_twin},
};

static void worker_step(struct worker *w)
{
    unsigned all = 0, chosen;
    size_t i = 0;

    for (size_t k = 0; k < ARRAY_SIZE(operations); k++)
        all += operations[k].weight;
    chosen = worker_random(w, all);
    for (; chosen >= operations[i].weight; i++)
        chosen -= operations[i].weight;
    if (w->lie)
        i = 0; /* liars only stage */
    operations[i].fn(w);
    arena_reset(&w->arena);
    if (write(w->pipe, "", 1) != 1)
        _exit(3);
}

static void worker_main(void *ctx)
{
    for (;;)
        worker_step(ctx);
}

/* Makes the repository and its branches, unless an earlier run has made them. */
static void set_up(struct chaos_lake *l)
{
    struct lake_repo_options o = {
        .id = STR("chaos"), .space = STR("s3://data/chaos"), .owner = STR("owner")};
    struct arena a = {0};
    struct lake_branch b;
    struct lake_repo repo;
    struct err err = {0};
    int code = lake_repo_get(l->lake, &a, o.id, &repo, &err);

    if (code == ERR_NOT_FOUND)
        code = lake_repo_create(l->lake, &a, &o, &repo, &err);
    must(code, &err);
    for (unsigned i = 1; i < MODEL_BRANCHES; i++) {
        struct lake_branch_options branch = {.name = str_z(model_branches[i]),
                                             .source = STR("main")};
        code = lake_branch_get(l->lake, &a, &repo, branch.name, &b, &err);
        if (code == ERR_NOT_FOUND)
            code = lake_branch_create(l->lake, &a, &repo, &branch, &b, &err);
        must(code, &err);
    }
    arena_release(&a);
    l->model->is_ready = true;
}

/* Runs the workers whose number leaves this rest. */
static void work_part(struct chaos *s, int pipe, unsigned part, uint64_t seed)
{
    static struct worker workers[MODEL_THREADS];
    static struct chaos_lake lake;
    struct err err = {0};

    chaos_steps_on(s);
    chaos_lake_open(&lake, s, DROP_AGAIN_MS);
    if (part == 0)
        set_up(&lake);
    while (!lake.model->is_ready)
        usleep(SETUP_WAIT_US);
    for (unsigned i = part; i < MODEL_THREADS; i += s->processes) {
        struct worker *w = &workers[i];
        *w = (struct worker){
            .at = &lake, .id = i, .random = seed + i, .pipe = pipe, .lie = s->crash.lie};
        must(lake_repo_get(lake.lake, &w->own, STR("chaos"), &w->repo, &err), &err);
        must(thread_start(&w->thread, "chaos", 0, worker_main, w, &err), &err);
    }
    for (;;)
        pause();
}

static void work(const struct crash *c, int pipe)
{
    struct chaos *s = container_of((struct crash *)c, struct chaos, crash);
    uint64_t seed = c->random + s->runs;

    if (s->processes == 2 && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work_part(s, pipe, 1, seed);
    }
    work_part(s, pipe, 0, seed);
}

/* --- the parent --- */

static bool hear(struct crash *c, int pipe)
{
    char reports[512];
    ssize_t count = read(pipe, reports, sizeof(reports));

    c->changes += count > 0 ? (uint64_t)count : 0;
    return count > 0;
}

/* Every second kill is at a step. */
static void choose_kill(struct chaos *s)
{
    uint64_t random = next_random(&s->crash);

    s->kill.step = random % 2 ? chaos_steps[random / 4 % chaos_step_count] : NULL;
    s->kill.after = random / 2 % 2;
    s->kill.left = 1 + (unsigned)(next_random(&s->crash) % STEPS_MAX);
}

static void before(struct crash *c)
{
    struct chaos *s = container_of(c, struct chaos, crash);

    s->engine = c->lie ? KV_EMBEDDED : (enum kv_engine)(s->runs / RUNS_EACH % KV_ENGINES);
    /* Of an engine's two runs one has two processes: by turns the one in which the power fails. */
    s->processes = s->engine == KV_EMBEDDED ? 1 : 1 + (s->runs + s->runs / RUNS_EACH) % 2;
    s->runs++;
    chaos_model(s)->is_ready = false;
    choose_kill(s);
    kv_engine_start(s->engine, c);
}

static void after(struct crash *c, bool power)
{
    kv_engine_after(container_of(c, struct chaos, crash)->engine, c, power);
}

static void reset(struct crash *c)
{
    struct chaos *s = container_of(c, struct chaos, crash);

    s->runs = 0;
    memset(s->models, 0, sizeof(s->models));
    kv_engines_reset();
}

static void tell(const struct crash *c)
{
    const struct chaos *s = container_of((struct crash *)c, struct chaos, crash);
    static const char *const names[] = {"merges",         "reverts", "cherry-picks", "resets",
                                        "heads set back", "prizes",  "deletions"};

    for (int i = 0; i < MADE_KINDS; i++) {
        uint32_t made = 0;
        for (int e = 0; e < KV_ENGINES; e++)
            made += s->models[e].made[i];
        printf("%s%u %s", i ? ", " : "", made, names[i]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct chaos *s = shared_memory(sizeof(*s));
    struct crash_test test = {.name = "lake_chaos",
                              .state = &s->crash,
                              .kill_from_ms = KILL_FROM_MS,
                              .kill_within_ms = KILL_WITHIN_MS,
                              .reset = reset,
                              .before = before,
                              .work = work,
                              .hear = hear,
                              .after = after,
                              .check = chaos_check,
                              .tell = tell};

    kv_engines_init();
    int status = crash_main(argc, argv, &test);
    kv_engines_end();
    return status;
}
