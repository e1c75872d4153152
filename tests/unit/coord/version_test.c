/* Version vectors over both engines (docs/replication.md V1 to V4). */
#include "coord/version.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

static const struct thing object = {
    .kind = THING_OBJECT, .bucket = {"photos", 6}, .object = {"a.jpg", 5}};
static const struct place source = {.storage = {"main", 4}}, backup = {.storage = {"backup", 6}},
                          cold = {.storage = {"cold", 4}, .bucket = {"archive", 7}};

static void check_key(const struct thing *t, const char *want)
{
    struct buf b = {0};

    version_key(&b, t);
    CHECK_STR(buf_str(&b), str_z(want));
    buf_release(&b);
}

TEST(version, keys_are_the_seeds)
{
    check_key(&object, "photos:a.jpg");
    check_key(&(struct thing){THING_OBJECT, STR("b"), STR("o"), STR("v1")}, "b:o:v1");
    check_key(&(struct thing){THING_OBJECT_TAGS, STR("photos"), STR("a:t"), STR("")},
              "photos:a%3At:t");
    check_key(&(struct thing){THING_OBJECT_ACL, STR("photos"), STR("x"), STR("v")}, "photos:x:v:a");
    check_key(&(struct thing){THING_BUCKET, STR("photos"), STR(""), STR("")}, "b:photos");
    check_key(&(struct thing){THING_BUCKET_TAGS, STR("photos"), STR(""), STR("")}, "b:photos:t");
    check_key(&(struct thing){THING_BUCKET_ACL, STR("photos"), STR(""), STR("")}, "b:photos:a");
}

static int64_t bump(struct four *f, const struct place *p)
{
    struct err err = {0};
    int64_t n;

    CHECK_OK(version_bump(f->stores[DB_APP], &object, p, &n, &err));
    return n;
}

static void confirm(struct four *f, const struct place *to, int64_t number, bool gone)
{
    struct version_confirmation c = {.things = &object,
                                     .numbers = &number,
                                     .count = 1,
                                     .source = &source,
                                     .destination = to,
                                     .gone = gone};
    struct err err = {0};

    CHECK_OK(version_confirm(f->stores[DB_APP], &c, &err));
}

static int64_t at(struct four *f, const struct place *p)
{
    struct arena a = {0};
    struct vector v;
    struct err err = {0};

    CHECK_OK(version_read(f->stores[DB_APP], &a, &object, &v, &err));
    int64_t n = vector_at(&v, p);
    arena_release(&a);
    return n;
}

TEST_FOUR(version, a_bump_is_above_every_other_number)
{
    CHECK_INT(bump(f, &source), 1);
    CHECK_INT(bump(f, &source), 2);
    confirm(f, &backup, 2, false);
    CHECK_INT(bump(f, &backup), 3); /* written on the other side during a switch */
    CHECK_INT(bump(f, &source), 4);
    CHECK_INT(at(f, &source), 4);
    CHECK_INT(at(f, &backup), 3);
    CHECK_INT(at(f, &cold), 0);
}

TEST_FOUR(version, a_confirmation_never_goes_back_nor_past_the_source)
{
    for (int i = 0; i < 5; i++)
        bump(f, &source);
    confirm(f, &cold, 4, false);
    check_reply(f->stores[DB_APP], "HGET photos:a.jpg cold:archive", "\"4\"");
    confirm(f, &cold, 3, false);
    CHECK_INT(at(f, &cold), 4);
    confirm(f, &cold, 6, false);
    CHECK_INT(at(f, &cold), 4);
    confirm(f, &cold, 5, false);
    CHECK_INT(at(f, &cold), 5);
}

TEST_FOUR(version, a_deletion_that_all_have_is_forgotten_after_a_day)
{
    struct store *s = f->stores[DB_APP];

    bump(f, &source);
    confirm(f, &backup, 1, false);
    bump(f, &source); /* the deletion */
    bump(f, &source);
    confirm(f, &backup, 2, true);
    check_reply(s, "TTL photos:a.jpg", "-1"); /* one is behind */
    confirm(f, &backup, 3, true);
    check_reply(s, "EXPIRETIME photos:none", "-2");
    const char *ttl;
    CHECK_INT(ask(s, "TTL photos:a.jpg", &ttl), 0);
    CHECK(ttl[0] != '-');
    CHECK_INT(bump(f, &source), 4); /* V3: it goes on, and lives */
    check_reply(s, "TTL photos:a.jpg", "-1");
}

TEST_FOUR(version, who_lost_the_lock_confirms_nothing)
{
    struct store *app = f->stores[DB_APP], *locks = f->stores[DB_LOCK];
    int64_t number = 1;
    struct version_confirmation c = {.things = &object,
                                     .numbers = &number,
                                     .count = 1,
                                     .source = &source,
                                     .destination = &backup,
                                     .locks = locks,
                                     .lock_key = STR("lk:x"),
                                     .lock_token = STR("mine")};
    struct err err = {0};

    bump(f, &source);
    CHECK_ERR(version_confirm(app, &c, &err), ERR_CONFLICT);
    check_reply(locks, "SET lk:x another", "OK");
    CHECK_ERR(version_confirm(app, &c, &err), ERR_CONFLICT);
    CHECK_INT(at(f, &backup), 0);
    check_reply(locks, "SET lk:x mine", "OK");
    CHECK_OK(version_confirm(app, &c, &err));
    CHECK_INT(at(f, &backup), 1);
}

TEST_FOUR(version, several_vectors_are_read_and_confirmed_in_one_step)
{
    struct thing things[] = {object, object, object};
    struct version_places places = {&source, &cold};
    struct version_pair pairs[3];
    struct version_confirmation c = {.things = things,
                                     .numbers = (const int64_t[]){2, 5, 0},
                                     .count = 3,
                                     .source = &source,
                                     .destination = &cold,
                                     .gone = true};
    struct store *app = f->stores[DB_APP];
    struct arena a = {0};
    struct err err = {0};

    things[1].kind = THING_OBJECT_TAGS;
    things[2].kind = THING_OBJECT_ACL;
    check_reply(app, "HSET photos:a.jpg main 2 cold:archive 1", "2");
    check_reply(app, "HSET photos:a.jpg:t main 5", "1");
    CHECK_OK(version_read_pairs(app, &a, things, 3, &places, pairs, &err));
    CHECK_INT(pairs[0].from, 2);
    CHECK_INT(pairs[0].to, 1);
    CHECK_INT(pairs[1].from, 5);
    CHECK_INT(pairs[1].to, 0);
    CHECK_INT(pairs[2].from, 0);
    CHECK_OK(version_confirm(app, &c, &err));
    check_reply(app, "HGET photos:a.jpg cold:archive", "\"2\"");
    check_reply(app, "HGET photos:a.jpg:t cold:archive", "\"5\"");
    check_reply(app, "EXISTS photos:a.jpg:a", "0");
    check_reply(app, "PERSIST photos:a.jpg:t", "1"); /* all agree that it is gone */
    arena_release(&a);
}

TEST_FOUR(version, a_place_is_taken_out_of_all_vectors_of_a_bucket)
{
    struct store *s = f->stores[DB_APP];
    struct err err = {0};
    uint64_t cursor = 0;

    check_reply(s, "HSET photos:x main 2 backup 1", "2");
    check_reply(s, "HSET photos:y:t main 2 backup 1", "2");
    check_reply(s, "HSET b:photos main 2 backup 1", "2");
    check_reply(s, "HSET b:photos:a backup 1", "1");
    check_reply(s, "HSET photos2:x main 2 backup 1", "2");
    do {
        CHECK_OK(version_strip(s, STR("photos"), &backup, &cursor, &err));
    } while (cursor);
    check_reply(s, "HGETALL photos:x", "[\"main\", \"2\"]");
    check_reply(s, "HGETALL photos:y:t", "[\"main\", \"2\"]");
    check_reply(s, "HGETALL b:photos", "[\"main\", \"2\"]");
    check_reply(s, "EXISTS b:photos:a", "0");
    check_reply(s, "HLEN photos2:x", "2");
}

TEST_FOUR(version, many_are_read_at_once)
{
    struct thing things[] = {object,
                             {THING_OBJECT, STR("photos"), STR("no: such"), STR_EMPTY},
                             {THING_BUCKET, STR("photos"), STR_EMPTY, STR_EMPTY}};
    struct arena a = {0};
    struct vector v[ARRAY_SIZE(things)];
    struct err err = {0};

    bump(f, &source);
    bump(f, &cold);
    CHECK_OK(version_bump(f->stores[DB_APP], &things[2], &backup, NULL, &err));
    CHECK_OK(version_read_many(f->stores[DB_APP], &a, things, ARRAY_SIZE(things), v, &err));
    CHECK_INT(v[0].count, 2);
    CHECK_INT(vector_at(&v[0], &source), 1);
    CHECK_INT(vector_at(&v[0], &cold), 2);
    CHECK_INT(v[1].count, 0);
    CHECK_INT(vector_at(&v[2], &backup), 1);
    CHECK_OK(version_read_many(f->stores[DB_APP], &a, things, 0, v, &err));
    arena_release(&a);
}
