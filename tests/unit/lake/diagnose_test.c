/* The diagnosis of a lake. */
#include "lake/diagnose.h"

#include "base/clock.h"
#include "base/json.h"
#include "lake/tar.h"
#include "unit/lake/hand.h"

#include <stdlib.h>

/* Finds a file of the archive and reads its JSON. */
static json_t *archive_file(struct str tar, const char *name)
{
    json_t *json = NULL;
    struct err err = {0};

    CHECK_INT(tar.len % TAR_BLOCK, 0);
    while (tar.len && tar.p[0]) {
        uint64_t size = strtoull(tar.p + 124, NULL, 8);
        struct str bytes = str_head(str_skip(tar, TAR_BLOCK), size);
        CHECK_INT(bytes.len, size);
        CHECK_INT(memcmp(tar.p + 257, "ustar", 6), 0);
        if (str_eq(str_z(tar.p), str_z(name)))
            CHECK_OK(json_read(&json, bytes, &err));
        tar = str_skip(tar, TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);
    }
    CHECK(json);
    return json;
}

/* The number `member` of the row whose strings `key` and `other` (may be NULL) are these. */
static int64_t archive_number(const json_t *rows, const char *key, const char *value,
                              const char *other, const char *wanted, const char *member)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (str_eq(json_get_str(row, key, STR_EMPTY), str_z(value)) &&
            (!other || str_eq(json_get_str(row, other, STR_EMPTY), str_z(wanted))))
            return json_get_i64(row, member, -1);
    }
    return -1;
}

static void diagnose(struct lake_lab *lab, struct buf *tar)
{
    struct lake_diagnose_options o = {.version = "1.2.3", .users = 4};
    struct err err = {0};

    CHECK_OK(lake_diagnose(lab->lake, &o, tar, &err));
}

LAKE_LAB_TEST(lake_diagnose, rows_branches_and_trees_are_counted)
{
    struct hand h = hand_of(lab);
    struct buf tar = {0};
    const char *repo = lab->repo.partition.p;

    hand_put(&h, "main", "secret/path", "one");
    hand_commit(&h, "main", "first");
    hand_branch(&h, "work", "main");
    hand_put(&h, "work", "b", "two");
    hand_put(&h, "work", "c", "three");
    diagnose(lab, &tar);
    json_t *about = archive_file(buf_str(&tar), "about.json");
    CHECK_STR(json_get_str(json_array_get(about, 0), "version", STR_EMPTY), STR("1.2.3"));
    CHECK_STR(json_get_str(json_array_get(about, 0), "kv", STR_EMPTY),
              str_z(lab->lake->kv->driver));
    CHECK_INT(json_get_i64(json_array_get(about, 0), "users", 0), 4);
    CHECK_INT(json_get_i64(json_array_get(about, 0), "repositories", 0), 1);
    json_t *rows = archive_file(buf_str(&tar), "partitions.json");
    CHECK_INT(archive_number(rows, "partition", "graveler", "entity", "repos", "rows"), 1);
    CHECK_INT(archive_number(rows, "partition", repo, "entity", "branches", "rows"), 2);
    CHECK_INT(archive_number(rows, "partition", repo, "entity", "commits", "rows"), 2);
    CHECK(archive_number(rows, "partition", repo, "entity", "commits", "bytes") > 100);
    json_t *branches = archive_file(buf_str(&tar), "branches.json");
    CHECK_INT(archive_number(branches, "branch", "work", NULL, NULL, "staged_rows"), 2);
    CHECK_INT(archive_number(branches, "branch", "main", NULL, NULL, "staged_rows"), 0);
    CHECK_INT(archive_number(branches, "branch", "main", NULL, NULL, "sealed_tokens"), 0);
    json_t *trees = archive_file(buf_str(&tar), "trees.json");
    CHECK_INT(json_array_size(trees), 2); /* a leaf and a root */
    CHECK_INT(archive_number(trees, "repository", "repo", NULL, NULL, "nodes"), 1);
    CHECK_INT(archive_number(trees, "repository", "repo", NULL, NULL, "objects"), 1);
    json_t *operations = archive_file(buf_str(&tar), "operations.json");
    CHECK_INT(archive_number(operations, "operation", "commit", NULL, NULL, "count"), 1);
    CHECK(archive_number(operations, "operation", "write", NULL, NULL, "count") > 3);
    CHECK(archive_number(operations, "operation", "node write", NULL, NULL, "count") >= 2);
    json_t *errors = archive_file(buf_str(&tar), "errors.json");
    CHECK_INT(json_array_size(errors), 0);
    CHECK(str_find(buf_str(&tar), STR("secret")) < 0);
    json_decref(about);
    json_decref(rows);
    json_decref(branches);
    json_decref(trees);
    json_decref(operations);
    json_decref(errors);
    buf_release(&tar);
    hand_release(&h);
}

/* A repository that cannot be read is told, and the others are diagnosed. */
LAKE_LAB_TEST(lake_diagnose, failures_are_told)
{
    struct hand h = hand_of(lab);
    struct buf tar = {0};

    lake_lab_repo(lab, "another");
    hand_put(&h, "main", "a", "one");
    lab->fail_write = ERR_UNAVAILABLE;
    CHECK_ERR(hand_try_commit(&h, "main", "no storage"), ERR_UNAVAILABLE);
    lab->fail_write = 0;
    hand_commit(&h, "main", "first");
    lab->fail_read = ERR_UNAVAILABLE;
    tree_cache_close(lab->lake->cache);
    struct err err = {0};
    CHECK_OK(tree_cache_open(&lab->lake->cache, &lab->lake->o.cache, &err));
    diagnose(lab, &tar);
    lab->fail_read = 0;
    json_t *errors = archive_file(buf_str(&tar), "errors.json");
    CHECK_INT(json_array_size(errors), 1);
    CHECK_STR(json_get_str(json_array_get(errors, 0), "where", STR_EMPTY), STR("repo"));
    json_t *branches = archive_file(buf_str(&tar), "branches.json");
    CHECK_INT(archive_number(branches, "repository", "another", NULL, NULL, "sealed_tokens"), 0);
    json_t *operations = archive_file(buf_str(&tar), "operations.json");
    CHECK(archive_number(operations, "operation", "node write", NULL, NULL, "failed") >= 1);
    CHECK_INT(archive_number(operations, "operation", "commit", NULL, NULL, "failed"), 1);
    json_t *events = archive_file(buf_str(&tar), "events.json");
    CHECK(archive_number(events, "operation", "commit", "of", "repo", "took_ms") >= 0);
    json_decref(errors);
    json_decref(branches);
    json_decref(operations);
    json_decref(events);
    buf_release(&tar);
    hand_release(&h);
}

TEST(lake_notes, the_last_slow_and_failed_operations_are_kept)
{
    struct lake_notes *n = lake_notes_new();
    struct lake_note_count counts[LAKE_NOTE_KINDS];
    struct lake_note *notes;
    struct arena a = {0};
    struct err err = {0};
    uint64_t now = clock_mono_ns(), slow = now - (LAKE_NOTES_SLOW_MS + 1) * NS_PER_MS;

    err_set(&err, ERR_UNAVAILABLE, "gone");
    lake_notes_add(n, LAKE_NOTE_COMMIT, STR("fast"), now, 0, NULL);
    lake_notes_add(n, LAKE_NOTE_COMMIT, STR("expected"), now, ERR_NOT_MODIFIED, &err);
    CHECK_INT(lake_notes_list(n, &a, &notes), 0);
    lake_notes_add(n, LAKE_NOTE_COMMIT, STR("slow"), slow, 0, NULL);
    lake_notes_add(n, LAKE_NOTE_COMMIT, STR("failed"), now, ERR_UNAVAILABLE, &err);
    CHECK_INT(lake_notes_list(n, &a, &notes), 2);
    CHECK_STR(str_z(notes[0].what), STR("slow"));
    CHECK_INT(notes[0].code, 0);
    CHECK_STR(str_z(notes[1].error), STR("gone"));
    lake_notes_count(n, counts);
    CHECK_INT(counts[LAKE_NOTE_COMMIT].count, 4);
    CHECK_INT(counts[LAKE_NOTE_COMMIT].failed, 1);
    CHECK(counts[LAKE_NOTE_COMMIT].slowest_ns > LAKE_NOTES_SLOW_MS * NS_PER_MS);
    for (int i = 0; i < LAKE_NOTES_KEPT; i++)
        lake_notes_add(n, LAKE_NOTE_WRITE, STR("later"), now, ERR_UNAVAILABLE, &err);
    CHECK_INT(lake_notes_list(n, &a, &notes), LAKE_NOTES_KEPT);
    CHECK_STR(str_z(notes[0].what), STR("later"));
    arena_release(&a);
    lake_notes_free(n);
}
