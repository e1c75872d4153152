/* Routes: the order of policies, blocks, storages added, and what a restart keeps. */
#include "route/resolve.h"
#include "object/local/local.h"
#include "os/file.h"
#include "store/store.h"
#include "unit/server_db.h"
#include "unit/store/redis_test.h"
#include "unit/test.h"

#include <stdio.h>

enum { CONFIG_DB = 3 };

struct lab {
    struct db *db;
    struct store *store;
    struct routes *routes;
    char main[256], other[256];
};

static void lab_start(struct lab *l)
{
    struct local_options main = {.name = "local", .folder = l->main, .reserve_bytes = 1};
    struct err err = {0};

    *l = (struct lab){0};
    snprintf(l->main, sizeof(l->main), "%s/objects", test_dir());
    snprintf(l->other, sizeof(l->other), "%s/other", test_dir());
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&l->store, l->db, CONFIG_DB, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&l->routes, l->store, NULL, &err));
    main.db = l->db;
    CHECK_OK(routes_open_local(l->routes, &main, &err));
}

static void lab_stop(struct lab *l)
{
    routes_close(l->routes);
    store_close(l->store);
    db_close(l->db);
}

static int add_local(struct lab *l, const char *name, const char *folder, struct err *err)
{
    return routes_add_local(
        l->routes,
        &(struct local_options){.name = name, .folder = folder, .db = l->db, .reserve_bytes = 1},
        err);
}

static void check_route(struct lab *l, const char *user, const char *bucket, const char *want)
{
    struct storage *s = NULL;
    struct err err = {0};

    CHECK_OK(route_storage(l->routes, str_z(user), str_z(bucket), &s, &err));
    CHECK_STR(s->name, str_z(want));
}

TEST(route, the_bucket_s_policy_wins_over_the_user_s_and_that_over_the_main_storage)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    check_route(&l, "alice", "b1", "local");
    CHECK_OK(route_set(l.routes, STR("alice"), STR_EMPTY, STR("other"), &err));
    check_route(&l, "alice", "b1", "other");
    check_route(&l, "bob", "b1", "local");
    check_route(&l, "", "b1", "local");
    CHECK_OK(route_set(l.routes, STR("alice"), STR("b1"), STR("local"), &err));
    check_route(&l, "alice", "b1", "local");
    check_route(&l, "alice", "b2", "other");
    lab_stop(&l);
    lab_start(&l);
    check_route(&l, "alice", "b1", "local");
    check_route(&l, "alice", "b2", "other");
    CHECK_OK(route_set(l.routes, STR("alice"), STR_EMPTY, STR_EMPTY, &err));
    check_route(&l, "alice", "b2", "local");
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("b1"), STR("none"), &err), ERR_NOT_FOUND);
    lab_stop(&l);
}

TEST(route, the_keys_in_the_store_are_the_documented_ones)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(route_set(l.routes, STR("a:b"), STR("b1"), STR("local"), &err));
    CHECK_OK(route_set(l.routes, STR("alice"), STR_EMPTY, STR("local"), &err));
    CHECK_OK(route_block(l.routes, STR("local"), STR("b2"), true, &err));
    check_reply(l.store, "GET p:route:a%3Ab:b1", "\"local\"");
    check_reply(l.store, "GET p:route:alice", "\"local\"");
    check_reply(l.store, "SMEMBERS p:route_block:local", "[\"b2\"]");
    lab_stop(&l);
}

TEST(route, a_user_whose_name_holds_a_colon_is_not_another_s_bucket)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    CHECK_OK(route_set(l.routes, STR("a:b"), STR_EMPTY, STR("other"), &err));
    check_route(&l, "a", "b", "local");
    check_route(&l, "a:b", "x", "other");
    lab_stop(&l);
}

TEST(route, all_that_is_set_is_listed_with_its_names_as_they_were_given)
{
    static const struct route_policy want[] = {
        {{"", 0}, {"b2", 2}, {"local", 5}, true},
        {{"a:b", 3}, {"", 0}, {"local", 5}, false},
        {{"a:b", 3}, {"b1", 2}, {"local", 5}, false},
    };
    struct route_policy *list;
    struct arena arena = {0};
    size_t count;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(route_set(l.routes, STR("a:b"), STR("b1"), STR("local"), &err));
    CHECK_OK(route_set(l.routes, STR("a:b"), STR_EMPTY, STR("local"), &err));
    CHECK_OK(route_block(l.routes, STR("local"), STR("b2"), true, &err));
    CHECK_OK(route_list(l.routes, &arena, &list, &count, &err));
    CHECK_INT(count, ARRAY_SIZE(want));
    for (size_t i = 0; i < count; i++) {
        CHECK_STR(list[i].user, want[i].user);
        CHECK_STR(list[i].bucket, want[i].bucket);
        CHECK_STR(list[i].storage, want[i].storage);
        CHECK(list[i].blocked == want[i].blocked);
    }
    arena_release(&arena);
    lab_stop(&l);
}

TEST(route, a_blocked_bucket_is_refused_until_it_is_not_blocked)
{
    struct storage *s;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(route_block(l.routes, STR("local"), STR("b1"), true, &err));
    CHECK_ERR(route_storage(l.routes, STR("alice"), STR("b1"), &s, &err), ERR_DENIED);
    check_route(&l, "alice", "b2", "local");
    CHECK_OK(route_block(l.routes, STR("local"), STR("b1"), false, &err));
    check_route(&l, "alice", "b1", "local");
    lab_stop(&l);
}

/* docs/replication.md, S1 */
TEST(route, a_bucket_that_a_switch_has_blocked_is_busy_and_not_denied)
{
    static const struct {
        const char *status, *ttl;
        int code;
    } rows[] = {{"in_progress", "0", ERR_BUSY},
                {"check_in_progress", "0", ERR_BUSY},
                {"error", "0", ERR_DENIED},
                {"in_progress", "1", ERR_DENIED}};
    struct arena a = {0};
    struct reply *reply;
    struct storage *s;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(route_block(l.routes, STR("local"), STR("b1"), true, &err));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(store_call(l.store, &a, &reply, &err, STR("HSET"), STR("p:switch:alice:b1"),
                            STR("replicationID"), STR("alice:b1:local:other"), STR("lastStatus"),
                            str_z(rows[i].status), STR("multipartTTL"), str_z(rows[i].ttl)));
        CHECK_OK(routes_reload(l.routes, &err));
        CHECK_ERR(route_storage(l.routes, STR("alice"), STR("b1"), &s, &err), rows[i].code);
    }
    arena_release(&a);
    lab_stop(&l);
}

TEST(route, a_policy_of_a_storage_that_is_not_there_is_no_other_storage)
{
    struct storage *s;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    check_reply(l.store, "SET p:route:alice gone", "OK");
    routes_close(l.routes);
    CHECK_OK(routes_open(&l.routes, l.store, NULL, &err));
    CHECK_ERR(route_storage(l.routes, STR("alice"), STR("b1"), &s, &err), ERR_OFFLINE);
    lab_stop(&l);
}

static void make_bucket(struct lab *l, const char *storage, const char *name, const char *owner)
{
    struct storage *s = routes_storage(l->routes, str_z(storage));
    struct bucket_info info = {.name = str_z(name), .owner = str_z(owner)};
    struct err err = {0};

    CHECK(s != NULL);
    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

static void check_opens(struct lab *l, const char *user, const char *bucket, const char *owner)
{
    struct bucket *b = NULL;
    struct bucket_info info;
    struct arena arena = {0};
    struct err err = {0};

    CHECK_OK(route_bucket(l->routes, str_z(user), str_z(bucket), &b, &err));
    CHECK_OK(b->ops->info(b, &arena, &info, &err));
    CHECK_STR(info.owner, str_z(owner));
    b->ops->unref(b);
    arena_release(&arena);
}

TEST(route, a_bucket_is_found_where_its_owner_s_route_says_whoever_asks)
{
    struct bucket *b = NULL;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    make_bucket(&l, "local", "here", "bob");
    make_bucket(&l, "other", "there", "alice");
    make_bucket(&l, "local", "both", "alice");
    make_bucket(&l, "other", "both", "alice2");
    check_opens(&l, "alice", "here", "bob");
    check_opens(&l, "bob", "there", "alice");
    check_opens(&l, "", "there", "alice");
    check_opens(&l, "bob", "both", "alice");
    CHECK_OK(route_set(l.routes, STR("alice"), STR("both"), STR("other"), &err));
    check_opens(&l, "bob", "both", "alice2");
    CHECK_OK(route_set(l.routes, STR("bob"), STR("both"), STR("local"), &err));
    check_opens(&l, "bob", "both", "alice");
    CHECK_ERR(route_bucket(l.routes, STR("bob"), STR("nowhere"), &b, &err), ERR_NO_BUCKET);
    CHECK_OK(route_block(l.routes, STR("other"), STR("there"), true, &err));
    CHECK_ERR(route_bucket(l.routes, STR("bob"), STR("there"), &b, &err), ERR_NO_BUCKET);
    lab_stop(&l);
}

TEST(route, a_storage_that_was_added_is_there_after_a_restart)
{
    struct storage *all[8];
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    make_bucket(&l, "other", "b1", "alice");
    CHECK_ERR(add_local(&l, "other", l.other, &err), ERR_EXISTS);
    CHECK_ERR(add_local(&l, "local", l.other, &err), ERR_EXISTS);
    CHECK_ERR(add_local(&l, "third", l.other, &err), ERR_INVALID);
    CHECK_ERR(add_local(&l, "third", "relative", &err), ERR_INVALID);
    CHECK_ERR(add_local(&l, "Third", "/tmp/third", &err), ERR_INVALID);
    lab_stop(&l);
    lab_start(&l);
    CHECK_INT(routes_storages(l.routes, all, ARRAY_SIZE(all)), 2);
    CHECK_STR(routes_main(l.routes)->name, STR("local"));
    check_opens(&l, "alice", "b1", "alice");
    lab_stop(&l);
}

/* docs/replication.md, P6 */
TEST(route, what_a_replication_counts_on_is_not_changed)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    check_reply(l.store, "ZADD p:repl:alice:b1 1 local:other", "1");
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("b1"), STR("other"), &err), ERR_CONFLICT);
    CHECK(strstr(err.text, "bucket b1 is replicated from storage local"));
    CHECK_ERR(route_set(l.routes, STR("alice"), STR_EMPTY, STR("other"), &err), ERR_CONFLICT);
    CHECK_OK(route_set(l.routes, STR("alice"), STR("b1"), STR("local"), &err));
    CHECK_OK(route_set(l.routes, STR("alice"), STR_EMPTY, STR("other"), &err));
    check_route(&l, "alice", "b1", "local");
    check_route(&l, "alice", "b2", "other");
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("b1"), STR_EMPTY, &err), ERR_CONFLICT);
    CHECK_OK(route_set(l.routes, STR("bob"), STR("b1"), STR("other"), &err));
    check_reply(l.store, "DEL p:repl:alice:b1", "1");
    CHECK_OK(route_set(l.routes, STR("alice"), STR("b1"), STR("other"), &err));
    check_reply(l.store, "ZADD p:repl:carol 1 local:other", "1"); /* all that she has */
    CHECK_ERR(route_set(l.routes, STR("carol"), STR_EMPTY, STR("other"), &err), ERR_CONFLICT);
    CHECK_OK(route_set(l.routes, STR("carol"), STR_EMPTY, STR("local"), &err));
    lab_stop(&l);
}

TEST(route, what_a_switch_changes_is_not_changed_beside_it)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(add_local(&l, "other", l.other, &err));
    check_reply(l.store, "ZADD p:repl:alice:b1 1 local:other", "1");
    check_reply(l.store,
                "HSET p:switch:alice:b1 replicationID alice:b1:local:other lastStatus in_progress",
                "2");
    CHECK_ERR(route_block(l.routes, STR("other"), STR("b1"), true, &err), ERR_CONFLICT);
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("b1"), STR("local"), &err), ERR_CONFLICT);
    CHECK_ERR(route_block(l.routes, STR("other"), STR("b1"), false, &err), ERR_CONFLICT);
    CHECK_OK(route_block(l.routes, STR("other"), STR("b2"), false, &err));
    check_reply(l.store, "HSET p:switch:alice:b1 lastStatus done", "0");
    CHECK_OK(route_set(l.routes, STR("alice"), STR("b1"), STR("local"), &err));
    CHECK_OK(route_block(l.routes, STR("other"), STR("b1"), false, &err));
    check_reply(l.store, "ZADD p:repl:bob:b9 1 local:other:b%3A1", "1");
    CHECK_ERR(route_block(l.routes, STR("other"), STR("b:1"), false, &err), ERR_CONFLICT);
    CHECK(strstr(err.text, "is the destination of a replication"));
    lab_stop(&l);
}

/* --- copies (docs/forward.md, B1 to B4) --- */

static void check_found(struct lab *l, const char *user, const char *bucket, const char *want)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(route_bucket(l->routes, str_z(user), str_z(bucket), &b, &err));
    CHECK_STR(b->storage->name, str_z(want));
    b->ops->unref(b);
}

static const char *const askers[] = {"alice", "bob", "carl", ""}; /* carl's policy: "other" */

/* A bucket of alice on "local", with a copy on "other". */
static void lab_copied(struct lab *l)
{
    struct err err = {0};

    lab_start(l);
    CHECK_OK(add_local(l, "other", l->other, &err));
    CHECK_OK(route_set(l->routes, STR("carl"), STR_EMPTY, STR("other"), &err));
    make_bucket(l, "local", "photos", "alice");
    make_bucket(l, "other", "photos", "alice");
    check_reply(l->store, "SET p:route:alice:photos local", "OK");
    check_reply(l->store, "HSET w:copies other:photos alice", "1");
    CHECK_OK(routes_reload(l->routes, &err));
}

TEST(route, a_copy_is_never_a_route_whoever_asks)
{
    struct lab l;
    struct err err = {0};

    lab_copied(&l);
    CHECK(route_is_copy(l.routes, STR("other"), STR("photos"), STR("alice")));
    CHECK(!route_is_copy(l.routes, STR("local"), STR("photos"), STR_EMPTY));
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++) {
        check_found(&l, askers[i], "photos", "local");
        check_route(&l, askers[i], "photos", "local");
    }
    check_reply(l.store, "SET p:route:alice:photos other", "OK"); /* as a switch has it */
    check_reply(l.store, "HDEL w:copies other:photos", "1");
    check_reply(l.store, "HSET w:copies local:photos alice", "1");
    CHECK_OK(routes_reload(l.routes, &err));
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++)
        check_found(&l, askers[i], "photos", "other");
    lab_stop(&l);
}

TEST(route, a_bucket_of_which_there_are_copies_alone_is_refused)
{
    struct bucket *b = NULL;
    struct lab l;
    struct err err = {0};

    lab_copied(&l);
    check_reply(l.store, "HSET w:copies local:photos alice", "1");
    CHECK_OK(routes_reload(l.routes, &err));
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++)
        CHECK_ERR(route_bucket(l.routes, str_z(askers[i]), STR("photos"), &b, &err),
                  ERR_UNAVAILABLE);
    lab_stop(&l);
}

static void check_new(struct lab *l, const char *user, const char *bucket, int kind)
{
    struct route_ask ask = {.user = str_z(user), .bucket = str_z(bucket), .make = true};
    struct target t;
    struct err err = {0};

    CHECK_OK(route_resolve(l->routes, &ask, &t, &err));
    CHECK_INT(t.kind, kind);
    target_release(&t);
}

TEST(route, a_copy_becomes_a_bucket_when_a_route_is_led_to_it_and_nothing_fills_it)
{
    struct lab l;
    struct err err = {0};

    lab_copied(&l);
    check_reply(l.store, "ZADD p:repl:alice:photos 0 local:other", "1");
    CHECK_ERR(route_set(l.routes, STR("bob"), STR("photos"), STR("other"), &err), ERR_CONFLICT);
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("photos"), STR("other"), &err), ERR_CONFLICT);
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("photos"), STR_EMPTY, &err), ERR_CONFLICT);
    check_reply(l.store, "ZREM p:repl:alice:photos local:other", "1");
    check_reply(l.store, "HSET p:switch:alice:photos lastStatus in_progress replicationID x", "2");
    CHECK_ERR(route_set(l.routes, STR("bob"), STR("photos"), STR("other"), &err), ERR_CONFLICT);
    check_reply(l.store, "DEL p:switch:alice:photos", "1");
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("photos"), STR_EMPTY, &err), ERR_CONFLICT);
    CHECK(strstr(err.text, "has a copy on storage other") != NULL);
    check_new(&l, "bob", "photos", TARGET_HERE);
    check_reply(l.store, "SET p:route:alice:gone local", "OK");
    CHECK_OK(routes_reload(l.routes, &err));
    check_new(&l, "bob", "gone", TARGET_TAKEN); /* the name is alice's */
    check_new(&l, "alice", "gone", TARGET_NONE);
    check_new(&l, "bob", "free", TARGET_NONE);
    CHECK_OK(route_set(l.routes, STR("alice"), STR("photos"), STR("other"), &err));
    check_reply(l.store, "HGETALL w:copies", "[\"local:photos\", \"alice\"]"); /* it was left */
    CHECK_OK(route_set(l.routes, STR("alice"), STR("photos"), STR("local"), &err));
    CHECK_OK(route_set(l.routes, STR("bob"), STR("photos"), STR("other"), &err));
    check_reply(l.store, "EXISTS w:copies", "0");
    check_found(&l, "bob", "photos", "other");
    check_found(&l, "alice", "photos", "local");
    lab_stop(&l);
}

/* Stores from before there were copies. */
TEST(route, replications_without_copies_are_given_them_at_the_start)
{
    struct lab l;

    lab_start(&l);
    check_reply(l.store, "DEL w:pinned", "1");
    check_reply(l.store, "ZADD p:repl:u:photos 0 local:b%3Ac", "1");
    check_reply(l.store, "ZADD p:repl:u:photos 0 local:cold:archive", "1");
    check_reply(l.store, "ZADD p:repl:u 0 local:far", "1");
    check_reply(l.store, "SET p:route:u:left new", "OK");
    check_reply(l.store, "HSET p:repl_st:u:left:old:new archived 1", "1");
    check_reply(l.store, "HSET p:repl_st:u:back:old:new archived 1", "1");
    lab_stop(&l);
    lab_start(&l);
    check_reply(l.store, "HGETALL w:copies", "[\"b%3Ac:photos\", \"u\", \"old:left\", \"u\"]");
    check_reply(l.store, "GET p:route:u:photos", "\"local\"");
    check_reply(l.store, "DEL w:copies", "1");
    lab_stop(&l);
    lab_start(&l); /* once */
    check_reply(l.store, "EXISTS w:copies", "0");
    lab_stop(&l);
}

TEST(route, nobody_reaches_a_shard_by_its_name)
{
    static const char *const users[] = {"", "alice", "bob"};
    struct bucket_info info = {.name = STR("box-weir-abcdefgh2345-ab2c-1"), .owner = STR("alice")};
    struct lab l;
    struct bucket *b = NULL;
    struct storage *s;
    struct target t;
    struct err err = {0};
    bool reached = true;

    lab_start(&l);
    s = routes_main(l.routes);
    CHECK_OK(s->ops->create_bucket(s, &info, &err));
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        struct route_ask ask = {.user = str_z(users[i]), .bucket = info.name};
        CHECK_OK(route_resolve(l.routes, &ask, &t, &err));
        CHECK_INT(t.kind, TARGET_NONE);
        ask.make = true;
        CHECK_OK(route_resolve(l.routes, &ask, &t, &err));
        CHECK_INT(t.kind, TARGET_TAKEN);
        CHECK_ERR(route_bucket(l.routes, str_z(users[i]), info.name, &b, &err), ERR_NO_BUCKET);
    }
    CHECK_OK(route_reaches(l.routes, STR("alice"), info.name, s, &reached, &err));
    CHECK(!reached);
    CHECK_ERR(route_set(l.routes, STR("alice"), info.name, STR("local"), &err), ERR_INVALID);
    CHECK_ERR(route_block(l.routes, STR("local"), info.name, true, &err), ERR_INVALID);
    lab_stop(&l);
}
