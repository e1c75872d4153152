/* Satellites: their users and buckets, and how they agree about the table of slots. */
#include "base/json.h"
#include "object/overlay.h"
#include "route/resolve.h"
#include "unit/archive/satellites_lab.h"
#include "unit/store/redis_test.h"

#include <pthread.h>
#include <stdio.h>

static struct str map_key_of(struct satellites_lab *lab, unsigned epoch)
{
    return arena_fmt(&lab->arena, "_map/%u.json", epoch);
}

/* The table of this epoch must be on the first `count` satellites. */
static void expect_map(struct satellites_lab *lab, unsigned epoch, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf text = {0};
        struct slots t;
        struct err err = {0};
        CHECK_INT(satellites_lab_look(lab, lab_names[i], map_key_of(lab, epoch), NULL, &text), 0);
        CHECK_OK(slots_read(&t, buf_str(&text), &err));
        CHECK_INT(t.epoch, epoch);
        buf_release(&text);
    }
}

static void write_map(struct satellites_lab *lab, size_t satellite, const struct slots *t)
{
    struct buf text = {0};

    slots_write(&text, t);
    satellites_lab_write(lab, lab_names[satellite], map_key_of(lab, t->epoch), buf_str(&text));
    buf_release(&text);
}

SATELLITES_TEST(archive_satellites, three_that_are_added_at_once_get_the_seeds_table)
{
    satellites_lab_add(lab, 3);
    struct slots t = satellites_lab_table(lab);
    CHECK_INT(t.epoch, 1);
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK_INT(t.of[s], s <= 0x55 ? 0 : s <= 0xaa ? 1 : 2);
    CHECK(strcmp(satellites_lab_home(lab, "octocat"), "europe-west-1") == 0);
    CHECK(strcmp(satellites_lab_home(lab, "mojombo"), "asia-east-1") == 0);
    CHECK(strcmp(satellites_lab_home(lab, "montyanderson"), "us-central-1") == 0);
    expect_map(lab, 1, 3);
    satellites_lab_put(lab, "octocat", "Hello-World.zip", STR("zip"));
    struct str key = satellites_lab_key(lab, "octocat", "Hello-World.zip");
    CHECK_STR(key, STR("a6/65/81/57/octocat/Hello-World.zip"));
    CHECK_INT(satellites_lab_look(lab, "europe-west-1", key, NULL, NULL), 0);
    CHECK_INT(satellites_lab_copies(lab, key), 1);
    satellites_lab_restart(lab);
    CHECK_INT(satellites_lab_table(lab).epoch, 1);
    satellites_lab_expect(lab, "octocat", "Hello-World.zip", STR("zip"));
}

SATELLITES_TEST(archive_satellites, the_user_of_a_satellite_is_made_once_and_led_to_its_storage)
{
    struct satellite_wanted wanted = {.name = STR("asia-east-1")};
    struct satellite_made made;
    struct storage *leads = NULL;
    struct user user;
    struct err err = {0};

    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    CHECK(made.key.access.len && made.key.secret.len);
    CHECK_OK(users_by_name(lab->users, &lab->arena, STR("asia-east-1"), &user, &err));
    CHECK_STR(made.user, user.id);
    CHECK(!user.admin);
    CHECK_OK(route_storage(lab->routes, user.id, STR("github.com"), &leads, &err));
    CHECK_STR(leads->name, STR("asia-east-1"));
    /* Once more repairs and shows no key. */
    CHECK_OK(route_set(lab->routes, user.id, STR_EMPTY, STR_EMPTY, &err));
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    CHECK_INT(made.key.secret.len, 0);
    CHECK_OK(route_storage(lab->routes, user.id, STR("github.com"), &leads, &err));
    CHECK_STR(leads->name, STR("asia-east-1"));
    CHECK_INT(satellites_lab_table(lab).epoch, 1);
}

SATELLITES_TEST(archive_satellites, without_satellites_the_main_storage_is_the_one)
{
    struct slots t = satellites_lab_table(lab);

    CHECK_INT(t.epoch, 0);
    satellites_lab_expect(lab, "octocat", "x.zip", STR_EMPTY); /* reading makes no table */
    CHECK_INT(satellites_lab_table(lab).epoch, 0);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    t = satellites_lab_table(lab);
    CHECK_INT(t.epoch, 1);
    CHECK_INT(t.count, 1);
    CHECK_STR(str_z(t.names[0]), STR("local"));
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
    CHECK_INT(
        satellites_lab_look(lab, "local", satellites_lab_key(lab, "octocat", "x.zip"), NULL, NULL),
        0);
}

SATELLITES_TEST(archive_satellites, an_empty_archive_is_split_evenly_again)
{
    struct satellite_wanted wanted[] = {{.name = STR("europe-west-1")},
                                        {.name = STR("us-central-1")}};
    struct satellite_made made[2];
    struct err err = {0};

    satellites_lab_add(lab, 1);
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, wanted, 2, made, &err));
    struct slots t = satellites_lab_table(lab);
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK_INT(t.of[s], s <= 0x55 ? 0 : s <= 0xaa ? 1 : 2);
    satellites_lab_move_all(lab);
    CHECK_INT(slots_moving(&(struct slots){0}), 0);
    t = satellites_lab_table(lab);
    CHECK_INT(slots_moving(&t), 0);
    CHECK_INT(t.count, 3);
}

SATELLITES_TEST(archive_satellites, a_start_finishes_the_newest_epoch)
{
    struct slots t, next;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    t = satellites_lab_table(lab);
    CHECK_OK(slots_drain(&next, &t, STR("us-central-1"), &err));
    write_map(lab, 0, &next); /* asia-east-1 has the smallest name, and decides; then: killed */
    satellites_lab_restart(lab);
    CHECK_INT(satellites_lab_table(lab).epoch, 2);
    expect_map(lab, 2, 3);
    CHECK_OK(satellites_ready(lab->satellites, &err));
}

/* Another process that has the old table notices before it opens a shelf. */
SATELLITES_TEST(archive_satellites, a_process_with_an_old_table_notices)
{
    struct satellites *other;
    struct slots t;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    other = satellites_lab_second(lab);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_OK(satellites_drain(lab->satellites, STR("us-central-1"), &err));
    satellites_table(other, &t);
    CHECK_INT(t.epoch, 1);
    CHECK_OK(satellites_current(other, &t, false, &err));
    CHECK_INT(t.epoch, 2);
    satellites_close(other);
}

/* The store is lost: the tables on the satellites are read again. */
SATELLITES_TEST(archive_satellites, the_table_survives_the_loss_of_the_store)
{
    struct reply *reply;
    struct slots t;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    CHECK_OK(store_call(lab->four->stores[DB_APP], &lab->arena, &reply, &err, STR("FLUSHDB")));
    CHECK_OK(satellites_current(lab->satellites, &t, true, &err));
    CHECK_INT(t.epoch, 1);
    CHECK_INT(t.count, 3);
}

SATELLITES_TEST(archive_satellites, map_epoch_mismatch_refused)
{
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct shelf shelf;
    struct slots t;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    /* Two tables of one epoch. */
    t = satellites_lab_table(lab);
    t.of[7] = t.leaves[7] = 2;
    write_map(lab, 1, &t);
    satellites_lab_restart(lab);
    CHECK_ERR(satellites_ready(lab->satellites, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("different tables of slots of epoch 1")) >= 0);
    CHECK_ERR(shelf_open(&shelf, lab->satellites, &lab->arena, &c, &err), ERR_CORRUPT);
    /* A satellite that was set back. */
    t = (struct slots){0};
    CHECK_OK(slots_first(
        &t, (struct str[]){STR("asia-east-1"), STR("europe-west-1"), STR("us-central-1")}, 3,
        &err));
    write_map(lab, 1, &t);
    t.epoch = 5;
    write_map(lab, 2, &t);
    satellites_lab_restart(lab);
    CHECK_ERR(satellites_ready(lab->satellites, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("was set back")) >= 0);
    /* A damaged table. */
    satellites_lab_write(lab, "us-central-1", STR("_map/5.json"), STR("{\"epoch\":5}"));
    satellites_lab_restart(lab);
    CHECK_ERR(satellites_ready(lab->satellites, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("_map/5.json on satellite us-central-1")) >= 0);
}

/* How many policies lead the user anywhere. */
static size_t policies_of(struct satellites_lab *lab, struct str user)
{
    struct route_policy *all = NULL;
    size_t count = 0, n = 0;
    struct err err = {0};

    CHECK_OK(route_list(lab->routes, &lab->arena, &all, &count, &err));
    for (size_t i = 0; i < count; i++)
        n += str_eq(all[i].user, user);
    return n;
}

SATELLITES_TEST(archive_satellites, a_storage_with_the_table_of_another_archive_is_refused)
{
    struct satellite_wanted wanted = {.name = STR("zone-4")};
    struct satellite_made made;
    struct slots foreign;
    struct user user;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    struct satellite_prepared prepared = {0};
    CHECK_OK(satellites_prepare(lab->satellites, &lab->arena, &wanted, 1, &prepared, &err));
    CHECK_OK(slots_first(&foreign, &wanted.name, 1, &err));
    foreign.epoch = 9;
    write_map(lab, 3, &foreign);
    CHECK_OK(route_set(lab->routes, prepared.made.user, STR_EMPTY, STR_EMPTY, &err));
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err), ERR_CONFLICT);
    /* The user was there before, and stays. The policy was made by the call. */
    CHECK_INT(policies_of(lab, prepared.made.user), 0);
    CHECK_OK(users_by_name(lab->users, &lab->arena, STR("zone-4"), &user, &err));
    /* The archive goes on without it. */
    satellites_lab_restart(lab);
    CHECK_OK(satellites_ready(lab->satellites, &err));
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
}

static void expect_add_refused(struct satellites_lab *lab, const char *name, int code)
{
    struct satellite_wanted wanted = {.name = str_z(name)};
    struct satellite_made made;
    struct err err = {0};

    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err), code);
}

static int bucket_is_unknown(void *ctx, struct arena *a, struct str host, struct str *out,
                             struct err *err)
{
    return err_set(err, ERR_IO, "the store does not answer");
}

SATELLITES_TEST(archive_satellites, a_table_is_not_looked_for_in_a_bucket_that_is_not_known)
{
    bool made = true;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    struct slots t = satellites_lab_table(lab);
    lab->options.bucket = bucket_is_unknown;
    struct satellites *second = satellites_lab_second(lab);
    t.epoch++;
    CHECK_ERR(satellite_map_put(second, str_z(lab_names[0]), &t, &made, &err), ERR_IO);
    CHECK(!made);
    CHECK_STR(str_z(err.text), STR("the store does not answer"));
    satellites_close(second);
}

SATELLITES_TEST(archive_satellites, what_cannot_be_a_satellite_is_refused)
{
    struct satellite_wanted two[] = {{.name = STR("us-central-1")}, {.name = STR("zone-4")}};
    struct satellite_made made[2];
    struct err err = {0};

    expect_add_refused(lab, "nowhere", ERR_NOT_FOUND);
    expect_add_refused(lab, "Upper", ERR_INVALID);
    CHECK_ERR(satellites_drain(lab->satellites, STR("asia-east-1"), &err), ERR_NOT_FOUND);
    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, two, 2, made, &err), ERR_INVALID);
    expect_add_refused(lab, "us-central-1", 0);
    expect_add_refused(lab, "zone-4", ERR_BUSY); /* slots are moving */
    CHECK_ERR(satellites_drain(lab->satellites, STR("asia-east-1"), &err), ERR_BUSY);
    CHECK_ERR(satellites_drain(lab->satellites, STR("nowhere"), &err), ERR_NOT_FOUND);
}

/* Nothing of a refused newcomer is left. */
static void expect_nothing_of(struct satellites_lab *lab, const char *name)
{
    struct str id = arena_fmt(&lab->arena, "satellite-%s", name);
    struct bucket *b = NULL;
    struct user user;
    struct err err = {0};

    CHECK_ERR(users_by_name(lab->users, &lab->arena, str_z(name), &user, &err), ERR_NOT_FOUND);
    CHECK_INT(policies_of(lab, id), 0);
    CHECK_ERR(storage_open_bucket(&b, routes_storage(lab->routes, str_z(name)), id,
                                  STR("github.com"), &err),
              ERR_NO_BUCKET);
}

SATELLITES_TEST(archive_satellites, a_refused_newcomer_leaves_nothing)
{
    struct satellite_wanted two[] = {{.name = STR("us-central-1")}, {.name = STR("zone-4")}};
    struct satellite_wanted keys = {
        .name = STR("zone-4"), .access = STR("AKIA"), .secret = STR("secret")};
    struct satellite_made made[2];
    struct user user;
    struct err err = {0};

    /* It is refused before anything is made: no storage, keys that are not needed, no slots now. */
    two[1].name = STR("nowhere");
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, two, 2, made, &err), ERR_NOT_FOUND);
    expect_nothing_of(lab, "us-central-1");
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, &keys, 1, made, &err), ERR_INVALID);
    expect_nothing_of(lab, "zone-4");
    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    two[1].name = STR("zone-4");
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, two, 2, made, &err), ERR_INVALID);
    expect_nothing_of(lab, "us-central-1");
    expect_nothing_of(lab, "zone-4");
    /* It is refused afterwards: its policy leads elsewhere; its storage has another's bucket. */
    CHECK_OK(
        users_add(lab->users, &lab->arena, &(struct user){.name = STR("zone-4")}, &user, &err));
    CHECK_OK(route_set(lab->routes, user.id, STR_EMPTY, STR("local"), &err));
    expect_add_refused(lab, "zone-4",
                       storage_can(routes_storage(lab->routes, STR("zone-4")), STORAGE_CREDENTIALS)
                           ? ERR_INVALID
                           : ERR_CONFLICT);
    CHECK_INT(policies_of(lab, user.id), 1);
    CHECK_OK(users_by_name(lab->users, &lab->arena, STR("zone-4"), &user, &err));
}

/* The newcomer is prepared, and then the table cannot be changed. */
SATELLITES_TEST(archive_satellites, a_newcomer_that_no_table_gets_leaves_nothing)
{
    struct satellite_wanted wanted = {.name = STR("zone-4")};
    struct satellite_made made;
    struct slots foreign;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    /* A table of another archive lies on the storage, in the bucket of a user that is gone. */
    struct satellite_prepared prepared = {0};
    CHECK_OK(satellites_prepare(lab->satellites, &lab->arena, &wanted, 1, &prepared, &err));
    CHECK_OK(slots_first(&foreign, &wanted.name, 1, &err));
    foreign.epoch = 9;
    write_map(lab, 3, &foreign);
    prepared.has_made.bucket = false;
    satellite_undo(lab->satellites, &prepared);
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err), ERR_CONFLICT);
    struct user user;
    CHECK_ERR(users_by_name(lab->users, &lab->arena, STR("zone-4"), &user, &err), ERR_NOT_FOUND);
    CHECK_INT(policies_of(lab, STR("satellite-zone-4")), 0);
    CHECK_INT(satellites_lab_look(lab, "zone-4", map_key_of(lab, 9), NULL, NULL), 0);
    satellites_lab_restart(lab);
    CHECK_OK(satellites_ready(lab->satellites, &err));
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
}

/* The user of the only satellite is gone, and weir starts: no table can be read. */
SATELLITES_TEST(archive_satellites, the_lost_user_of_the_only_satellite_is_made_again)
{
    struct satellite_wanted wanted = {.name = STR("asia-east-1")}, other = {.name = STR("zone-4")};
    struct satellite_made made;
    struct err err = {0};

    satellites_lab_add(lab, 1);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_OK(users_remove(lab->users, STR("asia-east-1"), &err));
    satellites_lab_restart(lab);
    CHECK_ERR(satellites_add(lab->satellites, &lab->arena, &other, 1, &made, &err),
              ERR_UNAVAILABLE);
    expect_nothing_of(lab, "zone-4");
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    CHECK_STR(made.user, STR("satellite-asia-east-1"));
    CHECK_INT(satellites_lab_table(lab).count, 1);
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
}

SATELLITES_TEST(archive_satellites, a_slot_is_listed_page_by_page)
{
    struct slot_ask ask = {.host = STR("github.com"), .slot = 0xa6, .limit = 2};
    struct list_result page;
    struct err err = {0};
    size_t seen = 0;

    satellites_lab_add(lab, 3);
    ask.satellite = STR("asia-east-1");
    CHECK_OK(satellites_list_slot(lab->satellites, &lab->arena, &ask, &page, &err));
    CHECK_INT(page.count, 0);
    for (unsigned i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "repo-%u.zip", i);
        satellites_lab_put(lab, "octocat", name, STR("zip"));
    }
    ask.satellite = STR("europe-west-1");
    do {
        CHECK_OK(satellites_list_slot(lab->satellites, &lab->arena, &ask, &page, &err));
        seen += page.count;
        ask.after = page.next;
    } while (page.more);
    CHECK_INT(seen, 5);
}

/* The user of a satellite is gone, as an older weir lets it go: nothing is taken for absent. */
SATELLITES_TEST(archive_satellites, a_satellite_without_its_user_is_down)
{
    struct satellite_wanted wanted = {.name = STR("europe-west-1")};
    struct satellite_made made;
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct satellite_site site;
    struct shelf shelf;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_OK(satellites_ready(lab->satellites, &err));
    CHECK_OK(users_remove(lab->users, STR("europe-west-1"), &err));
    CHECK_ERR(satellites_ready(lab->satellites, &err), ERR_UNAVAILABLE);
    CHECK(str_find(str_z(err.text), STR("the satellite europe-west-1 has no user")) >= 0);
    CHECK_ERR(shelf_open(&shelf, lab->satellites, &lab->arena, &c, &err), ERR_UNAVAILABLE);
    CHECK(!satellites_is_up(lab->satellites, STR("europe-west-1")));
    CHECK(satellites_is_up(lab->satellites, STR("asia-east-1")));
    satellites_note(lab->satellites, STR("europe-west-1"), 0);
    CHECK_ERR(satellite_site_find(&site, lab->satellites, &lab->arena, STR("europe-west-1"),
                                  STR("github.com"), &err),
              ERR_UNAVAILABLE);
    CHECK(!satellites_is_up(lab->satellites, STR("europe-west-1")));
    /* Adding the satellite again makes its user again. */
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    CHECK(made.key.secret.len > 0);
    CHECK_OK(satellites_ready(lab->satellites, &err));
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
    CHECK_SOON(satellites_is_up(lab->satellites, STR("europe-west-1")));
}

SATELLITES_TEST(archive_satellites, the_user_of_a_satellite_is_needed)
{
    struct user user = {.name = STR("asia-east-1")};
    struct satellites *second;
    struct err err = {0};

    CHECK_OK(satellites_user_needed(lab->satellites, &user, &err)); /* a storage, no satellite */
    second = satellites_lab_second(lab);
    satellites_lab_add(lab, 2);
    CHECK_ERR(satellites_user_needed(lab->satellites, &user, &err), ERR_CONFLICT);
    CHECK_ERR(satellites_user_needed(second, &user, &err), ERR_CONFLICT); /* it has no table yet */
    user.name = STR("us-central-1");
    CHECK_OK(satellites_user_needed(lab->satellites, &user, &err));
    user.name = STR("alice");
    CHECK_OK(satellites_user_needed(lab->satellites, &user, &err));
    satellites_close(second);
}

/* A process that could not load the users does not know which storages are satellites, and makes no
 * second archive. */
TEST(archive_satellites, users_that_are_not_loaded_are_not_taken_for_no_table)
{
    struct redis_server server = {0};
    struct satellites *second = NULL;
    struct satellites_lab lab;
    struct four four = {0};
    struct users *unloaded;
    struct store *store;
    struct reply *reply;
    struct slots t;
    struct err err = {0};
    char key_file[256];

    need_redis_server(&server);
    redis_server_kill(&server);
    four_open_embedded(&four);
    satellites_lab_open(&lab, &four, LAB_LOCAL);
    satellites_lab_add(&lab, 3);
    CHECK_OK(store_call(four.stores[DB_APP], &lab.arena, &reply, &err, STR("FLUSHDB")));
    snprintf(key_file, sizeof(key_file), "%s/secrets.key", test_dir());
    store = store_with((struct store_redis_options){.url = str_z(server.url), .timeout_ms = 100});
    CHECK_OK(users_open(&unloaded, store, key_file, NULL, &err));
    struct satellites_options o = lab.options;
    o.users = unloaded;
    CHECK_OK(satellites_open(&second, &o, &err));
    CHECK_OK(satellites_ready(second, &err)); /* there may be no archive */
    CHECK_ERR(satellites_current(second, &t, true, &err), ERR_UNAVAILABLE);
    CHECK(str_find(str_z(err.text), STR("users could not be loaded")) >= 0);
    satellites_close(second);
    users_close(unloaded);
    store_close(store);
    satellites_lab_close(&lab);
    four_close(&four);
    redis_server_kill(&server);
}

/* Two processes that change the table at once: one of the changes follows the other. */
struct racer {
    struct satellites *s;
    struct thread thread;
    unsigned slot;
    int code;
};

static void racer_run(void *ctx)
{
    struct racer *r = ctx;
    struct err err = {0};

    r->code = satellites_arrive(r->s, r->slot, &err);
}

SATELLITES_TEST(archive_satellites, changes_at_the_same_time_follow_each_other)
{
    enum { RACERS = 4 };
    struct racer racers[RACERS] = {0};
    struct slots t;
    struct err err = {0};
    unsigned slot = 0;

    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    t = satellites_lab_table(lab);
    for (int i = 0; i < RACERS; i++, slot++) {
        while (!slots_moves(&t, slot) || slot == 0xa6)
            slot++;
        racers[i] = (struct racer){.s = satellites_lab_second(lab), .slot = slot};
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, racer_run, &racers[i], &err));
    }
    for (int i = 0; i < RACERS; i++) {
        thread_join(&racers[i].thread);
        CHECK_INT(racers[i].code, 0);
        satellites_close(racers[i].s);
    }
    CHECK_OK(satellites_current(lab->satellites, &t, false, &err));
    CHECK_INT(t.epoch, 2 + RACERS);
    CHECK_INT(slots_moving(&t), 128 - RACERS);
    expect_map(lab, 2 + RACERS, 2);
}

/* A process reads the tables, and others change the table between two of its reads. */
struct slow_reader {
    struct satellites_lab *lab;
    bool counts;
    pthread_t reader; /* the thread whose reads count; the process has other threads that read */
    unsigned reads;   /* tables that this thread has read */
};

static int slow_bucket(void *ctx, struct arena *a, struct str host, struct str *out,
                       struct err *why)
{
    struct slow_reader *r = ctx;
    struct err err = {0};
    struct slots t;

    (void)why;
    *out = arena_str(a, host);
    if (!r->counts || !pthread_equal(pthread_self(), r->reader) || ++r->reads != 2)
        return 0;
    t = satellites_lab_table(r->lab);
    for (unsigned slot = 0, ended = 0; ended < 3; slot++)
        if (slots_moves(&t, slot) && slot != 0xa6) {
            CHECK_OK(satellites_arrive(r->lab->satellites, slot, &err));
            ended++;
        }
    return 0;
}

SATELLITES_TEST(archive_satellites, a_slow_reader_does_not_think_that_a_satellite_was_set_back)
{
    struct slow_reader reader = {.lab = lab, .reader = pthread_self()};
    struct slots t;
    struct err err = {0};

    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    struct satellites_options o = lab->options;
    struct satellites *slow;
    o.changed = NULL;
    o.bucket = slow_bucket;
    o.ctx = &reader;
    CHECK_OK(satellites_open(&slow, &o, &err));
    reader.counts = true;
    CHECK_OK(satellites_agree(slow, false, &t, &err));
    CHECK(reader.reads > 2);
    CHECK_INT(t.epoch, 2 + 3);
    satellites_close(slow);
}

/* Somebody else adds or drains a satellite, and dies. */
SATELLITES_TEST(archive_satellites, a_change_waits_for_the_lock_of_another)
{
    enum { OTHER_MS = 700 };
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    satellites_lab_add(lab, 2);
    uint64_t since = clock_mono_ms();
    CHECK_OK(store_call(lab->options.app, &a, &reply, &err, STR("SET"), SATELLITES_LOCK,
                        STR("other"), STR("PX"), arena_fmt(&a, "%d", OTHER_MS)));
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    CHECK(clock_mono_ms() - since >= OTHER_MS / 2);
    CHECK_OK(store_call(lab->options.app, &a, &reply, &err, STR("EXISTS"), SATELLITES_LOCK));
    CHECK_INT(reply->integer, 0);
    arena_release(&a);
}

SATELLITES_TEST(archive_satellites, a_bucket_is_used_when_a_satellite_has_an_object_in_it)
{
    struct str bucket;
    struct err err = {0};
    bool used = true;

    CHECK_OK(satellites_bucket_used(lab->satellites, &lab->arena, STR("github.com"), &used, &err));
    CHECK(!used);
    satellites_lab_add(lab, 3);
    CHECK_OK(satellites_bucket_used(lab->satellites, &lab->arena, STR("github.com"), &used, &err));
    CHECK(used); /* by the tables of slots */
    CHECK_OK(satellites_bucket(lab->satellites, &lab->arena, STR("a.example"), &bucket, &err));
    CHECK_OK(satellites_bucket_used(lab->satellites, &lab->arena, bucket, &used, &err));
    CHECK(!used);
    CHECK_OK(satellites_make_bucket(lab->satellites, STR("us-central-1"), bucket, NULL, &err));
    CHECK_OK(satellites_bucket_used(lab->satellites, &lab->arena, bucket, &used, &err));
    CHECK(!used);
    struct shelf s;
    struct archive_account c;
    CHECK_OK(archive_account_make(&c, &lab->arena, STR("a.example"), STR("octocat"), &err));
    CHECK_OK(shelf_open(&s, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_put_bytes(&s, &lab->arena,
                             archive_key(&c, &lab->arena, ARCHIVE_ADDED, STR_EMPTY), STR("x"), NULL,
                             "text/plain", 0, NULL, &err));
    shelf_close(&s);
    CHECK_OK(satellites_bucket_used(lab->satellites, &lab->arena, bucket, &used, &err));
    CHECK(used);
}
