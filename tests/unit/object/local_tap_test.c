/* The tap: a row for every change, in its commit (L12). */
#include "unit/object/fake_bucket.h"
#include "unit/object/local_lab.h"

#include <stdio.h>

enum { MANY = 400, WRITERS = 4 };

struct tap_lab {
    struct local_lab l;
    struct bucket *b;
    struct arena a;
    struct change_tap tap;
    struct str refuses; /* a bucket's name: not wanted */
    _Atomic(uint64_t) told;
    _Atomic(unsigned) asked;
};

static int wants(void *ctx, const struct tapped *t, bool *out, struct err *err)
{
    struct tap_lab *lab = ctx;

    (void)err;
    atomic_fetch_add(&lab->asked, 1);
    *out = !str_eq(t->bucket, lab->refuses);
    return 0;
}

static void committed(void *ctx, uint64_t number)
{
    struct tap_lab *lab = ctx;
    uint64_t have = atomic_load(&lab->told);

    while (have < number && !atomic_compare_exchange_weak(&lab->told, &have, number))
        ;
}

static void open_lab(struct tap_lab *lab)
{
    *lab = (struct tap_lab){.a = ARENA_INIT(0), .refuses = STR("unwanted")};
    local_lab_open(&lab->l, NULL);
    lab->tap = (struct change_tap){.wants = wants, .committed = committed, .ctx = lab};
    local_set_tap(lab->l.lab.storage, &lab->tap);
    lab->b = lab_bucket(lab->l.lab.storage, "box");
}

static void close_lab(struct tap_lab *lab)
{
    lab->b->ops->unref(lab->b);
    local_lab_close(&lab->l);
    arena_release(&lab->a);
}

static size_t read_rows(struct tap_lab *lab, uint64_t after, struct tapped **out)
{
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(
        local_tap_read(lab->l.lab.storage, &lab->a, after, MANY * WRITERS + 1, out, &count, &err));
    return count;
}

static const char *kind_of(const struct tapped *row)
{
    return row->changes == (CHANGE_PUT | THINGS_OF_OBJECT)                 ? "put"
           : row->changes == (CHANGE_MARKER | (unsigned)THING_OBJECT)      ? "marker"
           : row->changes == (CHANGE_REMOVED | (unsigned)THING_OBJECT)     ? "removed"
           : row->changes == CHANGE_BUCKET_MADE                            ? "made"
           : row->changes == CHANGE_BUCKET_GONE                            ? "unmade"
           : row->document.len                                             ? "document"
           : row->changes == THING_BUCKET                                  ? "versions"
           : row->changes && !(row->changes & ~(unsigned)THINGS_OF_OBJECT) ? "meta"
                                                                           : "?";
}

/* "<kind> <owner> <bucket>/<key> v|- <document>\n" of what is new; forgotten then. */
static void expect(struct tap_lab *lab, const char *want)
{
    struct buf text = BUF_INIT(0);
    struct tapped *rows;
    struct err err = {0};
    size_t count = read_rows(lab, 0, &rows);

    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || rows[i].number > rows[i - 1].number);
        buf_appendf(&text, "%s " STR_FMT " " STR_FMT "/" STR_FMT " %s", kind_of(&rows[i]),
                    STR_ARG(rows[i].owner), STR_ARG(rows[i].bucket), STR_ARG(rows[i].key),
                    rows[i].version.len ? "v" : "-");
        if (rows[i].document.len)
            buf_appendf(&text, " " STR_FMT, STR_ARG(rows[i].document));
        if (rows[i].set)
            buf_appendf(&text, " %d", (int)rows[i].set);
        if (rows[i].size)
            buf_appendf(&text, " %d", (int)rows[i].size);
        buf_append_char(&text, '\n');
    }
    CHECK_STR(buf_str(&text), str_z(want));
    if (count) {
        CHECK_INT(atomic_load(&lab->told), rows[count - 1].number);
        CHECK_OK(local_tap_drop(lab->l.lab.storage, rows, count, &err));
    }
    buf_release(&text);
}

static int put(struct tap_lab *lab, const char *key, const char *if_none_match)
{
    struct put_options o = {.conditions.if_none_match = str_z(if_none_match)};
    struct str_reader body;
    struct put_result out;
    struct err err = {0};

    str_reader_init(&body, STR("hello"));
    return lab->b->ops->put(lab->b, &lab->a, str_z(key), &body.reader, 5, &o, &out, &err);
}

TEST(local_tap, each_change_of_an_object_leaves_one_row)
{
    struct object_meta meta = {.tags = STR("a=1")};
    struct tap_lab lab;
    struct err err = {0};

    open_lab(&lab);
    expect(&lab, "made owner box/ -\n");
    CHECK_OK(put(&lab, "k", NULL));
    expect(&lab, "put owner box/k - 5\n");
    CHECK_OK(
        lab.b->ops->set_meta(lab.b, &lab.a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err));
    expect(&lab, "meta owner box/k - 1 5\n");
    lab_remove(lab.b, &lab.a, "k", STR_EMPTY);
    expect(&lab, "removed owner box/k - 5\n");
    CHECK_OK(lab.b->ops->set_versions(lab.b, true, &err));
    expect(&lab, "versions owner box/ -\n");
    struct str version = lab_put(lab.b, &lab.a, "k", STR("hi")).version;
    lab_remove(lab.b, &lab.a, "k", STR_EMPTY);
    lab_remove(lab.b, &lab.a, "k", version);
    expect(&lab, "put owner box/k v 2\nmarker owner box/k v\nremoved owner box/k v 2\n");
    close_lab(&lab);
}

TEST(local_tap, puts_of_one_call_are_one_change_each)
{
    struct object_put puts[] = {{.key = STR("a"), .bytes = STR("hello")},
                                {.key = STR("b"), .bytes = STR("hi")}};
    struct tap_lab lab;
    struct err err = {0};

    open_lab(&lab);
    expect(&lab, "made owner box/ -\n");
    CHECK_OK(lab.b->ops->put_all(lab.b, &lab.a, puts, 2, &err));
    expect(&lab, "put owner box/a - 5\nput owner box/b - 2\n");
    close_lab(&lab);
}

TEST(local_tap, a_copy_and_a_finished_upload_are_one_change_each)
{
    struct put_options o = {0};
    struct tap_lab lab;
    struct get_result got;
    struct put_result out;
    struct err err = {0};

    open_lab(&lab);
    CHECK_OK(put(&lab, "from", NULL));
    CHECK_OK(lab.b->ops->head(lab.b, &lab.a, STR("from"), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(lab.b->ops->copy(lab.b, &lab.a, STR("k"), lab.b, &got.info, &o, &out, &err));
    struct upload_info upload = lab_upload(lab.b, &lab.a, "u");
    struct upload_part part = lab_part(lab.b, &lab.a, &upload, 1, STR("hello you"));
    expect(&lab, "made owner box/ -\nput owner box/from - 5\nput owner box/k - 5\n");
    CHECK_OK(lab.b->ops->upload_finish(lab.b, &lab.a, &upload, &part, 1, &o, &out, &err));
    CHECK_OK(lab.b->ops->upload_finish(lab.b, &lab.a, &upload, &part, 1, &o, &out, &err));
    upload = lab_upload(lab.b, &lab.a, "u");
    CHECK_OK(lab.b->ops->upload_abort(lab.b, &upload, &err));
    expect(&lab, "put owner box/u - 9\n");
    close_lab(&lab);
}

TEST(local_tap, what_fails_or_changes_nothing_leaves_no_row)
{
    struct object_meta meta = {.tags = STR("a=1")};
    struct bucket_info info = {.name = STR("box"), .owner = STR("other")};
    struct tap_lab lab;
    struct err err = {0};

    open_lab(&lab);
    struct storage *s = lab.l.lab.storage;
    CHECK_OK(put(&lab, "k", NULL));
    CHECK_OK(lab.b->ops->set_document(lab.b, "cors", STR("x"), &err));
    expect(&lab, "made owner box/ -\nput owner box/k - 5\ndocument owner box/ - cors\n");
    CHECK_ERR(put(&lab, "k", "*"), ERR_PRECONDITION);
    lab_remove(lab.b, &lab.a, "absent", STR_EMPTY);
    lab_remove(lab.b, &lab.a, "k", STR("0123456789abcdef0123456789abcdef"));
    CHECK_ERR(
        lab.b->ops->set_meta(lab.b, &lab.a, STR("absent"), STR_EMPTY, META_TAGS, &meta, NULL, &err),
        ERR_NOT_FOUND);
    CHECK_ERR(s->ops->create_bucket(s, &info, &err), ERR_EXISTS);
    CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    CHECK_OK(lab.b->ops->set_document(lab.b, "cors", STR("x"), &err));
    CHECK_OK(lab.b->ops->set_document(lab.b, "policy", STR_EMPTY, &err));
    expect(&lab, "");
    CHECK_INT(lab.b->ops->set_object_lock(lab.b, &err), ERR_CONFLICT);
    CHECK_OK(lab.b->ops->set_versions(lab.b, true, &err));
    CHECK_OK(lab.b->ops->set_versions(lab.b, true, &err));
    CHECK_OK(lab.b->ops->set_object_lock(lab.b, &err));
    expect(&lab, "versions owner box/ -\nversions owner box/ -\n");
    close_lab(&lab);
}

TEST(local_tap, buckets_are_told_of_with_their_documents)
{
    struct tap_lab lab;
    struct err err = {0};

    open_lab(&lab);
    struct storage *s = lab.l.lab.storage;
    struct bucket *b = lab_bucket(s, "other");
    CHECK_OK(b->ops->set_document(b, "tagging", STR("t"), &err));
    CHECK_OK(b->ops->set_document(b, "tagging", STR_EMPTY, &err));
    b->ops->unref(b);
    CHECK_OK(s->ops->remove_bucket(s, STR("owner"), STR("other"), &err));
    expect(&lab, "made owner box/ -\nmade owner other/ -\ndocument owner other/ - tagging\n"
                 "document owner other/ - tagging\nunmade owner other/ -\n");
    close_lab(&lab);
}

TEST(local_tap, what_the_tap_does_not_want_is_not_kept)
{
    struct tap_lab lab;

    open_lab(&lab);
    struct bucket *b = lab_bucket(lab.l.lab.storage, "unwanted");
    lab_put(b, &lab.a, "k", STR("hello"));
    b->ops->unref(b);
    expect(&lab, "made owner box/ -\n");
    CHECK_INT(atomic_load(&lab.asked), 3);
    close_lab(&lab);
}

TEST(local_tap, what_is_written_past_it_is_not_told)
{
    struct tap_lab lab;
    struct bucket *quiet = NULL;
    struct err err = {0};

    open_lab(&lab);
    struct storage *s = lab.l.lab.storage;
    CHECK_OK(s->ops->open_bucket(&quiet, s, STR("owner"), STR("box"), &err));
    local_untap(quiet);
    lab_put(quiet, &lab.a, "k", STR("hello"));
    CHECK_OK(quiet->ops->set_versions(quiet, true, &err));
    lab_remove(quiet, &lab.a, "k", STR_EMPTY);
    expect(&lab, "made owner box/ -\n");
    CHECK_OK(put(&lab, "k", NULL));
    expect(&lab, "put owner box/k v 5\n");
    quiet->ops->unref(quiet);
    close_lab(&lab);
}

TEST(local_tap, what_is_written_past_it_into_the_parts_of_a_bucket_is_not_told)
{
    struct fake_parts parts = {.count = 2, .bound = STR("m")};
    struct tap_lab lab;
    struct err err = {0};

    open_lab(&lab);
    struct storage *s = lab.l.lab.storage;
    CHECK_OK(s->ops->open_bucket(&parts.buckets[0], s, STR("owner"), STR("box"), &err));
    parts.buckets[1] = lab_bucket(s, "far");
    expect(&lab, "made owner box/ -\nmade owner far/ -\n");
    struct bucket *over = fake_bucket_new(STR("box"), &parts);
    local_untap(over);
    lab_put(over, &lab.a, "a", STR("in the first part"));
    lab_put(over, &lab.a, "z", STR("in the second part"));
    expect(&lab, "");
    over->ops->unref(over);
    close_lab(&lab);
}

TEST(local_tap, buckets_may_be_made_and_removed_past_it)
{
    struct bucket_info info = {.name = STR("copy"), .owner = STR("owner")};
    struct tap_lab lab;
    struct storage *s;
    struct err err = {0};

    open_lab(&lab);
    s = lab.l.lab.storage;
    expect(&lab, "made owner box/ -\n");
    CHECK_OK(local_create_untapped(s, &info, &err));
    CHECK_ERR(local_create_untapped(s, &info, &err), ERR_EXISTS);
    CHECK_OK(local_remove_untapped(s, STR("owner"), STR("copy"), &err));
    CHECK_ERR(local_remove_untapped(s, STR("owner"), STR("copy"), &err), ERR_NO_BUCKET);
    expect(&lab, "");
    CHECK_OK(s->ops->create_bucket(s, &info, &err));
    CHECK_OK(s->ops->remove_bucket(s, STR("owner"), STR("copy"), &err));
    expect(&lab, "made owner copy/ -\nunmade owner copy/ -\n");
    close_lab(&lab);
}

TEST(local_tap, rows_up_to_a_number_are_forgotten_and_no_others)
{
    struct tap_lab lab;
    struct tapped *rows;
    struct err err = {0};

    open_lab(&lab);
    for (int i = 0; i < 9; i++)
        CHECK_OK(put(&lab, "k", NULL));
    CHECK_INT(read_rows(&lab, 0, &rows), 10);
    CHECK_OK(local_tap_drop_until(lab.l.lab.storage, rows[3].number, &err));
    uint64_t next = rows[4].number;
    CHECK_INT(read_rows(&lab, 0, &rows), 6);
    CHECK_INT(rows[0].number, next);
    CHECK_OK(put(&lab, "k", NULL));
    CHECK_OK(local_tap_drop_until(lab.l.lab.storage, rows[5].number, &err));
    CHECK_INT(read_rows(&lab, 0, &rows), 1);
    close_lab(&lab);
}

TEST(local_tap, rows_outlive_the_storage_and_numbers_go_on)
{
    struct tap_lab lab;
    struct tapped *rows;
    struct err err = {0};

    open_lab(&lab);
    CHECK_OK(put(&lab, "k", NULL));
    lab.b->ops->unref(lab.b);
    struct storage *s = lab.l.lab.storage;
    s->ops->close(s);
    struct local_options o = {
        .name = "test", .folder = lab.l.folder, .db = lab.l.db, .id = 7, .reserve_bytes = 1};
    CHECK_OK(local_open(&lab.l.lab.storage, &o, &err));
    CHECK_INT(read_rows(&lab, 0, &rows), 2);
    uint64_t last = rows[1].number;
    CHECK_INT(read_rows(&lab, rows[0].number, &rows), 1);
    CHECK_STR(rows[0].key, STR("k"));
    local_set_tap(lab.l.lab.storage, &lab.tap);
    CHECK_OK(lab.l.lab.storage->ops->open_bucket(&lab.b, lab.l.lab.storage, STR_EMPTY, STR("box"),
                                                 &err));
    CHECK_OK(put(&lab, "k2", NULL));
    CHECK_INT(read_rows(&lab, last, &rows), 1);
    CHECK_STR(rows[0].key, STR("k2"));
    close_lab(&lab);
}

struct tap_writer {
    struct thread thread;
    struct bucket *b;
    int id;
};

static void write_many(void *ctx)
{
    struct tap_writer *w = ctx;
    struct arena a = ARENA_INIT(0);
    char key[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "%d/%d", w->id, i);
        lab_put(w->b, &a, key, STR("x"));
        arena_reset(&a);
    }
    arena_release(&a);
}

/* A reader that goes on behind the last number that it has seen misses nothing. */
TEST(local_tap, rows_are_seen_in_the_order_of_their_numbers)
{
    struct tap_lab lab;
    struct tap_writer writers[WRITERS];
    struct tapped *rows;
    int next[WRITERS] = {0};
    size_t seen = 0;
    struct err err = {0};

    open_lab(&lab);
    uint64_t after = read_rows(&lab, 0, &rows) ? rows[0].number : 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct tap_writer){.b = lab.b, .id = i};
        CHECK_OK(thread_start(&writers[i].thread, "tap-test", 0, write_many, &writers[i], &err));
    }
    while (seen < (size_t)MANY * WRITERS) {
        size_t count = read_rows(&lab, after, &rows);
        for (size_t i = 0; i < count; i++) {
            int writer = rows[i].key.p[0] - '0';
            char want[32];
            snprintf(want, sizeof(want), "%d/%d", writer, next[writer]++);
            CHECK_STR(rows[i].key, str_z(want));
            after = rows[i].number;
        }
        seen += count;
        arena_reset(&lab.a);
    }
    for (int i = 0; i < WRITERS; i++)
        thread_join(&writers[i].thread);
    CHECK_INT(read_rows(&lab, after, &rows), 0);
    close_lab(&lab);
}
