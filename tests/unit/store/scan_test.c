/* store_scan() over both engines. */
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

struct scanned {
    bool seen[2500];
    size_t pages, fail_at; /* the page that is refused; 0: none */
};

static int note_scanned(void *ctx, const struct reply *keys, struct arena *a, struct err *err)
{
    struct scanned *s = ctx;
    uint64_t n;

    for (size_t i = 0; i < keys->count; i++) {
        CHECK_INT(str_u64(str_skip(keys->items[i].str, 2), &n), 0);
        CHECK(n < ARRAY_SIZE(s->seen));
        s->seen[n] = true;
    }
    CHECK(arena_str(a, STR("of the page")).p);
    return ++s->pages == s->fail_at ? err_code(err, ERR_INVALID) : 0;
}

TEST_FOUR(store_scan, gives_every_key_that_matches_and_ends_when_a_page_is_refused)
{
    struct store *s = f->stores[DB_APP];
    struct scanned all = {0}, some = {.fail_at = 2};
    struct err err = {0};
    char line[64];

    for (size_t i = 0; i < ARRAY_SIZE(all.seen); i++) {
        snprintf(line, sizeof(line), "SET k:%zu x", i);
        check_reply(s, line, "OK");
    }
    check_reply(s, "SET other x", "OK");
    CHECK_OK(store_scan(s, STR("k:*"), note_scanned, &all, &err));
    for (size_t i = 0; i < ARRAY_SIZE(all.seen); i++)
        CHECK(all.seen[i]);
    CHECK_ERR(store_scan(s, STR("k:*"), note_scanned, &some, &err), ERR_INVALID);
    CHECK_INT(some.pages, 2);
}
