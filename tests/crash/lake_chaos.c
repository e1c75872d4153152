/* The lake under kills, pauses and loss of power (harness.h), checked against a model.
 *
 * Eight threads make random operations on three branches: they stage, remove, stage batches, reset,
 * commit all or some paths, merge, make and delete branches and tags, raise counters by conditional
 * writes, list and read. Threads wait at random at the named steps of the lake (lake/step.h). Then
 * the process is killed, at a random moment or before or behind a step. In every second run the
 * power fails too. The engines take turns: embedded, Redis, PostgreSQL. On the servers the threads
 * are two processes in every second run.
 *
 * Each read is judged by the model (lake_model.h) while the threads work, and what is left after
 * the kill is judged by lake_chaos_check.c: L1 to L7 of docs/lake.md, and that nothing is left over
 * in the key-value store. Liars acknowledge changes before they make them. */
#include "crash/lake_chaos.h"

#include "base/clock.h"
#include "os/file.h"
#include "os/thread.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    RUNS_EACH = 2, /* of an engine before the next one has its turn */
    KILL_FROM_MS = 150,
    KILL_WITHIN_MS = 900,
    STEPS_MAX = 40, /* how often the step of a kill is passed before */
    DROP_AGAIN_MS = 3000,
    CACHE_BYTES = 4 << 20,
    SETUP_WAIT_US = 1000,
    QUIET_US = 3000,
};

struct worker {
    struct thread thread;
    struct chaos_lake *at;
    struct lake_repo repo;
    unsigned id;
    uint64_t random;
    int pipe;
    bool lie;
    struct arena arena; /* of one operation */
    struct arena own;   /* of the repository's record */
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
    return file_write_durable(path, bytes, 0600, err);
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

/* --- workers --- */

static uint32_t worker_random(struct worker *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

/* Ends the process: a promise is broken. */
static void worker_fail(const struct worker *w, const char *what, const struct err *err)
{
    printf("%s, thread %u: %s: %s\n", w->at->kv->driver, w->id, what, err ? err->text : "");
    fflush(stdout);
    _exit(4);
}

/* An operation must have succeeded. */
static void worker_must(const struct worker *w, int code, const char *what, const struct err *err)
{
    struct err said = *err;

    if (code == 0)
        return;
    err_set(&said, code, "%s: %s", err_name(code), err->text);
    worker_fail(w, what, &said);
}

/* Operations that change heads may lose a race, or meet a branch with changes. */
static int worker_raced(const struct worker *w, int code, const char *what, const struct err *err)
{
    if (code != ERR_NOT_MODIFIED && code != ERR_INVALID && code != ERR_BUSY && code != ERR_CONFLICT)
        worker_must(w, code, what, err);
    return code;
}

/* A branch that is not left to a merge, if there is one. */
static unsigned worker_branch(struct worker *w)
{
    unsigned b = worker_random(w, MODEL_BRANCHES);

    for (unsigned i = 0; i < MODEL_BRANCHES && w->at->model->quiet[b]; i++)
        b = (b + 1) % MODEL_BRANCHES;
    return b;
}

static struct model_prefix *worker_prefix(struct worker *w, unsigned branch)
{
    return &w->at->model->prefixes[branch][w->id];
}

static struct str worker_path(struct worker *w, unsigned branch, unsigned thread, unsigned number)
{
    return arena_fmt(&w->arena, "%s/%u/%u", model_branches[branch], thread, number);
}

static const struct lake_entry *worker_entry(struct worker *w, uint32_t value)
{
    struct lake_entry *e = arena_new(&w->arena, struct lake_entry);

    *e = (struct lake_entry){
        .address = arena_fmt(&w->arena, "data/%u-%u", w->id, ++w->at->model->last_name),
        .address_type = LAKE_RELATIVE,
        .modified_ms = 1700000000000,
        .size = value,
        .etag = arena_fmt(&w->arena, "%u", value),
        .content_type = STR("text/plain")};
    return e;
}

/* --- staging --- */

/* Stages changes of own paths; each is a new value or, one time in three, a removal. */
static void worker_stage(struct worker *w, unsigned count)
{
    unsigned branch = worker_branch(w);
    struct model_prefix *p = worker_prefix(w, branch);
    struct model_state next = *model_now(p);
    struct lake_put puts[MODEL_PATHS];
    struct err err = {0};

    if (model_is_full(p))
        return;
    for (unsigned i = 0; i < count; i++) {
        unsigned number = worker_random(w, MODEL_PATHS);
        uint32_t value = worker_random(w, 3) ? ++w->at->model->last_value : 0;
        next.values[number] = value;
        puts[i] = (struct lake_put){worker_path(w, branch, w->id, number),
                                    value ? worker_entry(w, value) : NULL};
    }
    model_begin(w->at->model, p, &next);
    if (w->lie)
        model_ack(w->at->model, p);
    worker_must(w,
                lake_stage(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]), puts,
                           count, NULL, &err),
                "stage", &err);
    if (!w->lie)
        model_ack(w->at->model, p);
}

static void worker_stage_one(struct worker *w)
{
    worker_stage(w, 1);
}

static void worker_stage_many(struct worker *w)
{
    worker_stage(w, 2 + worker_random(w, MODEL_PATHS - 1));
}

static int judge_number(void *ctx, struct str path, const struct lake_object *present,
                        struct err *err)
{
    uint64_t number = 0;

    if (present && str_u64(present->entry.etag, &number) != 0)
        return err_code(err, ERR_CORRUPT);
    return number == *(const uint32_t *)ctx ? 0 : err_code(err, ERR_PRECONDITION);
}

static uint32_t worker_read_counter(struct worker *w, struct model_counter *c, struct str path)
{
    uint32_t least = c->acked;
    struct lake_object found;
    struct err err = {0};
    uint64_t number = 0;
    int code = lake_stat(w->at->lake, &w->arena, &w->repo, STR("main"), path, &found, &err);

    if (code != ERR_NOT_FOUND) {
        worker_must(w, code, "stat of a counter", &err);
        worker_must(w, str_u64(found.entry.etag, &number), "a counter's number", &err);
    }
    if (number < least || number > c->begun)
        worker_fail(w, "a counter has a number that it cannot have", NULL);
    return (uint32_t)number;
}

static void worker_count(struct worker *w)
{
    unsigned n = worker_random(w, MODEL_COUNTERS);
    struct model_counter *c = &w->at->model->counters[n];
    struct str path = arena_fmt(&w->arena, "count/%u", n);
    uint32_t now = worker_read_counter(w, c, path);
    struct lake_stage_options o = {.judge = judge_number, .ctx = &now};
    struct lake_put put = {path, worker_entry(w, now + 1)};
    struct err err = {0};

    if (w->at->model->quiet[0] || now + 1 - c->base >= MODEL_COUNTS)
        return;
    model_raise(&c->begun, now + 1);
    int code = lake_stage(w->at->lake, &w->arena, &w->repo, STR("main"), &put, 1, &o, &err);
    if (code == ERR_PRECONDITION)
        return;
    worker_must(w, code, "raise of a counter", &err);
    if (atomic_exchange(&c->won[now + 1 - c->base], true))
        worker_fail(w, "two threads raised a counter to the same number", NULL);
    model_raise(&c->acked, now + 1);
}

/* --- resets --- */

/* The paths that were not reset are as they were; the others are as in a commit. */
static bool reset_is_right(const struct model_prefix *p, const struct model_state *seen,
                           uint32_t floor, int number)
{
    const struct model_state *was = model_now(p);

    if (number < 0)
        return model_find(p, seen, floor, p->acked) >= 0;
    for (int i = 0; i < MODEL_PATHS; i++)
        if (i != number && seen->values[i] != was->values[i])
            return false;
    for (uint32_t i = floor; i <= p->acked; i++)
        if (p->states[i].values[number] == seen->values[number])
            return true;
    return false;
}

static void worker_reset(struct worker *w, int number)
{
    unsigned branch = worker_branch(w);
    struct model_prefix *p = worker_prefix(w, branch);
    struct str name = str_z(model_branches[branch]);
    struct str path = number < 0 ? arena_fmt(&w->arena, "%s/%u/", model_branches[branch], w->id)
                                 : worker_path(w, branch, w->id, (unsigned)number);
    uint32_t floor = p->floor;
    struct content seen;
    struct err err = {0};

    if (model_is_full(p))
        return;
    model_begin(w->at->model, p, NULL);
    worker_must(w,
                lake_reset(w->at->lake, &w->arena, &w->repo, name,
                           number < 0 ? LAKE_RESET_PREFIX : LAKE_RESET_PATH, path, false, &err),
                "reset", &err);
    worker_must(w, chaos_content(w->at, &w->arena, &w->repo, name, &seen, &err), "list", &err);
    if (!reset_is_right(p, &seen.prefixes[branch][w->id], floor, number))
        worker_fail(w, "a reset gave a state that no commit can have", NULL);
    model_fill(p, &seen.prefixes[branch][w->id]);
    model_ack(w->at->model, p);
}

static void worker_reset_path(struct worker *w)
{
    worker_reset(w, (int)worker_random(w, MODEL_PATHS));
}

static void worker_reset_prefix(struct worker *w)
{
    worker_reset(w, -1);
}

/* A hard reset of a branch to its own head changes nothing but the epoch. */
static void worker_hard_reset(struct worker *w)
{
    struct str name = str_z(model_branches[worker_random(w, MODEL_BRANCHES)]);
    struct err err = {0};

    worker_raced(w, lake_hard_reset(w->at->lake, &w->arena, &w->repo, name, name, false, &err),
                 "hard reset", &err);
}

/* --- reading --- */

static void worker_list(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES), thread = 0;
    struct model *m = w->at->model;
    struct model_range range;
    struct content seen;
    struct err err = {0};

    model_range_begin(m, branch, &range);
    worker_must(
        w, chaos_content(w->at, &w->arena, &w->repo, str_z(model_branches[branch]), &seen, &err),
        "list", &err);
    model_range_end(m, branch, &range);
    const char *wrong = model_judge(m, branch, &seen, &range, w->at->kv->can & KV_MOMENTS, &thread);
    if (wrong) {
        err_set(&err, ERR_CORRUPT, "listing of %s, prefix of thread %u", model_branches[branch],
                thread);
        worker_fail(w, wrong, &err);
    }
}

/* Reads a path of any thread. */
static void worker_stat(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES), thread = worker_random(w, MODEL_THREADS),
             number = worker_random(w, MODEL_PATHS);
    const struct model_prefix *p = &w->at->model->prefixes[branch][thread];
    struct model_range range;
    struct lake_object found = {0};
    struct err err = {0};
    uint64_t value = 0;

    model_range_begin(w->at->model, branch, &range);
    int code = lake_stat(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]),
                         worker_path(w, branch, thread, number), &found, &err);
    model_range_end(w->at->model, branch, &range);
    if (code != ERR_NOT_FOUND) {
        worker_must(w, code, "stat", &err);
        worker_must(w, str_u64(found.entry.etag, &value), "an object's value", &err);
    }
    for (uint32_t i = range.from[thread]; i <= range.to[thread]; i++)
        if (p->states[i].values[number] == value)
            return;
    err_set(&err, ERR_CORRUPT, "%s/%u/%u = %u", model_branches[branch], thread, number,
            (unsigned)value);
    worker_fail(w, "a path has a value that it cannot have", &err);
}

/* --- commits --- */

static void worker_note_commit(struct worker *w, unsigned branch, struct str id,
                               const struct model_range *r, bool is_whole)
{
    struct model *m = w->at->model;
    uint32_t i = m->commit_count++;

    if (i >= MODEL_COMMITS)
        return;
    struct model_commit *c = &m->commits[i];
    c->range = *r;
    c->branch = branch;
    c->is_whole = is_whole;
    snprintf(c->id, sizeof(c->id), STR_FMT, STR_ARG(id));
}

static void worker_commit_some(struct worker *w, unsigned branch, const struct str *paths)
{
    struct lake_commit_options o = {.message = STR("chaos"),
                                    .committer = STR("tester"),
                                    .paths = paths,
                                    .path_count = paths ? 1 : 0};
    struct model_range range;
    struct lake_commit c;
    struct err err = {0};

    model_range_begin(w->at->model, branch, &range);
    for (unsigned i = 0; paths && i < MODEL_THREADS; i++)
        range.from[i] = i == w->id ? range.from[i] : 0;
    int code =
        lake_commit(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]), &o, &c, &err);
    model_range_end(w->at->model, branch, &range);
    worker_raced(w, code, "commit", &err);
    if (code == 0 || code == ERR_NOT_MODIFIED)
        model_raise_floors(w->at->model, branch, &range);
    if (code == 0)
        worker_note_commit(w, branch, c.id, &range, paths == NULL);
}

static void worker_commit(struct worker *w)
{
    worker_commit_some(w, worker_random(w, MODEL_BRANCHES), NULL);
}

/* Commits the thread's own prefix alone. */
static void worker_commit_own(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES);
    struct str prefix = arena_fmt(&w->arena, "%s/%u/", model_branches[branch], w->id);

    worker_commit_some(w, branch, &prefix);
}

/* Merges a branch into an earlier one. Writers leave the destination alone for a moment, as a merge
 * refuses a branch with changes. */
static void worker_merge(struct worker *w)
{
    unsigned source = 1 + worker_random(w, MODEL_BRANCHES - 1), dest = worker_random(w, source);
    struct lake_merge_options o = {.committer = STR("tester")};
    struct lake_conflicts conflicts = {0};
    struct model_range range;
    struct lake_commit c;
    struct err err = {0};

    w->at->model->quiet[dest]++;
    usleep(QUIET_US);
    worker_commit_some(w, dest, NULL);
    model_range_begin(w->at->model, dest, &range);
    int code = lake_merge(w->at->lake, &w->arena, &w->repo, str_z(model_branches[source]),
                          str_z(model_branches[dest]), &o, &c, &conflicts, &err);
    model_range_end(w->at->model, dest, &range);
    w->at->model->quiet[dest]--;
    if (worker_raced(w, code, "merge", &err) == 0)
        worker_note_commit(w, dest, c.id, &range, true);
}

/* --- names --- */

static void worker_tag(struct worker *w)
{
    struct model *m = w->at->model;
    uint32_t i = m->tag_count++;
    struct lake_tag made;
    struct err err = {0};

    if (i >= MODEL_TAGS)
        return;
    struct model_tag *t = &m->tags[i];
    t->state = TAG_UNKNOWN;
    snprintf(t->name, sizeof(t->name), "tag-%u", ++m->last_name);
    worker_must(w,
                lake_tag_create(w->at->lake, &w->arena, &w->repo, str_z(t->name),
                                str_z(model_branches[worker_random(w, MODEL_BRANCHES)]), false,
                                &made, &err),
                "tag", &err);
    snprintf(t->id, sizeof(t->id), STR_FMT, STR_ARG(made.commit_id));
    t->state = TAG_MADE;
    if (worker_random(w, 2))
        return;
    t->state = TAG_UNKNOWN;
    worker_must(w, lake_tag_delete(w->at->lake, &w->arena, &w->repo, str_z(t->name), false, &err),
                "removal of a tag", &err);
    t->state = TAG_IS_REMOVED;
}

/* A new branch has the content of its commit; writes to it stay there; then it goes. */
static void worker_fleeting(struct worker *w)
{
    struct model *m = w->at->model;
    struct lake_branch_options o = {.name = arena_fmt(&w->arena, "fleeting-%u", ++m->last_name),
                                    .source =
                                        str_z(model_branches[worker_random(w, MODEL_BRANCHES)])};
    struct lake_put put = {STR("count/0"), worker_entry(w, 7)};
    struct content head, now;
    struct lake_branch b;
    struct err err = {0};
    struct lake *l = w->at->lake;
    struct arena *a = &w->arena;

    worker_must(w, lake_branch_create(l, a, &w->repo, &o, &b, &err), "branch", &err);
    worker_must(w, chaos_content(w->at, a, &w->repo, b.commit_id, &head, &err), "list", &err);
    worker_must(w, chaos_content(w->at, a, &w->repo, o.name, &now, &err), "list", &err);
    if (memcmp(&head, &now, sizeof(now)) != 0)
        worker_fail(w, "a new branch differs from its commit", NULL);
    worker_must(w, lake_stage(l, a, &w->repo, o.name, &put, 1, NULL, &err), "stage", &err);
    worker_must(w, lake_branch_delete(l, a, &w->repo, o.name, false, &err), "deletion", &err);
    if (lake_branch_get(l, a, &w->repo, o.name, &b, &err) != ERR_NOT_FOUND)
        worker_fail(w, "a deleted branch is there", &err);
}

/* --- the child that works --- */

static const struct {
    unsigned weight;
    void (*fn)(struct worker *w);
} operations[] = {
    {36, worker_stage_one},   {12, worker_stage_many}, {8, worker_count}, {3, worker_reset_path},
    {2, worker_reset_prefix}, {1, worker_hard_reset},  {12, worker_list}, {14, worker_stat},
    {8, worker_commit},       {2, worker_commit_own},  {3, worker_merge}, {1, worker_tag},
    {1, worker_fleeting},
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
    s->processes = s->engine == KV_EMBEDDED ? 1 : 1 + s->runs / RUNS_EACH / KV_ENGINES % 2;
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
                              .check = chaos_check};

    kv_engines_init();
    int status = crash_main(argc, argv, &test);
    kv_engines_end();
    return status;
}
