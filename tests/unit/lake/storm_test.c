/* Free-running races, checked against a model: threads of two lakes over the same rows, as two
 * processes would be. The promises that they check are those of docs/lake.md, by number. */
#include "lake/hooks.h"
#include "unit/lake/hand.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, IDS_MAX = 1024 };

struct storm;

struct storm_thread {
    struct storm *storm;
    struct hand hand;
    unsigned number;
    struct thread thread;
    void (*fn)(struct storm_thread *t);
};

struct storm {
    struct lake_lab *lab;
    struct hand second; /* owns the second lake */
    struct storm_thread threads[THREADS_MAX];
    unsigned count;
    unsigned rounds;
    _Atomic(unsigned) writers; /* that are still at work */
    /* The number that each writer's object has: `begun` is set before a write, `ended` behind it.
     */
    _Atomic(unsigned) begun[THREADS_MAX], ended[THREADS_MAX];
    _Atomic(unsigned) won[IDS_MAX]; /* how many threads have made an object */
    _Atomic(unsigned) answered_now; /* reads that did not have to wait */
    /* How often a branch or a repository that is deleted again and again was about to be made, and
     * what this number was when each write to it had been acknowledged. */
    _Atomic(unsigned) made, acked_at[IDS_MAX];
    /* Ids of commits that were acknowledged. */
    struct mutex lock;
    char ids[IDS_MAX][LAKE_ID_LEN + 1];
    size_t id_count;
    /* Trees that hooks were asked about. */
    struct lake_hooks hooks;
    char trees[IDS_MAX][LAKE_ID_LEN + 1];
    size_t tree_count;
};

static void storm_open(struct storm *s, struct lake_lab *lab, unsigned rounds)
{
    memset(s, 0, sizeof(*s));
    s->lab = lab;
    s->rounds = rounds;
    s->second = hand_second(lab);
    mutex_init(&s->lock, "test");
}

/* Adds a thread. The lakes take turns. */
static void storm_add(struct storm *s, void (*fn)(struct storm_thread *t))
{
    struct storm_thread *t = &s->threads[s->count];

    CHECK(s->count < THREADS_MAX);
    *t = (struct storm_thread){.storm = s, .fn = fn, .number = s->count++};
    t->hand = hand_of(s->lab);
    if (t->number % 2)
        t->hand.lake = s->second.lake;
}

static void storm_thread_run(void *ctx)
{
    struct storm_thread *t = ctx;

    t->fn(t);
}

static void storm_run(struct storm *s)
{
    struct err err = {0};

    for (unsigned i = 0; i < s->count; i++)
        CHECK_OK(thread_start(&s->threads[i].thread, "storm", 0, storm_thread_run, &s->threads[i],
                              &err));
    for (unsigned i = 0; i < s->count; i++) {
        thread_join(&s->threads[i].thread);
        hand_release(&s->threads[i].hand);
    }
    s->count = 0;
}

static bool storm_is_clean(struct storm *s)
{
    return hand_count_rows(&s->second, LAKE_CLEANUP) == 0;
}

static void storm_close(struct storm *s)
{
    CHECK_SOON(storm_is_clean(s));
    hand_release(&s->second);
    mutex_release(&s->lock);
    free(s);
}

static void storm_note_commit(struct storm *s, struct str id)
{
    mutex_lock(&s->lock);
    CHECK(s->id_count < IDS_MAX);
    memcpy(s->ids[s->id_count++], id.p, LAKE_ID_LEN);
    mutex_unlock(&s->lock);
}

static int storm_commit(struct storm_thread *t, struct str *id)
{
    struct lake_commit_options o = {.message = STR("storm"), .committer = STR("tester")};
    struct hand *h = &t->hand;
    struct lake_commit c;

    h->err = (struct err){0};
    int code = lake_commit(h->lake, &h->arena, &h->repo, STR("main"), &o, &c, &h->err);
    if (code < 0 && code != ERR_NOT_MODIFIED)
        test_fail(__FILE__, __LINE__, "commit: %s: %s", err_name(code), h->err.text);
    if (code == 0) {
        storm_note_commit(t->storm, c.id);
        *id = c.id;
    }
    return code;
}

/* L7: every acknowledged commit is in the history by first parents, and nothing else is. */
static void storm_check_history(struct storm *s)
{
    struct hand *h = &s->second;
    struct str id = hand_read_branch(h, "main").commit_id;
    size_t length = 0, found = 0;

    while (id.len) {
        struct lake_commit c;
        CHECK_INT(lake_commit_get(h->lake, &h->arena, &h->repo, id, &c, &h->err), 0);
        for (size_t i = 0; i < s->id_count; i++)
            found += str_eq(id, str_z(s->ids[i]));
        CHECK(c.parent_count <= 1);
        id = lake_commit_first_parent(&c);
        length++;
    }
    CHECK_INT(found, s->id_count);
    CHECK_INT(length, s->id_count + 1); /* and the repository's first one */
}

/* --- parallel commits --- */

static void writer_commits(struct storm_thread *t)
{
    struct hand *h = &t->hand;
    char path[32];

    for (unsigned i = 0; i < t->storm->rounds; i++) {
        struct str id = STR_EMPTY;
        snprintf(path, sizeof(path), "w%02u/%03u", t->number, i);
        hand_put(h, "main", path, path);
        int code = storm_commit(t, &id);
        /* L3: what was written before the commit began is in it, or in the one that took it. */
        hand_expect(h, code == 0 ? arena_z(&h->arena, id) : "main@", path, path);
        arena_reset(&h->arena);
    }
}

static void run_parallel_commits(struct lake_lab *lab, unsigned threads, unsigned rounds)
{
    struct storm *s = calloc(1, sizeof(*s));
    char path[32];

    storm_open(s, lab, rounds);
    for (unsigned i = 0; i < threads; i++)
        storm_add(s, writer_commits);
    storm_run(s);
    storm_check_history(s);
    for (unsigned i = 0; i < threads; i++)
        for (unsigned k = 0; k < rounds; k++) {
            snprintf(path, sizeof(path), "w%02u/%03u", i, k);
            hand_expect(&s->second, "main@", path, path);
            arena_reset(&s->second.arena);
        }
    CHECK_INT(hand_read_branch(&s->second, "main").sealed_count, 0);
    storm_close(s);
}

LAKE_LAB_TEST(lake_storm, two_parallel_commits_lose_nothing)
{
    run_parallel_commits(lab, 2, 60);
}

LAKE_LAB_TEST(lake_storm, eight_parallel_commits_lose_nothing)
{
    run_parallel_commits(lab, 8, 15);
}

LAKE_LAB_TEST(lake_storm, sixty_four_parallel_commits_lose_nothing)
{
    run_parallel_commits(lab, 64, 3);
}

/* --- hooks of parallel commits --- */

static _Thread_local char asked_tree[LAKE_ID_LEN + 1]; /* by the commit of this thread */

static int hook_note(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
                     struct err *err)
{
    struct storm *s = ctx;

    if (c->event == LAKE_ON_PREPARE_COMMIT)
        asked_tree[0] = '\0';
    if (c->event != LAKE_ON_COMMIT)
        return 0;
    CHECK(!str_eq(c->commit->tree, str_z(asked_tree)));
    CHECK_INT(c->commit->tree.len, LAKE_ID_LEN);
    memcpy(asked_tree, c->commit->tree.p, LAKE_ID_LEN);
    mutex_lock(&s->lock);
    CHECK(s->tree_count < IDS_MAX);
    memcpy(s->trees[s->tree_count++], asked_tree, LAKE_ID_LEN);
    mutex_unlock(&s->lock);
    return 0;
}

static void hook_ignore(void *ctx, struct lake *l, const struct lake_hook_call *c)
{
}

static bool was_asked(const struct storm *s, struct str tree)
{
    for (size_t i = 0; i < s->tree_count; i++)
        if (str_eq(tree, str_z(s->trees[i])))
            return true;
    return false;
}

/* C3: no commit has a tree that its hooks did not see, and none asks about a tree twice. */
LAKE_LAB_TEST(lake_storm, hooks_see_each_tree_of_parallel_commits_once)
{
    struct storm *s = calloc(1, sizeof(*s));
    struct lake_commit c;

    storm_open(s, lab, 15);
    s->hooks = (struct lake_hooks){hook_note, hook_ignore, s};
    lab->lake->o.hooks = s->second.lake->o.hooks = &s->hooks;
    for (unsigned i = 0; i < 8; i++)
        storm_add(s, writer_commits);
    storm_run(s);
    storm_check_history(s);
    for (size_t i = 0; i < s->id_count; i++) {
        struct hand *h = &s->second;
        CHECK_INT(lake_commit_get(h->lake, &h->arena, &h->repo, str_z(s->ids[i]), &c, &h->err), 0);
        CHECK(was_asked(s, c.tree));
    }
    lab->lake->o.hooks = s->second.lake->o.hooks = NULL;
    storm_close(s);
}

/* --- writers and readers beside commits --- */

static void writer_counts(struct storm_thread *t)
{
    struct storm *s = t->storm;
    struct hand *h = &t->hand;
    char path[16], content[16];

    snprintf(path, sizeof(path), "count/%02u", t->number);
    for (unsigned i = 1; i <= s->rounds; i++) {
        snprintf(content, sizeof(content), "%u", i);
        s->begun[t->number] = i;
        hand_put(h, "main", path, content);
        s->ended[t->number] = i;
        hand_expect(h, "main", path, content); /* L1 */
        if (i % 7 == 0) {
            hand_remove(h, "main", path);
            hand_expect(h, "main", path, NULL);
            hand_put(h, "main", path, content);
        }
        arena_reset(&h->arena);
    }
    s->writers--;
}

static void committer_commits(struct storm_thread *t)
{
    struct str id;

    while (t->storm->writers > 0) {
        (void)storm_commit(t, &id);
        arena_reset(&t->hand.arena);
    }
}

/* L1 and L2: an object has a number between the last one that was acknowledged before the read and
 * the last one that was begun when it ended. */
static void check_number(struct storm *s, unsigned writer, unsigned number, unsigned before)
{
    CHECK(number >= before);
    CHECK(number <= s->begun[writer]);
}

static void reader_lists(struct storm_thread *t)
{
    struct storm *s = t->storm;
    struct hand *h = &t->hand;

    while (s->writers > 0) {
        struct lake_list_options o = {.prefix = STR("still/"), .limit = 40};
        unsigned before[THREADS_MAX];
        struct lake_objects page;
        size_t seen = 0;

        for (unsigned i = 0; i < THREADS_MAX; i++)
            before[i] = s->ended[i];
        do { /* a listing has no holes */
            CHECK_INT(lake_list(h->lake, &h->arena, &h->repo, STR("main"), &o, &page, &h->err), 0);
            seen += page.count;
            o.after = page.next;
        } while (page.more);
        CHECK_INT(seen, 100);
        o = (struct lake_list_options){.prefix = STR("count/"), .limit = LAKE_LIST_MAX};
        CHECK_INT(lake_list(h->lake, &h->arena, &h->repo, STR("main"), &o, &page, &h->err), 0);
        for (size_t i = 0; i < page.count; i++) {
            uint64_t writer, number;
            CHECK_INT(str_u64(str_skip(page.items[i].path, 6), &writer), 0);
            CHECK_INT(str_u64(page.items[i].entry.etag, &number), 0);
            check_number(s, (unsigned)writer, (unsigned)number, before[writer]);
        }
        arena_reset(&h->arena);
    }
}

/* Reads without waiting where that can be. */
static int reader_stat(struct storm_thread *t, struct str path, struct lake_object *out)
{
    struct hand *h = &t->hand;
    int code = lake_stat_now(h->lake, &h->arena, &h->repo, STR("main"), path, out, &h->err);

    if (code != ERR_AGAIN) {
        t->storm->answered_now++;
        return code;
    }
    return lake_stat(h->lake, &h->arena, &h->repo, STR("main"), path, out, &h->err);
}

static void reader_reads(struct storm_thread *t)
{
    struct storm *s = t->storm;
    struct hand *h = &t->hand;
    struct lake_object o;
    uint64_t number;
    char path[16];

    for (unsigned i = 0; s->writers > 0; i++) {
        unsigned writer = i % 4, before = s->ended[writer];
        snprintf(path, sizeof(path), "still/%02u", i % 100);
        CHECK_INT(reader_stat(t, str_z(path), &o), 0);
        snprintf(path, sizeof(path), "count/%02u", writer);
        int code = reader_stat(t, str_z(path), &o);
        if (code == 0) {
            CHECK_INT(str_u64(o.entry.etag, &number), 0);
            check_number(s, writer, (unsigned)number, before);
        } else { /* it was removed, or is not there yet */
            CHECK_INT(code, ERR_NOT_FOUND);
            CHECK(before == 0 || s->begun[writer] >= 7);
        }
        arena_reset(&h->arena);
    }
}

static void run_readers(struct lake_lab *lab, unsigned rounds)
{
    struct storm *s = calloc(1, sizeof(*s));
    struct hand h = hand_of(lab);
    char path[16], content[16];

    storm_open(s, lab, rounds);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "still/%02u", i);
        hand_put(&h, "main", path, "x");
    }
    s->writers = 4;
    for (unsigned i = 0; i < 4; i++)
        storm_add(s, writer_counts);
    for (unsigned i = 0; i < 2; i++)
        storm_add(s, committer_commits);
    for (unsigned i = 0; i < 2; i++)
        storm_add(s, reader_lists);
    for (unsigned i = 0; i < 2; i++)
        storm_add(s, reader_reads);
    storm_run(s);
    if (!(lab->lake->kv->can &
          KV_AT_HAND)) /* on a slow machine no read may be so quick elsewhere */
        CHECK_INT(s->answered_now, 0);
    snprintf(content, sizeof(content), "%u", rounds);
    for (unsigned i = 0; i < 4; i++) { /* L4 */
        snprintf(path, sizeof(path), "count/%02u", i);
        hand_expect(&h, "main", path, content);
    }
    storm_check_history(s);
    storm_close(s);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_storm, readers_and_listings_beside_commits_and_drops_see_the_newest)
{
    run_readers(lab, 60);
}

/* --- conditional writes beside commits --- */

static void writer_adds(struct storm_thread *t)
{
    struct storm *s = t->storm;
    char path[16], content[16];

    snprintf(content, sizeof(content), "by %u", t->number);
    for (unsigned i = 0; i < s->rounds; i++) {
        snprintf(path, sizeof(path), "once/%03u", i);
        int code = hand_try_add(&t->hand, "main", path, content);
        if (code == 0) {
            s->won[i]++;
            hand_expect(&t->hand, "main", path, content);
        } else {
            CHECK_INT(code, ERR_PRECONDITION);
        }
        arena_reset(&t->hand.arena);
    }
    s->writers--;
}

LAKE_LAB_TEST(lake_storm, if_absent_beside_commits_has_one_winner)
{
    struct storm *s = calloc(1, sizeof(*s));

    storm_open(s, lab, 50);
    s->writers = 6;
    for (unsigned i = 0; i < 6; i++)
        storm_add(s, writer_adds);
    for (unsigned i = 0; i < 2; i++)
        storm_add(s, committer_commits);
    storm_run(s);
    for (unsigned i = 0; i < s->rounds; i++)
        CHECK_INT(s->won[i], 1);
    storm_close(s);
}

/* --- commits beside everything else --- */

/* Errors that a lost race may end with. */
static void check_race(int code, const struct err *err)
{
    if (code < 0 && code != ERR_NOT_MODIFIED && code != ERR_INVALID && code != ERR_BUSY &&
        code != ERR_NOT_FOUND && code != ERR_EXISTS && code != ERR_CONFLICT)
        test_fail(__FILE__, __LINE__, "%s: %s", err_name(code), err->text);
}

/* Writes objects that nobody resets, and counts on them. */
static void writer_keeps(struct storm_thread *t)
{
    struct hand *h = &t->hand;
    char path[32];

    for (unsigned i = 0; i < t->storm->rounds; i++) {
        snprintf(path, sizeof(path), "kept/%02u/%03u", t->number, i);
        hand_put(h, "main", path, path);
        hand_put(h, "main", "thrown/away", path);
        hand_expect(h, "main", path, path);
        check_race(hand_try_commit(h, "main", "storm"), &h->err);
        arena_reset(&h->arena);
    }
    t->storm->writers--;
}

static void changer_resets(struct storm_thread *t)
{
    struct hand *h = &t->hand;

    while (t->storm->writers > 0) {
        check_race(lake_reset(h->lake, &h->arena, &h->repo, STR("main"), LAKE_RESET_PREFIX,
                              STR("thrown/"), false, &h->err),
                   &h->err);
        arena_reset(&h->arena);
    }
}

static void changer_merges(struct storm_thread *t)
{
    struct hand *h = &t->hand;
    char name[32];

    for (unsigned i = 0; t->storm->writers > 0; i++) {
        snprintf(name, sizeof(name), "side-%u-%u", t->number, i);
        hand_branch(h, name, "main");
        hand_put(h, name, name, name);
        hand_commit(h, name, "side");
        check_race(hand_try_merge(h, name, "main"), &h->err);
        CHECK_INT(lake_branch_delete(h->lake, &h->arena, &h->repo, str_z(name), false, &h->err), 0);
        arena_reset(&h->arena);
    }
}

/* A hard reset to the head itself loses nothing, and raises the epoch. */
static void changer_hard_resets(struct storm_thread *t)
{
    struct hand *h = &t->hand;

    while (t->storm->writers > 0) {
        check_race(
            lake_hard_reset(h->lake, &h->arena, &h->repo, STR("main"), STR("main"), false, &h->err),
            &h->err);
        arena_reset(&h->arena);
    }
}

LAKE_LAB_TEST(lake_storm, commits_beside_resets_merges_and_hard_resets_lose_nothing)
{
    struct storm *s = calloc(1, sizeof(*s));
    char path[32];

    storm_open(s, lab, 25);
    s->writers = 4;
    for (unsigned i = 0; i < 4; i++)
        storm_add(s, writer_keeps);
    storm_add(s, changer_resets);
    storm_add(s, changer_merges);
    storm_add(s, changer_hard_resets);
    storm_run(s);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < s->rounds; k++) {
            snprintf(path, sizeof(path), "kept/%02u/%03u", i, k);
            hand_expect(&s->second, "main", path, path);
        }
    check_race(hand_try_commit(&s->second, "main", "last"), &s->second.err);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < s->rounds; k++) {
            snprintf(path, sizeof(path), "kept/%02u/%03u", i, k);
            hand_expect(&s->second, "main@", path, path);
        }
    storm_close(s);
}

/* --- names that go away --- */

/* Writes an object whose path is its number among those of all threads. */
static int put_numbered(struct storm_thread *t, const char *branch, unsigned round)
{
    unsigned number = t->number * t->storm->rounds + round;
    char path[16];

    CHECK(number < IDS_MAX);
    snprintf(path, sizeof(path), "%04u", number);
    int code = hand_try_put(&t->hand, branch, path, path);
    if (code == 0)
        t->storm->acked_at[number] = t->storm->made;
    return code;
}

/* What was just made, as the `made`-th, has no object whose write had been acknowledged before. It
 * is listed until it has an object of a thread that goes on, or all have ended. */
static void expect_new(struct storm_thread *t, const struct lake_repo *repo, const char *branch,
                       unsigned made)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page = {0};
    struct arena a = {0};
    struct err err = {0};

    while (page.count == 0 && t->storm->writers > 0) {
        arena_reset(&a);
        CHECK_OK(lake_list(t->hand.lake, &a, repo, str_z(branch), &o, &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            uint64_t number;
            CHECK_INT(str_u64(page.items[i].path, &number), 0);
            CHECK(number < IDS_MAX);
            unsigned at = t->storm->acked_at[number];
            CHECK(at == 0 || at >= made);
        }
    }
    arena_release(&a);
}

static void writer_meets_deletes(struct storm_thread *t)
{
    struct hand *h = &t->hand;

    for (unsigned i = 0; i < t->storm->rounds;) {
        int code = put_numbered(t, "work", i);
        check_race(code, &h->err);
        if (code == 0)
            check_race(hand_try_commit(h, "work", "storm"), &h->err);
        i += code == 0;
        arena_reset(&h->arena);
    }
    t->storm->writers--;
}

static void changer_deletes(struct storm_thread *t)
{
    struct hand *h = &t->hand;

    while (t->storm->writers > 0) {
        struct lake_branch_options o = {.name = STR("work"), .source = STR("main")};
        struct lake_branch b;
        unsigned made = ++t->storm->made;
        CHECK_INT(lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err), 0);
        expect_new(t, &h->repo, "work", made);
        CHECK_INT(lake_branch_delete(h->lake, &h->arena, &h->repo, STR("work"), false, &h->err), 0);
        arena_reset(&h->arena);
    }
}

/* A branch that was made again has nothing of the one before it. */
LAKE_LAB_TEST(lake_storm, branches_that_are_deleted_and_made_again_begin_empty)
{
    struct storm *s = calloc(1, sizeof(*s));

    storm_open(s, lab, 60);
    s->writers = 3;
    for (unsigned i = 0; i < 3; i++)
        storm_add(s, writer_meets_deletes);
    storm_add(s, changer_deletes);
    storm_run(s);
    CHECK(s->made > 5);
    hand_branch(&s->second, "work", "main");
    hand_expect_list(&s->second, "work", "");
    storm_close(s);
}

static void changer_deletes_repo(struct storm_thread *t)
{
    struct hand *h = &t->hand;
    struct lake_repo_options o = {.id = STR("fleeting"),
                                  .space = STR("s3://lake-data/fleeting"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .claimed = true};

    while (t->storm->writers > 0) {
        struct lake_repo repo;
        unsigned made = ++t->storm->made;
        CHECK_INT(lake_repo_create(h->lake, &h->arena, &o, &repo, &h->err), 0);
        expect_new(t, &repo, "main", made);
        CHECK_INT(lake_repo_delete(h->lake, &h->arena, o.id, false, false, &h->err), 0);
        arena_reset(&h->arena);
    }
}

static void writer_meets_repos(struct storm_thread *t)
{
    struct hand *h = &t->hand;

    for (unsigned i = 0; i < t->storm->rounds;) {
        struct lake_objects page;
        struct lake_list_options o = {.limit = 10};
        int code = lake_repo_get(h->lake, &h->arena, STR("fleeting"), &h->repo, &h->err);
        if (code == 0)
            code = put_numbered(t, "main", i);
        i += code == 0;
        if (code == 0)
            code = hand_try_commit(h, "main", "storm");
        check_race(code, &h->err);
        code = lake_list(h->lake, &h->arena, &h->repo, STR("main"), &o, &page, &h->err);
        check_race(code, &h->err);
        arena_reset(&h->arena);
        h->repo = t->storm->lab->repo;
    }
    t->storm->writers--;
}

LAKE_LAB_TEST(lake_storm, repositories_that_are_deleted_and_made_again_share_nothing)
{
    struct storm *s = calloc(1, sizeof(*s));
    struct lake_repo_options o = {.id = STR("fleeting"),
                                  .space = STR("s3://lake-data/fleeting"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .claimed = true};

    storm_open(s, lab, 60);
    s->writers = 3;
    for (unsigned i = 0; i < 3; i++)
        storm_add(s, writer_meets_repos);
    storm_add(s, changer_deletes_repo);
    storm_run(s);
    CHECK(s->made > 5);
    CHECK_INT(
        lake_repo_create(s->second.lake, &s->second.arena, &o, &s->second.repo, &s->second.err), 0);
    hand_expect_list(&s->second, "main", "");
    s->second.repo = lab->repo;
    storm_close(s);
}
