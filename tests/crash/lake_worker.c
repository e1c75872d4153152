/* Operations of the model test on paths: staging, conditional writes, resets, reads. */
#include "crash/lake_worker.h"

#include <stdio.h>
#include <unistd.h>

/* --- workers --- */

uint32_t worker_random(struct worker *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

void worker_fail(const struct worker *w, const char *what, const struct err *err)
{
    printf("%s, thread %u: %s: %s\n", w->at->kv->driver, w->id, what, err ? err->text : "");
    fflush(stdout);
    _exit(4);
}

void worker_must(const struct worker *w, int code, const char *what, const struct err *err)
{
    struct err said = *err;

    if (code == 0)
        return;
    err_set(&said, code, "%s: %s", err_name(code), err->text);
    worker_fail(w, what, &said);
}

int worker_raced(const struct worker *w, int code, const char *what, const struct err *err)
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

const struct lake_entry *worker_entry(struct worker *w, uint32_t value)
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

struct content worker_content(struct worker *w, struct str ref)
{
    struct content found;
    struct err err = {0};

    worker_must(w, chaos_content(w->at, &w->arena, &w->repo, ref, &found, &err), "list", &err);
    return found;
}

/* Comes in to write to the branch. False: a change of the whole branch is under way. */
static bool worker_enter(struct worker *w, unsigned branch)
{
    return gate_enter(&w->at->model->writers[branch]);
}

static void worker_leave(struct worker *w, unsigned branch)
{
    gate_leave(&w->at->model->writers[branch]);
}

/* --- staging --- */

/* Stages changes of own paths; each is a new value or, one time in three, a removal. */
static void worker_stage_on(struct worker *w, unsigned branch, unsigned count)
{
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

static void worker_stage(struct worker *w, unsigned count)
{
    unsigned branch = worker_branch(w);

    if (!worker_enter(w, branch))
        return;
    worker_stage_on(w, branch, count);
    worker_leave(w, branch);
}

void worker_stage_one(struct worker *w)
{
    worker_stage(w, 1);
}

void worker_stage_many(struct worker *w)
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

static void worker_raise(struct worker *w)
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

void worker_count(struct worker *w)
{
    if (!worker_enter(w, 0))
        return;
    worker_raise(w);
    worker_leave(w, 0);
}

/* --- prizes --- */

/* The path must have this value; 0: it must be absent. */
static int prize_put(struct worker *w, struct str path, const struct lake_entry *entry,
                     uint32_t present, struct err *err)
{
    struct lake_stage_options o = {.judge = judge_number, .ctx = &present};
    struct lake_put put = {path, entry};

    return lake_stage(w->at->lake, &w->arena, &w->repo, STR("main"), &put, 1, &o, err);
}

/* Removes the prize of the winner, so that it can be won again. The model forgets the winner first,
 * as the next one may win before the removal is acknowledged. */
static void prize_give_back(struct worker *w, _Atomic(uint32_t) *prize, struct str path,
                            uint32_t won)
{
    struct err err = {0};

    if (!atomic_compare_exchange_strong(prize, &won, 0))
        return;
    worker_must(w, prize_put(w, path, NULL, won, &err), "removal of a prize", &err);
}

static void prize_try(struct worker *w, _Atomic(uint32_t) *prize, struct str path)
{
    uint32_t value = ++w->at->model->last_value;
    struct err err = {0};
    int code = prize_put(w, path, worker_entry(w, value), 0, &err);

    if (code == ERR_PRECONDITION)
        return;
    worker_must(w, code, "write of a prize", &err);
    if (atomic_exchange(prize, value) != 0)
        worker_fail(w, "a prize has two winners", NULL);
    w->at->model->made[MADE_PRIZES]++;
}

void worker_prize(struct worker *w)
{
    unsigned n = worker_random(w, MODEL_PRIZES);
    _Atomic(uint32_t) *prize = &w->at->model->prizes[n];
    struct str path = arena_fmt(&w->arena, "prize/%u", n);
    uint32_t won = *prize;

    if (w->at->model->quiet[0] || !worker_enter(w, 0))
        return;
    if (won && worker_random(w, 2))
        prize_give_back(w, prize, path, won);
    else
        prize_try(w, prize, path);
    worker_leave(w, 0);
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

static void worker_reset_on(struct worker *w, unsigned branch, int number)
{
    struct model_prefix *p = worker_prefix(w, branch);
    struct str name = str_z(model_branches[branch]);
    struct str path = number < 0 ? arena_fmt(&w->arena, "%s/%u/", model_branches[branch], w->id)
                                 : worker_path(w, branch, w->id, (unsigned)number);
    uint32_t floor = p->floor;
    struct err err = {0};

    if (model_is_full(p))
        return;
    model_begin_unknown(w->at->model, p, number < 0 ? (1u << MODEL_PATHS) - 1 : 1u << number);
    worker_must(w,
                lake_reset(w->at->lake, &w->arena, &w->repo, name,
                           number < 0 ? LAKE_RESET_PREFIX : LAKE_RESET_PATH, path, false, &err),
                "reset", &err);
    struct content seen = worker_content(w, name);
    if (!reset_is_right(p, &seen.prefixes[branch][w->id], floor, number))
        worker_fail(w, "a reset gave a state that no commit can have", NULL);
    model_fill(p, &seen.prefixes[branch][w->id]);
    model_ack(w->at->model, p);
}

static void worker_reset(struct worker *w, int number)
{
    unsigned branch = worker_branch(w);

    if (!worker_enter(w, branch))
        return;
    worker_reset_on(w, branch, number);
    worker_leave(w, branch);
}

void worker_reset_path(struct worker *w)
{
    worker_reset(w, (int)worker_random(w, MODEL_PATHS));
}

void worker_reset_prefix(struct worker *w)
{
    worker_reset(w, -1);
}

/* --- reading --- */

void worker_list(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES), thread = 0;
    struct model *m = w->at->model;
    struct model_range range;
    struct err err = {0};

    model_range_begin(m, branch, &range);
    struct content seen = worker_content(w, str_z(model_branches[branch]));
    model_range_end(m, branch, &range);
    const char *wrong = model_judge(m, branch, &seen, &range, w->at->kv->can & KV_MOMENTS, &thread);
    if (wrong) {
        err_set(&err, ERR_CORRUPT, "listing of %s, prefix of thread %u", model_branches[branch],
                thread);
        worker_fail(w, wrong, &err);
    }
}

/* Reads a path of any thread. */
void worker_stat(struct worker *w)
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
