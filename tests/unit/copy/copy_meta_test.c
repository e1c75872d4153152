/* Tags, access control lists, versions, settings of buckets, sealed objects. */
#include "copy/compare.h"
#include "copy/copy.h"

#include "base/clock.h"
#include "base/ids.h"
#include "copy/grants.h"
#include "meta/envelope.h"
#include "meta/keyring.h"
#include "unit/replica/sides.h"

#include <stdio.h>

static void set_tags(struct sides *s, struct bucket *b, const char *key, const char *tags)
{
    struct object_meta meta = {.tags = str_z(tags)};
    struct err err = {0};

    CHECK_OK(b->ops->set_meta(b, &s->a, str_z(key), STR_EMPTY, META_TAGS, &meta, NULL, &err));
}

TEST_SIDES(copy_meta, tags_follow)
{
    static const char *const sets[] = {"a=1&b=x%20y", "c=3", ""};
    struct copy c = sides_copy(s, "k");
    struct err err = {0};

    CHECK_ERR(copy_tags(&s->a, &c, &err), ERR_NOT_FOUND);
    lab_put(s->from, &s->a, "k", STR("body"));
    CHECK_ERR(copy_tags(&s->a, &c, &err), ERR_NOT_FOUND);
    sides_bring(s, "k");
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        set_tags(s, s->from, "k", sets[i]);
        CHECK_OK(copy_tags(&s->a, &c, &err));
        sides_expect_same(s, "k");
    }
}

static void set_hold(struct sides *s, bool hold, int64_t until_ms)
{
    struct object_meta meta = {.legal_hold = hold, .retain_until_ms = until_ms};
    struct err err = {0};

    CHECK_OK(s->from->ops->set_meta(s->from, &s->a, STR("k"), STR_EMPTY,
                                    META_LEGAL_HOLD | META_RETENTION, &meta, NULL, &err));
}

TEST_SIDES(copy_meta, retention_and_hold_follow)
{
    struct copy c = sides_copy(s, "k");
    int64_t later = (clock_wall_ms() / MS_PER_S + S_PER_HOUR) * MS_PER_S;
    struct err err = {0};

    CHECK_OK(s->from->ops->set_versions(s->from, true, &err));
    CHECK_OK(s->to->ops->set_versions(s->to, true, &err));
    CHECK_OK(s->from->ops->set_object_lock(s->from, &err));
    lab_put(s->from, &s->a, "k", STR("body"));
    sides_bring(s, "k");
    set_hold(s, true, later);
    CHECK_OK(copy_retention(&s->a, &c, &err)); /* the destination has no object lock */
    CHECK(!sides_head(s, s->to, "k").meta.legal_hold);
    CHECK_OK(s->to->ops->set_object_lock(s->to, &err));
    CHECK_OK(copy_retention(&s->a, &c, &err));
    CHECK(sides_head(s, s->to, "k").meta.legal_hold);
    CHECK_INT(sides_head(s, s->to, "k").meta.retain_until_ms, later);
    set_hold(s, false, later + 5000);
    CHECK_OK(copy_retention(&s->a, &c, &err));
    CHECK(!sides_head(s, s->to, "k").meta.legal_hold);
    CHECK_INT(sides_head(s, s->to, "k").meta.retain_until_ms, later + 5000);
}

static void set_grants(struct sides *s, struct bucket *b, const char *key, struct acl_grant *grants,
                       size_t count)
{
    struct grants_of of = {b, str_z(key)};
    struct acl acl = {STR("owner"), grants, count};
    struct err err = {0};

    CHECK_OK(grants_write(&s->a, &of, &acl, &err));
}

static struct acl get_grants(struct sides *s, struct bucket *b, const char *key)
{
    struct grants_of of = {b, str_z(key)};
    struct acl acl;
    struct err err = {0};

    CHECK_OK(grants_read(&acl, &s->a, &of, &err));
    return acl;
}

TEST_SIDES(copy_meta, lists_follow)
{
    struct acl_grant all[] = {{ACL_USER, STR("owner"), ACL_FULL_CONTROL},
                              {ACL_ALL_USERS, STR_EMPTY, ACL_READ},
                              {ACL_USER, STR("you"), ACL_READ_ACP}};
    struct copy c = sides_copy(s, "k");
    struct err err = {0};

    lab_put(s->from, &s->a, "k", STR("body"));
    sides_bring(s, "k");
    bool told = !bucket_can(s->from, STORAGE_KEEPS_META); /* a weir says so unasked */
    CHECK_INT(sides_head(s, s->from, "k").is_private, told);
    CHECK_OK(copy_acl(&s->a, &c, true, &err)); /* private on both */
    CHECK_INT(get_grants(s, s->to, "k").count, 1);
    for (size_t count = 3; count >= 1; count--) {
        set_grants(s, s->from, "k", all, count);
        CHECK(!sides_head(s, s->from, "k").is_private);
        CHECK_OK(copy_acl(&s->a, &c, count == 3, &err));
        struct acl from = get_grants(s, s->from, "k"), to = get_grants(s, s->to, "k");
        CHECK_INT(to.count, count);
        CHECK(grants_same(&from, &to));
        CHECK_OK(copy_acl(&s->a, &c, false, &err));
    }
    c.key = STR("none");
    CHECK_ERR(copy_acl(&s->a, &c, false, &err), ERR_NOT_FOUND);
}

TEST(copy_meta, the_owner_becomes_the_destinations_owner)
{
    struct arena a = ARENA_INIT(0);
    struct acl_grant grants[] = {{ACL_USER, STR("me"), ACL_FULL_CONTROL},
                                 {ACL_USER, STR("friend"), ACL_READ},
                                 {ACL_ALL_USERS, STR_EMPTY, ACL_READ}};
    struct acl from = {STR("me"), grants, 3}, out;
    struct err err = {0};

    CHECK_OK(grants_map(&out, &a, &from, STR("them"), false, &err));
    CHECK_STR(out.owner, STR("them"));
    CHECK_STR(out.grants[0].id, STR("them"));
    CHECK_STR(out.grants[1].id, STR("friend"));
    CHECK_INT(out.count, 3);
    CHECK_OK(grants_map(&out, &a, &from, STR("them"), true, &err));
    CHECK_INT(out.count, 2);
    CHECK(!grants_same(&out, &from));
    arena_release(&a);
}

TEST_SIDES(copy_meta, settings_of_buckets_follow)
{
    static const char tags[] = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet>"
                               "</Tagging>";
    struct acl_grant all[] = {{ACL_USER, STR("owner"), ACL_FULL_CONTROL},
                              {ACL_USER, STR("you"), ACL_READ}};
    struct copy_bucket c = {.from = s->from, .to = s->to};
    struct bucket_info info;
    struct str text;
    struct err err = {0};

    CHECK_OK(copy_bucket_tags(&s->a, &c, &err));
    CHECK_OK(s->from->ops->set_document(s->from, "tagging", str_z(tags), &err));
    CHECK_OK(s->from->ops->set_versions(s->from, true, &err));
    set_grants(s, s->from, "", all, 2);
    CHECK_OK(copy_bucket_tags(&s->a, &c, &err));
    CHECK_OK(copy_bucket_acl(&s->a, &c, &err));
    CHECK_OK(copy_bucket_settings(&s->a, &c, &err));
    CHECK_OK(s->to->ops->get_document(s->to, &s->a, "tagging", &text, &err));
    CHECK(str_find(text, STR("<Key>a</Key>")) >= 0);
    struct acl to = get_grants(s, s->to, "");
    CHECK_INT(to.count, 2);
    CHECK_OK(s->to->ops->info(s->to, &s->a, &info, &err));
    CHECK_INT(info.versions, VERSIONS_ON);
    CHECK_OK(s->from->ops->set_document(s->from, "tagging", STR_EMPTY, &err));
    CHECK_OK(copy_bucket_tags(&s->a, &c, &err));
    CHECK_ERR(s->to->ops->get_document(s->to, &s->a, "tagging", &text, &err), ERR_NOT_FOUND);
}

/* --- versions --- */

static void expect_same_history(struct sides *s)
{
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result from, to;
    struct err err = {0};

    CHECK_OK(s->from->ops->list_versions(s->from, &s->a, &o, &from, &err));
    CHECK_OK(s->to->ops->list_versions(s->to, &s->a, &o, &to, &err));
    CHECK_INT(to.count, from.count);
    for (size_t i = 0; i < to.count; i++) {
        CHECK_STR(to.entries[i].info.key, from.entries[i].info.key);
        CHECK_STR(to.entries[i].info.etag, from.entries[i].info.etag);
        CHECK_INT(to.entries[i].info.is_marker, from.entries[i].info.is_marker);
        CHECK_INT(to.entries[i].info.is_latest, from.entries[i].info.is_latest);
    }
}

static struct copy_result bring_versions(struct sides *s)
{
    struct copy c = sides_copy(s, "k");
    struct copy_result out;
    struct err err = {0};

    CHECK_OK(copy_versions(&out, &s->a, &c, &err));
    expect_same_history(s);
    CHECK_OK(copy_versions(&out, &s->a, &c, &err));
    CHECK(out.outcome == COPY_SAME || out.outcome == COPY_ABSENT);
    return out;
}

TEST_SIDES(copy_meta, versions_follow_in_their_order)
{
    struct put_result second;
    struct err err = {0};

    CHECK_OK(s->from->ops->set_versions(s->from, true, &err));
    CHECK_OK(s->to->ops->set_versions(s->to, true, &err));
    bring_versions(s);
    lab_put(s->from, &s->a, "k", STR("one"));
    second = lab_put(s->from, &s->a, "k", STR("two"));
    lab_put(s->from, &s->a, "k", STR("two"));
    lab_put(s->from, &s->a, "k2", STR("another key"));
    lab_put(s->to, &s->a, "k2", STR("another key"));
    bring_versions(s);
    lab_remove(s->from, &s->a, "k", STR_EMPTY);
    bring_versions(s);
    lab_put(s->from, &s->a, "k", STR("three"));
    bring_versions(s);
    lab_remove(s->from, &s->a, "k", second.version); /* one in the middle */
    bring_versions(s);
    lab_put(s->to, &s->a, "k", STR("a stranger"));
    bring_versions(s);
    lab_expect(s->to, "k", STR_EMPTY, STR("three"));
}

/* Has what another bucket has, and lists nothing. */
struct forgetful {
    struct bucket bucket;
    struct bucket *real;
};

static int list_nothing(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct list_result *out, struct err *err)
{
    *out = (struct list_result){0};
    return 0;
}

static int head_real(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct bucket *real = container_of(b, struct forgetful, bucket)->real;

    return real->ops->head(real, a, key, version, c, out, err);
}

/* C5 */
TEST(copy_meta, versions_are_not_removed_because_a_listing_lacks_them)
{
    static const struct bucket_ops ops = {.list_versions = list_nothing, .head = head_real};
    struct sides s;
    struct copy_result out;
    struct err err = {0};

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    CHECK_OK(s.from->ops->set_versions(s.from, true, &err));
    CHECK_OK(s.to->ops->set_versions(s.to, true, &err));
    struct put_result put = lab_put(s.from, &s.a, "k", STR("one"));
    bring_versions(&s);
    struct forgetful from = {{.ops = &ops, .name = STR("box")}, s.from};
    struct copy c = sides_copy(&s, "k");
    c.from = &from.bucket;
    CHECK_ERR(copy_versions(&out, &s.a, &c, &err), ERR_CONFLICT);
    lab_expect(s.to, "k", STR_EMPTY, STR("one"));
    lab_remove(s.from, &s.a, "k", put.version);
    bring_versions(&s);
    lab_expect(s.to, "k", STR_EMPTY, (struct str){0});
    sides_close(&s);
}

/* --- sealed --- */

struct sealing {
    struct sealed_key key;
};

static int seal_with(void *ctx, const struct object_meta *meta, struct put_seal *out,
                     struct err *err)
{
    *out = (struct put_seal){((struct sealing *)ctx)->key, false};
    return 0;
}

static void put_sealed(struct sides *s, struct keyring *ring, const char *key, enum sse_kind kind,
                       struct str body)
{
    struct envelope e = {.kind = kind};
    struct envelope_place at = {s->from->name, str_z(key)};
    struct sealing sealing;
    struct ring_key with = {0};
    struct buf bytes = BUF_INIT(ENVELOPE_MAX);
    struct put_options o = {.seal = seal_with, .seal_ctx = &sealing};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    random_bytes(&sealing, sizeof(sealing));
    CHECK_OK(keyring_current(ring, KEYRING_MASTER, true, &with, &err));
    if (kind == SSE_S3) {
        e.name = KEYRING_MASTER;
        e.id = str_z(with.id);
    }
    envelope_seal(&bytes, &e, &at, &with.key, &sealing.key);
    o.meta.encryption = buf_str(&bytes);
    str_reader_init(&r, body);
    CHECK_OK(s->from->ops->put(s->from, &s->a, str_z(key), &r.reader, body.len, &o, &out, &err));
    buf_release(&bytes);
}

static void expect_sealed(struct sides *s, struct keyring *ring, const char *key, struct str want)
{
    struct envelope_place at = {s->to->name, str_z(key)};
    struct envelope e;
    struct ring_key with;
    struct sealed_key data;
    struct get_result got;
    struct buf body = BUF_INIT(MIB);
    struct err err = {0};

    CHECK_OK(s->to->ops->get(s->to, &s->a, str_z(key), STR_EMPTY, NULL, NULL, &got, &err));
    CHECK(got.unlock);
    CHECK_OK(envelope_read(&e, got.info.meta.encryption, &err));
    CHECK_OK(keyring_find(ring, e.name, e.id, true, &with, &err));
    CHECK_OK(envelope_open(&e, &at, &with.key, &data));
    CHECK_OK(got.unlock(got.body, &data, &err));
    CHECK_OK(reader_read_all(got.body, &body, &err));
    CHECK_STR(buf_str(&body), want);
    reader_close(got.body);
    buf_release(&body);
}

static int count_kind(void *ctx, const struct difference *d, struct err *err)
{
    ((int *)ctx)[d->kind]++;
    return 0;
}

/* By content, with the ring or without. */
static void expect_compared(struct sides *s, struct keyring *ring, int unknown, int content)
{
    int kinds[DIFFERENCE_KINDS] = {0};
    struct bucket *buckets[] = {s->from, s->to};
    struct compare_options o = {.buckets = buckets,
                                .count = 2,
                                .contents = true,
                                .prefix = STR("k"),
                                .keys = ring,
                                .tell = count_kind,
                                .ctx = kinds};
    struct compare_result out;
    struct err err = {0};

    CHECK_OK(compare_buckets(&out, &o, &err));
    CHECK_INT(kinds[DIFFERENCE_UNKNOWN], unknown);
    CHECK_INT(kinds[DIFFERENCE_CONTENT], content);
    CHECK_INT(out.differences, unknown + content);
}

TEST(copy_meta, what_is_sealed_stays_so)
{
    struct sides s;
    char path[256];
    struct copy_result out;
    struct err err = {0};

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    snprintf(path, sizeof(path), "%s/keys", test_dir());
    struct keyring *ring = keyring_new(path);
    put_sealed(&s, ring, "k", SSE_S3, STR("a secret"));
    put_sealed(&s, ring, "c", SSE_C, STR("another"));
    struct copy c = sides_copy(&s, "k");
    CHECK_ERR(copy_object(&out, &s.a, &c, &err), ERR_UNSUPPORTED);
    s.o.keys = ring;
    CHECK_OK(copy_object(&out, &s.a, &c, &err));
    CHECK_INT(out.outcome, COPY_MADE);
    expect_sealed(&s, ring, "k", STR("a secret"));
    CHECK_OK(copy_object(&out, &s.a, &c, &err));
    CHECK_INT(out.outcome, COPY_SAME);
    expect_compared(&s, ring, 0, 0);
    expect_compared(&s, NULL, 1, 0);
    lab_put(s.to, &s.a, "k", STR("no secret"));
    put_sealed(&s, ring, "k", SSE_S3, STR("my secret"));
    expect_compared(&s, ring, 0, 1);
    c.key = STR("c");
    CHECK_ERR(copy_object(&out, &s.a, &c, &err), ERR_UNSUPPORTED);
    keyring_free(ring);
    sides_close(&s);
}
