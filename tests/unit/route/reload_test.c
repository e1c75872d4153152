/* Users and routes over a store that cannot be read when it tells that something changed. */
#include "store/reload.h"
#include "object/bucket.h"
#include "route/route.h"
#include "route/users.h"
#include "unit/store/redis_test.h"
#include "unit/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

/* --- the helper --- */

struct source {
    _Atomic(int) fails; /* loads that are still to fail */
    _Atomic(int) loads;
};

static int load(void *ctx, struct err *err)
{
    struct source *s = ctx;

    atomic_fetch_add(&s->loads, 1);
    return atomic_fetch_sub(&s->fails, 1) > 0 ? err_set(err, ERR_UNAVAILABLE, "not now") : 0;
}

TEST(reload, one_that_fails_is_tried_until_it_succeeds_and_then_no_more)
{
    struct source source = {.fails = 3};
    struct reload r;
    struct err err = {0};

    reload_init(&r, &(struct reload_options){.load = load, .ctx = &source, .failed = "f"});
    CHECK_ERR(reload_now(&r, &err), ERR_UNAVAILABLE);
    while (atomic_load(&source.loads) < 4)
        sched_yield();
    CHECK_OK(reload_now(&r, &err));
    CHECK_INT(atomic_load(&source.loads), 5);
    reload_release(&r);
    CHECK_INT(atomic_load(&source.loads), 5);
}

TEST(reload, a_release_ends_the_trying)
{
    struct source source = {.fails = 1 << 30};
    struct reload r;
    int loads;

    reload_init(&r, &(struct reload_options){.load = load, .ctx = &source, .failed = "f"});
    reload_or_log(&r);
    while (atomic_load(&source.loads) < 2)
        sched_yield();
    reload_release(&r);
    loads = atomic_load(&source.loads);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    CHECK_INT(atomic_load(&source.loads), loads);
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

    server_start(&server);
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
    while (!was_refused(other, "get") || !was_refused(other, "scan"))
        sched_yield();
    check_reply(other, "CONFIG SET key-load-delay 0", "OK");
    while (users_by_name(users, &arena, STR("alice"), &made, &err) == ERR_UNAVAILABLE ||
           route_storage(routes, STR("u"), STR("b"), &where, &err) == ERR_UNAVAILABLE) {
        arena_reset(&arena);
        sched_yield();
    }
    CHECK_OK(users_by_name(users, &arena, STR("alice"), &made, &err));
    CHECK_ERR(route_storage(routes, STR("u"), STR("b"), &where, &err), ERR_NOT_FOUND);
    routes_close(routes);
    users_close(users);
    store_close(other);
    store_close(store);
    arena_release(&arena);
    redis_server_kill(&server);
}
