/* Counts of what buckets hold. That they follow every kind of change is checked by
 * local_check_whole after each test of the conformance suite. */
#include "unit/object/local_lab.h"

#include "object/generation.h"

static void expect_usage(struct bucket *b, struct bucket_usage want)
{
    struct bucket_usage u;
    struct err err = {0};

    CHECK_OK(b->ops->usage(b, &u, &err));
    CHECK_INT(u.objects, want.objects);
    CHECK_INT(u.bytes, want.bytes);
    CHECK_INT(u.old_versions, want.old_versions);
    CHECK_INT(u.old_bytes, want.old_bytes);
}

TEST(local_usage, what_a_bucket_holds_is_counted)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    expect_usage(b, (struct bucket_usage){0});
    lab_put(b, &a, "k", lab_bytes(100, 1));
    lab_put(b, &a, "k", lab_bytes(40 * KIB, 2)); /* replaced */
    lab_put(b, &a, "empty", STR_EMPTY);
    expect_usage(b, (struct bucket_usage){2, 40 * KIB, 0, 0});
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result second = lab_put(b, &a, "k", lab_bytes(7, 3));
    expect_usage(b, (struct bucket_usage){2, 7, 1, 40 * KIB});
    struct remove_result marker = lab_remove(b, &a, "k", STR_EMPTY);
    expect_usage(b, (struct bucket_usage){1, 0, 2, 40 * KIB + 7});
    lab_remove(b, &a, "k", marker.version); /* it is current again */
    expect_usage(b, (struct bucket_usage){2, 7, 1, 40 * KIB});
    lab_remove(b, &a, "k", second.version); /* and the null version takes its place */
    expect_usage(b, (struct bucket_usage){2, 40 * KIB, 0, 0});
    CHECK_OK(b->ops->set_versions(b, false, &err));
    lab_remove(b, &a, "k", STR_EMPTY); /* a null marker in place of the null version */
    expect_usage(b, (struct bucket_usage){1, 0, 0, 0});
    b->ops->unref(b);
    local_lab_expect_whole(&l);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_usage, an_upload_counts_when_it_is_finished)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct put_options o = {0};
    struct put_result out;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    struct upload_info u = lab_upload(b, &a, "u");
    struct upload_part parts[] = {lab_part(b, &a, &u, 1, lab_bytes(2000, 1)),
                                  lab_part(b, &a, &u, 2, lab_bytes(10, 2))};
    expect_usage(b, (struct bucket_usage){0});
    CHECK_OK(b->ops->upload_finish(b, &a, &u, parts, 2, &o, &out, &err));
    CHECK_OK(b->ops->upload_finish(b, &a, &u, parts, 2, &o, &out, &err)); /* the same again */
    expect_usage(b, (struct bucket_usage){1, 2010, 0, 0});
    b->ops->unref(b);
    local_lab_expect_whole(&l);
    local_lab_close(&l);
    arena_release(&a);
}

/* Puts an object, replaces it and removes it: 2 old versions; another stays. */
static struct bucket *fill(struct local_lab *l, struct arena *a, const char *name)
{
    struct bucket *b = lab_bucket(l->lab.storage, name);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    lab_put(b, a, "gone", lab_bytes(10, 1));
    lab_put(b, a, "gone", lab_bytes(20, 2));
    lab_remove(b, a, "gone", STR_EMPTY);
    lab_put(b, a, "here", lab_bytes(600 * KIB, 3));
    return b;
}

static void uncount(struct local_lab *l, struct bucket *b)
{
    struct local *local = local_of(l->lab.storage);
    struct row row;
    struct err err = {0};

    CHECK_OK(db_delete(l->db, local->rows, row_id(&row, local, TAG_USAGE, local_bucket_of(b)->id),
                       DB_DURABLE, &err));
}

/* The storage's row as it was before there were counts. */
static void set_format(struct local_lab *l, char format)
{
    struct local *local = local_of(l->lab.storage);
    struct buf value = BUF_INIT(0);
    struct row row;
    struct err err = {0};
    struct str key = row_tag(&row, local, TAG_STORAGE);

    CHECK_OK(db_get(db_latest(l->db), local->rows, key, &value, &err));
    CHECK_INT(value.p[0], 3);
    value.p[0] = format;
    CHECK_OK(db_put(l->db, local->rows, key, buf_str(&value), DB_DURABLE, &err));
    buf_release(&value);
}

TEST(local_usage, a_storage_without_counts_is_counted_when_it_is_opened)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct bucket *one, *two;
    struct err err = {0};

    local_lab_open(&l, NULL);
    one = fill(&l, &a, "one");
    two = lab_bucket(l.lab.storage, "two");
    uncount(&l, one);
    set_format(&l, 1);
    one->ops->unref(one);
    two->ops->unref(two);
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    CHECK_OK(l.lab.storage->ops->open_bucket(&one, l.lab.storage, STR_EMPTY, STR("one"), &err));
    expect_usage(one, (struct bucket_usage){1, 600 * KIB, 2, 30});
    lab_put(one, &a, "more", lab_bytes(5, 4));
    expect_usage(one, (struct bucket_usage){2, 600 * KIB + 5, 2, 30});
    one->ops->unref(one);
    local_lab_expect_whole(&l);
    set_format(&l, 5); /* which also finds that it was made 3 */
    l.lab.storage->ops->close(l.lab.storage);
    struct local_options o = {.name = "newer", .folder = l.folder, .db = l.db, .id = 7};
    CHECK_ERR(local_open(&l.lab.storage, &o, &err), ERR_VERSION);
    db_close(l.db);
    arena_release(&a);
}

static int finding(void *ctx, const struct local_finding *f, struct err *err)
{
    buf_appendf(ctx, "%s " STR_FMT ";", local_damage_text(f->damage), STR_ARG(f->bucket));
    return 0;
}

static void expect_scrub(struct storage *s, const char *want)
{
    struct buf found = BUF_INIT(0);
    struct local_scrub o = {.finding = finding, .ctx = &found};
    struct err err = {0};

    CHECK_OK(local_scrub(s, &o, &err));
    CHECK_STR(buf_str(&found), str_z(want));
    buf_release(&found);
}

TEST(local_usage, the_scrub_finds_wrong_counts_and_puts_them_right)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);

    local_lab_open(&l, NULL);
    struct bucket *less = fill(&l, &a, "less"), *fine = fill(&l, &a, "fine");
    uncount(&l, less);
    lab_remove(less, &a, "here", STR_EMPTY); /* a count below nothing is none */
    expect_scrub(l.lab.storage, "wrong count, mended less;");
    expect_usage(less, (struct bucket_usage){0, 0, 3, 600 * KIB + 30});
    expect_usage(fine, (struct bucket_usage){1, 600 * KIB, 2, 30});
    expect_scrub(l.lab.storage, "");
    less->ops->unref(less);
    fine->ops->unref(fine);
    local_lab_expect_whole(&l);
    local_lab_close(&l);
    arena_release(&a);
}

/* --- whose they are --- */

static void make_bucket(struct storage *s, const char *name, const char *owner)
{
    struct bucket_info info = {.name = str_z(name), .owner = str_z(owner)};
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

static void expect_buckets(struct storage *s, const char *owner, const char *after,
                           const char *want)
{
    struct arena a = ARENA_INIT(0);
    struct buf found = BUF_INIT(0);
    struct bucket_info *page = NULL;
    size_t count = 0;
    struct err err = {0};

    CHECK_OK(s->ops->list_buckets(s, &a, str_z(owner), str_z(after), 2, &page, &count, &err));
    for (size_t i = 0; i < count; i++)
        buf_appendf(&found, STR_FMT " ", STR_ARG(page[i].name));
    CHECK_STR(buf_str(&found), str_z(want));
    buf_release(&found);
    arena_release(&a);
}

TEST(local_usage, buckets_of_one_owner_are_found_by_the_owner)
{
    struct local_lab l;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct storage *s = l.lab.storage;
    make_bucket(s, "a", "ann");
    make_bucket(s, "b", "anna");
    make_bucket(s, "c", "ann");
    make_bucket(s, "d", "bob");
    make_bucket(s, "e", "ann");
    expect_buckets(s, "ann", "", "a c ");
    expect_buckets(s, "ann", "c", "e ");
    expect_buckets(s, "anna", "", "b ");
    expect_buckets(s, "an", "", "");
    expect_buckets(s, "", "b", "c d ");
    CHECK_OK(s->ops->remove_bucket(s, STR("ann"), STR("c"), &err));
    make_bucket(s, "c", "bob");
    expect_buckets(s, "ann", "", "a e ");
    expect_buckets(s, "bob", "", "c d ");
    local_lab_expect_whole(&l);
    local_lab_close(&l);
}

static void disown(struct local_lab *l, const char *owner, const char *name)
{
    struct local *local = local_of(l->lab.storage);
    struct row row;
    struct err err = {0};

    CHECK_OK(db_delete(l->db, local->rows, row_owned(&row, local, str_z(owner), str_z(name)),
                       DB_DURABLE, &err));
}

TEST(local_usage, a_storage_without_rows_of_owners_gets_them_when_it_is_opened)
{
    struct local_lab l;

    local_lab_open(&l, NULL);
    make_bucket(l.lab.storage, "one", "ann");
    make_bucket(l.lab.storage, "two", "bob");
    disown(&l, "ann", "one");
    disown(&l, "bob", "two");
    set_format(&l, 2);
    expect_buckets(l.lab.storage, "ann", "", "");
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    expect_buckets(l.lab.storage, "ann", "", "one ");
    expect_buckets(l.lab.storage, "bob", "", "two ");
    local_lab_expect_whole(&l);
    local_lab_close(&l);
}

TEST(local_usage, turning_the_lock_on_makes_another_generation)
{
    struct local_lab l;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct storage *s = l.lab.storage;
    struct bucket *b = lab_bucket(s, "b");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    uint64_t before = generation_get(s->generations, STR("b"));
    CHECK_OK(b->ops->set_object_lock(b, &err));
    CHECK(generation_get(s->generations, STR("b")) != before);
    b->ops->unref(b);
    local_lab_close(&l);
}
