/* Dumps of refs, restored into bare repositories. */
#include "unit/lake/moves_lab.h"

#include "lake/files.h"
#include "lake/iter.h"
#include "lake/refs_task.h"
#include "os/thread.h"
#include "unit/lake/kv_spy.h"
#include "unit/lake/sst_file.h"

/* --- from dump to dump --- */

/* Makes two branches with a merge, a hidden branch, two tags, and changes that are not committed.
 */
static void dump_history(struct hand *h)
{
    struct lake_branch_options hidden = {STR("hidden"), STR("main"), .hidden = true};
    struct lake_branch b;
    struct lake_tag tag;

    gc_lab_put(h, "main", "a", "one");
    hand_commit(h, "main", "first");
    hand_branch(h, "work", "main");
    gc_lab_put(h, "work", "b", "two");
    hand_commit(h, "work", "second");
    gc_lab_put(h, "main", "c", "three");
    hand_commit(h, "main", "third");
    hand_merge(h, "work", "main");
    CHECK_INT(lake_branch_create(h->lake, &h->arena, &h->repo, &hidden, &b, &h->err), 0);
    CHECK_INT(lake_tag_create(h->lake, &h->arena, &h->repo, STR("v1"), STR("main~1"), false, &tag,
                              &h->err),
              0);
    CHECK_INT(
        lake_tag_create(h->lake, &h->arena, &h->repo, STR("v2"), STR("work"), false, &tag, &h->err),
        0);
    gc_lab_put(h, "main", "staged", "not committed");
}

/* The number of commits, or of those that are nobody's first parent. */
static size_t dump_count_commits(struct hand *h, bool only_leaves)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    size_t count = 0;

    CHECK_INT(lake_iter_commits(&it, h->lake, &h->repo, only_leaves, &h->err), 0);
    while (lake_iter_next(it, &item, &h->err) == 0)
        count++;
    lake_iter_free(it);
    return count;
}

GC_LAB_TEST(lake_dump, dump_restore_and_dump_give_the_same_ids)
{
    struct hand h = hand_of(lab);
    struct lake_refs manifest;

    dump_history(&h);
    struct lake_branch before = hand_read_branch(&h, "main");
    struct str history = hand_history(&h, "main");
    size_t commits = dump_count_commits(&h, false), leaves = dump_count_commits(&h, true);
    struct lake_refs first = moves_dump(&h);
    CHECK_INT(lake_manifest_read(h.lake, &h.arena, &h.repo, &manifest, &h.err), 0);
    moves_check_same(&first, &manifest);
    moves_make_bare(&h);
    CHECK_INT(moves_try_restore(&h, &first), 0);
    struct lake_refs second = moves_dump(&h);
    moves_check_same(&first, &second);

    struct lake_branch after = hand_read_branch(&h, "main");
    CHECK_STR(after.commit_id, before.commit_id);
    CHECK(!str_eq(after.staging, before.staging));
    CHECK(after.epoch > 0); /* it is random */
    CHECK(hand_read_branch(&h, "hidden").hidden);
    CHECK_STR(hand_history(&h, "main"), history);
    CHECK_INT(dump_count_commits(&h, false), commits);
    CHECK_INT(dump_count_commits(&h, true), leaves);
    hand_expect_list(&h, "main", "a b c");
    hand_expect_list(&h, "v1", "a c");
    hand_expect_list(&h, "v2", "a b");
    gc_lab_read_refs(&h);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_restored_repository_is_committed_merged_and_collected)
{
    struct hand h = hand_of(lab);

    dump_history(&h);
    struct lake_refs refs = moves_dump(&h);
    moves_make_bare(&h);
    CHECK_INT(moves_try_restore(&h, &refs), 0);
    gc_lab_put(&h, "work", "d", "four");
    hand_commit(&h, "work", "fourth");
    hand_merge(&h, "work", "main");
    hand_expect_list(&h, "main", "a b c d");
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK_INT(report.stage, LAKE_GC_DONE);
    CHECK_INT(report.bodies_removed, 1); /* what was staged before the dump */
    gc_lab_read_refs(&h);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, the_collector_keeps_the_last_dump)
{
    struct hand h = hand_of(lab);

    dump_history(&h);
    struct lake_refs refs = moves_dump(&h);
    gc_lab_collect(&h, false);
    moves_make_bare(&h);
    CHECK_INT(moves_try_restore(&h, &refs), 0);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_bare_repository_has_an_empty_dump)
{
    struct hand h = hand_of(lab);

    moves_make_bare(&h);
    struct lake_refs refs = moves_dump(&h);
    CHECK_INT(refs.commits.len + refs.tags.len + refs.branches.len, 0);
    hand_release(&h);
}

/* --- while others write --- */

struct dump_writer {
    struct hand hand;
    struct thread thread;
    _Atomic(bool) stops;
    _Atomic(unsigned) commits;
};

static void dump_writer_run(void *ctx)
{
    struct dump_writer *w = ctx;
    struct lake_tag tag;

    while (!w->stops) {
        const char *branch = w->commits % 2 ? "main" : "work";
        struct str name = arena_fmt(&w->hand.arena, "tag%u", (unsigned)w->commits++);
        hand_put(&w->hand, branch, "path", name.p);
        hand_commit(&w->hand, branch, name.p);
        CHECK_INT(lake_tag_create(w->hand.lake, &w->hand.arena, &w->hand.repo, name, str_z(branch),
                                  false, &tag, &w->hand.err),
                  0);
        if (w->commits % 5 == 0)
            hand_try_merge(&w->hand, "work", "main");
    }
}

GC_LAB_TEST(lake_dump, a_dump_taken_during_writes_is_whole)
{
    enum { DUMPS = 8 };
    struct lake_refs dumps[DUMPS];
    struct hand h = hand_of(lab);
    struct dump_writer w = {.hand = hand_of(lab)};
    struct err err = {0};

    hand_branch(&h, "work", "main");
    CHECK_OK(thread_start(&w.thread, "writer", 0, dump_writer_run, &w, &err));
    CHECK_SOON(w.commits > 0);
    for (int i = 0; i < DUMPS; i++)
        dumps[i] = moves_dump(&h);
    w.stops = true;
    thread_join(&w.thread);
    for (int i = 0; i < DUMPS; i++) {
        moves_make_bare(&h);
        CHECK_INT(moves_try_restore(&h, &dumps[i]), 0);
        struct lake_refs again = moves_dump(&h);
        moves_check_same(&dumps[i], &again);
    }
    hand_release(&w.hand);
    hand_release(&h);
}

/* Commits that are made while a scan of all commits has passed its first page: some children are
 * behind the place of the scan, and their parents before it. */
enum { DUMP_MANY = 2500, DUMP_LATE = 60 };

struct dump_late {
    struct lake_lab *lab;
    unsigned notes, added;
};

static bool dump_late_goes_on(void *ctx, uint64_t rows)
{
    struct dump_late *late = ctx;
    struct str parent = lake_lab_head(late->lab, "main");

    if (late->notes++ == 0)
        for (; late->added < DUMP_LATE; late->added++)
            parent = lake_lab_commit_at(late->lab, 1000 * late->added, "late", &parent, 1);
    return true;
}

/* Writes many commits that are children of the branch's head. */
static void dump_many(struct lake_lab *lab)
{
    struct str head = lake_lab_head(lab, "main");
    struct arena a = {0};
    struct err err = {0};

    for (int i = 0; i < DUMP_MANY; i += 500) {
        struct lake_tx tx;
        arena_reset(&a);
        lake_tx_init(&tx, &a);
        for (int n = i; n < i + 500; n++) {
            struct lake_commit c = {.message = arena_fmt(&a, "commit %d", n),
                                    .parents = &head,
                                    .parent_count = 1,
                                    .version = 1,
                                    .generation = 2};
            char id[LAKE_ID_LEN + 1];
            struct buf record = {0};
            lake_commit_id(id, &c);
            c.id = arena_str(&a, str_z(id));
            lake_commit_write(&record, &c);
            lake_tx_put(&tx, lake_key_commit(&a, lab->repo.partition, c.id),
                        arena_str(&a, buf_str(&record)));
            buf_release(&record);
        }
        CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
    }
    arena_release(&a);
}

GC_LAB_TEST(lake_dump, a_scan_that_misses_a_parent_is_completed)
{
    struct hand h = hand_of(lab);
    struct dump_late late = {.lab = lab};
    struct lake_progress p = {dump_late_goes_on, &late};
    struct lake_refs refs;

    dump_many(lab);
    CHECK_INT(lake_dump(h.lake, &h.arena, &h.repo, &p, &refs, &h.err), 0);
    CHECK_INT(late.added, DUMP_LATE);
    moves_make_bare(&h);
    CHECK_INT(moves_try_restore(&h, &refs), 0);
    CHECK(dump_count_commits(&h, false) > DUMP_MANY);
    struct lake_refs again = moves_dump(&h);
    moves_check_same(&refs, &again);
    hand_release(&h);
}

/* --- damaged rows --- */

/* Writes a row of a commit, sound or not. */
static void dump_put_commit(struct lake_lab *lab, struct str id, struct str record)
{
    struct lake_tx tx;
    struct err err = {0};

    lake_tx_init(&tx, &lab->arena);
    lake_tx_put(&tx, lake_key_commit(&lab->arena, lab->repo.partition, id), record);
    CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
}

/* The dump must fail, and its error must have this text. */
static void dump_expect_damage(struct lake_lab *lab, struct str text)
{
    struct hand h = hand_of(lab);
    struct lake_refs refs;

    CHECK_ERR(lake_dump(h.lake, &h.arena, &h.repo, NULL, &refs, &h.err), ERR_CORRUPT);
    if (str_find(str_z(h.err.text), text) < 0)
        test_fail(__FILE__, __LINE__, "%s", h.err.text);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_commit_with_a_malformed_parent_is_named)
{
    char text[LAKE_ID_LEN];
    struct str parent = str_n(memset(text, 'z', sizeof(text)), sizeof(text));
    struct lake_commit c = {.parents = &parent, .parent_count = 1, .version = 1, .generation = 2};

    dump_expect_damage(lab, lake_lab_commit(lab, &c));
}

GC_LAB_TEST(lake_dump, a_commit_with_a_malformed_id_is_named)
{
    struct buf record = {0};

    lake_commit_write(&record, &(struct lake_commit){.version = 1, .generation = 1});
    dump_put_commit(lab, STR("not-an-id"), buf_str(&record));
    buf_release(&record);
    dump_expect_damage(lab, STR("not-an-id"));
}

GC_LAB_TEST(lake_dump, a_commit_whose_record_cannot_be_read_is_named)
{
    struct str id = lake_lab_commit(lab, &(struct lake_commit){.version = 1, .generation = 1});

    dump_put_commit(lab, id, STR("\xff\xff\xff"));
    dump_expect_damage(lab, id);
}

/* --- a restore that is stopped --- */

struct dump_stop {
    unsigned left; /* reports of the progress until the stop */
};

static bool dump_stop_goes_on(void *ctx, uint64_t rows)
{
    struct dump_stop *s = ctx;

    return s->left-- > 1;
}

GC_LAB_TEST(lake_dump, a_stopped_restore_begins_again)
{
    struct hand h = hand_of(lab);
    unsigned stopped = 0;
    int code = ERR_CANCELED;

    dump_history(&h);
    struct lake_refs refs = moves_dump(&h);
    for (unsigned n = 1; code == ERR_CANCELED; n++) {
        struct dump_stop stop = {n};
        struct lake_progress p = {dump_stop_goes_on, &stop};
        moves_make_bare(&h);
        code = lake_restore(h.lake, &h.repo, &refs, false, &p, &h.err);
        stopped += code == ERR_CANCELED;
        if (code == ERR_CANCELED)
            CHECK_INT(moves_try_restore(&h, &refs), 0);
        struct lake_refs again = moves_dump(&h);
        moves_check_same(&refs, &again);
    }
    CHECK_INT(code, 0);
    CHECK(stopped >= 2);
    hand_release(&h);
}

/* Stops the restore of `first` behind each of its writes, and restores `second` then (D11). */
GC_LAB_TEST(lake_dump, a_stopped_restore_is_not_mixed_with_another_dump)
{
    struct hand h = hand_of(lab);
    unsigned refused = 0;
    int code = ERR_CANCELED;

    dump_history(&h);
    struct lake_refs first = moves_dump(&h);
    gc_lab_put(&h, "work", "newer", "newer");
    hand_commit(&h, "work", "newer");
    struct lake_refs second = moves_dump(&h);
    for (unsigned n = 1; code == ERR_CANCELED; n++) {
        struct dump_stop stop = {n};
        struct lake_progress p = {dump_stop_goes_on, &stop};
        struct lake_branch b;
        moves_make_bare(&h);
        code = lake_restore(h.lake, &h.repo, &first, false, &p, &h.err);
        if (lake_branch_get(h.lake, &h.arena, &h.repo, STR("main"), &b, &h.err) == 0)
            continue;
        bool is_mixed = lake_branch_get(h.lake, &h.arena, &h.repo, STR("work"), &b, &h.err) == 0;
        refused += is_mixed;
        CHECK_INT(moves_try_restore(&h, &second), is_mixed ? ERR_CONFLICT : 0);
        CHECK_INT(is_mixed ? moves_try_restore(&h, &first) : 0, 0);
        struct lake_refs again = moves_dump(&h);
        moves_check_same(is_mixed ? &first : &second, &again);
    }
    CHECK(refused > 0);
    hand_release(&h);
}

/* Restores the dump as a task does. */
static struct lake_refs_task dump_restore_task(struct hand *h, const struct lake_refs *refs)
{
    struct lake_refs_task wanted = {.kind = LAKE_REFS_RESTORE, .refs = *refs}, got;
    struct str id;
    struct err err = {0};

    CHECK_OK(lake_refs_task_start(h->lake, &h->arena, &h->repo, &wanted, &id, &err));
    CHECK_OK(lake_refs_task_work(h->lake, &h->repo, id, NULL, NULL, &err));
    CHECK_OK(lake_refs_task_get(h->lake, &h->arena, &h->repo, LAKE_REFS_RESTORE, id, &got, &err));
    return got;
}

/* Puts the row of a branch that no dump has, as a stopped restore of another dump leaves it. */
static void dump_put_branch(struct hand *h, struct str name)
{
    struct lake_branch b = {.id = name, .staging = STR("a-token"), .revision = 1};
    struct buf record = {0};
    struct err err = {0};

    lake_branch_write(&record, &b);
    CHECK_OK(kv_set(h->lake->kv, lake_key_branch(&h->arena, h->repo.partition, name),
                    buf_str(&record), &err));
    buf_release(&record);
}

GC_LAB_TEST(lake_dump, a_restore_task_that_would_mix_two_dumps_ends_with_its_error)
{
    struct hand h = hand_of(lab);

    dump_history(&h);
    struct lake_refs refs = moves_dump(&h);
    moves_make_bare(&h);
    dump_put_branch(&h, STR("other"));
    struct lake_refs_task task = dump_restore_task(&h, &refs);
    CHECK(task.done);
    CHECK(str_find(task.error, STR("branches/other, which is not as in this dump")) >= 0);
    hand_release(&h);
}

/* Each write of the task in turn is not made, or is made without an answer: those of rows, of the
 * progress, and the last one, which puts both the default branch and the task's record (D14). */
static void dump_lose_writes(struct lake_lab *lab, void (*plan)(unsigned n, int code), int lost)
{
    struct lake_refs_task wanted = {.kind = LAKE_REFS_RESTORE}, got;
    struct hand h = hand_of(lab);
    struct err err = {0};
    bool happened = true;
    struct str id;

    dump_history(&h);
    wanted.refs = moves_dump(&h);
    h.lake->refs_note_ms = 0;
    kv_spy_begin(h.lake);
    for (unsigned n = 1; happened; n++) {
        moves_make_bare(&h);
        CHECK_OK(lake_refs_task_start(h.lake, &h.arena, &h.repo, &wanted, &id, &err));
        plan(n, lost);
        int code = lake_refs_task_work(h.lake, &h.repo, id, NULL, NULL, &err);
        happened = kv_spy_happened();
        if (code < 0)
            CHECK_OK(lake_refs_task_work(h.lake, &h.repo, id, NULL, NULL, &err));
        CHECK_OK(lake_refs_task_get(h.lake, &h.arena, &h.repo, LAKE_REFS_RESTORE, id, &got, &err));
        CHECK(got.done);
        CHECK_STR(got.error, STR(""));
        CHECK(got.rows > 0);
        struct lake_refs again = moves_dump(&h);
        moves_check_same(&wanted.refs, &again);
    }
    kv_spy_end(h.lake);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_restore_task_goes_on_after_a_write_that_was_not_made)
{
    dump_lose_writes(lab, kv_spy_refuse, ERR_UNAVAILABLE);
}

GC_LAB_TEST(lake_dump, a_restore_task_goes_on_after_a_write_without_an_answer)
{
    dump_lose_writes(lab, kv_spy_answer, ERR_TIMEOUT);
}

GC_LAB_TEST(lake_dump, a_task_shows_why_its_last_try_failed)
{
    struct lake_refs_task wanted = {.kind = LAKE_REFS_DUMP}, got;
    struct routes *routes = lab->lake->o.routes;
    struct hand h = hand_of(lab);
    struct err err = {0};
    struct str id;

    CHECK_OK(lake_refs_task_start(h.lake, &h.arena, &h.repo, &wanted, &id, &err));
    h.lake->o.routes = NULL;
    CHECK_ERR(lake_refs_task_work(h.lake, &h.repo, id, NULL, NULL, &err), ERR_UNAVAILABLE);
    h.lake->o.routes = routes;
    CHECK_OK(lake_refs_task_get(h.lake, &h.arena, &h.repo, LAKE_REFS_DUMP, id, &got, &err));
    CHECK(!got.done);
    CHECK_STR(got.last_error, STR("the lake has no storages"));
    CHECK_OK(lake_refs_task_work(h.lake, &h.repo, id, NULL, NULL, &err));
    CHECK_OK(lake_refs_task_get(h.lake, &h.arena, &h.repo, LAKE_REFS_DUMP, id, &got, &err));
    CHECK(got.done);
    CHECK_STR(got.last_error, STR(""));
    hand_release(&h);
}

/* --- dumps that are not sound --- */

/* Nothing was written. */
static void dump_check_bare(struct hand *h)
{
    CHECK_INT(dump_count_commits(h, false), 0);
    CHECK_INT(hand_count_rows(h, h->repo.partition), 1); /* the state of the collector */
}

GC_LAB_TEST(lake_dump, only_a_bare_repository_is_restored)
{
    struct hand h = hand_of(lab);

    struct lake_refs refs = moves_dump(&h);
    CHECK_ERR(moves_try_restore(&h, &refs), ERR_INVALID);
    CHECK(str_find(str_z(h.err.text), STR("not bare")) >= 0);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_restore_into_a_read_only_repository_must_be_forced)
{
    struct hand h = hand_of(lab);

    struct lake_refs refs = moves_dump(&h);
    moves_make_bare(&h);
    h.repo.read_only = true;
    CHECK_ERR(moves_try_restore(&h, &refs), ERR_DENIED);
    CHECK_INT(lake_restore(h.lake, &h.repo, &refs, true, NULL, &h.err), 0);
    hand_release(&h);
}

GC_LAB_TEST(lake_dump, a_restore_names_heads_whose_trees_cannot_be_read)
{
    struct hand h = hand_of(lab);
    struct lake_branch_options o = {.name = STR("side"), .source = STR("main")};
    struct lake_branch b;
    struct lake_commit lost;
    struct lake_tag tag;
    struct err err = {0};

    hand_put(&h, "main", "a", "one");
    hand_commit(&h, "main", "first");
    CHECK_OK(lake_branch_create(h.lake, &h.arena, &h.repo, &o, &b, &err));
    hand_put(&h, "side", "b", "two");
    struct str id = hand_commit(&h, "side", "second");
    CHECK_OK(lake_tag_create(h.lake, &h.arena, &h.repo, STR("v1"), id, false, &tag, &err));
    CHECK_OK(lake_commit_get(h.lake, &h.arena, &h.repo, id, &lost, &err));
    struct lake_refs refs = moves_dump(&h);
    moves_make_bare(&h);
    struct str key = arena_fmt(&h.arena, LAKE_NODES "/" STR_FMT, STR_ARG(lost.tree));
    CHECK_OK(lake_files_remove(h.lake, &h.repo, key, NULL, &err));
    CHECK_ERR(moves_try_restore(&h, &refs), ERR_INVALID);
    CHECK(str_find(str_z(h.err.text), STR("2 branches and tags")) == 0);
    CHECK(str_find(str_z(h.err.text), STR("tag v1, branch side;")) > 0);
    CHECK_ERR(lake_branch_get(h.lake, &h.arena, &h.repo, STR("main"), &b, &err), ERR_NOT_FOUND);
    CHECK_OK(lake_restore(h.lake, &h.repo, &refs, true, NULL, &err));
    CHECK_OK(lake_branch_get(h.lake, &h.arena, &h.repo, STR("side"), &b, &err));
    hand_release(&h);
}

static struct lake_commit dump_commit(struct hand *h, const char *message, struct str parent)
{
    struct str *parents = arena_array(&h->arena, 1, sizeof(*parents));
    struct lake_commit c = {.committer = STR("tester"),
                            .message = str_z(message),
                            .created_ms = 5000,
                            .parents = parents,
                            .parent_count = parent.len > 0,
                            .version = 1};
    char id[LAKE_ID_LEN + 1];

    parents[0] = parent;
    lake_commit_id(id, &c);
    c.id = arena_str(&h->arena, str_z(id));
    return c;
}

GC_LAB_TEST(lake_dump, a_dump_that_is_not_sound_changes_nothing)
{
    struct hand h = hand_of(lab);
    static const char absent[] = "00000000000000000000000000000000000000000000000000000000000000aa";

    moves_make_bare(&h);
    struct lake_commit root = dump_commit(&h, "root", STR_EMPTY);
    struct lake_commit child = dump_commit(&h, "child", root.id);
    struct lake_commit forged = child;
    forged.committer = STR("somebody else");
    struct lake_branch main = {.id = STR("main"), .commit_id = child.id},
                       other = {.id = STR("other"), .commit_id = child.id},
                       lost = {.id = STR("main"), .commit_id = STR(absent)},
                       bad_name = {.id = STR("ma in"), .commit_id = child.id};
    struct lake_tag tag = {.id = STR("t"), .commit_id = STR(absent)};
    struct moves_tree commits = {0}, orphans = {0}, forgeries = {0}, misnamed = {0}, heads = {0},
                      others = {0}, losts = {0}, names = {0}, tags = {0};

    moves_add_commit(&h, &commits, root.id, &root);
    moves_add_commit(&h, &commits, child.id, &child);
    moves_add_commit(&h, &orphans, child.id, &child);
    moves_add_commit(&h, &forgeries, root.id, &root);
    moves_add_commit(&h, &forgeries, forged.id, &forged);
    moves_add_commit(&h, &misnamed, STR(absent), &root);
    moves_add_branch(&h, &heads, STR("main"), &main);
    moves_add_branch(&h, &others, STR("other"), &other);
    moves_add_branch(&h, &losts, STR("main"), &lost);
    moves_add_branch(&h, &names, STR("main"), &main);
    moves_add_branch(&h, &names, STR("ma in"), &bad_name);
    moves_add_tag(&h, &tags, STR("t"), &tag);
    struct str good_commits = moves_write_tree(&h, &commits);
    struct str good_heads = moves_write_tree(&h, &heads);
    const struct {
        struct lake_refs refs;
        int code;
        const char *text;
    } cases[] = {
        {{moves_write_tree(&h, &orphans), STR_EMPTY, good_heads}, ERR_INVALID, "parent"},
        {{moves_write_tree(&h, &forgeries), STR_EMPTY, good_heads}, ERR_INVALID, "its id says"},
        {{moves_write_tree(&h, &misnamed), STR_EMPTY, good_heads}, ERR_INVALID, "another name"},
        {{good_commits, STR_EMPTY, moves_write_tree(&h, &others)}, ERR_INVALID, "no branch main"},
        {{good_commits, STR_EMPTY, moves_write_tree(&h, &losts)}, ERR_INVALID, "branch main leads"},
        {{good_commits, STR_EMPTY, moves_write_tree(&h, &names)}, ERR_INVALID, "branch's name"},
        {{good_commits, moves_write_tree(&h, &tags), good_heads}, ERR_INVALID, "tag t leads"},
        {{good_heads, STR_EMPTY, good_heads}, ERR_INVALID, "its id says"},
        {{STR(absent), STR_EMPTY, good_heads}, ERR_CORRUPT, absent},
        {{STR("no id"), STR_EMPTY, good_heads}, ERR_INVALID, "64 hex digits"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK_ERR(moves_try_restore(&h, &cases[i].refs), cases[i].code);
        CHECK(str_find(str_z(h.err.text), str_z(cases[i].text)) >= 0);
        dump_check_bare(&h);
    }
    struct lake_refs good = {good_commits, STR_EMPTY, good_heads};
    CHECK_INT(moves_try_restore(&h, &good), 0);
    hand_release(&h);
}

/* --- dumps of lakeFS --- */

/* The tree of an object whose body is in the namespace. */
static struct str dump_put_objects(struct hand *h)
{
    struct lake_entry e = hand_entry(h, "old");
    struct moves_tree t = {.count = 1};
    struct buf data = {0};

    e.address = STR("data/old");
    e.address_type = LAKE_RELATIVE;
    gc_lab_put_file(h, e.address, STR("old"));
    lake_entry_write(&data, &e);
    t.records[0] = (struct tree_record){STR("old/path"), STR("an identity of lakeFS"),
                                        arena_str(&h->arena, buf_str(&data))};
    buf_release(&data);
    return moves_put_tables(h, &t);
}

/* Version 0 has the first parent last, and no generations. lakeFS's branches have no tokens in a
 * dump, and its empty trees are tables without records. */
GC_LAB_TEST(lake_dump, a_dump_of_lakefs_is_restored)
{
    struct hand h = hand_of(lab);
    struct moves_tree commits = {0}, branches = {0};
    struct buf bytes = {0};
    char empty[LAKE_ID_LEN + 1];

    moves_make_bare(&h);
    struct str tree = dump_put_objects(&h);
    struct lake_commit root = dump_commit(&h, "root", STR_EMPTY);
    struct lake_commit left = dump_commit(&h, "left", root.id);
    struct lake_commit right = dump_commit(&h, "right", left.id);
    struct str parents[] = {right.id, left.id};
    struct lake_commit merge = {.committer = STR("tester"),
                                .message = STR("merge"),
                                .created_ms = 6000,
                                .tree = tree,
                                .parents = parents,
                                .parent_count = 2};
    char id[LAKE_ID_LEN + 1];
    lake_commit_id(id, &merge);
    merge.id = str_z(id);
    struct lake_branch main = {.id = STR("main"), .commit_id = merge.id};
    struct lake_commit all[] = {root, left, right, merge};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        moves_add_commit(&h, &commits, all[i].id, &all[i]);
    moves_add_branch(&h, &branches, main.id, &main);
    moves_write_tree(&h, &commits); /* sorts the records */
    sst_file_empty(&bytes, "metaranges", empty);
    gc_lab_put_file(&h, arena_fmt(&h.arena, "_lakefs/%s", empty), buf_str(&bytes));
    buf_release(&bytes);
    struct lake_refs refs = {moves_put_tables(&h, &commits), str_z(empty),
                             moves_put_tables(&h, &branches)};
    CHECK_INT(moves_try_restore(&h, &refs), 0);

    struct lake_commit c;
    CHECK_INT(lake_commit_get(h.lake, &h.arena, &h.repo, merge.id, &c, &h.err), 0);
    CHECK_INT(c.generation, 4);
    CHECK_STR(lake_commit_first_parent(&c), left.id);
    hand_expect_list(&h, "main", "old/path");
    hand_expect(&h, "main", "old/path", "old");
    gc_lab_put(&h, "main", "new", "new");
    hand_commit(&h, "main", "above");
    hand_expect_list(&h, "main", "new old/path");
    struct lake_refs own = moves_dump(&h);
    moves_make_bare(&h);
    CHECK_INT(moves_try_restore(&h, &own), 0);
    struct lake_refs again = moves_dump(&h);
    moves_check_same(&own, &again);
    gc_lab_read_refs(&h);
    hand_release(&h);
}
