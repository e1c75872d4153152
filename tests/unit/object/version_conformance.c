/* What every storage must do: versions, what is known of them, and copies. */
#include "unit/object/bucket_conformance.h"

#include "base/clock.h"

#define WIRE_ACL                                                                                   \
    "<AccessControlPolicy><Owner><ID>owner</ID></Owner><AccessControlList><Grant><Grantee "        \
    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">"          \
    "<ID>owner</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList>"    \
    "</AccessControlPolicy>"

/* --- versions --- */

void conform_versions_are_kept_newest_first(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(300 * KIB, 1);
    struct get_result got;
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result one = lab_put(b, &a, "k", STR("one")), two = lab_put(b, &a, "k", large),
                      three = lab_put(b, &a, "k", STR("three"));
    CHECK(!str_eq(one.version, two.version) && !str_eq(two.version, three.version));
    lab_expect(b, "k", STR_EMPTY, STR("three"));
    lab_expect(b, "k", one.version, STR("one"));
    lab_expect(b, "k", two.version, large);
    lab_expect(b, "k", three.version, STR("three"));
    lab_expect(b, "k", STR("null"), STR_EMPTY);
    CHECK_OK(lab_head(b, &a, STR("k"), two.version, NULL, &got, &err));
    CHECK(!got.info.is_latest);
    CHECK_STR(got.info.version, two.version);
    CHECK_OK(lab_head(b, &a, STR("k"), three.version, NULL, &got, &err));
    CHECK(lab->wire || got.info.is_latest);
    lab_expect_list(b, &lab_everything, true, "k* k k");
    lab_remove(b, &a, "k", three.version);
    lab_expect(b, "k", STR_EMPTY, large);
    lab_remove(b, &a, "k", one.version);
    lab_expect_list(b, &lab_everything, true, "k*");
    lab_remove(b, &a, "k", two.version);
    lab_expect_list(b, &lab_everything, true, "");
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_marker_hides_and_its_removal_brings_back(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("x"));
    struct remove_result marker = lab_remove(b, &a, "k", STR_EMPTY),
                         second = lab_remove(b, &a, "k", STR_EMPTY);
    CHECK(marker.is_marker && second.is_marker);
    CHECK(marker.version.len > 0 && !str_eq(marker.version, second.version));
    CHECK_ERR(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err), ERR_NOT_FOUND);
    CHECK(got.info.is_marker);
    CHECK_STR(got.info.version, second.version);
    CHECK_ERR(lab_head(b, &a, STR("k"), marker.version, NULL, &got, &err), ERR_NOT_FOUND);
    CHECK(got.info.is_marker && !got.info.is_latest);
    lab_expect(b, "k", put.version, STR("x"));
    lab_expect_list(b, &lab_everything, false, "");
    lab_expect_list(b, &lab_everything, true, "k!* k! k");
    CHECK(lab_remove(b, &a, "k", second.version).is_marker);
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    lab_expect_list(b, &lab_everything, true, "k!* k");
    CHECK(lab_remove(b, &a, "k", marker.version).is_marker);
    lab_expect(b, "k", STR_EMPTY, STR("x"));
    lab_expect_list(b, &lab_everything, false, "k");
    lab_expect_list(b, &lab_everything, true, "k*");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_suspended_versions_have_one_null(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(300 * KIB, 1);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result kept = lab_put(b, &a, "k", STR("kept"));
    CHECK_OK(b->ops->set_versions(b, false, &err));
    struct str version = lab_put(b, &a, "k", large).version;
    CHECK(version.len == 0 || str_eq(version, STR("null"))); /* S3 servers differ */
    lab_expect_list(b, &lab_everything, true, "k* k");
    lab_put(b, &a, "k", STR("null2"));
    lab_expect_list(b, &lab_everything, true, "k* k");
    lab_expect(b, "k", STR("null"), STR("null2"));
    CHECK_STR(lab_remove(b, &a, "k", STR_EMPTY).version, STR("null"));
    lab_expect_list(b, &lab_everything, true, "k!* k");
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    lab_put(b, &a, "k", large);
    lab_expect_list(b, &lab_everything, true, "k* k");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result newest = lab_put(b, &a, "k", STR("newest"));
    lab_expect_list(b, &lab_everything, true, "k* k k");
    lab_expect(b, "k", STR("null"), large);
    CHECK_OK(b->ops->set_versions(b, false, &err));
    lab_put(b, &a, "k", STR("null4"));
    lab_expect_list(b, &lab_everything, true, "k* k k");
    lab_expect(b, "k", newest.version, STR("newest"));
    lab_expect(b, "k", kept.version, STR("kept"));
    lab_remove(b, &a, "k", STR("null"));
    lab_expect(b, "k", STR_EMPTY, STR("newest"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_null_version_from_before_is_kept(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    lab_put(b, &a, "k", STR("before"));
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("after"));
    lab_expect(b, "k", STR("null"), STR("before"));
    lab_expect(b, "k", put.version, STR("after"));
    lab_remove(b, &a, "k", put.version);
    lab_expect(b, "k", STR_EMPTY, STR("before"));
    lab_remove(b, &a, "k", STR_EMPTY);
    lab_expect(b, "k", STR("null"), STR("before"));
    lab_remove(b, &a, "k", STR("null"));
    lab_expect_list(b, &lab_everything, true, "k!*");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_made_up_version_is_not_found(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("x"));
    lab_put(b, &a, "other", STR("y"));
    char *forged = arena_z(&a, put.version);
    forged[put.version.len - 1] = forged[put.version.len - 1] == '0' ? '1' : '0';
    lab_expect(b, "k", str_z(forged), STR_EMPTY);
    lab_expect(b, "k", STR("nonsense"), STR_EMPTY);
    lab_expect(b, "other", put.version, STR_EMPTY);
    lab_remove(b, &a, "k", str_z(forged));
    lab_expect(b, "k", put.version, STR("x"));
    b->ops->unref(b);
    arena_release(&a);
}

static int set_lock(struct bucket *b, struct str version, struct object_meta meta, bool bypass,
                    struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct meta_options o = {.bypass_governance = bypass};
    int code = b->ops->set_meta(b, &a, STR("k"), version, META_RETENTION | META_LEGAL_HOLD, &meta,
                                &o, err);

    arena_release(&a);
    return code;
}

static int remove_locked(struct bucket *b, struct str version, bool bypass, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct remove_options o = {.version = version, .bypass_governance = bypass};
    struct remove_result out;
    int code = b->ops->remove(b, &a, STR("k"), &o, &out, err);

    arena_release(&a);
    return code;
}

void conform_retention_and_hold_keep_versions(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket_info info = {
        .name = STR("box"), .versions = VERSIONS_ON, .object_lock = true, .owner = STR("owner")};
    struct arena a = ARENA_INIT(0);
    struct bucket *b;
    int64_t later = clock_wall_ms() + MS_PER_HOUR;
    struct err err = {0};

    CHECK_OK(storage_create_bucket(s, &info, &err));
    CHECK_OK(storage_open_bucket(&b, s, STR("owner"), STR("box"), &err));
    CHECK_ERR(b->ops->set_versions(b, false, &err), ERR_CONFLICT);
    struct str one = lab_put(b, &a, "k", STR("1")).version,
               two = lab_put(b, &a, "k", STR("2")).version,
               three = lab_put(b, &a, "k", STR("3")).version;

    CHECK_OK(set_lock(b, one, (struct object_meta){.legal_hold = true}, false, &err));
    CHECK_ERR(remove_locked(b, one, true, &err), ERR_DENIED);
    CHECK_OK(set_lock(b, one, (struct object_meta){0}, false, &err));
    CHECK_OK(remove_locked(b, one, false, &err));

    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later}, false, &err));
    CHECK_ERR(remove_locked(b, two, false, &err), ERR_DENIED);
    CHECK_ERR(set_lock(b, two, (struct object_meta){.retain_until_ms = later - 1}, false, &err),
              ERR_DENIED);
    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later + 1}, false, &err));
    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later}, true, &err));
    CHECK_OK(remove_locked(b, two, true, &err));

    struct object_meta compliance = {.retain_until_ms = later, .retain_compliance = true};
    CHECK_OK(set_lock(b, STR_EMPTY, compliance, false, &err));
    CHECK_ERR(remove_locked(b, three, true, &err), ERR_DENIED);
    CHECK_ERR(set_lock(b, three, (struct object_meta){.retain_until_ms = later}, true, &err),
              ERR_DENIED);
    CHECK_ERR(set_lock(b, three, (struct object_meta){0}, true, &err), ERR_DENIED);
    CHECK_OK(remove_locked(b, STR_EMPTY, false, &err)); /* a marker takes nothing away */
    lab_expect(b, "k", three, STR("3"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_meta_of_a_version_can_be_set(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct object_meta meta = {.tags = STR("a=1"), .acl = lab->wire ? STR(WIRE_ACL) : STR("acl")};
    struct get_result got;
    struct err err = {0};

    CHECK_ERR(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err),
              ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result old = lab_put(b, &a, "k", STR("old"));
    lab_put(b, &a, "k", STR("new"));
    CHECK_OK(b->ops->set_meta(b, &a, STR("k"), old.version, META_TAGS, &meta, NULL, &err));
    CHECK_OK(lab_head(b, &a, STR("k"), old.version, NULL, &got, &err));
    CHECK_STR(got.info.meta.tags, STR("a=1"));
    CHECK_INT(got.info.meta.acl.len, 0);
    CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_INT(got.info.meta.tags.len, 0);
    CHECK_OK(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_ACL, &meta, NULL, &err));
    CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK(lab->wire || str_eq(got.info.meta.acl, STR("acl")));
    lab_expect(b, "k", STR_EMPTY, STR("new"));
    lab_expect(b, "k", old.version, STR("old"));
    lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_ERR(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err),
              ERR_NOT_FOUND);
    b->ops->unref(b);
    arena_release(&a);
}

/* --- copies --- */

static int copy_to(struct bucket *b, struct arena *a, const char *key, struct bucket *from,
                   const char *source, struct put_options o, struct err *err)
{
    struct get_result got;
    struct put_result out;
    int code = from->ops->head(from, a, str_z(source), STR_EMPTY, NULL, &got, err);

    return code < 0 ? code : b->ops->copy(b, a, str_z(key), from, &got.info, &o, &out, err);
}

void conform_a_copy_lives_without_its_source(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box"), *other = lab_bucket(lab->storage, "other");
    struct arena a = ARENA_INIT(0);
    struct str bodies[] = {STR(""), STR("small"), lab_bytes(400 * KIB, 1)};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        lab_put(b, &a, "from", bodies[i]);
        CHECK_OK(copy_to(other, &a, "to", b, "from", (struct put_options){0}, &err));
        CHECK_OK(copy_to(other, &a, "to2", other, "to", (struct put_options){0}, &err));
        lab_remove(b, &a, "from", STR_EMPTY);
        lab_expect(b, "from", STR_EMPTY, STR_EMPTY);
        lab_remove(other, &a, "to", STR_EMPTY);
        lab_expect(other, "to2", STR_EMPTY, bodies[i]);
        struct put_options never = {.conditions.if_none_match = STR("*")};
        CHECK_ERR(copy_to(other, &a, "to2", other, "to2", never, &err), ERR_PRECONDITION);
    }
    b->ops->unref(b);
    other->ops->unref(other);
    arena_release(&a);
}

void conform_a_copy_onto_itself_changes_the_metadata(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str bodies[] = {STR("small"), lab_bytes(400 * KIB, 1)};
    struct get_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        lab_put(b, &a, "k", bodies[i]);
        CHECK_OK(copy_to(b, &a, "k", b, "k", (struct put_options){.meta.tags = STR("t=1")}, &err));
        lab_expect(b, "k", STR_EMPTY, bodies[i]);
        CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
        CHECK_STR(got.info.meta.tags, STR("t=1"));
    }
    b->ops->unref(b);
    arena_release(&a);
}
