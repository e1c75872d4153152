/* Remote storages: kept sealed, the same on every weir of one store, and which one is found. */
#include "route/remotes.h"
#include "route/resolve.h"
#include "object/local/local.h"
#include "store/store.h"
#include "unit/server_db.h"
#include "unit/store/redis_test.h"
#include "unit/test.h"

#include <sched.h>
#include <stdio.h>

enum { CONFIG_DB = 3 };

struct lab {
    struct db *db;
    struct store *store;
    struct routes *routes;
    struct remotes *remotes;
    char objects[256], key_file[256];
};

static void open_remotes(struct lab *l)
{
    struct err err = {0};

    CHECK_OK(remotes_open(&l->remotes, l->routes, l->store, l->key_file, NULL, &err));
}

static void lab_start(struct lab *l)
{
    struct local_options local = {.name = "local", .folder = l->objects, .reserve_bytes = 1};
    struct err err = {0};

    *l = (struct lab){0};
    snprintf(l->objects, sizeof(l->objects), "%s/objects", test_dir());
    snprintf(l->key_file, sizeof(l->key_file), "%s/key", test_dir());
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&l->store, l->db, CONFIG_DB, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&l->routes, l->store, NULL, &err));
    local.db = l->db;
    CHECK_OK(routes_open_local(l->routes, &local, &err));
    open_remotes(l);
}

static void lab_stop(struct lab *l)
{
    remotes_close(l->remotes);
    routes_close(l->routes);
    store_close(l->store);
    db_close(l->db);
}

static void add(struct lab *l, const char *name)
{
    struct remote_entry e = {.name = str_z(name), .url = STR("http://127.0.0.1:1")};
    struct err err = {0};

    CHECK_OK(remotes_add(l->remotes, &e, &err));
}

static const struct remote_credential alice = {{"alice", 5}, {"AKIA", 4}, {"very-secret", 11}};

TEST(remotes, what_is_added_is_there_after_a_restart_with_its_keys)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    CHECK_OK(remotes_set_credential(l.remotes, STR("one"), &alice, &err));
    CHECK_OK(remotes_set_main(l.remotes, STR("one"), &err));
    lab_stop(&l);
    lab_start(&l);
    struct storage *s = routes_storage(l.routes, STR("one"));
    CHECK(s && remote_has_credential(s, STR("alice")) && routes_main(l.routes) == s);
    CHECK(routes_any_remote(l.routes) && routes_main_is_remote(l.routes));
    CHECK_OK(remotes_set_credential(l.remotes, STR("one"),
                                    &(struct remote_credential){.user = STR("alice")}, &err));
    CHECK(!remote_has_credential(s, STR("alice")));
    CHECK_ERR(remotes_remove(l.remotes, STR("one"), &err), ERR_IN_USE);
    CHECK_OK(remotes_set_main(l.remotes, STR("local"), &err));
    CHECK_OK(remotes_remove(l.remotes, STR("one"), &err));
    CHECK(!routes_storage(l.routes, STR("one")) && !routes_any_remote(l.routes));
    check_reply(l.store, "KEYS storage*", "[\"storages:main\"]");
    add(&l, "one");
    lab_stop(&l);
}

TEST(remotes, time_outs_are_kept_when_they_are_not_the_default)
{
    struct remote_entry e = {.name = STR("slow"),
                             .url = STR("http://127.0.0.1:1"),
                             .times = {.connect_ms = 1500, .idle_ms = 90000}};
    struct remote_entry *list;
    struct arena a = {0};
    struct lab l;
    struct err err = {0};
    size_t count;

    lab_start(&l);
    CHECK_OK(remotes_add(l.remotes, &e, &err));
    check_reply(l.store, "HGET storage:slow connect_timeout", "\"1500\"");
    check_reply(l.store, "HEXISTS storage:slow response_timeout", "0");
    lab_stop(&l);
    lab_start(&l);
    CHECK_OK(remotes_list(l.remotes, &a, &list, &count, &err));
    CHECK_INT(count, 1);
    CHECK_INT(list[0].times.connect_ms, 1500);
    CHECK_INT(list[0].times.response_ms, 0);
    CHECK_INT(list[0].times.idle_ms, 90000);
    arena_release(&a);
    lab_stop(&l);
}

TEST(remotes, what_cannot_be_is_refused_before_it_is_stored)
{
    struct remote_entry wrong[] = {
        {.name = STR("One"), .url = STR("http://x")},
        {.name = STR("one"), .url = STR("ftp://x")},
        {.name = STR("one"), .url = STR("http://x/path")},
        {.name = STR("one"), .url = STR("http://x"), .region = STR("a b")},
        {.name = STR("one"), .url = STR("http://x"), .ca = STR("relative")},
        {.name = STR("one"), .url = STR("https://x"), .ca = STR("/not/there")},
        {.name = STR("one"), .url = STR("http://x"), .times = {.connect_ms = 99}},
        {.name = STR("one"), .url = STR("http://x"), .times = {.response_ms = 999}},
        {.name = STR("one"), .url = STR("http://x"), .times = {.idle_ms = 3600001}},
    };
    struct remote_credential bad = {STR("alice"), STR("a b"), STR("secret-secret")};
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(remotes_add(l.remotes, &wrong[i], &err) < 0);
    check_reply(l.store, "KEYS *", "[\"w:pinned\"]");
    add(&l, "one");
    CHECK_ERR(remotes_add(l.remotes,
                          &(struct remote_entry){.name = STR("one"), .url = STR("http://x")}, &err),
              ERR_EXISTS);
    CHECK_ERR(remotes_add(l.remotes,
                          &(struct remote_entry){.name = STR("local"), .url = STR("http://x")},
                          &err),
              ERR_EXISTS);
    CHECK_ERR(remotes_set_credential(l.remotes, STR("one"), &bad, &err), ERR_INVALID);
    CHECK_ERR(remotes_set_credential(l.remotes, STR("two"), &alice, &err), ERR_NOT_FOUND);
    CHECK_ERR(remotes_set_main(l.remotes, STR("two"), &err), ERR_NOT_FOUND);
    lab_stop(&l);
}

TEST(remotes, a_secret_is_sealed_and_another_key_file_does_not_open_it)
{
    struct arena a = {0};
    struct reply *reply;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    CHECK_OK(remotes_set_credential(l.remotes, STR("one"), &alice, &err));
    CHECK_OK(
        store_call(l.store, &a, &reply, &err, STR("HGET"), STR("storage_keys:one"), STR("alice")));
    CHECK(str_starts(reply->str, STR("AKIA ")) && str_find(reply->str, STR("very-secret")) < 0);
    remotes_close(l.remotes);
    routes_retire_storage(l.routes, STR("one"));
    CHECK(remove(l.key_file) == 0);
    CHECK_ERR(remotes_open(&l.remotes, l.routes, l.store, l.key_file, NULL, &err), ERR_CORRUPT);
    l.remotes = NULL;
    arena_release(&a);
    lab_stop(&l);
}

TEST(remotes, a_change_through_another_weir_is_seen)
{
    struct routes *other_routes;
    struct remotes *other;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(routes_open(&other_routes, l.store, NULL, &err));
    CHECK_OK(remotes_open(&other, other_routes, l.store, l.key_file, NULL, &err));
    add(&l, "one");
    CHECK_OK(remotes_set_credential(l.remotes, STR("one"), &alice, &err));
    for (struct storage *s; !(s = routes_storage(other_routes, STR("one"))) ||
                            !remote_has_credential(s, STR("alice"));)
        sched_yield();
    CHECK_OK(remotes_remove(l.remotes, STR("one"), &err));
    while (routes_storage(other_routes, STR("one")))
        sched_yield();
    remotes_close(other);
    routes_close(other_routes);
    lab_stop(&l);
}

TEST(remotes, credentials_on_a_storage_of_the_file_are_changed_in_the_file_alone)
{
    struct remote_entry e = {.name = STR("fixed"), .url = STR("http://127.0.0.1:1")};
    struct remote_credential bob = {STR("bob"), STR("AKIB"), STR("bob-secret")};
    struct remote_credential nothing = {.user = STR("alice")};
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(remotes_add_fixed(l.remotes, &e, &err));
    CHECK_OK(remotes_set_credential_fixed(l.remotes, STR("fixed"), &alice, &err));
    struct storage *s = routes_storage(l.routes, STR("fixed"));
    CHECK_ERR(remotes_set_credential(l.remotes, STR("fixed"), &bob, &err), ERR_DENIED);
    CHECK_ERR(remotes_set_credential(l.remotes, STR("fixed"), &nothing, &err), ERR_DENIED);
    CHECK(remote_has_credential(s, STR("alice")) && !remote_has_credential(s, STR("bob")));
    check_reply(l.store, "KEYS *", "[\"w:pinned\"]");
    lab_stop(&l);
}

static void check_limits(struct lab *l, const char *name, uint64_t requests, uint64_t bytes)
{
    const struct storage *s = routes_storage(l->routes, str_z(name));

    CHECK(s != NULL);
    CHECK_INT(atomic_load(&s->requests_per_minute), requests);
    CHECK_INT(atomic_load(&s->bytes_per_second), bytes);
}

TEST(remotes, limits_are_kept_for_local_and_remote_storages_and_go_with_them)
{
    struct remote_limits some = {600, 1 << 20}, none = {0}, much = {.bytes_per_second = UINT64_MAX};
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    check_limits(&l, "one", 0, 0);
    CHECK_OK(remotes_set_limits(l.remotes, STR("one"), &some, &err));
    CHECK_OK(remotes_set_limits(l.remotes, STR("local"), &some, &err));
    CHECK_ERR(remotes_set_limits(l.remotes, STR("two"), &some, &err), ERR_NOT_FOUND);
    CHECK_ERR(remotes_set_limits(l.remotes, STR("one"), &much, &err), ERR_INVALID);
    lab_stop(&l);
    lab_start(&l);
    check_limits(&l, "one", 600, 1 << 20);
    check_limits(&l, "local", 600, 1 << 20);
    CHECK_OK(remotes_set_limits(l.remotes, STR("local"), &none, &err));
    check_limits(&l, "local", 0, 0);
    CHECK_OK(remotes_remove(l.remotes, STR("one"), &err));
    check_reply(l.store, "KEYS storage*", "[]");
    lab_stop(&l);
}

TEST(remotes, limits_of_a_storage_of_the_file_are_the_file_s)
{
    struct remote_entry e = {
        .name = STR("fixed"), .url = STR("http://127.0.0.1:1"), .limits = {60, 1000}};
    struct remote_limits other = {1, 1};
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    CHECK_OK(remotes_add_fixed(l.remotes, &e, &err));
    CHECK_ERR(remotes_set_limits(l.remotes, STR("fixed"), &other, &err), ERR_INVALID);
    add(&l, "one"); /* everything is loaded again */
    check_limits(&l, "fixed", 60, 1000);
    e.name = STR("odd");
    e.limits.requests_per_minute = UINT64_MAX;
    CHECK_ERR(remotes_add_fixed(l.remotes, &e, &err), ERR_INVALID);
    lab_stop(&l);
}

/* --- which storage (docs/forward.md) --- */

static void check_remote(struct lab *l, const char *user, const char *bucket, const char *want)
{
    struct route_ask ask = {.user = str_z(user), .bucket = str_z(bucket)};
    struct target t;
    struct err err = {0};

    CHECK_OK(route_resolve(l->routes, &ask, &t, &err));
    CHECK_STR(t.kind == TARGET_RAW ? t.storage->name : STR("none"), str_z(want));
    target_release(&t);
}

static void set(struct lab *l, const char *user, const char *bucket, const char *storage)
{
    struct err err = {0};

    CHECK_OK(route_set(l->routes, str_z(user), str_z(bucket), str_z(storage), &err));
}

static void make_local(struct lab *l, const char *name, const char *owner)
{
    struct storage *s = routes_storage(l->routes, STR("local"));
    struct bucket_info info = {.name = str_z(name), .owner = str_z(owner)};
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

TEST(remotes, policies_say_where_a_bucket_is_and_nobody_s_local_one_stands_in_front)
{
    struct target t;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    add(&l, "two");
    make_local(&l, "photos", "mallory");
    check_remote(&l, "alice", "photos", "none");
    set(&l, "alice", "", "one");
    check_remote(&l, "alice", "photos", "one"); /* not mallory's */
    make_local(&l, "old", "alice");
    check_remote(&l, "alice", "old", "none"); /* made before the policy */
    CHECK_ERR(route_set(l.routes, STR("alice"), STR("old"), STR("two"), &err), ERR_CONFLICT);
    check_remote(&l, "alice", "old", "none"); /* it would have vanished */
    set(&l, "alice", "photos", "two");
    check_remote(&l, "alice", "photos", "two"); /* mallory's is not in the way */
    set(&l, "alice", "photos", "");
    set(&l, "alice", "shared", "two");
    check_remote(&l, "bob", "shared", "two"); /* found by alice's policy */
    check_remote(&l, "", "shared", "two");
    check_remote(&l, "bob", "photos", "none");
    set(&l, "bob", "shared", "one");
    check_remote(&l, "bob", "shared", "one");
    check_remote(&l, "carol", "shared", "none"); /* they do not agree */
    CHECK_OK(route_block(l.routes, STR("one"), STR("shared"), true, &err));
    struct route_ask ask = {.user = STR("bob"), .bucket = STR("shared")};
    CHECK_ERR(route_resolve(l.routes, &ask, &t, &err), ERR_DENIED);
    lab_stop(&l);
}

TEST(remotes, a_remote_main_storage_is_for_everybody_without_a_policy)
{
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    add(&l, "two");
    make_local(&l, "mine", "alice");
    CHECK_OK(remotes_set_main(l.remotes, STR("one"), &err));
    check_remote(&l, "alice", "any", "one");
    check_remote(&l, "", "any", "one");
    check_remote(&l, "alice", "mine", "none");
    check_remote(&l, "bob", "mine", "one"); /* alice's is found by a policy alone */
    set(&l, "alice", "mine", "local");
    check_remote(&l, "bob", "mine", "none");
    set(&l, "alice", "there", "two");
    check_remote(&l, "bob", "there", "two");
    lab_stop(&l);
}

/* The names that no local storage has are remembered. */
TEST(remotes, a_local_bucket_stands_from_its_making_to_its_removal_whatever_was_asked_before)
{
    struct storage *local;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, "one");
    CHECK_OK(remotes_set_main(l.remotes, STR("one"), &err));
    local = routes_storage(l.routes, STR("local"));
    for (int i = 0; i < 3; i++) {
        check_remote(&l, "alice", "box", "one");
        check_remote(&l, "alice", "box", "one");
        make_local(&l, "box", "alice");
        check_remote(&l, "alice", "box", "none");
        check_remote(&l, "bob", "box", "one"); /* asked of alice's: no reason to forget it */
        check_remote(&l, "alice", "box", "none");
        CHECK_OK(local->ops->remove_bucket(local, STR("alice"), STR("box"), &err));
    }
    check_remote(&l, "alice", "box", "one");
    lab_stop(&l);
}
