/* Moves: slots go to another satellite while accounts are read, synced, killed and damaged. */
#include "object/overlay.h"
#include "object/remote/remote.h"
#include "unit/archive/satellites_lab.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOGINS = 24 };

static const char *login_of(unsigned i)
{
    static char name[LOGINS][16];

    snprintf(name[i], sizeof(name[i]), "user-%u", i);
    return name[i];
}

/* Accounts with a bundle, a ZIP and a record each. */
static void fill(struct satellites_lab *lab)
{
    for (unsigned i = 0; i < LOGINS; i++) {
        satellites_lab_put(lab, login_of(i), "repo.bundle", satellites_lab_bundle(lab, i));
        satellites_lab_put(lab, login_of(i), "repo.zip", STR("zip"));
        satellites_lab_put(lab, login_of(i), ".json", STR("{}"));
    }
}

static void expect_all(struct satellites_lab *lab)
{
    for (unsigned i = 0; i < LOGINS; i++) {
        satellites_lab_expect(lab, login_of(i), "repo.bundle", satellites_lab_bundle(lab, i));
        satellites_lab_expect(lab, login_of(i), "repo.zip", STR("zip"));
        satellites_lab_expect(lab, login_of(i), ".json", STR("{}"));
    }
}

static struct str header_of(const struct object_info *info, struct str name)
{
    for (size_t i = 0; i < info->meta.header_count; i++)
        if (str_ieq(info->meta.headers[i].name, name))
            return info->meta.headers[i].value;
    return STR_EMPTY;
}

/* Every object is on its satellite alone, with the metadata that it was put with. */
static void expect_homes(struct satellites_lab *lab)
{
    static const char *const names[] = {"repo.bundle", "repo.zip", ".json"};

    for (unsigned i = 0; i < LOGINS; i++)
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            struct str key = satellites_lab_key(lab, login_of(i), names[k]);
            struct object_info info;
            CHECK_INT(satellites_lab_copies(lab, key), 1);
            CHECK_INT(
                satellites_lab_look(lab, satellites_lab_home(lab, login_of(i)), key, &info, NULL),
                0);
            CHECK_STR(header_of(&info, STR("x-amz-meta-mtime")), STR("1700000000.125"));
            CHECK_STR(header_of(&info, STR("x-amz-meta-fence")), STR("77"));
            CHECK_STR(header_of(&info, STR("content-type")), STR("application/x-git"));
        }
}

/* Adds the fourth satellite; a quarter of the slots begins to move. */
static struct slots add_fourth(struct satellites_lab *lab)
{
    struct satellite_wanted wanted = {.name = STR("zone-4")};
    struct satellite_made made;
    struct slots before = satellites_lab_table(lab), t;
    struct err err = {0};

    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    t = satellites_lab_table(lab);
    CHECK_INT(slots_moving(&t), 64);
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK(t.of[s] == before.of[s] || t.of[s] == 3);
    return t;
}

SATELLITES_TEST(archive_move, add_satellite_moves_quarter)
{
    struct slots t;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    fill(lab);
    t = add_fourth(lab);
    expect_all(lab); /* read_during_slot_move: nothing has moved yet */
    satellites_lab_move_all(lab);
    struct slots after = satellites_lab_table(lab);
    CHECK_INT(slots_moving(&after), 0);
    CHECK_INT(after.epoch, t.epoch + 64);
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK_INT(after.of[s], t.of[s]);
    expect_all(lab);
    expect_homes(lab);
    CHECK(atomic_load(&satellites_moves(lab->satellites)->accounts) > 0);
    /* Old tables do not stay for ever, and a start finds the newest. */
    CHECK_INT(satellites_lab_look(lab, "asia-east-1", STR("_map/2.json"), NULL, NULL),
              ERR_NOT_FOUND);
    satellites_lab_restart(lab);
    CHECK_INT(satellites_lab_table(lab).epoch, after.epoch);
    CHECK_OK(satellites_ready(lab->satellites, &err));
}

static size_t policies_to(struct satellites_lab *lab, const char *satellite)
{
    struct route_policy *all = NULL;
    size_t count = 0, n = 0;
    struct err err = {0};

    CHECK_OK(route_list(lab->routes, &lab->arena, &all, &count, &err));
    for (size_t i = 0; i < count; i++)
        n += str_eq(all[i].storage, str_z(satellite));
    return n;
}

/* Nothing leads to the satellite. Nothing that weir has made is left in the folder of a storage; on
 * a remote storage the bucket stays, and with it the user. */
static void expect_gone(struct satellites_lab *lab, const char *satellite)
{
    struct storage *at = routes_storage(lab->routes, str_z(satellite));
    struct str id = arena_fmt(&lab->arena, "satellite-%s", satellite);
    bool is_remote = storage_can(at, STORAGE_CREDENTIALS);
    struct bucket_info *list = NULL;
    size_t count = 0;
    struct user user;
    struct err err = {0};

    CHECK_OK(storage_list_buckets(at, &lab->arena, id, STR_EMPTY, 10, &list, &count, &err));
    CHECK_INT(count, is_remote ? 1 : 0);
    CHECK_INT(policies_to(lab, satellite), 0);
    CHECK_ERR(users_by_name(lab->users, &lab->arena, str_z(satellite), &user, &err),
              is_remote ? 0 : ERR_NOT_FOUND);
}

/* What is not the archive's stays, and with it the bucket and the user. Nothing leads there. */
SATELLITES_TEST(archive_move, what_is_not_of_the_archive_stays_on_a_drained_satellite)
{
    struct user user;
    struct err err = {0};

    satellites_lab_add(lab, 2);
    satellites_lab_write(lab, "asia-east-1", STR("mine.txt"), STR("mine"));
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    satellites_lab_move_all(lab);
    struct slots t = satellites_lab_table(lab);
    CHECK_INT(t.count, 1);
    CHECK_INT(policies_to(lab, "asia-east-1"), 0);
    CHECK_OK(users_by_name(lab->users, &lab->arena, STR("asia-east-1"), &user, &err));
    CHECK_INT(satellites_lab_look(lab, "asia-east-1", STR("mine.txt"), NULL, NULL), 0);
}

/* weir was killed between the table and the end of the policy: draining once more ends it. */
SATELLITES_TEST(archive_move, what_a_kill_leaves_of_a_drained_satellite_is_removed_by_another_drain)
{
    struct satellite_wanted wanted = {.name = STR("asia-east-1")};
    struct satellite_prepared prepared = {0};
    struct err err = {0};

    satellites_lab_add(lab, 2);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    satellites_lab_move_all(lab);
    expect_gone(lab, "asia-east-1");
    CHECK_ERR(satellites_drain(lab->satellites, STR("asia-east-1"), &err), ERR_NOT_FOUND);
    CHECK_OK(satellites_prepare(lab->satellites, &lab->arena, &wanted, 1, &prepared, &err));
    CHECK_INT(policies_to(lab, "asia-east-1"), 1);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    expect_gone(lab, "asia-east-1");
}

/* weir was killed between the end of the policy and that of the buckets and the user. */
SATELLITES_TEST(archive_move, a_drain_that_was_cut_off_behind_the_policy_is_ended_by_another)
{
    struct satellite_wanted wanted = {.name = STR("asia-east-1")};
    struct satellite_prepared prepared = {0};
    struct err err = {0};

    satellites_lab_add(lab, 2);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    satellites_lab_move_all(lab);
    expect_gone(lab, "asia-east-1");
    CHECK_OK(satellites_prepare(lab->satellites, &lab->arena, &wanted, 1, &prepared, &err));
    CHECK_OK(route_set(lab->routes, prepared.made.user, STR_EMPTY, STR_EMPTY, &err));
    /* The buckets of a remote storage stay, and with them their user. */
    bool is_remote =
        storage_can(routes_storage(lab->routes, STR("asia-east-1")), STORAGE_CREDENTIALS);
    CHECK_INT(satellites_drain(lab->satellites, STR("asia-east-1"), &err),
              is_remote ? ERR_NOT_FOUND : 0);
    expect_gone(lab, "asia-east-1");
    CHECK_ERR(satellites_drain(lab->satellites, STR("asia-east-1"), &err), ERR_NOT_FOUND);
}

/* weir was killed between the move of the last slot and the table without the satellite. */
SATELLITES_TEST(archive_move, a_satellite_whose_slots_have_moved_leaves_by_itself)
{
    struct slots *tables = xcalloc(2, sizeof(*tables)), *now = &tables[0], *next = &tables[1];
    bool all[SLOT_COUNT];
    struct err err = {0};

    satellites_lab_add(lab, 2);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    *now = satellites_lab_table(lab);
    memset(all, true, sizeof(all));
    CHECK(slots_arrive(next, now, all));
    CHECK_OK(satellites_decide(lab->satellites, next, now, &err));
    CHECK_INT(policies_to(lab, "asia-east-1"), 1);
    CHECK_OK(satellites_settle(lab->satellites, &err));
    CHECK_INT(satellites_lab_table(lab).count, 1);
    expect_gone(lab, "asia-east-1");
    free(tables);
}

/* A user whom weir has not made stays, with its buckets. */
SATELLITES_TEST(archive_move, a_user_that_weir_did_not_make_stays_after_a_drain)
{
    struct satellite_wanted wanted = {.name = STR("asia-east-1")};
    struct user user, made_before = {.name = STR("asia-east-1"), .id = STR("the-operators")};
    struct remote_credential c = {.access = STR("AKIAowner00000000"),
                                  .secret = STR("secret-of-owner-secret-of"),
                                  .user = STR("the-operators")};
    struct storage *at = routes_storage(lab->routes, STR("asia-east-1"));
    struct satellite_made made;
    struct err err = {0};

    CHECK_OK(users_add(lab->users, &lab->arena, &made_before, &user, &err));
    if (storage_can(at, STORAGE_CREDENTIALS))
        CHECK_OK(remote_set_credential(at, &c, &err));
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    CHECK_INT(made.key.secret.len, 0);
    wanted.name = STR("europe-west-1");
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    satellites_lab_move_all(lab);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(satellites_lab_table(lab).count, 1);
    CHECK_INT(policies_to(lab, "asia-east-1"), 0);
    CHECK_OK(users_by_name(lab->users, &lab->arena, STR("asia-east-1"), &user, &err));
}

SATELLITES_TEST(archive_move, a_drained_satellite_ends_empty_and_outside)
{
    struct err err = {0};

    satellites_lab_add(lab, 3);
    fill(lab);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    expect_all(lab);
    satellites_lab_move_all(lab);
    struct slots t = satellites_lab_table(lab);
    CHECK_INT(t.count, 2);
    CHECK_INT(slots_find(&t, STR("asia-east-1")), -1);
    expect_gone(lab, "asia-east-1");
    expect_all(lab);
    expect_homes(lab);
    satellites_lab_restart(lab);
    CHECK_INT(satellites_lab_table(lab).count, 2);
    /* It may come back. */
    struct satellite_wanted wanted = {.name = STR("asia-east-1")};
    struct satellite_made made;
    CHECK_OK(satellites_add(lab->satellites, &lab->arena, &wanted, 1, &made, &err));
    satellites_lab_move_all(lab);
    expect_all(lab);
    expect_homes(lab);
}

/* A login whose slot moves to the fourth satellite. */
static unsigned mover_of(const struct slots *t, struct satellites_lab *lab)
{
    for (unsigned i = 0; i < LOGINS; i++)
        if (slots_moves(t, satellites_lab_account(lab, login_of(i)).hash[0]))
            return i;
    test_fail(__FILE__, __LINE__, "no account moves");
}

/* Stops after `left` questions. */
struct stopper {
    int left;
};

static bool stopper_ended(void *ctx)
{
    struct stopper *s = ctx;

    return s->left-- <= 0;
}

/* The task ends at each of its steps; afterwards reads find everything, and the task goes on. */
SATELLITES_TEST(archive_move, read_during_slot_move)
{
    struct slots t;
    struct err err = {0};
    uint64_t since = 0;
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    t = add_fourth(lab);
    unsigned i = mover_of(&t, lab), slot = satellites_lab_account(lab, login_of(i)).hash[0];
    for (int steps = 0;; steps++) {
        struct stopper stop = {steps};
        int code = moves_slot(lab->moves, slot, stopper_ended, &stop, &moved, &err);
        satellites_lab_expect(lab, login_of(i), "repo.bundle", satellites_lab_bundle(lab, i));
        satellites_lab_expect(lab, login_of(i), "repo.zip", STR("zip"));
        satellites_lab_expect(lab, login_of(i), ".json", STR("{}"));
        if (code == 0)
            break;
        CHECK(code == ERR_CANCELED || code == ERR_AGAIN);
        steps -= code == ERR_AGAIN; /* the lock of the last try has not expired */
        CHECK(steps < 20 && test_waits(&since));
    }
    CHECK_INT(satellites_lab_copies(lab, satellites_lab_key(lab, login_of(i), "repo.zip")), 1);
}

/* A listing of an account that is half moved shows every object once. */
SATELLITES_TEST(archive_move, a_listing_shows_both_sides)
{
    struct list_result list;
    struct shelf s;
    struct err err = {0};
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    struct slots t = add_fourth(lab);
    unsigned i = mover_of(&t, lab);
    struct archive_account c = satellites_lab_account(lab, login_of(i));
    struct list_options o = {.prefix = archive_folder(&c, &lab->arena), .limit = 10};
    struct stopper stop = {1}; /* the bundle is copied, and the task stops */
    CHECK_ERR(moves_slot(lab->moves, c.hash[0], stopper_ended, &stop, &moved, &err), ERR_CANCELED);
    CHECK_INT(satellites_lab_copies(lab, satellites_lab_key(lab, login_of(i), "repo.bundle")), 2);
    CHECK_OK(shelf_open(&s, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_list(&s, &lab->arena, &o, &list, &err));
    CHECK_INT(list.count, 2);
    shelf_close(&s);
}

SATELLITES_TEST(archive_move, an_account_that_is_synced_is_left_and_one_that_is_claimed_moves_first)
{
    struct schedule_claim claim;
    struct shelf s;
    struct err err = {0};
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    struct slots t = add_fourth(lab);
    unsigned i = mover_of(&t, lab);
    struct archive_account c = satellites_lab_account(lab, login_of(i));
    struct str key = satellites_lab_key(lab, login_of(i), "repo.zip");
    CHECK_OK(schedule_take(lab->schedule, &lab->arena, &c, &claim, &err));
    CHECK_ERR(moves_slot(lab->moves, c.hash[0], NULL, NULL, &moved, &err), ERR_AGAIN);
    CHECK_INT(satellites_lab_look(lab, "zone-4", key, NULL, NULL), ERR_NOT_FOUND);
    CHECK_OK(shelf_open_claimed(&s, lab->satellites, &lab->arena, &c, claim.lock, &err));
    CHECK_STR(s.satellite, STR("zone-4"));
    CHECK_INT(s.leaves.len, 0);
    CHECK_INT(satellites_lab_look(lab, "zone-4", key, NULL, NULL), 0);
    CHECK_INT(satellites_lab_copies(lab, key), 1);
    shelf_close(&s);
    CHECK_OK(schedule_end_back(&claim, &err));
    satellites_lab_move(lab, c.hash[0]);
    expect_all(lab);
}

/* Both sides have an object of one key: nothing is lost. */
SATELLITES_TEST(archive_move, an_object_that_both_sides_have_is_kept_aside)
{
    struct err err = {0};
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    struct slots t = add_fourth(lab);
    unsigned i = mover_of(&t, lab);
    struct archive_account c = satellites_lab_account(lab, login_of(i));
    const char *from = t.names[t.leaves[c.hash[0]]];
    satellites_lab_write(lab, "zone-4", satellites_lab_key(lab, login_of(i), "repo.bundle"),
                         satellites_lab_bundle(lab, 99));
    CHECK_OK(moves_slot(lab->moves, c.hash[0], NULL, NULL, &moved, &err));
    satellites_lab_expect(lab, login_of(i), "repo.bundle", satellites_lab_bundle(lab, 99));
    CHECK_INT(atomic_load(&satellites_moves(lab->satellites)->aside), 1);
    CHECK_INT(satellites_lab_look(lab, from, satellites_lab_key(lab, login_of(i), "repo.bundle"),
                                  NULL, NULL),
              ERR_NOT_FOUND);
    struct list_options o = {.prefix = satellites_lab_key(lab, login_of(i), "repo@moved-"),
                             .limit = 10};
    struct list_result list;
    struct shelf s;
    CHECK_OK(shelf_open(&s, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_list(&s, &lab->arena, &o, &list, &err));
    CHECK_INT(list.count, 1);
    struct buf bytes = {0};
    CHECK_OK(shelf_read(&s, &lab->arena, list.entries[0].info.key, 1 << 20, &bytes, NULL, &err));
    CHECK_STR(buf_str(&bytes), satellites_lab_bundle(lab, i));
    buf_release(&bytes);
    shelf_close(&s);
}

/* A verdict is about the bundle that it was made for, so an older verdict is dropped. */
SATELLITES_TEST(archive_move, an_old_verdict_is_not_kept_aside)
{
    struct err err = {0};
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    struct slots t = add_fourth(lab);
    unsigned i = mover_of(&t, lab);
    struct archive_account c = satellites_lab_account(lab, login_of(i));
    struct str key = satellites_lab_key(lab, login_of(i), "repo@audit.json");
    satellites_lab_write(lab, t.names[t.leaves[c.hash[0]]], key, STR("{\"old\":1}"));
    satellites_lab_write(lab, "zone-4", key, STR("{}"));
    CHECK_OK(moves_slot(lab->moves, c.hash[0], NULL, NULL, &moved, &err));
    satellites_lab_expect(lab, login_of(i), "repo@audit.json", STR("{}"));
    CHECK_INT(atomic_load(&satellites_moves(lab->satellites)->aside), 0);
    CHECK_INT(satellites_lab_copies(lab, key), 1);
}

/* A body during whose transfer the slot moves. */
struct overtaken_body {
    struct reader reader;
    struct str_reader text;
    struct satellites_lab *lab;
    void (*overtake)(struct satellites_lab *lab);
    bool overtaken;
};

static int overtaken_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct overtaken_body *b = container_of(r, struct overtaken_body, reader);

    if (!b->overtaken) {
        b->overtaken = true;
        b->overtake(b->lab);
    }
    return reader_read(&b->text.reader, to, len, got, err);
}

/* Puts an object without a lock, as a verdict is put. The slot moves during the put. */
static int put_overtaken(struct satellites_lab *lab, const char *login,
                         void (*overtake)(struct satellites_lab *lab), struct err *err)
{
    static const struct reader_ops ops = {.read = overtaken_read};
    struct overtaken_body body = {.reader = {&ops}, .lab = lab, .overtake = overtake};
    struct archive_account c = satellites_lab_account(lab, login);
    struct str key = satellites_lab_key(lab, login, "x@audit.json");
    struct put_options o = {0};
    struct put_result result;
    struct shelf s;

    str_reader_init(&body.text, STR("{}"));
    CHECK_INT(shelf_open(&s, lab->satellites, &lab->arena, &c, err), 0);
    int code = shelf_put(&s, &lab->arena, key, &body.reader, 2, &o, &result, err);
    shelf_close(&s);
    CHECK(body.overtaken);
    return code;
}

static void overtake_by_newcomer(struct satellites_lab *lab)
{
    add_fourth(lab);
    satellites_lab_move_all(lab);
}

SATELLITES_TEST(archive_move, an_object_that_is_put_while_its_slot_moves_away_follows)
{
    struct slots t, next;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    fill(lab);
    t = satellites_lab_table(lab);
    CHECK_OK(slots_add(&next, &t, STR("zone-4"), &err));
    unsigned i = mover_of(&next, lab);
    struct str key = satellites_lab_key(lab, login_of(i), "x@audit.json");
    CHECK_OK(put_overtaken(lab, login_of(i), overtake_by_newcomer, &err));
    CHECK_INT(satellites_lab_copies(lab, key), 1);
    CHECK_INT(satellites_lab_look(lab, "zone-4", key, NULL, NULL), 0);
    satellites_lab_expect(lab, login_of(i), "x@audit.json", STR("{}"));
}

static void overtake_by_drain(struct satellites_lab *lab)
{
    struct err err = {0};

    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    satellites_lab_move_all(lab);
}

/* Nothing leads to a satellite that has left the table, so the object could not be found there. */
SATELLITES_TEST(archive_move, an_object_that_is_put_on_a_satellite_that_leaves_is_not_taken_for_put)
{
    struct err err = {0};

    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    CHECK_STR(str_z(satellites_lab_home(lab, "octocat")), STR("europe-west-1"));
    CHECK(put_overtaken(lab, "octocat", overtake_by_drain, &err) < 0);
    satellites_lab_expect(lab, "octocat", "x@audit.json", STR_EMPTY);
    satellites_lab_put(lab, "octocat", "x@audit.json", STR("{}"));
    satellites_lab_expect(lab, "octocat", "x@audit.json", STR("{}"));
}

/* What is kept aside beside a wiki or a former repository is a bundle by its name too. */
SATELLITES_TEST(archive_move, an_extra_bundle_that_both_sides_have_is_kept_as_a_bundle)
{
    struct list_result list;
    struct shelf s;
    struct err err = {0};
    size_t moved;

    satellites_lab_add(lab, 3);
    fill(lab);
    for (unsigned i = 0; i < LOGINS; i++)
        satellites_lab_put(lab, login_of(i), "repo@7.bundle", satellites_lab_bundle(lab, i));
    struct slots t = add_fourth(lab);
    unsigned i = mover_of(&t, lab);
    struct archive_account c = satellites_lab_account(lab, login_of(i));
    satellites_lab_write(lab, "zone-4", satellites_lab_key(lab, login_of(i), "repo@7.bundle"),
                         satellites_lab_bundle(lab, 99));
    CHECK_OK(moves_slot(lab->moves, c.hash[0], NULL, NULL, &moved, &err));
    struct list_options o = {.prefix = satellites_lab_key(lab, login_of(i), "repo@7@moved-"),
                             .limit = 10};
    CHECK_OK(shelf_open(&s, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_list(&s, &lab->arena, &o, &list, &err));
    CHECK_INT(list.count, 1);
    CHECK(str_ends(list.entries[0].info.key, STR(".bundle")));
    shelf_close(&s);
}

/* Bundles that were damaged before move as they are, and are counted. */
SATELLITES_TEST(archive_move, a_damaged_bundle_moves_and_is_reported)
{
    struct err err = {0};

    satellites_lab_add(lab, 2);
    struct str bundle = satellites_lab_bundle(lab, 1);
    char *bytes = (char *)bundle.p;
    bytes[bundle.len / 2] ^= 1;
    satellites_lab_put(lab, "octocat", "a.bundle", bundle);
    satellites_lab_put(lab, "octocat", "b.bundle", STR("# v2 git bundle\n"));
    satellites_lab_put(lab, "octocat", "c.bundle", STR("no bundle\n"));
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(atomic_load(&satellites_moves(lab->satellites)->damaged), 3);
    satellites_lab_expect(lab, "octocat", "a.bundle", bundle);
    satellites_lab_expect(lab, "octocat", "c.bundle", STR("no bundle\n"));
}

/* An object of parts has the same ETag afterwards. */
SATELLITES_TEST(archive_move, an_object_of_parts_keeps_its_etag)
{
    struct str bundle = satellites_lab_bundle(lab, 5);
    struct str key = satellites_lab_key(lab, "octocat", "a.bundle");
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct object_meta meta = {0};
    struct upload_info upload;
    struct upload_part parts[2] = {0};
    struct put_result result;
    struct object_info info;
    struct shelf s;
    struct err err = {0};

    CHECK(bundle.len > 2 * LAB_PART_MIN);
    satellites_lab_add(lab, 2);
    CHECK_OK(shelf_open(&s, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_upload_begin(&s, &lab->arena, key, &meta, &upload, &err));
    for (uint32_t i = 0; i < 2; i++) {
        struct str half = i == 0 ? str_head(bundle, 150) : str_skip(bundle, 150);
        struct str_reader body;
        str_reader_init(&body, half);
        CHECK_OK(shelf_upload_part(&s, &lab->arena, &upload, i + 1, &body.reader, half.len,
                                   &parts[i], &err));
        parts[i].number = i + 1;
    }
    CHECK_OK(shelf_upload_finish(&s, &lab->arena, &upload, parts, 2, NULL, &result, &err));
    shelf_close(&s);
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(satellites_lab_look(lab, "asia-east-1", key, &info, NULL), 0);
    CHECK_STR(info.etag, result.etag);
    /* The object had no time of its own, so it got the one that it was put at. */
    CHECK(header_of(&info, STR("x-amz-meta-mtime")).len > 0);
    satellites_lab_expect(lab, "octocat", "a.bundle", bundle);
}

/* Objects of others in the same bucket stay, and do not hold the move up. */
SATELLITES_TEST(archive_move, objects_of_others_stay)
{
    struct err err = {0};

    satellites_lab_add(lab, 2);
    satellites_lab_put(lab, "octocat", "x.zip", STR("zip"));
    satellites_lab_write(lab, "europe-west-1", STR("a6/notes.txt"), STR("mine"));
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(satellites_lab_look(lab, "europe-west-1", STR("a6/notes.txt"), NULL, NULL), 0);
    CHECK_INT(satellites_lab_table(lab).count, 1);
    satellites_lab_expect(lab, "octocat", "x.zip", STR("zip"));
}

static int two_hosts(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err)
{
    static struct str hosts[] = {{"github.com", 10}, {"stranger", 8}};

    *out = hosts;
    *count = ARRAY_SIZE(hosts);
    return 0;
}

static int stranger_is_elsewhere(void *ctx, struct arena *a, struct str host, struct str *out,
                                 struct err *err)
{
    *out = str_eq(host, STR("stranger")) ? STR("elsewhere") : host;
    return 0;
}

/* A bucket of a forge that weir does not know any more moves as it is, also if a forge with another
 * bucket has its name. */
SATELLITES_TEST(archive_move, a_bucket_that_no_forge_has_moves_to_the_bucket_of_its_name)
{
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct str key = archive_key(&c, &lab->arena, ARCHIVE_BUNDLE, STR("x"));
    struct buf got = {0};
    struct shelf shelf;
    struct err err = {0};

    lab->options.bucket = stranger_is_elsewhere;
    lab->options.hosts = two_hosts;
    satellites_lab_restart(lab);
    satellites_lab_add(lab, 2);
    CHECK_OK(shelf_open_in(&shelf, lab->satellites, &lab->arena, &c, STR("stranger"), &err));
    CHECK_OK(
        shelf_put_bytes(&shelf, &lab->arena, key, STR("bytes"), NULL, "text/plain", 0, NULL, &err));
    struct str before = shelf.satellite;
    shelf_close(&shelf);
    CHECK_OK(satellites_drain(lab->satellites, before, &err));
    satellites_lab_move_all(lab);
    CHECK_OK(shelf_open_in(&shelf, lab->satellites, &lab->arena, &c, STR("stranger"), &err));
    CHECK(!str_eq(shelf.satellite, before));
    CHECK_OK(shelf_read(&shelf, &lab->arena, key, 100, &got, NULL, &err));
    CHECK_STR(buf_str(&got), STR("bytes"));
    shelf_close(&shelf);
    CHECK_OK(shelf_open_in(&shelf, lab->satellites, &lab->arena, &c, STR("elsewhere"), &err));
    CHECK_ERR(shelf_head(&shelf, &lab->arena, key, &(struct object_info){0}, &err), ERR_NOT_FOUND);
    shelf_close(&shelf);
    buf_release(&got);
}

SATELLITES_TEST(archive_move, tasks_are_added_once_for_each_slot_that_moves)
{
    struct queue_stats *stats;
    size_t count;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    fill(lab);
    add_fourth(lab);
    CHECK_OK(moves_add_tasks(lab->moves, &err));
    CHECK_OK(moves_add_tasks(lab->moves, &err));
    CHECK_OK(queue_list(lab->queue, &lab->arena, &stats, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(stats[0].name, STR("archive"));
    CHECK_INT(stats[0].size[TASK_PENDING], 64);
}
