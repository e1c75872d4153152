/* Warns about settings of a Redis that would lose data. */
#include "replica/store_settings.h"

static const struct warning {
    const char *section, *line; /* section of INFO, and the line that must not occur in it */
    const char *event, *why;
} warnings[] = {
    {"persistence", "aof_enabled:0", "store.no_aof",
     "a Redis that restarts loses what it was told since its last snapshot; set appendonly yes"},
    {"server", "redis_mode:cluster", "store.cluster",
     "weir's scripts use keys of several databases, which a Redis Cluster refuses; give it one "
     "server, with Sentinel for failovers"},
};

static int read_section(struct store *s, struct arena *a, const char *section, struct str *out,
                        struct err *err)
{
    struct reply *reply;
    int code = store_call(s, a, &reply, err, STR("INFO"), str_z(section));

    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0)
        *out = reply->str;
    return code;
}

static bool has_line(struct str text, const char *line)
{
    struct str one;

    while (str_token(&text, "\r\n", &one))
        if (str_eq(one, str_z(line)))
            return true;
    return false;
}

/* Warns if the Redis would evict keys when it reaches its memory limit. */
static void look_at_memory(struct str text, const struct log *log)
{
    if (!has_line(text, "maxmemory_policy:noeviction") && !has_line(text, "maxmemory:0"))
        log_warn(log, "store.evicts",
                 log_z("why", "a Redis that is full evicts users, replications and tasks; set "
                              "maxmemory-policy noeviction"));
}

void store_settings_look(struct store *s, const struct log *log)
{
    struct arena a = ARENA_INIT(MIB);
    struct err err = {0};
    struct str text;
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(warnings) && code == 0; i++) {
        const struct warning *w = &warnings[i];
        code = read_section(s, &a, w->section, &text, &err);
        if (code == 0 && has_line(text, w->line))
            log_warn(log, w->event, log_z("why", w->why));
    }
    if (code == 0)
        code = read_section(s, &a, "memory", &text, &err);
    if (code == 0)
        look_at_memory(text, log);
    else
        log_debug(log, "store.settings_unknown", log_z("error", err.text));
    arena_release(&a);
}
