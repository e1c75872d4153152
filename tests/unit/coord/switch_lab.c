/* Switches for tests. */
#include "unit/coord/switch_lab.h"
#include "base/clock.h"

void switch_open(struct repl_lab *l, struct four *f)
{
    repl_open(l, f);
    repl_add(l, "u photos main backup");
    CHECK_INT(repl_drain(l, "events1"), 1);
    struct replication_status s = repl_status(l, "u photos main backup");
    CHECK(replication_init_done(&s));
}

int switch_try_plan(struct repl_lab *l, struct switch_options o, struct err *err)
{
    struct replication_id id = repl_id(l, "u photos main backup");
    struct task t = {.type = STR("api:switch"), .id = STR("sw:photos"), .queue = STR("api")};

    return switch_plan(l->r, &id, &o, &t, STR("main"), err);
}

void switch_planned(struct repl_lab *l, struct switch_options o)
{
    struct err err = {0};

    CHECK_OK(switch_try_plan(l, o, &err));
}

struct bucket_switch switch_now(struct repl_lab *l)
{
    struct bucket_switch s = {0};
    struct err err = {0};

    CHECK_OK(switch_read(l->r, &l->a, STR("u"), STR("photos"), &s, &err));
    return s;
}

int switch_try_begin(struct repl_lab *l, struct err *err)
{
    struct bucket_switch s = switch_now(l);

    return switch_begin(l->r, &s, STR("main"), err);
}

int switch_try_step(struct repl_lab *l, enum switch_status to, struct err *err)
{
    struct bucket_switch s = switch_now(l);

    return switch_step(l->r, &s, to, STR("because"), err);
}

int switch_try_done(struct repl_lab *l, struct err *err)
{
    struct bucket_switch s = switch_now(l);
    struct task clean = {.type = STR("clean"), .id = STR("clean:photos"), .queue = STR("api")};

    return switch_done(l->r, &s, &clean, err);
}

int switch_try_abort(struct repl_lab *l, struct err *err)
{
    return switch_abort(l->r, STR("u"), STR("photos"), err);
}

void check_switch(struct repl_lab *l, const char *status)
{
    struct bucket_switch s;
    struct err err = {0};
    int code = switch_read(l->r, &l->a, STR("u"), STR("photos"), &s, &err);

    if (!*status) {
        CHECK_ERR(code, ERR_NOT_FOUND);
        return;
    }
    CHECK_OK(code);
    CHECK_STR(str_z(switch_status_names[s.status]), str_z(status));
}

void check_history(struct repl_lab *l, const char *line)
{
    struct str *lines = NULL, time, rest;
    size_t count = 0;
    int64_t at;
    struct err err = {0};

    CHECK_OK(switch_history(l->r, &l->a, STR("u"), STR("photos"), &lines, &count, &err));
    CHECK(count > 0);
    CHECK(str_cut(lines[count - 1], '|', &time, &rest));
    CHECK_OK(clock_parse_iso(time, &at));
    CHECK_STR(rest, str_z(line));
}

void switch_force(struct repl_lab *l, enum switch_status status)
{
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_call(l->config, &l->a, &reply, &err, STR("HSET"), STR("p:switch:u:photos"),
                        STR("lastStatus"), str_z(switch_status_names[status])));
}
