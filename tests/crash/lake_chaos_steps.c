/* What the linker leads here from the lake: its named steps, its new tokens and its wall clock. */
#include "crash/lake_chaos.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The linker's names: __wrap_x is called for x, and __real_x is it. */
void __wrap_lake_step_begin(const char *name);
void __wrap_lake_step_end(const char *name);
int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);
struct str __real_lake_new_token(struct arena *a, const struct lake_repo *r, struct str branch);
struct str __wrap_lake_new_token(struct arena *a, const struct lake_repo *r, struct str branch);

enum { PAUSE_ONE_IN = 12, PAUSE_MAX_US = 6000 };

const char *const chaos_steps[] = {
    "lake.stage", "lake.seal",    "lake.node",          "lake.publish",     "lake.drop",
    "lake.reset", "lake.compact", "lake.delete_branch", "lake.delete_repo", "lake.drop_repo"};
const size_t chaos_step_count = ARRAY_SIZE(chaos_steps);

static struct chaos *chaos; /* NULL: steps do nothing */
static _Atomic(int64_t) clock_moved_ms;

void chaos_steps_on(struct chaos *s)
{
    chaos = s;
}

static void step_come(const char *name, bool after)
{
    static _Thread_local uint64_t random;

    if (!chaos)
        return;
    struct chaos_kill *k = &chaos->kill;
    if (k->step && k->after == after && strcmp(k->step, name) == 0 && k->left > 0 && --k->left == 0)
        kill(getpid(), SIGKILL);
    random = (random ? random : (uint64_t)(uintptr_t)&random) * 6364136223846793005u + 1;
    if ((random >> 33) % PAUSE_ONE_IN == 0)
        usleep((useconds_t)((random >> 40) % PAUSE_MAX_US));
}

void __wrap_lake_step_begin(const char *name)
{
    step_come(name, false);
}

void __wrap_lake_step_end(const char *name)
{
    step_come(name, true);
}

struct str __wrap_lake_new_token(struct arena *a, const struct lake_repo *r, struct str branch)
{
    struct str token = __real_lake_new_token(a, r, branch);

    if (!chaos)
        return token;
    struct model *m = chaos_model(chaos);
    uint32_t i = m->token_count++;
    if (i < MODEL_TOKENS && token.len < MODEL_TOKEN_SIZE) {
        memcpy(m->tokens[i], token.p, token.len);
        m->tokens[i][token.len] = '\0';
    }
    return token;
}

void chaos_clock_move(int64_t ms)
{
    clock_moved_ms = ms;
}

int64_t __wrap_clock_wall_ms(void)
{
    return __real_clock_wall_ms() + clock_moved_ms;
}
