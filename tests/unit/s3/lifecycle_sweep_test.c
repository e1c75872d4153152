/* lifecycle_sweep: a bucket of a local storage, swept at times that the test chooses; and the race
 * with writers, with a checker. */
#include "s3/lifecycle/lifecycle_sweep.h"

#include "base/clock.h"
#include "object/local/local.h"
#include "os/thread.h"
#include "unit/object/bucket_conformance.h"
#include "unit/object/local_check.h"

#include <stdio.h>

enum { DAY = 1000 * 1000 }; /* far longer than a test runs */

#define RULES(inside)      "<LifecycleConfiguration>" inside "</LifecycleConfiguration>"
#define RULE(inside)       RULES("<Rule><ID>r</ID><Status>Enabled</Status>" inside "</Rule>")
#define ALL                "<Prefix/>"
#define EXPIRE(what)       "<Expiration>" what "</Expiration>"
#define DAYS(n)            "<Days>" n "</Days>"
#define NONCURRENT(inside) "<NoncurrentVersionExpiration>" inside "</NoncurrentVersionExpiration>"

struct house {
    struct db *db;
    struct storage *storage;
    struct bucket *b;
    struct arena a;
    int64_t now; /* when the test began */
};

static void house_open(struct house *h, const char *rules)
{
    struct err err = {0};
    char path[256], folder[256];
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct local_options o = {.name = "test", .folder = folder, .id = 7, .reserve_bytes = 1};

    h->a = ARENA_INIT(0);
    h->now = clock_wall_ms();
    snprintf(path, sizeof(path), "%s/db", test_dir());
    snprintf(folder, sizeof(folder), "%s/storage", test_dir());
    CHECK_OK(db_open(&h->db, &d, &err));
    o.db = h->db;
    CHECK_OK(local_open(&h->storage, &o, &err));
    h->b = lab_bucket(h->storage, "b");
    CHECK_OK(h->b->ops->set_document(h->b, "lifecycle", str_z(rules), &err));
}

static void house_close(struct house *h)
{
    struct err err = {0};

    h->b->ops->unref(h->b);
    local_collect(h->storage);
    CHECK_OK(local_check_whole(h->storage, &err));
    h->storage->ops->close(h->storage);
    db_close(h->db);
    arena_release(&h->a);
}

static void set_rules(struct house *h, const char *rules)
{
    struct err err = {0};

    CHECK_OK(h->b->ops->set_document(h->b, "lifecycle", str_z(rules), &err));
}

static void versions_on(struct house *h)
{
    struct err err = {0};

    CHECK_OK(h->b->ops->set_versions(h->b, true, &err));
}

/* A whole sweep, some days after the beginning. */
static struct lifecycle_counts sweep_by(struct house *h, double days, size_t page)
{
    struct lifecycle_sweep s;
    struct err err = {0};

    lifecycle_sweep_init(&s, h->b, DAY, NULL);
    s.page = page;
    while (!s.done)
        CHECK_OK(lifecycle_sweep_page(&s, h->now + (int64_t)(days * DAY), &err));
    struct lifecycle_counts counts = s.counts;
    lifecycle_sweep_release(&s);
    return counts;
}

static struct lifecycle_counts sweep(struct house *h, double days)
{
    return sweep_by(h, days, LIFECYCLE_PAGE);
}

static void put_with(struct house *h, const char *key, const char *body, struct object_meta meta)
{
    struct str_reader r;
    struct put_options o = {.meta = meta};
    struct put_result out;
    struct err err = {0};

    str_reader_init(&r, str_z(body));
    CHECK_OK(h->b->ops->put(h->b, &h->a, str_z(key), &r.reader, strlen(body), &o, &out, &err));
}

static void put(struct house *h, const char *key)
{
    put_with(h, key, "body", (struct object_meta){0});
}

static void expect(struct house *h, bool versions, const char *want)
{
    lab_expect_list(h->b, &(struct list_options){0}, versions, want);
}

static struct str class_of(struct house *h, const char *key, struct str version)
{
    struct get_result got;
    struct err err = {0};

    CHECK_OK(h->b->ops->head(h->b, &h->a, str_z(key), version, NULL, &got, &err));
    return got.info.meta.storage_class;
}

TEST(lifecycle_sweep, objects_go_when_their_days_are_over_and_not_before)
{
    struct house h;

    house_open(&h, RULE("<Prefix>tmp/</Prefix>" EXPIRE(DAYS("2"))));
    put(&h, "keep");
    put(&h, "tmp/a");
    put(&h, "tmp/b");
    CHECK_INT(sweep(&h, 1.9).expired, 0);
    expect(&h, false, "keep tmp/a tmp/b");
    struct lifecycle_counts counts = sweep(&h, 2.1);
    CHECK_INT(counts.expired, 2);
    CHECK_INT(counts.examined, 2); /* nothing outside the rules' prefix */
    expect(&h, false, "keep");
    CHECK_INT(sweep(&h, 2.1).expired, 0);
    house_close(&h);
}

TEST(lifecycle_sweep, rules_choose_by_tag_and_size)
{
    struct house h;

    house_open(&h,
               RULE("<Filter><And><Tag><Key>a</Key><Value>1</Value></Tag><ObjectSizeGreaterThan>"
                    "5</ObjectSizeGreaterThan></And></Filter>" EXPIRE(DAYS("1"))));
    put_with(&h, "both", "long enough", (struct object_meta){.tags = STR("a=1")});
    put_with(&h, "other", "long enough", (struct object_meta){.tags = STR("a=2")});
    put_with(&h, "small", "tiny", (struct object_meta){.tags = STR("a=1")});
    put_with(&h, "untagged", "long enough", (struct object_meta){0});
    CHECK_INT(sweep(&h, 1.1).expired, 1);
    expect(&h, false, "other small untagged");
    house_close(&h);
}

TEST(lifecycle_sweep, where_versions_are_kept_a_marker_covers_and_later_all_goes)
{
    struct house h;

    house_open(&h, RULE(ALL EXPIRE(DAYS("1")) NONCURRENT("<NoncurrentDays>2</NoncurrentDays>")));
    versions_on(&h);
    put(&h, "k");
    put(&h, "k");
    CHECK_INT(sweep(&h, 1.1).expired, 1);
    expect(&h, true, "k!* k k");
    CHECK_INT(sweep(&h, 1.9).removed, 0);
    /* The marker was made just now, not a day later: both are noncurrent since about now. */
    CHECK_INT(sweep(&h, 2.1).removed, 2);
    expect(&h, true, "k!*");
    CHECK_INT(sweep(&h, 2.1).markers, 1);
    expect(&h, true, "");
    house_close(&h);
}

static void newest_stay(size_t page)
{
    struct house h;

    house_open(&h, RULE(ALL NONCURRENT("<NoncurrentDays>1</NoncurrentDays>"
                                       "<NewerNoncurrentVersions>3</NewerNoncurrentVersions>")));
    versions_on(&h);
    for (int i = 0; i < 9; i++)
        put(&h, "k");
    put(&h, "l");
    CHECK_INT(sweep_by(&h, 1.1, page).removed, 5);
    expect(&h, true, "k* k k k l*");
    CHECK_INT(sweep_by(&h, 1.1, page).removed, 0);
    house_close(&h);
}

TEST(lifecycle_sweep, the_newest_noncurrent_versions_stay)
{
    newest_stay(LIFECYCLE_PAGE);
}

TEST(lifecycle_sweep, the_newest_noncurrent_versions_stay_across_pages)
{
    newest_stay(2);
}

TEST(lifecycle_sweep, the_newest_noncurrent_versions_stay_across_longer_pages)
{
    newest_stay(5);
}

TEST(lifecycle_sweep, only_a_marker_with_nothing_behind_it_goes)
{
    struct house h;

    house_open(&h, RULE(ALL EXPIRE("<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>")));
    versions_on(&h);
    for (const char *const *key = (const char *const[]){"a", "b", "c", "d", NULL}; *key; key++)
        lab_remove(h.b, &h.a, *key, STR_EMPTY);
    put(&h, "b");
    put(&h, "c");
    lab_remove(h.b, &h.a, "c", STR_EMPTY);
    CHECK_INT(sweep_by(&h, 0.1, 2).markers, 2);
    expect(&h, true, "b* b! c!* c c!");
    house_close(&h);
}

TEST(lifecycle_sweep, a_transition_changes_the_class_and_nothing_else)
{
    struct house h;
    struct get_result before, after;
    struct err err = {0};

    house_open(&h,
               RULE(ALL "<Transition><Days>1</Days><StorageClass>COLD</StorageClass></Transition>"
                        "<NoncurrentVersionTransition><NoncurrentDays>2</NoncurrentDays>"
                        "<StorageClass>ICE</StorageClass></NoncurrentVersionTransition>"));
    versions_on(&h);
    struct put_result old = lab_put(h.b, &h.a, "k", STR("old"));
    put_with(&h, "k", "new", (struct object_meta){.tags = STR("a=1"), .owner = STR("me")});
    CHECK_OK(h.b->ops->head(h.b, &h.a, STR("k"), STR_EMPTY, NULL, &before, &err));
    CHECK_INT(sweep(&h, 1.1).transitions, 1);
    CHECK_STR(class_of(&h, "k", STR_EMPTY), STR("COLD"));
    CHECK_STR(class_of(&h, "k", old.version), STR_EMPTY);
    CHECK_INT(sweep(&h, 1.2).transitions, 0);
    CHECK_INT(sweep(&h, 2.1).transitions, 1);
    CHECK_STR(class_of(&h, "k", old.version), STR("ICE"));
    CHECK_OK(h.b->ops->head(h.b, &h.a, STR("k"), STR_EMPTY, NULL, &after, &err));
    CHECK_INT(after.info.modified_ms, before.info.modified_ms);
    CHECK_STR(after.info.version, before.info.version);
    CHECK_STR(after.info.meta.tags, STR("a=1"));
    CHECK_STR(after.info.meta.owner, STR("me"));
    lab_expect(h.b, "k", STR_EMPTY, STR("new"));
    lab_expect(h.b, "k", old.version, STR("old"));
    house_close(&h);
}

TEST(lifecycle_sweep, uploads_are_aborted_by_prefix)
{
    struct house h;

    house_open(&h, RULE("<Prefix>a</Prefix><AbortIncompleteMultipartUpload><DaysAfterInitiation>1"
                        "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"));
    for (const char *const *key = (const char *const[]){"a", "a", "ab", "b", NULL}; *key; key++) {
        struct upload_info u = lab_upload(h.b, &h.a, *key);
        lab_part(h.b, &h.a, &u, 1, STR("part"));
    }
    CHECK_INT(sweep_by(&h, 0.9, 1).uploads, 0);
    CHECK_INT(sweep_by(&h, 1.1, 1).uploads, 3);
    struct upload_list left;
    struct err err = {0};
    CHECK_OK(h.b->ops->list_uploads(h.b, &h.a, &(struct list_options){.limit = 10}, &left, &err));
    CHECK_INT(left.count, 1);
    CHECK_STR(left.uploads[0].key, STR("b"));
    house_close(&h);
}

TEST(lifecycle_sweep, what_is_locked_stays)
{
    struct house h;
    int64_t until = clock_wall_ms() + INT64_C(1000) * DAY;

    house_open(&h, RULE(ALL NONCURRENT("<NoncurrentDays>1</NoncurrentDays>")));
    versions_on(&h);
    put_with(&h, "k", "held", (struct object_meta){.legal_hold = true});
    put_with(&h, "k", "governed", (struct object_meta){.retain_until_ms = until});
    put(&h, "k");
    put(&h, "k");
    struct lifecycle_counts counts = sweep(&h, 1.1);
    CHECK_INT(counts.removed, 1);
    CHECK_INT(counts.refused, 2);
    expect(&h, true, "k* k k");
    house_close(&h);
}

TEST(lifecycle_sweep, a_rule_that_is_off_or_gone_does_nothing)
{
    struct house h;

    house_open(&h,
               RULES("<Rule><ID>r</ID><Status>Disabled</Status>" ALL EXPIRE(DAYS("1")) "</Rule>"));
    put(&h, "k");
    CHECK_INT(sweep(&h, 5).expired, 0);
    set_rules(&h, "");
    CHECK_INT(sweep(&h, 5).expired, 0);
    expect(&h, false, "k");
    house_close(&h);
}

TEST(lifecycle_sweep, the_cursor_names_a_key_of_which_all_was_judged)
{
    struct house h;
    struct lifecycle_sweep s, again;
    struct lifecycle_progress kept = {.slot_ms = 5}, read;
    struct err err = {0};

    house_open(&h, RULE(ALL NONCURRENT("<NoncurrentDays>1</NoncurrentDays>"
                                       "<NewerNoncurrentVersions>1</NewerNoncurrentVersions>")));
    versions_on(&h);
    put(&h, "a\xff");
    for (int i = 0; i < 4; i++)
        put(&h, "b");
    lifecycle_sweep_init(&s, h.b, DAY, NULL);
    s.page = 3; /* ends inside "b" */
    CHECK_OK(lifecycle_sweep_page(&s, h.now + 2 * DAY, &err));
    CHECK_STR(buf_str(&s.whole), STR("a\xff"));
    kept.cursor = buf_str(&s.whole);
    kept.counts = s.counts;
    CHECK_OK(lifecycle_progress_keep(&kept, h.b, &err));
    lifecycle_sweep_release(&s);

    CHECK_OK(lifecycle_progress_read(&read, h.b, &h.a, &err));
    CHECK_STR(read.cursor, STR("a\xff"));
    CHECK(!read.done && read.slot_ms == 5);
    lifecycle_sweep_init(&again, h.b, DAY, &read);
    while (!again.done)
        CHECK_OK(lifecycle_sweep_page(&again, h.now + 2 * DAY, &err));
    CHECK_INT(again.counts.removed, 2);
    lifecycle_sweep_release(&again);
    expect(&h, true, "a\xff* b* b");
    house_close(&h);
}

/* --- guards: what changes between the look and the deed --- */

/* A bucket around another whose removals and transitions come late: first something else happens.
 */
struct late {
    struct bucket bucket;
    struct bucket_ops ops;
    struct house *h;
    void (*meanwhile)(struct house *h);
};

static struct late *late_of(struct bucket *b)
{
    return container_of(b, struct late, bucket);
}

static void happen(struct late *l)
{
    void (*fn)(struct house *) = l->meanwhile;

    l->meanwhile = NULL;
    if (fn)
        fn(l->h);
}

static int late_remove(struct bucket *b, struct arena *a, struct str key,
                       const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct late *l = late_of(b);

    happen(l);
    return l->h->b->ops->remove(l->h->b, a, key, o, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int late_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                     enum meta_set set, const struct object_meta *meta,
                     const struct meta_options *o, struct err *err)
{
    struct late *l = late_of(b);

    happen(l);
    return l->h->b->ops->set_meta(l->h->b, a, key, version, set, meta, o, err);
}

static int late_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                         struct err *err)
{
    struct late *l = late_of(b);

    return l->h->b->ops->get_document(l->h->b, a, name, out, err);
}

static int late_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err)
{
    struct late *l = late_of(b);

    return l->h->b->ops->list_versions(l->h->b, a, o, out, err);
}

static int late_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err)
{
    struct late *l = late_of(b);

    return l->h->b->ops->list_uploads(l->h->b, a, o, out, err);
}

static struct lifecycle_counts sweep_while(struct house *h, double days,
                                           void (*meanwhile)(struct house *))
{
    struct late l = {.h = h, .meanwhile = meanwhile};
    struct lifecycle_sweep s;
    struct err err = {0};

    l.ops = (struct bucket_ops){.remove = late_remove,
                                .set_meta = late_meta,
                                .get_document = late_document,
                                .list_versions = late_versions,
                                .list_uploads = late_uploads};
    l.bucket.ops = &l.ops;
    lifecycle_sweep_init(&s, &l.bucket, DAY, NULL);
    while (!s.done)
        CHECK_OK(lifecycle_sweep_page(&s, h->now + (int64_t)(days * DAY), &err));
    struct lifecycle_counts counts = s.counts;
    lifecycle_sweep_release(&s);
    CHECK(!l.meanwhile);
    return counts;
}

/* The clock that stamps versions has milliseconds. */
static void put_later(struct house *h)
{
    int64_t now = clock_wall_ms();

    while (clock_wall_ms() == now)
        ;
    put(h, "k");
}

static void retag(struct house *h)
{
    struct object_meta meta = {.tags = STR("keep=1")};
    struct err err = {0};

    CHECK_OK(h->b->ops->set_meta(h->b, &h->a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err));
}

static void remove_marker(struct house *h)
{
    struct list_result list;
    struct err err = {0};

    CHECK_OK(
        h->b->ops->list_versions(h->b, &h->a, &(struct list_options){.limit = 1}, &list, &err));
    lab_remove(h->b, &h->a, "k", list.entries[0].info.version);
}

static void remove_current(struct house *h)
{
    lab_remove(h->b, &h->a, "k", STR_EMPTY);
}

TEST(lifecycle_sweep, what_is_overwritten_meanwhile_stays)
{
    struct house h;

    house_open(&h, RULE(ALL EXPIRE(DAYS("1"))));
    put(&h, "k"); /* the same bytes, so the same ETag */
    struct lifecycle_counts counts = sweep_while(&h, 1.1, put_later);
    CHECK_INT(counts.expired, 0);
    CHECK_INT(counts.refused, 1);
    expect(&h, false, "k");
    counts = sweep_while(&h, 1.1, remove_current);
    CHECK_INT(counts.refused, 1);
    house_close(&h);
}

TEST(lifecycle_sweep, what_is_tagged_otherwise_meanwhile_stays)
{
    struct house h;

    house_open(
        &h, RULE("<Filter><Tag><Key>keep</Key><Value>0</Value></Tag></Filter>" EXPIRE(DAYS("1"))));
    put_with(&h, "k", "body", (struct object_meta){.tags = STR("keep=0")});
    CHECK_INT(sweep_while(&h, 1.1, retag).refused, 1);
    expect(&h, false, "k");
    house_close(&h);
}

TEST(lifecycle_sweep, what_becomes_current_meanwhile_stays)
{
    struct house h;

    house_open(&h, RULE(ALL NONCURRENT("<NoncurrentDays>1</NoncurrentDays>")));
    versions_on(&h);
    put(&h, "k");
    remove_current(&h);
    CHECK_INT(sweep_while(&h, 1.1, remove_marker).refused, 1);
    expect(&h, true, "k*");
    house_close(&h);
}

TEST(lifecycle_sweep, a_marker_that_is_covered_meanwhile_stays)
{
    struct house h;

    house_open(&h, RULE(ALL EXPIRE("<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>")));
    versions_on(&h);
    remove_current(&h);
    CHECK_INT(sweep_while(&h, 1.1, put_later).refused, 1);
    expect(&h, true, "k* k!");
    house_close(&h);
}

TEST(lifecycle_sweep, what_is_overwritten_meanwhile_keeps_its_class)
{
    struct house h;

    house_open(
        &h, RULE(ALL "<Transition><Days>1</Days><StorageClass>COLD</StorageClass></Transition>"));
    put(&h, "k");
    CHECK_INT(sweep_while(&h, 1.1, put_later).refused, 1);
    CHECK_STR(class_of(&h, "k", STR_EMPTY), STR_EMPTY);
    house_close(&h);
}

static void no_rules(struct house *h)
{
    set_rules(h, "");
}

TEST(lifecycle_sweep, a_configuration_that_is_removed_ends_the_sweep)
{
    struct house h;

    house_open(&h, RULE(ALL EXPIRE(DAYS("1"))));
    put(&h, "a");
    put(&h, "b");
    put(&h, "c");
    /* The one that was under way is still done, none behind it. */
    CHECK_INT(sweep_while(&h, 1.1, no_rules).expired, 1);
    expect(&h, false, "b c");
    house_close(&h);
}

/* --- the race --- */

enum { RACERS = 3, RACE_KEYS = 4, RACE_ROUNDS = 150 };

struct racer {
    struct thread thread;
    struct bucket *b;
    unsigned id;
    _Atomic(bool) *stop;
    uint64_t swept; /* how much the sweeper removed */
    int lost;       /* what was acknowledged and is not there */
    int failed;     /* calls that must not */
};

static int put_tagged(struct racer *r, struct arena *a, struct str key, const char *tags)
{
    struct put_options o = {.meta.tags = str_z(tags)};
    struct put_result out;
    struct str_reader reader;

    str_reader_init(&reader, STR("same"));
    return r->b->ops->put(r->b, a, key, &reader.reader, 4, &o, &out, NULL);
}

static void overwrite(void *ctx)
{
    struct racer *r = ctx;
    struct arena a = ARENA_INIT(0);

    for (int i = 0; i < RACE_ROUNDS; i++) {
        struct str key = arena_fmt(&a, "%u-%d", r->id, i % RACE_KEYS);
        struct get_result got;
        struct remove_options o = {0};
        struct remove_result out;
        r->failed += put_tagged(r, &a, key, "keep=0") != 0;
        r->failed += put_tagged(r, &a, key, "keep=1") != 0;
        for (int k = 0; k < 3; k++)
            r->lost += r->b->ops->head(r->b, &a, key, STR_EMPTY, NULL, &got, NULL) != 0;
        r->failed += r->b->ops->remove(r->b, &a, key, &o, &out, NULL) != 0;
        r->failed += put_tagged(r, &a, key, "keep=0") != 0; /* to be swept, or put over */
        arena_reset(&a);
    }
    arena_release(&a);
}

static void sweep_on(void *ctx)
{
    struct racer *r = ctx;

    while (!atomic_load(r->stop)) {
        struct lifecycle_sweep s;
        lifecycle_sweep_init(&s, r->b, DAY, NULL);
        s.page = 5;
        while (!s.done)
            r->failed += lifecycle_sweep_page(&s, clock_wall_ms() + 2 * DAY, NULL) != 0;
        r->swept += s.counts.expired;
        lifecycle_sweep_release(&s);
    }
}

/* What is tagged keep=0 is due at once. Writers put such objects over and over again, the same
 * bytes now with keep=1: from then on it must be there, whatever the sweeper saw a moment before.
 */
TEST(lifecycle_sweep, nothing_acknowledged_is_lost_to_a_sweep)
{
    struct house h;
    struct racer racers[RACERS + 1];
    struct racer *sweeper = &racers[RACERS];
    _Atomic(bool) stop = false;
    struct err err = {0};

    house_open(
        &h, RULE("<Filter><Tag><Key>keep</Key><Value>0</Value></Tag></Filter>" EXPIRE(DAYS("1"))));
    for (unsigned i = 0; i <= RACERS; i++) {
        racers[i] = (struct racer){.b = h.b, .id = i, .stop = &stop};
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, i == RACERS ? sweep_on : overwrite,
                              &racers[i], &err));
    }
    for (unsigned i = 0; i < RACERS; i++)
        thread_join(&racers[i].thread);
    atomic_store(&stop, true);
    thread_join(&sweeper->thread);
    for (unsigned i = 0; i <= RACERS; i++) {
        CHECK_INT(racers[i].failed, 0);
        CHECK_INT(racers[i].lost, 0);
    }
    sweep(&h, 2);
    expect(&h, false, "");
    house_close(&h);
}
