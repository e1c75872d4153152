/* Users: found, changed, kept, sealed; over the embedded store and a real Redis. */
#include "db/db.h"
#include "os/file.h"
#include "os/thread.h"
#include "route/users.h"
#include "store/store.h"
#include "unit/store/redis_test.h"
#include "unit/test.h"

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_DB = 3 };

struct lab {
    struct db *db;
    struct store *store;
    struct users *users;
    struct arena arena;
    char key_file[256];
};

static void lab_open(struct lab *l)
{
    struct db_options o = {.cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
    struct err err = {0};
    char path[256];

    *l = (struct lab){0};
    snprintf(path, sizeof(path), "%s/db", test_dir());
    snprintf(l->key_file, sizeof(l->key_file), "%s/secrets.key", test_dir());
    o.path = path;
    CHECK_OK(db_open(&l->db, &o, &err));
    CHECK_OK(store_open_embedded(&l->store, l->db, CONFIG_DB, STORE_DURABLE, NULL, &err));
}

static void lab_start(struct lab *l)
{
    struct err err = {0};

    lab_open(l);
    CHECK_OK(users_open(&l->users, l->store, l->key_file, NULL, &err));
}

static void lab_stop(struct lab *l)
{
    users_close(l->users);
    store_close(l->store);
    db_close(l->db);
    arena_release(&l->arena);
}

static struct user add(struct lab *l, const struct user *wanted)
{
    struct user made = {0};
    struct err err = {0};

    CHECK_OK(users_add(l->users, &l->arena, wanted, &made, &err));
    return made;
}

static const struct user_key alice_key = {{"ALICEKEY", 8}, {"alice-secret-1234", 17}};
static const struct user alice = {.id = {"id-alice", 8},
                                  .name = {"alice", 5},
                                  .display_name = {"Alice A.", 8},
                                  .email = {"Alice@Example.org", 17},
                                  .keys = &alice_key,
                                  .key_count = 1};

static void check_alice(struct lab *l)
{
    struct user found;
    struct str secret = STR_EMPTY;
    struct err err = {0};

    CHECK_OK(users_by_key(l->users, &l->arena, STR("ALICEKEY"), &found, &secret, &err));
    CHECK_STR(secret, alice_key.secret);
    CHECK_STR(found.name, STR("alice"));
    CHECK_INT(found.keys[0].secret.len, 0);
    CHECK_OK(users_by_id(l->users, &l->arena, STR("id-alice"), &found, &err));
    CHECK_STR(found.display_name, STR("Alice A."));
    CHECK_OK(users_by_name(l->users, &l->arena, STR("alice"), &found, &err));
    CHECK_STR(found.email, STR("Alice@Example.org"));
    CHECK_OK(users_by_email(l->users, &l->arena, STR("aLICE@example.org"), &found, &err));
    CHECK_STR(found.id, STR("id-alice"));
    CHECK(!found.admin);
}

TEST(users, one_is_found_by_key_id_name_and_email_also_after_a_restart)
{
    struct lab l;

    lab_start(&l);
    add(&l, &alice);
    check_alice(&l);
    lab_stop(&l);
    lab_start(&l);
    check_alice(&l);
    lab_stop(&l);
}

TEST(users, what_is_not_given_is_made)
{
    struct lab l;
    struct user made, found;
    struct str secret = STR_EMPTY;
    struct err err = {0};

    lab_start(&l);
    made = add(&l, &(struct user){.name = STR("bob"), .admin = true});
    CHECK_INT(made.id.len, 32);
    CHECK_INT(made.key_count, 1);
    CHECK_INT(made.keys[0].secret.len, 40);
    CHECK_OK(users_by_key(l.users, &l.arena, made.keys[0].access, &found, &secret, &err));
    CHECK_STR(secret, made.keys[0].secret);
    CHECK(found.admin);
    lab_stop(&l);
}

TEST(users, name_id_email_and_access_key_are_of_one_user_only)
{
    struct user_key other = {STR("OTHERKEY"), STR("other-secret")};
    struct user tries[] = {
        {.name = STR("alice")},
        {.name = STR("eve"), .id = STR("id-alice")},
        {.name = STR("eve"), .email = STR("ALICE@example.org")},
        {.name = STR("eve"), .keys = &alice_key, .key_count = 1},
        {.name = STR("root")},
        {.name = STR("eve"), .id = STR("root")},
        {.name = STR("eve"), .keys = &other, .key_count = 1},
    };
    struct user out;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    users_set_root(l.users, other.access, STR("root-secret"));
    add(&l, &alice);
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
        CHECK_ERR(users_add(l.users, &l.arena, &tries[i], &out, &err), ERR_EXISTS);
    CHECK_ERR(users_by_name(l.users, &l.arena, STR("eve"), &out, &err), ERR_NOT_FOUND);
    check_alice(&l);
    lab_stop(&l);
}

TEST(users, what_cannot_be_a_user_is_refused)
{
    struct user_key bad_access = {STR("A:B"), STR("long-enough")},
                    bad_secret = {STR("ABC"), STR("x")};
    struct user_key twice[] = {{STR("ABC"), STR("long-enough")}, {STR("ABC"), STR("long-enough")}};
    struct user tries[] = {
        {.name = STR("")},
        {.name = STR("a b")},
        {.name = STR("a/../b")},
        {.name = STR("eve"), .id = STR("a<b")},
        {.name = STR("eve"), .email = STR("nobody")},
        {.name = STR("eve"), .display_name = STR("a\nb")},
        {.name = STR("eve"), .keys = &bad_access, .key_count = 1},
        {.name = STR("eve"), .keys = &bad_secret, .key_count = 1},
        {.name = STR("eve"), .keys = twice, .key_count = 2},
    };
    struct user out;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
        CHECK_ERR(users_add(l.users, &l.arena, &tries[i], &out, &err), ERR_INVALID);
    lab_stop(&l);
}

TEST(users, keys_come_and_go)
{
    struct user_key wanted = {STR("SECOND"), STR("second-secret")}, made;
    struct user found;
    struct str secret;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, &alice);
    CHECK_OK(users_add_key(l.users, &l.arena, STR("alice"), &wanted, &made, &err));
    CHECK_ERR(users_add_key(l.users, &l.arena, STR("alice"), &wanted, &made, &err), ERR_EXISTS);
    CHECK_ERR(users_add_key(l.users, &l.arena, STR("nobody"), NULL, &made, &err), ERR_NOT_FOUND);
    CHECK_OK(users_by_key(l.users, &l.arena, STR("SECOND"), &found, &secret, &err));
    CHECK_STR(secret, STR("second-secret"));
    CHECK_OK(users_remove_key(l.users, STR("alice"), STR("SECOND"), &err));
    CHECK_ERR(users_by_key(l.users, &l.arena, STR("SECOND"), &found, &secret, &err), ERR_NOT_FOUND);
    CHECK_ERR(users_remove_key(l.users, STR("alice"), STR("SECOND"), &err), ERR_NOT_FOUND);
    check_alice(&l);
    for (size_t i = 1; i < USER_KEYS_MAX; i++)
        CHECK_OK(users_add_key(l.users, &l.arena, STR("alice"), NULL, &made, &err));
    CHECK_ERR(users_add_key(l.users, &l.arena, STR("alice"), NULL, &made, &err), ERR_TOO_LARGE);
    lab_stop(&l);
}

TEST(users, one_that_was_removed_leaves_its_names_to_others)
{
    struct user found;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, &alice);
    CHECK_OK(users_remove(l.users, STR("alice"), &err));
    CHECK_ERR(users_by_id(l.users, &l.arena, STR("id-alice"), &found, &err), ERR_NOT_FOUND);
    CHECK_ERR(users_remove(l.users, STR("alice"), &err), ERR_NOT_FOUND);
    CHECK_ERR(users_remove(l.users, STR("root"), &err), ERR_DENIED);
    add(&l, &alice);
    check_alice(&l);
    lab_stop(&l);
}

TEST(users, the_list_begins_with_the_first_administrator_and_has_no_secrets)
{
    struct user *list;
    size_t count;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    users_set_root(l.users, STR("ROOTKEY"), STR("root-secret"));
    add(&l, &(struct user){.name = STR("zoe")});
    add(&l, &alice);
    CHECK_OK(users_list(l.users, &l.arena, &list, &count, &err));
    CHECK_INT(count, 3);
    CHECK_STR(list[0].name, STR("root"));
    CHECK_STR(list[1].name, STR("alice"));
    CHECK_STR(list[2].name, STR("zoe"));
    for (size_t i = 0; i < count; i++)
        CHECK_INT(list[i].keys[0].secret.len, 0);
    lab_stop(&l);
}

TEST(users, the_first_administrator_changes_keys_and_stays_the_same)
{
    struct user found;
    struct str secret;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    users_set_root(l.users, STR("FIRST"), STR("first-secret"));
    users_set_root(l.users, STR("SECOND"), STR("second-secret"));
    CHECK_ERR(users_by_key(l.users, &l.arena, STR("FIRST"), &found, &secret, &err), ERR_NOT_FOUND);
    CHECK_OK(users_by_key(l.users, &l.arena, STR("SECOND"), &found, &secret, &err));
    CHECK_STR(secret, STR("second-secret"));
    CHECK_STR(found.id, STR("root"));
    CHECK(found.admin);
    lab_stop(&l);
}

/* --- secrets --- */

static void dump(struct lab *l, struct buf *out)
{
    const char *const lines[] = {"SMEMBERS users",      "HGETALL users:id",
                                 "HGETALL users:email", "HGETALL users:access",
                                 "HGETALL user:alice",  "GET users:check"};
    const char *printed = "";

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CHECK_INT(ask(l->store, lines[i], &printed), 0);
        buf_append_z(out, printed);
    }
}

static void dump_rows(struct lab *l, struct buf *out)
{
    struct db_view *view;
    struct db_iter *it;
    struct str key, value;
    struct err err = {0};

    CHECK_OK(db_snapshot(&view, l->db, &err));
    CHECK_OK(db_iter_open(&it, view, db_cf(l->db, "store3"), &(struct db_range){0}, &err));
    while (db_iter_next(it, &key, &value, &err) == 0) {
        buf_append_str(out, key);
        buf_append_str(out, value);
    }
    db_iter_close(it);
    db_snapshot_free(view);
}

TEST(users, no_secret_is_in_the_store_in_plain_text)
{
    struct buf text = {0};
    struct lab l;

    lab_start(&l);
    add(&l, &alice);
    dump(&l, &text);
    dump_rows(&l, &text);
    CHECK(str_find(buf_str(&text), STR("ALICEKEY")) >= 0);
    CHECK(str_find(buf_str(&text), alice_key.secret) < 0);
    buf_release(&text);
    lab_stop(&l);
}

TEST(users, the_key_file_is_made_for_its_owner_alone)
{
    struct stat st;
    struct lab l;

    lab_start(&l);
    CHECK_INT(stat(l.key_file, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(st.st_size, 32);
    lab_stop(&l);
}

TEST(users, a_wrong_key_file_is_said_to_be_wrong)
{
    struct lab l;
    struct err err = {0};
    char other[32] = "another key";

    lab_start(&l);
    lab_stop(&l);
    lab_open(&l);
    CHECK_OK(file_write_durable(l.key_file, str_n(other, sizeof(other)), 0600, &err));
    CHECK_ERR(users_open(&l.users, l.store, l.key_file, NULL, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("secrets.key is not the key file")) >= 0);
    CHECK_OK(file_write_durable(l.key_file, STR("short"), 0600, &err));
    CHECK_ERR(users_open(&l.users, l.store, l.key_file, NULL, &err), ERR_CORRUPT);
    CHECK_INT(chmod(l.key_file, 0644), 0);
    CHECK_ERR(users_open(&l.users, l.store, l.key_file, NULL, &err), ERR_DENIED);
    CHECK_INT(unlink(l.key_file), 0);
    CHECK_ERR(users_open(&l.users, l.store, l.key_file, NULL, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("is missing")) >= 0);
    CHECK(!file_exists(l.key_file));
    CHECK_INT(mkdir(l.key_file, 0700), 0);
    CHECK(users_open(&l.users, l.store, l.key_file, NULL, &err) < 0);
    lab_stop(&l);
}

TEST(users, a_sealed_secret_moved_to_another_access_key_does_not_open)
{
    const char *printed = "";
    struct lab l;
    struct err err = {0};
    char line[512], sealed[256];
    const char *at;

    lab_start(&l);
    add(&l, &alice);
    CHECK_INT(ask(l.store, "HGET user:alice keys", &printed), 0);
    at = strstr(printed, "ALICEKEY");
    CHECK(at != NULL);
    at += strlen("ALICEKEY");
    at += strcspn(at, "0123456789abcdef");
    snprintf(sealed, sizeof(sealed), "%.*s", (int)strspn(at, "0123456789abcdef"), at);
    snprintf(line, sizeof(line), "HSET user:alice keys {\"ALICEKEX\":\"%s\"}", sealed);
    CHECK_INT(ask(l.store, line, &printed), 0);
    users_close(l.users);
    l.users = NULL;
    CHECK_ERR(users_open(&l.users, l.store, l.key_file, NULL, &err), ERR_CORRUPT);
    lab_stop(&l);
}

/* --- readers beside changes --- */

struct reading {
    struct users *users;
    _Atomic(bool) stop;
    _Atomic(size_t) wrong;
};

static void read_on(void *ctx)
{
    struct reading *r = ctx;

    while (!atomic_load(&r->stop)) {
        struct arena arena = {0};
        struct user found;
        struct str secret = STR_EMPTY;
        if (users_by_key(r->users, &arena, alice_key.access, &found, &secret, NULL) < 0 ||
            !str_eq(secret, alice_key.secret) || !str_eq(found.id, alice.id))
            atomic_fetch_add(&r->wrong, 1);
        arena_release(&arena);
    }
}

TEST(users, readers_beside_changes_always_find_who_stays)
{
    enum { READERS = 3, CHANGES = 30 };
    struct thread threads[READERS];
    struct reading reading = {0};
    struct user_key made;
    struct lab l;
    struct err err = {0};

    lab_start(&l);
    add(&l, &alice);
    reading.users = l.users;
    for (size_t i = 0; i < READERS; i++)
        CHECK_OK(thread_start(&threads[i], "reader", 0, read_on, &reading, &err));
    for (size_t i = 0; i < CHANGES; i++) {
        add(&l, &(struct user){.name = STR("bob")});
        CHECK_OK(users_add_key(l.users, &l.arena, STR("alice"), NULL, &made, &err));
        CHECK_OK(users_remove_key(l.users, STR("alice"), made.access, &err));
        CHECK_OK(users_remove(l.users, STR("bob"), &err));
    }
    atomic_store(&reading.stop, true);
    for (size_t i = 0; i < READERS; i++)
        thread_join(&threads[i]);
    CHECK_INT(reading.wrong, 0);
    lab_stop(&l);
}

/* --- two weirs on one Redis --- */

TEST(users, a_change_by_another_weir_on_the_same_redis_is_seen)
{
    struct redis_server server = {0};
    struct store *stores[2];
    struct users *users[2];
    struct arena arena = {0};
    struct user out;
    struct err err = {0};
    char key_file[256];

    need_redis_server(&server);
    snprintf(key_file, sizeof(key_file), "%s/secrets.key", test_dir());
    for (int i = 0; i < 2; i++) {
        stores[i] = store_at(server.url);
        CHECK_OK(users_open(&users[i], stores[i], key_file, NULL, &err));
    }
    CHECK_OK(users_add(users[0], &arena, &alice, &out, &err));
    while (users_by_id(users[1], &arena, STR("id-alice"), &out, &err) < 0)
        sched_yield();
    CHECK_ERR(users_add(users[1], &arena, &alice, &out, &err), ERR_EXISTS);
    CHECK_OK(users_remove(users[1], STR("alice"), &err));
    while (users_by_id(users[0], &arena, STR("id-alice"), &out, &err) == 0)
        arena_reset(&arena);
    for (int i = 0; i < 2; i++) {
        users_close(users[i]);
        store_close(stores[i]);
    }
    arena_release(&arena);
    redis_server_kill(&server);
}

TEST(users, a_redis_that_is_down_is_not_taken_for_no_users)
{
    struct redis_server server = {0};
    struct store *store;
    struct users *users;
    struct arena arena = {0};
    struct user out;
    struct str secret;
    struct err err = {0};
    char key_file[256];

    need_redis_server(&server);
    redis_server_kill(&server);
    snprintf(key_file, sizeof(key_file), "%s/secrets.key", test_dir());
    store = store_with((struct store_redis_options){.url = str_z(server.url), .timeout_ms = 30000});
    CHECK_OK(users_open(&users, store, key_file, NULL, &err));
    users_set_root(users, STR("ROOTKEY"), STR("root-secret"));
    CHECK_OK(users_by_key(users, &arena, STR("ROOTKEY"), &out, &secret, &err));
    CHECK_ERR(users_by_name(users, &arena, STR("alice"), &out, &err), ERR_UNAVAILABLE);
    CHECK(redis_server_start(&server));
    while (users_by_name(users, &arena, STR("alice"), &out, &err) == ERR_UNAVAILABLE)
        sched_yield();
    CHECK_ERR(users_by_name(users, &arena, STR("alice"), &out, &err), ERR_NOT_FOUND);
    users_close(users);
    store_close(store);
    arena_release(&arena);
    redis_server_kill(&server);
}
