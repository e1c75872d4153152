/* What the redis engine's tests share. */
#include "unit/store/redis_test.h"

#include <sched.h>

enum { MAX_WORDS = 64 };

void need_redis_server(struct redis_server *s)
{
    s->dir = test_dir();
    CHECK(redis_server_start(s));
}

struct store *store_with(struct store_redis_options o)
{
    struct store *s;
    struct err err = {0};

    CHECK_OK(store_open_redis(&s, &o, &err));
    return s;
}

struct store *store_at(const char *url)
{
    return store_with((struct store_redis_options){.url = str_z(url)});
}

int ask(struct store *s, const char *line, const char **printed)
{
    static _Thread_local char text[4096];
    struct arena arena = {0};
    struct str words[MAX_WORDS], rest = str_z(line);
    struct reply *reply;
    struct buf out = {0};
    size_t count = 0;
    int rc;

    while (count < MAX_WORDS && str_token(&rest, " ", &words[count]))
        count++;
    rc = store_command(s, &arena, &reply, words, count, NULL);
    if (rc == 0) {
        reply_print(&out, reply);
        CHECK(out.len < sizeof(text));
        memcpy(text, out.p, out.len + 1);
        *printed = text;
    }
    buf_release(&out);
    arena_release(&arena);
    return rc;
}

void check_reply(struct store *s, const char *line, const char *want)
{
    const char *got = "";
    int rc = ask(s, line, &got);

    if (rc < 0 || strcmp(got, want) != 0)
        test_fail(__FILE__, __LINE__, "%s answers %s%s, not %s", line, rc < 0 ? err_name(rc) : "",
                  got, want);
}

void check_code(struct store *s, const char *line, int code)
{
    const char *got = "";
    int rc = ask(s, line, &got);

    if (rc != code)
        test_fail(__FILE__, __LINE__, "%s: %s%s, not %s", line, rc < 0 ? err_name(rc) : "", got,
                  err_name(code));
}

void wait_reply(struct store *s, const char *line, const char *want)
{
    const char *got = "";

    while (ask(s, line, &got) < 0)
        sched_yield();
    CHECK_STR(str_z(got), str_z(want));
}
