/* Action files: whatever bytes come, reading them ends without a crash, and an action that was read
 * is inside its limits. */
#include "lake/action_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *give_value(void *ctx, const char *name)
{
    return ctx && name[0] ? "value" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct buf out = BUF_INIT(1 << 20);
    struct action act;
    struct err err = {0};

    if (action_read(&act, &a, str_n(data, size), &err) == 0) {
        BUG_ON(act.name.len == 0 || act.event_count == 0 || act.hook_count == 0);
        BUG_ON(act.hook_count > ACTION_HOOKS_MAX || act.event_count > ACTION_EVENTS_MAX);
        action_matches(&act, STR("pre-commit"), STR("main"));
    }
    if (action_expand(&out, str_n(data, size), give_value, &out, &err) < 0)
        BUG_ON(err.code == 0 && buf_error(&out) == 0);
    buf_release(&out);
    arena_release(&a);
    return 0;
}
