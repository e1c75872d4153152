/* Nodes and claims in buckets: on storages of both kinds, beside replication and switches. */
#include "lake/claim.h"
#include "lake/files.h"
#include "lake/import.h"
#include "lake/place.h"
#include "object/local/local.h"
#include "object/overlay.h"
#include "route/space.h"
#include "unit/lake/lake_lab.h"
#include "unit/object/fake_space.h"

#include <stdio.h>

#define NODE STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")

/* --- objects of the bucket --- */

/* Reads an object of the owner's bucket on a storage. */
static int read_object(struct lake_lab *lab, struct storage *s, const char *key, struct buf *out)
{
    struct get_result got = {0};
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&b, s, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET), &err));
    int code = b->ops->get(b, &lab->arena, str_z(key), STR_EMPTY, NULL, NULL, &got, &err);
    if (code == 0)
        CHECK_OK(reader_read_all(got.body, out, &err));
    reader_close(got.body);
    b->ops->unref(b);
    return code;
}

static void expect_object(struct lake_lab *lab, struct storage *s, const char *key,
                          const char *want)
{
    struct buf bytes = {0};
    int code = read_object(lab, s, key, &bytes);

    CHECK_ERR(code, want ? 0 : ERR_NOT_FOUND);
    if (want)
        CHECK_STR(buf_str(&bytes), str_z(want));
    buf_release(&bytes);
}

static void put_object(struct lake_lab *lab, const char *key, const char *content)
{
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open(&p, lab->lake, &lab->arena, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET),
                             str_z(key), PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, str_z(content), NULL, &err), &err));
}

/* Opens a place of the bucket to read it without waiting, and ends it. */
static int open_now(struct lake_lab *lab)
{
    struct object_place p;
    struct err err = {0};
    int code = lake_place_open_below(&p, lab->lake, &lab->arena, &lab->repo, STR("k"),
                                     PLACE_READ_NOW, &err);

    return code < 0 ? code : object_place_end(&p, 0, &err);
}

/* --- nodes --- */

static int write_node(struct lake_lab *lab, struct str bytes, struct err *err)
{
    struct tree_store t;
    int code = lake_tree_store(lab->lake, &lab->repo, &t, err);

    if (code == 0) {
        code = t.place.write(t.place.ctx, NODE, bytes, err);
        lake_tree_store_release(lab->lake, &t);
    }
    return code;
}

static int read_node(struct lake_lab *lab, struct buf *out, struct err *err)
{
    struct tree_store t;
    int code = lake_tree_store(lab->lake, &lab->repo, &t, err);

    if (code == 0) {
        code = t.place.read(t.place.ctx, NODE, out, err);
        lake_tree_store_release(lab->lake, &t);
    }
    return code;
}

static void check_nodes(struct lake_lab *lab, bool far)
{
    struct buf bytes = {0};
    struct tree_store t;
    struct err err = {0};

    CHECK_ERR(read_node(lab, &bytes, &err), ERR_NOT_FOUND);
    CHECK_OK(write_node(lab, STR("a\0node"), &err));
    CHECK_OK(write_node(lab, STR("a\0node"), &err)); /* again, as it may be about to be removed */
    CHECK_OK(read_node(lab, &bytes, &err));
    CHECK_STR(buf_str(&bytes), STR("a\0node"));
    buf_reset(&bytes);
    CHECK_OK(read_object(lab, lab->storage,
                         "repo/_lakefs/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                         "aaaaaaaaaaaaaaaaaaaaaa",
                         &bytes));
    buf_release(&bytes);
    CHECK_OK(lake_tree_store(lab->lake, &lab->repo, &t, &err));
    CHECK_INT(t.place.is_far, far);
    CHECK_INT(t.place.write_all != NULL, !far);
    CHECK_INT(open_now(lab), far ? ERR_AGAIN : 0);
    CHECK_STR(t.scope, lab->repo.partition);
    lake_tree_store_release(lab->lake, &t);
}

static void with_storage(enum lake_lab_nodes nodes, void (*fn)(struct lake_lab *lab))
{
    struct kv_lab kv;
    struct lake_lab lab;

    kv_lab_open(&kv, KV_LAB_EMBEDDED);
    lake_lab_open(&lab, &kv, nodes);
    fn(&lab);
    lake_lab_close(&lab);
    kv_lab_close(&kv);
}

static void check_near_nodes(struct lake_lab *lab)
{
    check_nodes(lab, false);
}

static void check_far_nodes(struct lake_lab *lab)
{
    check_nodes(lab, true);
}

TEST(lake_place, nodes_are_objects_of_a_local_storage)
{
    with_storage(LAKE_LAB_STORAGE, check_near_nodes);
}

TEST(lake_place, nodes_are_objects_of_a_remote_storage)
{
    with_storage(LAKE_LAB_REMOTE, check_far_nodes);
}

static void check_bucket_goes(struct lake_lab *lab)
{
    struct lake_repo_options o = {
        .id = STR("lost"), .owner = STR(LAKE_LAB_OWNER), .space = STR("s3://no-such-bucket")};
    struct lake_repo r;
    struct err err = {0};

    CHECK_ERR(lake_repo_create(lab->lake, &lab->arena, &o, &r, &err), ERR_NO_BUCKET);
    CHECK_ERR(lake_repo_get(lab->lake, &lab->arena, o.id, &r, &err), ERR_NOT_FOUND);
    /* A repository whose bucket was removed is there all the same. */
    struct buf bytes = {0};
    lake_release_space(lab->lake, &lab->repo);
    CHECK_OK(storage_remove_bucket(lab->storage, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET), &err));
    CHECK_ERR(read_node(lab, &bytes, &err), ERR_UNAVAILABLE);
    CHECK_ERR(write_node(lab, STR("x"), &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, LAKE_LAB_BUCKET));
    buf_release(&bytes);
}

TEST(lake_place, a_namespace_on_a_local_storage_needs_its_bucket)
{
    with_storage(LAKE_LAB_STORAGE, check_bucket_goes);
}

TEST(lake_place, a_namespace_on_a_remote_storage_needs_its_bucket)
{
    with_storage(LAKE_LAB_REMOTE, check_bucket_goes);
}

static void check_space_refused(struct lake_lab *lab)
{
    struct lake_repo_options o = {
        .id = STR("inner"), .owner = STR(LAKE_LAB_OWNER), .space = STR("s3://a-repository/x")};
    struct bucket_info info = {.name = STR("a-repository"), .owner = STR(LAKE_LAB_OWNER)};
    struct local_options under = {.name = "under", .db = lab->db, .id = 77, .reserve_bytes = 1};
    struct storage *storage = NULL;
    struct fake_space space;
    struct lake_repo r;
    struct err err = {0};
    char folder[256];

    snprintf(folder, sizeof(folder), "%s/under", test_dir());
    under.folder = folder;
    CHECK_OK(local_open(&storage, &under, &err));
    fake_space_open(&space, storage);
    CHECK_OK(storage_create_bucket(&space.storage, &info, &err));
    CHECK_OK(routes_add_space(lab->routes, &space.space, &err));
    CHECK_ERR(lake_repo_create(lab->lake, &lab->arena, &o, &r, &err), ERR_INVALID);
    CHECK(strstr(err.text, "ordinary bucket"));
    fake_space_close(&space);
    storage->ops->close(storage);
}

TEST(lake_place, a_namespace_does_not_lie_in_a_repository)
{
    with_storage(LAKE_LAB_STORAGE, check_space_refused);
}

/* --- beside replication --- */

/* What was announced: "<key> <changes>:<outcome>;" for each change. */
struct told {
    struct buf text;
    int refuses, late, ends_late; /* errors of begin(), check() and end() */
    struct routes *moves;         /* begin() leads the bucket to the storage "second" */
};

static int told_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err)
{
    struct told *t = ctx;

    buf_appendf(&t->text, STR_FMT " %u", STR_ARG(i->keys[0]), i->changes);
    *out = (struct capture){.begun = t->refuses == 0};
    if (t->moves) {
        CHECK_INT(
            route_set(t->moves, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET), STR("second"), err), 0);
        t->moves = NULL;
    }
    return t->refuses ? err_code(err, t->refuses) : 0;
}

static int told_check(void *ctx, const struct capture *c, struct err *err)
{
    struct told *t = ctx;

    return t->late ? err_code(err, t->late) : 0;
}

static int told_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err)
{
    struct told *t = ctx;

    buf_appendf(&t->text, ":%s;", (const char *[]){"done", "refused", "unknown"}[outcome]);
    return t->ends_late && outcome != OUTCOME_REFUSED ? err_code(err, t->ends_late) : 0;
}

static void expect_told(struct told *t, const char *want)
{
    CHECK_STR(buf_str(&t->text), str_z(want));
    buf_reset(&t->text);
}

#define NODE_KEY "repo/_lakefs/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void check_announced(struct lake_lab *lab)
{
    struct told t = {0};
    struct change_capture capture = {told_begin, told_check, told_end, &t};
    struct buf bytes = {0};
    struct err err = {0};

    lab->lake->o.capture = &capture;
    CHECK_OK(write_node(lab, STR("x"), &err));
    expect_told(&t, NODE_KEY " 7:done;");
    CHECK_OK(read_node(lab, &bytes, &err));
    expect_told(&t, "");
    t.refuses = ERR_UNAVAILABLE;
    CHECK_ERR(write_node(lab, STR("y"), &err), ERR_UNAVAILABLE);
    expect_told(&t, NODE_KEY " 7");
    t.refuses = 0;
    t.late = ERR_BUSY;
    CHECK_ERR(write_node(lab, STR("y"), &err), ERR_BUSY);
    expect_told(&t, NODE_KEY " 7:unknown;");
    expect_object(lab, lab->storage, NODE_KEY, "x");
    t.late = 0;
    t.ends_late = ERR_BUSY; /* it was written, but nobody may say so */
    CHECK_ERR(write_node(lab, STR("z"), &err), ERR_BUSY);
    expect_told(&t, NODE_KEY " 7:done;");
    expect_object(lab, lab->storage, NODE_KEY, "z");
    t.ends_late = 0;
    /* A claim that loses was refused, and its own removal is announced too. */
    lake_release_space(lab->lake, &lab->repo);
    expect_told(&t, "repo/_lakefs/dummy 1:done;");
    buf_release(&bytes);
    buf_release(&t.text);
}

#define OTHER_NODE "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define OTHER_KEY  "repo/_lakefs/" OTHER_NODE

static int write_two_nodes(struct lake_lab *lab, const char *first, const char *second,
                           struct err *err)
{
    struct node_bytes files[] = {{NODE, str_z(first)}, {STR(OTHER_NODE), str_z(second)}};
    struct tree_store t;
    int code = lake_tree_store(lab->lake, &lab->repo, &t, err);

    if (code == 0) {
        CHECK(t.place.write_all);
        code = t.place.write_all(t.place.ctx, files, 2, err);
        lake_tree_store_release(lab->lake, &t);
    }
    return code;
}

static void check_announced_together(struct lake_lab *lab)
{
    struct told t = {0};
    struct change_capture capture = {told_begin, told_check, told_end, &t};
    struct err err = {0};

    lab->lake->o.capture = &capture;
    CHECK_OK(write_two_nodes(lab, "x", "y", &err));
    expect_told(&t, NODE_KEY " 7" OTHER_KEY " 7:done;:done;");
    expect_object(lab, lab->storage, NODE_KEY, "x");
    expect_object(lab, lab->storage, OTHER_KEY, "y");
    t.refuses = ERR_UNAVAILABLE;
    CHECK_ERR(write_two_nodes(lab, "1", "2", &err), ERR_UNAVAILABLE);
    expect_told(&t, NODE_KEY " 7");
    t.refuses = 0;
    t.late = ERR_BUSY;
    CHECK_ERR(write_two_nodes(lab, "1", "2", &err), ERR_BUSY);
    expect_told(&t, NODE_KEY " 7" OTHER_KEY " 7:unknown;:unknown;");
    t.late = 0;
    t.ends_late = ERR_BUSY; /* they were written, but nobody may say so */
    CHECK_ERR(write_two_nodes(lab, "v", "w", &err), ERR_BUSY);
    expect_told(&t, NODE_KEY " 7" OTHER_KEY " 7:done;:done;");
    expect_object(lab, lab->storage, NODE_KEY, "v");
    expect_object(lab, lab->storage, OTHER_KEY, "w");
    buf_release(&t.text);
}

TEST(lake_place, nodes_of_one_call_are_announced_each)
{
    with_storage(LAKE_LAB_STORAGE, check_announced_together);
}

TEST(lake_place, changes_of_a_local_storage_are_announced_and_their_ends_are_told)
{
    with_storage(LAKE_LAB_STORAGE, check_announced);
}

TEST(lake_place, changes_of_a_remote_storage_are_announced_and_their_ends_are_told)
{
    with_storage(LAKE_LAB_REMOTE, check_announced);
}

/* Adds the storage "second", with a bucket of the same name. */
static struct storage *add_second(struct lake_lab *lab)
{
    struct bucket_info info = {.name = STR(LAKE_LAB_BUCKET), .owner = STR(LAKE_LAB_OWNER)};
    struct local_options o = {.name = "second", .db = lab->db, .reserve_bytes = 1};
    struct err err = {0};
    char folder[256];

    snprintf(folder, sizeof(folder), "%s/second", test_dir());
    o.folder = folder;
    CHECK_OK(routes_add_local(lab->routes, &o, &err));
    struct storage *second = routes_storage(lab->routes, STR("second"));
    CHECK_OK(storage_create_bucket(second, &info, &err));
    return second;
}

static void check_moved(struct lake_lab *lab)
{
    struct storage *second = add_second(lab);
    struct told t = {.moves = lab->routes};
    struct change_capture capture = {told_begin, told_check, told_end, &t};
    struct err err = {0};

    lab->lake->o.capture = &capture;
    CHECK_OK(write_node(lab, STR("x"), &err));
    expect_told(&t, NODE_KEY " 7:refused;" NODE_KEY " 7:done;");
    expect_object(lab, lab->storage, NODE_KEY, NULL);
    expect_object(lab, second, NODE_KEY, "x");
    buf_release(&t.text);
}

TEST(lake_place, a_bucket_that_moves_after_the_announcement_is_looked_for_again)
{
    with_storage(LAKE_LAB_STORAGE, check_moved);
}

/* --- beside a switch --- */

static int try_repo(struct lake_lab *lab, const char *id, const char *space, bool bare,
                    struct err *err)
{
    struct lake_repo_options o = {
        .id = str_z(id), .owner = STR(LAKE_LAB_OWNER), .space = str_z(space), .bare = bare};
    struct lake_repo r;

    return lake_repo_create(lab->lake, &lab->arena, &o, &r, err);
}

struct fake_sides {
    _Atomic(bool) any;
    struct storage *route, *other;
    struct buf removed; /* keys whose removal was told */
};

static bool fake_sides_may(void *ctx, struct str bucket)
{
    return str_eq(bucket, STR(LAKE_LAB_BUCKET));
}

static int fake_sides_find(void *ctx, struct arena *a, const struct storage *at, struct str bucket,
                           struct side_pair *out, struct err *err)
{
    struct fake_sides *s = ctx;

    *out = (struct side_pair){.route = s->route, .other = s->other};
    return 0;
}

/* Keys are read from the other side. */
static int fake_sides_read(void *ctx, struct arena *a, const struct side_pair *p,
                           const struct side_ask *ask, struct side_choice *out, struct err *err)
{
    CHECK_STR(ask->user, STR(LAKE_LAB_OWNER));
    *out = (struct side_choice){p->other, p->other};
    return 0;
}

static int fake_sides_write(void *ctx, struct arena *a, const struct side_pair *p,
                            const struct side_ask *ask, bool alone, struct side_choice *out,
                            struct err *err)
{
    *out = (struct side_choice){p->route, p->route};
    return 0;
}

static int fake_sides_removed(void *ctx, struct arena *a, const struct side_pair *p,
                              const struct str *keys, size_t count, struct err *err)
{
    struct fake_sides *s = ctx;

    for (size_t i = 0; i < count; i++)
        buf_append_str(&s->removed, keys[i]);
    return 0;
}

static struct bucket_sides sides_of(struct fake_sides *s)
{
    return (struct bucket_sides){.any = &s->any,
                                 .may = fake_sides_may,
                                 .find = fake_sides_find,
                                 .read = fake_sides_read,
                                 .write = fake_sides_write,
                                 .removed = fake_sides_removed,
                                 .ctx = s};
}

static void check_switched(struct lake_lab *lab)
{
    struct fake_sides s = {.any = true, .route = lab->storage, .other = add_second(lab)};
    struct bucket_sides sides = sides_of(&s);
    struct remove_result result;
    struct buf bytes = {0};
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_claim_may_write(lab->lake, &lab->repo, &err)); /* the other side has no claim */
    lab->lake->o.sides = &sides;
    CHECK_INT(open_now(lab), ERR_AGAIN); /* finding the side may wait */
    CHECK_OK(write_node(lab, STR("x"), &err));
    expect_object(lab, s.route, NODE_KEY, "x");
    expect_object(lab, s.other, NODE_KEY, NULL);
    CHECK_ERR(read_node(lab, &bytes, &err), ERR_NOT_FOUND); /* the other side has none */
    s.other = lab->storage;
    CHECK_OK(read_node(lab, &bytes, &err));
    CHECK_OK(lake_place_open_below(&p, lab->lake, &lab->arena, &lab->repo, STR("k"), PLACE_REMOVE,
                                   &err));
    int code = p.bucket->ops->remove(p.bucket, &lab->arena, p.key, &(struct remove_options){0},
                                     &result, &err);
    CHECK_OK(object_place_end(&p, code, &err));
    CHECK_STR(buf_str(&s.removed), STR("repo/k"));
    buf_release(&s.removed);
    buf_release(&bytes);
}

TEST(lake_place, during_a_switch_each_key_is_on_its_side)
{
    with_storage(LAKE_LAB_STORAGE, check_switched);
}

static int list_bodies(struct lake_lab *lab, struct err *err)
{
    struct lake_files files;

    return lake_files_list(lab->lake, &lab->arena, &lab->repo, STR(LAKE_BODIES "/"), STR_EMPTY,
                           &files, err);
}

static void check_not_listed(struct lake_lab *lab)
{
    struct fake_sides s = {.any = true, .route = lab->storage, .other = add_second(lab)};
    struct bucket_sides sides = sides_of(&s);
    bool has = false;
    struct err err = {0};

    put_object(lab, "full/data/x", "1"); /* only on the route's side */
    CHECK_OK(list_bodies(lab, &err));
    lab->lake->o.sides = &sides;
    CHECK_ERR(list_bodies(lab, &err), ERR_BUSY);
    CHECK(strstr(err.text, "being switched"));
    CHECK_ERR(lake_files_has_uploads(lab->lake, &lab->repo, STR("data/"), &has, &err), ERR_BUSY);
    CHECK_ERR(lake_files_abort_uploads(lab->lake, &lab->repo, STR("data/"), &err), ERR_BUSY);
    CHECK_ERR(try_repo(lab, "full", "s3://lake-data/full", false, &err), ERR_BUSY);
    lab->lake->o.sides = NULL;
    CHECK_ERR(try_repo(lab, "full", "s3://lake-data/full", false, &err), ERR_IN_USE);
    CHECK_OK(lake_files_has_uploads(lab->lake, &lab->repo, STR("data/"), &has, &err));
}

TEST(lake_place, during_a_switch_nothing_is_listed_on_one_side_alone)
{
    with_storage(LAKE_LAB_STORAGE, check_not_listed);
}

static struct str begin_import(struct lake_lab *lab, const char *source)
{
    struct lake_import_path path = {.source = str_z(source)};
    struct lake_import_options o = {.branch = STR("main"),
                                    .paths = &path,
                                    .count = 1,
                                    .committer = STR("tester"),
                                    .user = STR(LAKE_LAB_OWNER)};
    struct err err = {0};
    struct str id;

    CHECK_OK(lake_import_start(lab->lake, &lab->arena, &lab->repo, &o, &id, &err));
    return id;
}

static void check_import_waits(struct lake_lab *lab)
{
    struct fake_sides s = {.any = true, .route = lab->storage, .other = add_second(lab)};
    struct bucket_sides sides = sides_of(&s);
    struct lake_import_status status;
    struct err err = {0};

    lab->lake->o.folder = test_dir();
    put_object(lab, "in/a", "a"); /* only on the route's side */
    struct str id = begin_import(lab, "s3://" LAKE_LAB_BUCKET "/in/");
    struct str head = lake_lab_head(lab, "main");
    lab->lake->o.sides = &sides;
    CHECK_ERR(lake_import_work(lab->lake, &lab->repo, id, NULL, NULL, &err), ERR_BUSY);
    CHECK_STR(lake_lab_head(lab, "main"), head);
    CHECK_OK(lake_import_get(lab->lake, &lab->arena, &lab->repo, id, &status, &err));
    CHECK(!status.completed);
    CHECK(str_find(status.last_error, STR("being switched")) >= 0);
    lab->lake->o.sides = NULL;
    CHECK_OK(lake_import_work(lab->lake, &lab->repo, id, NULL, NULL, &err));
    CHECK_OK(lake_import_get(lab->lake, &lab->arena, &lab->repo, id, &status, &err));
    CHECK(status.completed);
    CHECK_STR(status.last_error, STR(""));
    CHECK_INT(status.ingested, 1);
}

TEST(lake_place, an_import_waits_until_its_source_was_switched)
{
    with_storage(LAKE_LAB_STORAGE, check_import_waits);
}

/* --- claims --- */

static size_t count_claims(struct lake_lab *lab)
{
    struct lake_page all = {.limit = LAKE_LIST_MAX};
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(
        lake_rows_open(&scan, lab->lake, NULL, &lab->arena, LAKE_PARTITION, "claims", &all, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0)
        count++;
    kv_scan_free(scan);
    return count;
}

static void check_claims(struct lake_lab *lab)
{
    struct err err = {0};
    struct buf text = {0};

    CHECK_INT(read_object(lab, lab->storage, "repo/_lakefs/dummy", &text), 0);
    CHECK(str_starts(buf_str(&text), arena_fmt(&lab->arena, "weir repository " STR_FMT "\nlife ",
                                               STR_ARG(lab->repo.partition))));
    buf_release(&text);
    CHECK_INT(count_claims(lab), 0);
    CHECK_ERR(try_repo(lab, "twin", "s3://lake-data/repo", false, &err), ERR_IN_USE);
    CHECK_ERR(try_repo(lab, "twin", "s3://lake-data/repo/", true, &err), ERR_IN_USE);
    CHECK_ERR(try_repo(lab, "inside", "s3://lake-data/repo/in/side", false, &err), ERR_IN_USE);
    CHECK_ERR(try_repo(lab, "inside", "s3://lake-data/repo/data", true, &err), ERR_IN_USE);
    CHECK_OK(try_repo(lab, "beside", "s3://lake-data/repo2", false, &err));
    CHECK_ERR(try_repo(lab, "repo", "s3://lake-data/new", false, &err), ERR_EXISTS);
    expect_object(lab, lab->storage, "new/_lakefs/dummy", NULL); /* it claimed nothing */
    CHECK_INT(count_claims(lab), 0);
}

static void check_full(struct lake_lab *lab)
{
    struct err err = {0};

    put_object(lab, "old/data/x", "1");
    put_object(lab, "nodes/_lakefs/y", "1");
    put_object(lab, "other/z", "1");
    CHECK_ERR(try_repo(lab, "one", "s3://lake-data/old", false, &err), ERR_IN_USE);
    CHECK_ERR(try_repo(lab, "one", "s3://lake-data/nodes", false, &err), ERR_IN_USE);
    CHECK_OK(try_repo(lab, "one", "s3://lake-data/other", false, &err));
    CHECK_OK(try_repo(lab, "two", "s3://lake-data/old", true, &err));
    /* A namespace that lakeFS has claimed. */
    put_object(lab, "theirs/_lakefs/dummy", "this is dummy data");
    CHECK_ERR(try_repo(lab, "three", "s3://lake-data/theirs", false, &err), ERR_IN_USE);
    CHECK_OK(try_repo(lab, "three", "s3://lake-data/theirs", true, &err));
    CHECK_INT(count_claims(lab), 0);
}

static void check_all_claims(struct lake_lab *lab)
{
    check_claims(lab);
    check_full(lab);
}

/* The claim of a repository that was never made, or is deleted, is void when it is old. */
static void check_void(struct lake_lab *lab)
{
    struct lake_repo ghost = {.id = STR("ghost"),
                              .space = STR("s3://lake-data/ghost"),
                              .owner = STR(LAKE_LAB_OWNER),
                              .partition = STR("ghost-01arz3ndektsv4rrffq69g5fav")};
    struct lake_repo r;
    struct err err = {0};

    CHECK_OK(lake_claim_space(lab->lake, &ghost, false, &err)); /* then its process ends */
    CHECK_INT(count_claims(lab), 1);
    CHECK_ERR(try_repo(lab, "next", "s3://lake-data/ghost", false, &err), ERR_IN_USE);
    CHECK_INT(count_claims(lab), 1);
    lab->lake->claim_fresh_ms = 0;
    CHECK_OK(try_repo(lab, "next", "s3://lake-data/ghost", false, &err));
    CHECK_INT(count_claims(lab), 0);
    /* The claim of a repository that is alive is never void. */
    CHECK_ERR(try_repo(lab, "other", "s3://lake-data/ghost", false, &err), ERR_IN_USE);
    CHECK_ERR(try_repo(lab, "other", "s3://lake-data/ghost/x", false, &err), ERR_IN_USE);
    /* Nor is that of one whose deletion goes on. */
    CHECK_OK(lake_repo_get(lab->lake, &lab->arena, STR("next"), &r, &err));
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, r.id, false, true, &err));
    CHECK_ERR(try_repo(lab, "other", "s3://lake-data/ghost", false, &err), ERR_IN_USE);
    CHECK_OK(kv_remove(lab->kv_lab->kv, lake_key_to_delete(&lab->arena, r.partition), &err));
    CHECK_OK(try_repo(lab, "other", "s3://lake-data/ghost", false, &err));
}

/* A creation that was held up finds that its claim was taken from it. */
static void check_overtaken(struct lake_lab *lab)
{
    struct lake_repo slow = {.id = STR("slow"),
                             .space = STR("s3://lake-data/slow"),
                             .owner = STR(LAKE_LAB_OWNER),
                             .partition = STR("slow-01arz3ndektsv4rrffq69g5fav")};
    struct err err = {0};
    struct lake_tx tx;
    size_t failed = 9;

    CHECK_OK(lake_claim_space(lab->lake, &slow, false, &err));
    lab->lake->claim_fresh_ms = 0;
    CHECK_OK(try_repo(lab, "fast", "s3://lake-data/slow", false, &err));
    lake_tx_init(&tx, &lab->arena);
    lake_tx_put_if(&tx, lake_key_repo(&lab->arena, slow.id), STR("record"), KV_ABSENT, STR_EMPTY);
    lake_tx_remove(&tx, lake_key_claim(&lab->arena, slow.partition), KV_EXISTS, STR_EMPTY);
    CHECK_ERR(lake_tx_write(lab->lake, &tx, &failed, &err), ERR_PRECONDITION);
    CHECK_INT(failed, 1);
    lake_release_space(lab->lake, &slow); /* the claim is not its own any more, and stays */
    CHECK_ERR(try_repo(lab, "third", "s3://lake-data/slow", false, &err), ERR_IN_USE);
}

/* The claim of a repository that was made and deleted is void at once. */
static void check_made_again(struct lake_lab *lab)
{
    struct err err = {0};
    struct lake_repo r = lab->repo;

    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, r.id, false, false, &err));
    CHECK_ERR(try_repo(lab, "repo", "s3://lake-data/repo", true, &err), ERR_IN_USE);
    CHECK_OK(kv_remove(lab->kv_lab->kv, lake_key_to_delete(&lab->arena, r.partition), &err));
    CHECK_OK(try_repo(lab, "repo", "s3://lake-data/repo", true, &err));
}

KV_LAB_TEST(lake_claim, a_namespace_can_be_used_again_when_its_repository_is_gone)
{
    struct lake_lab lake;

    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    check_made_again(&lake);
    lake_lab_close(&lake);
}

KV_LAB_TEST(lake_claim, a_claim_without_a_repository_is_void)
{
    struct lake_lab lake;

    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    check_void(&lake);
    lake_lab_close(&lake);
}

KV_LAB_TEST(lake_claim, a_void_claim_makes_no_repository_any_more)
{
    struct lake_lab lake;

    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    check_overtaken(&lake);
    lake_lab_close(&lake);
}

enum { CLAIMERS = 6 };

struct claimer {
    struct lake_lab *lab;
    struct thread thread;
    char id[16];
    int code;
};

static void claimer_run(void *ctx)
{
    struct claimer *c = ctx;
    struct lake_repo_options o = {
        .id = str_z(c->id), .owner = STR(LAKE_LAB_OWNER), .space = STR("s3://lake-data/wanted")};
    struct arena a = {0};
    struct lake_repo r;
    struct err err = {0};

    c->code = lake_repo_create(c->lab->lake, &a, &o, &r, &err);
    arena_release(&a);
}

KV_LAB_TEST(lake_claim, of_many_that_want_a_namespace_at_once_one_gets_it)
{
    struct claimer claimers[CLAIMERS] = {0};
    struct lake_lab lake;
    struct err err = {0};
    int made = 0;

    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    for (int i = 0; i < CLAIMERS; i++) {
        claimers[i].lab = &lake;
        snprintf(claimers[i].id, sizeof(claimers[i].id), "repo-%d", i);
        CHECK_OK(thread_start(&claimers[i].thread, "claimer", 0, claimer_run, &claimers[i], &err));
    }
    for (int i = 0; i < CLAIMERS; i++) {
        thread_join(&claimers[i].thread);
        CHECK(claimers[i].code == 0 || claimers[i].code == ERR_IN_USE);
        made += claimers[i].code == 0;
    }
    CHECK_INT(made, 1);
    CHECK_INT(count_claims(&lake), 0);
    lake_lab_close(&lake);
}

KV_LAB_TEST(lake_claim, a_namespace_belongs_to_one_repository)
{
    struct lake_lab lake;

    lake_lab_open(&lake, lab, LAKE_LAB_STORAGE);
    check_all_claims(&lake);
    lake_lab_close(&lake);
}

TEST(lake_claim, a_namespace_on_a_remote_storage_belongs_to_one_repository)
{
    with_storage(LAKE_LAB_REMOTE, check_all_claims);
}
