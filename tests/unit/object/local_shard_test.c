/* Shards as buckets: how they are made, what taps and notes are told of them, their counts. */
#include "unit/object/shard_lab.h"

#include <stdio.h>
#include <stdlib.h>

TEST(local_shard, a_shard_begins_as_its_logical_bucket_is)
{
    static const struct bucket_info states[] = {
        {.versions = VERSIONS_NEVER},
        {.versions = VERSIONS_ON},
        {.versions = VERSIONS_SUSPENDED},
        {.versions = VERSIONS_ON, .object_lock = true},
    };
    struct shard_lab lab;
    struct bucket_info info;
    struct err err = {0};

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        shard_lab_begin(&lab, (char)('a' + i), &states[i]);
        CHECK_OK(lab.shard->ops->info(lab.shard, &lab.a, &info, &err));
        CHECK_STR(info.name, lab.shard->name);
        CHECK_STR(info.owner, STR("owner"));
        CHECK_INT(info.versions, states[i].versions);
        CHECK_INT(info.object_lock, states[i].object_lock);
        CHECK(!info.notifies);
        CHECK(info.created_ms > 0);
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
}

TEST(local_shard, a_shard_has_documents_and_a_state_of_its_own)
{
    struct shard_lab lab;
    struct bucket_info info;
    struct str text;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    CHECK_OK(lab.whole->ops->set_document(lab.whole, "notification", STR("<n/>"), &err));
    CHECK_ERR(lab.shard->ops->get_document(lab.shard, &lab.a, "notification", &text, &err),
              ERR_NOT_FOUND);
    CHECK_OK(lab.shard->ops->set_document(lab.shard, "notification", STR("<own/>"), &err));
    CHECK_OK(lab.shard->ops->set_versions(lab.shard, true, &err));
    CHECK_OK(lab.shard->ops->set_object_lock(lab.shard, &err));
    CHECK_OK(lab.shard->ops->info(lab.shard, &lab.a, &info, &err));
    CHECK(info.notifies && info.object_lock);
    CHECK_OK(lab.whole->ops->info(lab.whole, &lab.a, &info, &err));
    CHECK_INT(info.versions, VERSIONS_NEVER);
    /* It is still a shard: its row has kept the logical bucket. */
    struct bucket *again = shard_lab_bucket(&lab, lab.shard->name);
    CHECK_STR(local_bucket_of(again)->logical.name, lab.whole->name);
    CHECK_INT(local_bucket_of(again)->logical.id, local_bucket_of(lab.whole)->id);
    again->ops->unref(again);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_shard, a_shard_is_removed_only_when_it_is_empty)
{
    struct shard_lab lab;
    struct str last;
    bool more;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct storage *s = lab.l.lab.storage;
    lab_put(lab.shard, &lab.a, "k", STR("v"));
    CHECK_ERR(local_remove_shard(s, STR("shard-x"), &err), ERR_CONFLICT);
    CHECK_ERR(local_remove_shard(s, STR("whole-x"), &err), ERR_INVALID);
    CHECK_ERR(local_remove_shard(s, STR("other"), &err), ERR_NO_BUCKET);
    CHECK_ERR(local_make_shard(lab.whole, STR("shard-x"), &err), ERR_EXISTS);
    CHECK_ERR(local_make_shard(lab.whole, STR("whole-x"), &err), ERR_EXISTS);
    CHECK_OK(
        local_adopt(lab.whole, lab.shard, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err));
    CHECK_OK(local_remove_shard(s, STR("shard-x"), &err));
    CHECK_ERR(local_remove_shard(s, STR("shard-x"), &err), ERR_NO_BUCKET);
    lab_expect(lab.whole, "k", STR_EMPTY, STR("v"));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_shard, a_bucket_that_is_made_anew_is_another_logical_bucket)
{
    struct shard_lab lab;
    struct str last;
    bool more;
    uint64_t whole, shard, other;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct storage *s = lab.l.lab.storage;
    CHECK_OK(local_bucket_id(lab.whole, &whole, &err));
    CHECK_OK(local_bucket_id(lab.shard, &shard, &err));
    CHECK(whole > 0 && shard == whole);
    CHECK_OK(s->ops->remove_bucket(s, STR_EMPTY, STR("whole-x"), &err));
    CHECK_ERR(local_make_shard(lab.whole, STR("late"), &err), ERR_NO_BUCKET);
    struct bucket *anew = lab_bucket(s, "whole-x");
    CHECK_OK(local_bucket_id(anew, &other, &err));
    CHECK(other != whole);
    CHECK_ERR(local_adopt(anew, lab.shard, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err),
              ERR_INVALID);
    CHECK_OK(local_remove_shard(s, STR("shard-x"), &err));
    anew->ops->unref(anew);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_shard, ids_of_versions_are_those_of_the_logical_bucket_alone)
{
    struct bucket_info versions = {.versions = VERSIONS_ON};
    struct shard_lab lab;
    struct get_result got;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', &versions);
    struct bucket *other = lab_bucket(lab.l.lab.storage, "other");
    struct str in_shard = lab_put(lab.shard, &lab.a, "k", STR("1")).version;
    uint64_t sequence;
    CHECK(version_parse(local_bucket_of(lab.whole), STR("k"), in_shard, &sequence));
    CHECK(version_parse(local_bucket_of(lab.shard), STR("k"), in_shard, &sequence));
    CHECK(!version_parse(local_bucket_of(lab.shard), STR("j"), in_shard, &sequence));
    CHECK(!version_parse(local_bucket_of(other), STR("k"), in_shard, &sequence));
    CHECK_ERR(lab.whole->ops->head(lab.whole, &lab.a, STR("k"), in_shard, NULL, &got, &err),
              ERR_NOT_FOUND);
    lab_expect(lab.shard, "k", in_shard, STR("1"));
    other->ops->unref(other);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- what taps and notes are told --- */

static int wants(void *ctx, const struct tapped *t, bool *out, struct err *err)
{
    (void)ctx, (void)t, (void)err;
    *out = true;
    return 0;
}

static void committed(void *ctx, uint64_t number)
{
    (void)ctx, (void)number;
}

/* "<owner> <bucket>/<key> <version>;" of the rows that are new. */
static void expect_tapped(struct shard_lab *lab, uint64_t *after, const char *want)
{
    struct buf text = BUF_INIT(0);
    struct tapped *rows;
    size_t count = 0;
    struct err err = {0};

    CHECK_OK(local_tap_read(lab->l.lab.storage, &lab->a, *after, 100, &rows, &count, &err));
    for (size_t i = 0; i < count; i++) {
        buf_appendf(&text, STR_FMT " " STR_FMT "/" STR_FMT " " STR_FMT ";", STR_ARG(rows[i].owner),
                    STR_ARG(rows[i].bucket), STR_ARG(rows[i].key), STR_ARG(rows[i].version));
        *after = rows[i].number;
    }
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

static void told(void *ctx, const struct change_fact *fact, struct outbox *out)
{
    (void)out;
    buf_reset(ctx);
    buf_append_str(ctx, fact->version);
}

TEST(local_shard, a_tap_sees_the_logical_bucket_alone)
{
    struct bucket_info versions = {.versions = VERSIONS_ON};
    static const struct change_tap tap = {.wants = wants, .committed = committed};
    struct shard_lab lab;
    uint64_t after = 0;
    struct str last;
    bool more;
    struct err err = {0};

    shard_lab_open(&lab);
    local_set_tap(lab.l.lab.storage, &tap);
    shard_lab_begin(&lab, 'x', &versions);
    expect_tapped(&lab, &after, "owner whole-x/ ;"); /* the shard was made too */
    struct str version = lab_put(lab.shard, &lab.a, "k", STR("1")).version;
    expect_tapped(&lab, &after,
                  arena_fmt(&lab.a, "owner whole-x/k " STR_FMT ";", STR_ARG(version)).p);
    CHECK_OK(lab.shard->ops->set_versions(lab.shard, false, &err));
    CHECK_OK(lab.shard->ops->set_document(lab.shard, "policy", STR("{}"), &err));
    CHECK_OK(
        local_adopt(lab.whole, lab.shard, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err));
    struct storage *s = lab.l.lab.storage;
    CHECK_OK(s->ops->remove_bucket(s, STR_EMPTY, STR("shard-x"), &err));
    expect_tapped(&lab, &after, "");
    lab_remove(lab.whole, &lab.a, "k", version);
    expect_tapped(&lab, &after,
                  arena_fmt(&lab.a, "owner whole-x/k " STR_FMT ";", STR_ARG(version)).p);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_shard, a_note_is_told_an_id_that_stays)
{
    struct bucket_info versions = {.versions = VERSIONS_ON};
    struct buf version = BUF_INIT(0);
    struct change_note note = {told, &version};
    struct put_options o = {.note = &note};
    struct put_result out;
    struct str_reader r;
    struct shard_lab lab;
    struct str last;
    bool more;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', &versions);
    str_reader_init(&r, STR("v"));
    CHECK_OK(lab.shard->ops->put(lab.shard, &lab.a, STR("k"), &r.reader, 1, &o, &out, &err));
    CHECK_STR(buf_str(&version), out.version);
    CHECK_OK(
        local_adopt(lab.whole, lab.shard, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err));
    lab_expect(lab.whole, "k", buf_str(&version), STR("v"));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
    buf_release(&version);
}

/* --- findings of the scrub --- */

static int finding(void *ctx, const struct local_finding *f, struct err *err)
{
    (void)err;
    buf_appendf(ctx, "%s " STR_FMT "/" STR_FMT " " STR_FMT ";", local_damage_text(f->damage),
                STR_ARG(f->bucket), STR_ARG(f->key), STR_ARG(f->version));
    return 0;
}

TEST(local_shard, the_scrub_names_the_object_as_clients_do_and_counts_each_shard)
{
    struct bucket_info versions = {.versions = VERSIONS_ON};
    struct buf found = BUF_INIT(0);
    struct local_scrub o = {.finding = finding, .ctx = &found};
    struct stored stored = {0};
    struct shard_lab lab;
    struct row row;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', &versions);
    struct local_bucket *b = local_bucket_of(lab.shard);
    struct local *l = b->local;
    struct str version = lab_put(lab.shard, &lab.a, "k", STR("value")).version;
    CHECK_OK(
        stored_get(&stored, db_latest(l->db), l, row_key(&row, b, TAG_OBJECT, STR("k")), &err));
    CHECK_OK(
        db_put(l->db, l->bytes, row_bytes(&row, l, stored.r.id), STR("other"), DB_DURABLE, &err));
    CHECK_OK(db_delete(l->db, l->rows, str_n(b->usage_row, ROW_BUCKET_LEN), DB_DURABLE, &err));
    CHECK_OK(local_scrub(lab.l.lab.storage, &o, &err));
    CHECK_STR(buf_str(&found),
              arena_fmt(&lab.a, "damaged whole-x/k " STR_FMT ";wrong count, mended shard-x/ ;",
                        STR_ARG(version)));
    stored_release(&stored);
    buf_release(&found);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- counting --- */

TEST(local_shard, a_sample_has_keys_at_even_distances)
{
    static const struct {
        const char *after, *upto;
        size_t samples;
        int count, stride;
    } rows[] = {
        {"", "", 100, 100, 1},   {"", "", 99, 100, 2},     {"", "", 50, 100, 2},
        {"", "", 49, 100, 4},    {"", "", 7, 100, 16},     {"", "", 1, 100, 64},
        {"", "", 0, 100, 0},     {"010", "020", 4, 10, 4}, {"099", "", 4, 0, 1},
        {"020", "010", 4, 0, 1},
    };
    struct shard_lab lab;
    char key[16];

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct err err = {0};
    CHECK_OK(lab.shard->ops->set_versions(lab.shard, true, &err));
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%03d", i);
        if (i % 3 == 0)
            lab_upload(lab.shard, &lab.a, key);
        if (i % 3 == 1)
            lab_put(lab.shard, &lab.a, key, STR("v"));
        if (i % 3 != 0)
            lab_remove(lab.shard, &lab.a, key, STR_EMPTY);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct str *sample;
        uint64_t count = 0;
        size_t got = 0;
        CHECK_OK(local_sample_keys(lab.shard, str_z(rows[i].after), str_z(rows[i].upto),
                                   rows[i].samples, &lab.a, &count, &sample, &got, &err));
        CHECK_INT(count, rows[i].count);
        CHECK_INT(got, rows[i].stride ? rows[i].count / rows[i].stride : 0);
        int first = rows[i].after[0] ? atoi(rows[i].after) + 1 : 0;
        for (size_t k = 0; k < got; k++) {
            snprintf(key, sizeof(key), "%03d", first + (int)(k + 1) * rows[i].stride - 1);
            CHECK_STR(sample[k], str_z(key));
        }
    }
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_shard, usage_is_summed_over_buckets)
{
    struct shard_lab lab;
    struct bucket_usage u = {9, 9, 9, 9};
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct bucket *both[] = {lab.whole, lab.shard};
    CHECK_OK(lab.shard->ops->set_versions(lab.shard, true, &err));
    lab_put(lab.whole, &lab.a, "a", lab_bytes(10, 1));
    lab_put(lab.shard, &lab.a, "b", lab_bytes(20, 2));
    lab_put(lab.shard, &lab.a, "b", lab_bytes(5, 3));
    CHECK_OK(local_usage_of(both, 2, &u, &err));
    CHECK_INT(u.objects, 2);
    CHECK_INT(u.bytes, 15);
    CHECK_INT(u.old_versions, 1);
    CHECK_INT(u.old_bytes, 20);
    CHECK_OK(local_usage_of(NULL, 0, &u, &err));
    CHECK_INT(u.objects, 0);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- rows --- */

TEST(local_shard, the_row_of_a_bucket_reads_with_and_without_a_logical_bucket)
{
    static const struct {
        const char *tail; /* behind id 5, time 6, versions 1, no lock, owner "o" */
        size_t len;
        bool notifies;
        uint64_t logical;
        bool fails;
    } rows[] = {
        {"", 0, false, 0, false},
        {"\1", 1, true, 0, false}, /* as older versions of weir write it */
        {"\2\7\1L", 4, false, 7, false},
        {"\3\7\1L", 4, true, 7, false},
        {"\0", 1, false, 0, true},
        {"\2", 1, false, 0, true},
        {"\2\0\1L", 4, false, 0, true},
        {"\2\7\0", 3, false, 0, true},
        {"\4", 1, false, 0, true},
        {"\1\7\1L", 4, false, 0, true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf row = BUF_INIT(0), again = BUF_INIT(0);
        struct bucket_record r;
        struct err err = {0};
        buf_append(&row, "\1\5\6\1\0\1o", 7);
        buf_append(&row, rows[i].tail, rows[i].len);
        CHECK_ERR(bucket_record_get(buf_str(&row), &r, &err), rows[i].fails ? ERR_CORRUPT : 0);
        if (!rows[i].fails) {
            CHECK_INT(r.info.notifies, rows[i].notifies);
            CHECK_INT(r.logical.id, rows[i].logical);
            CHECK_STR(r.logical.name, rows[i].logical ? STR("L") : STR_EMPTY);
            bucket_record_put(&again, &r);
            CHECK_STR(buf_str(&again), buf_str(&row));
        }
        buf_release(&row);
        buf_release(&again);
    }
}
