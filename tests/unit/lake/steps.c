/* Steps of the lake and of moves of shards in unit tests. */
#include "unit/lake/steps.h"

#include <string.h>

/* The linker's names of the functions of lake/step.h and shard/step.h. */
void __wrap_lake_step_begin(const char *name);
void __wrap_lake_step_end(const char *name);
void __wrap_shard_step_begin(const char *name);
void __wrap_shard_step_end(const char *name);

enum { NAMES_MAX = 16 };

static _Thread_local struct {
    enum steps_when when;
    const char *step; /* NULL: nothing is planned */
    unsigned n;
    void (*fn)(void *ctx);
    void *ctx;
    bool happened, is_inside;
} plan;

static _Thread_local struct {
    const char *name;
    unsigned count;
} counts[NAMES_MAX];

void steps_plan(enum steps_when when, const char *step, unsigned n, void (*fn)(void *ctx),
                void *ctx)
{
    plan.when = when;
    plan.step = step;
    plan.n = n;
    plan.fn = fn;
    plan.ctx = ctx;
    plan.happened = false;
    memset(counts, 0, sizeof(counts));
}

bool steps_happened(void)
{
    plan.step = NULL;
    return plan.happened;
}

unsigned steps_count(const char *step)
{
    for (size_t i = 0; i < NAMES_MAX && counts[i].name; i++)
        if (strcmp(counts[i].name, step) == 0)
            return counts[i].count;
    return 0;
}

static void steps_add(const char *step)
{
    size_t i = 0;

    while (i < NAMES_MAX && counts[i].name && strcmp(counts[i].name, step) != 0)
        i++;
    if (i == NAMES_MAX)
        return;
    counts[i].name = step;
    counts[i].count++;
}

static void steps_come(enum steps_when when, const char *step)
{
    if (plan.is_inside)
        return;
    if (when == STEPS_BEFORE)
        steps_add(step);
    if (!plan.step || plan.when != when || strcmp(plan.step, step) != 0 || --plan.n > 0)
        return;
    plan.step = NULL;
    plan.is_inside = true;
    plan.fn(plan.ctx);
    plan.is_inside = false;
    plan.happened = true;
}

void __wrap_lake_step_begin(const char *name)
{
    steps_come(STEPS_BEFORE, name);
}

void __wrap_lake_step_end(const char *name)
{
    steps_come(STEPS_AFTER, name);
}

void __wrap_shard_step_begin(const char *name)
{
    steps_come(STEPS_BEFORE, name);
}

void __wrap_shard_step_end(const char *name)
{
    steps_come(STEPS_AFTER, name);
}
