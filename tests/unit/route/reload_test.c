/* Users and routes over a store that cannot be read when it tells that something changed. */
#include "store/reload.h"
#include "object/bucket.h"
#include "route/route.h"
#include "route/users.h"
#include "unit/server_db.h"
#include "unit/store/redis_test.h"
#include "unit/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

/* --- the helper --- */

struct source {
    struct db *db;
    struct store *store;
    int code;           /* of those that fail */
    _Atomic(int) fails; /* loads that are still to fail */
    _Atomic(int) loads;
    _Atomic(int) heard;
};

static int load(void *ctx, struct err *err)
{
    struct source *s = ctx;

    atomic_fetch_add(&s->loads, 1);
    return atomic_fetch_sub(&s->fails, 1) > 0 ? err_set(err, s->code, "not now") : 0;
}

static bool heard(void *ctx, struct str channel, struct str message)
{
    struct source *s = ctx;

    CHECK_STR(channel, STR("news"));
    atomic_fetch_add(&s->heard, 1);
    return str_eq(message, STR("load"));
}

static void source_start(struct source *s, int code, int fails)
{
    struct err err = {0};

    *s = (struct source){.code = code, .fails = fails};
    CHECK_OK(server_db_open(&s->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&s->store, s->db, 3, STORE_VOLATILE, NULL, &err));
}

static void source_stop(struct source *s)
{
    store_close(s->store);
    db_close(s->db);
}

static int open_reload(struct reload *r, struct source *s, unsigned fatal, struct err *err)
{
    return reload_open(r,
                       &(struct reload_options){.store = s->store,
                                                .channel = STR("news"),
                                                .load = load,
                                                .heard = heard,
                                                .ctx = s,
                                                .failed = "f",
                                                .done = "d",
                                                .fatal = fatal},
                       err);
}

TEST(reload, one_that_fails_is_tried_until_it_succeeds_and_then_no_more)
{
    struct source source;
    struct reload r;
    struct err err = {0};

    source_start(&source, ERR_UNAVAILABLE, 3);
    CHECK_OK(open_reload(&r, &source, RELOAD_EXPECTED | RELOAD_CORRUPT, &err));
    while (atomic_load(&source.loads) < 4)
        sched_yield();
    CHECK_OK(reload_now(&r, &err));
    CHECK_INT(atomic_load(&source.loads), 5);
    reload_close(&r);
    CHECK_INT(atomic_load(&source.loads), 5);
    source_stop(&source);
}

TEST(reload, a_close_ends_the_trying)
{
    struct source source;
    struct reload r;
    struct err err = {0};
    int loads;

    source_start(&source, ERR_UNAVAILABLE, 1 << 30);
    CHECK_OK(open_reload(&r, &source, 0, &err));
    while (atomic_load(&source.loads) < 2)
        sched_yield();
    reload_close(&r);
    loads = atomic_load(&source.loads);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    CHECK_INT(atomic_load(&source.loads), loads);
    source_stop(&source);
}

TEST(reload, a_first_load_fails_the_opening_with_the_codes_that_are_named)
{
    static const struct {
        int code;
        unsigned fatal;
        bool fails;
    } rows[] = {
        {ERR_UNAVAILABLE, RELOAD_EXPECTED | RELOAD_CORRUPT, false},
        {ERR_NOT_FOUND, RELOAD_EXPECTED, true},
        {ERR_NOT_FOUND, RELOAD_CORRUPT, false},
        {ERR_CORRUPT, RELOAD_EXPECTED, false},
        {ERR_CORRUPT, RELOAD_CORRUPT, true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct source source;
        struct reload r;
        struct err err = {0};
        source_start(&source, rows[i].code, 1);
        CHECK_INT(open_reload(&r, &source, rows[i].fatal, &err), rows[i].fails ? rows[i].code : 0);
        reload_close(&r);
        source_stop(&source);
    }
}

TEST(reload, a_message_asks_for_a_load_unless_it_is_no_news)
{
    struct source source;
    struct reload r;
    struct err err = {0};

    source_start(&source, 0, 0);
    CHECK_OK(open_reload(&r, &source, 0, &err));
    check_reply(source.store, "PUBLISH news nothing", "1");
    check_reply(source.store, "PUBLISH news load", "1");
    while (atomic_load(&source.loads) < 2)
        sched_yield();
    reload_close(&r);
    CHECK_INT(atomic_load(&source.heard), 2);
    CHECK_INT(atomic_load(&source.loads), 2);
    source_stop(&source);
}

TEST(reload, one_that_was_never_opened_may_be_closed)
{
    struct reload r = {0};

    reload_close(&r);
}

/* --- a Redis that still loads its data when the subscription is made again --- */

/* Takes its time with each key, and answers meanwhile: half a minute, unless it is told to hurry.
 */
static const char *const slow_start[] = {"--key-load-delay", "1000",
                                         "--loading-process-events-interval-bytes", "1024", NULL};

/* The server was told to begin a read and refused it. */
static bool was_refused(struct store *s, const char *command)
{
    const char *printed = "";
    char row[64];
    const char *at;

    if (ask(s, "INFO commandstats", &printed) < 0)
        return false;
    snprintf(row, sizeof(row), "cmdstat_%s:", command);
    at = strstr(printed, row);
    at = at ? strstr(at, "rejected_calls=") : NULL;
    return at && at[strlen("rejected_calls=")] != '0';
}

TEST(reload, a_redis_that_still_loads_its_data_is_asked_again)
{
    struct redis_server server = {0};
    struct store *store, *other;
    struct users *users;
    struct routes *routes;
    struct arena arena = {0};
    struct storage *where = NULL;
    struct user made;
    struct err err = {0};
    char key_file[256];

    need_redis_server(&server);
    snprintf(key_file, sizeof(key_file), "%s/secrets.key", test_dir());
    store = store_with((struct store_redis_options){.url = str_z(server.url), .timeout_ms = 30000});
    CHECK_OK(users_open(&users, store, key_file, NULL, &err));
    CHECK_OK(users_add(users, &arena, &(struct user){.name = STR("alice")}, &made, &err));
    users_close(users);
    check_reply(store, "DEBUG POPULATE 30000 filler", "OK");
    check_reply(store, "SAVE", "OK");
    redis_server_kill(&server);

    CHECK_OK(users_open(&users, store, key_file, NULL, &err));
    CHECK_OK(routes_open(&routes, store, NULL, &err));
    CHECK_ERR(users_by_name(users, &arena, STR("alice"), &made, &err), ERR_UNAVAILABLE);
    CHECK_ERR(route_storage(routes, STR("u"), STR("b"), &where, &err), ERR_UNAVAILABLE);
    server.loading = true;
    server.extra = slow_start;
    CHECK(redis_server_start(&server));
    other = store_at(server.url);
    while (!was_refused(other, "get") || !was_refused(other, "evalsha"))
        sched_yield();
    check_reply(other, "CONFIG SET key-load-delay 0", "OK");
    while (users_by_name(users, &arena, STR("alice"), &made, &err) == ERR_UNAVAILABLE ||
           route_storage(routes, STR("u"), STR("b"), &where, &err) == ERR_UNAVAILABLE) {
        arena_reset(&arena);
        sched_yield();
    }
    CHECK_OK(users_by_name(users, &arena, STR("alice"), &made, &err));
    CHECK_ERR(route_storage(routes, STR("u"), STR("b"), &where, &err), ERR_OFFLINE);
    routes_close(routes);
    users_close(users);
    store_close(other);
    store_close(store);
    arena_release(&arena);
    redis_server_kill(&server);
}
