/* Notes: what is kept in the commit of a change. */
#include "unit/object/local_lab.h"

/* One row a change: "<sequence>" to "<kind> <version> <etag> <size>". */
static void tell(void *ctx, const struct change_fact *f, struct outbox *out)
{
    const char *kind = f->changes & CHANGE_PUT       ? "put"
                       : f->changes & CHANGE_MARKER  ? "marker"
                       : f->changes & CHANGE_REMOVED ? "removed"
                                                     : "meta";
    struct buf key = BUF_INIT(0), value = BUF_INIT(0);

    (void)ctx;
    buf_append_be64(&key, f->sequence);
    buf_appendf(&value, "%s %s %s%llu", kind, f->version.len ? "v" : "-", f->etag.len ? "e" : "-",
                (unsigned long long)f->size);
    out->put(out, STR("log"), buf_str(&key), buf_str(&value));
    buf_release(&key);
    buf_release(&value);
}

static const struct change_note note = {.tell = tell};

static void put(struct bucket *b, struct arena *a, const char *if_none_match)
{
    struct put_options o = {.note = &note, .conditions.if_none_match = str_z(if_none_match)};
    struct str_reader body;
    struct put_result out;
    struct err err = {0};

    str_reader_init(&body, STR("hello"));
    int code = b->ops->put(b, a, STR("k"), &body.reader, 5, &o, &out, &err);
    CHECK_INT(code, if_none_match ? ERR_PRECONDITION : 0);
}

static void drop(struct bucket *b, struct arena *a, struct str version)
{
    struct remove_options o = {.note = &note, .version = version};
    struct remove_result out;
    struct err err = {0};

    CHECK_OK(b->ops->remove(b, a, STR("k"), &o, &out, &err));
}

static void expect_rows(struct local_lab *l, const char *want)
{
    struct db_range all = {0};
    struct db_iter *it = NULL;
    struct buf text = BUF_INIT(0);
    struct str key, value;
    struct err err = {0};

    CHECK_OK(db_iter_open(&it, db_latest(l->db), db_cf(l->db, LOCAL_OUTBOX), &all, &err));
    while (db_iter_next(it, &key, &value, &err) == 0)
        buf_appendf(&text, STR_FMT "\n", STR_ARG(value));
    db_iter_close(it);
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

TEST(local_note, each_change_that_happened_leaves_its_row_in_order)
{
    struct arena a = ARENA_INIT(0);
    struct object_meta meta = {.tags = STR("a=1")};
    struct meta_options o = {.note = &note};
    struct local_lab l;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "box");
    put(b, &a, NULL);
    put(b, &a, "*"); /* refused: no row */
    CHECK_OK(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_TAGS, &meta, &o, &err));
    drop(b, &a, STR_EMPTY);
    drop(b, &a, STR_EMPTY); /* nothing there: no row */
    expect_rows(&l, "put - e5\nmeta - e5\nremoved - e5\n");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    put(b, &a, NULL);
    drop(b, &a, STR_EMPTY);
    drop(b, &a, STR("null")); /* nothing there: no row */
    expect_rows(&l, "put - e5\nmeta - e5\nremoved - e5\nput v e5\nmarker v -0\n");
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_note, a_copy_and_a_finished_upload_are_told_once)
{
    struct arena a = ARENA_INIT(0);
    struct put_options o = {.note = &note};
    struct local_lab l;
    struct get_result got;
    struct put_result out;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "box");
    lab_put(b, &a, "from", STR("hello"));
    CHECK_OK(b->ops->head(b, &a, STR("from"), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(b->ops->copy(b, &a, STR("k"), b, &got.info, &o, &out, &err));
    struct upload_info upload = lab_upload(b, &a, "k");
    struct upload_part part = lab_part(b, &a, &upload, 1, STR("hello you"));
    CHECK_OK(b->ops->upload_finish(b, &a, &upload, &part, 1, &o, &out, &err));
    CHECK_OK(b->ops->upload_finish(b, &a, &upload, &part, 1, &o, &out, &err));
    expect_rows(&l, "put - e5\nput - e9\n");
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_note, the_bucket_knows_whether_it_notifies)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_info info;
    struct local_lab l;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "box");
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK(!info.notifies);
    CHECK_OK(b->ops->set_document(b, "notification", STR("x"), &err));
    CHECK_OK(b->ops->set_versions(b, true, &err));
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK(info.notifies && info.versions == VERSIONS_ON);
    CHECK_OK(b->ops->set_document(b, "notification", STR_EMPTY, &err));
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK(!info.notifies && info.versions == VERSIONS_ON);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}
