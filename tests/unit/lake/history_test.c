/* Histories, logs and merge bases. */
#include "base/ids.h"
#include "lake/iter.h"
#include "lake/log_pauses.h"
#include "unit/lake/lake_lab.h"

#include <inttypes.h>
#include <stdio.h>

/* --- graphs by letters --- */

/* Commits named by letters. A graph is written as "b:a c:a d:bc": d has the parents b and c. The
 * time of a commit follows its place in the text, unless `times` says otherwise. */
struct letters {
    struct lake_lab *lab;
    struct str ids[128];
};

static void letters_add(struct letters *g, const char *graph, const int *times)
{
    struct str rest = str_z(graph), word;

    for (int i = 0; str_token(&rest, " ", &word); i++) {
        struct str parents[16];
        size_t count = 0;
        char message[2] = {word.p[0], 0};
        for (size_t k = 2; k < word.len; k++)
            parents[count++] = g->ids[(int)word.p[k]];
        g->ids[(int)word.p[0]] = lake_lab_commit_at(
            g->lab, (int64_t)1000 * (times ? times[i] : i + 1), message, parents, count);
    }
}

static char letter_of(const struct letters *g, struct str id)
{
    for (int c = 0; c < 128; c++)
        if (g->ids[c].len && str_eq(g->ids[c], id))
            return (char)c;
    return '?';
}

static void expect_history(struct letters *g, const struct lake_history *h, const char *want)
{
    struct lake_iter *it = NULL;
    struct buf got = {0};
    struct lake_item item;
    struct err err = {0};
    int code;

    CHECK_OK(lake_iter_history(&it, g->lab->lake, &g->lab->repo, h, &err));
    while ((code = lake_iter_next(it, &item, &err)) == 0) {
        buf_append_char(&got, letter_of(g, item.id));
        CHECK_STR(item.commit->id, item.id);
    }
    CHECK_ERR(code, ERR_END);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
    lake_iter_free(it);
}

static void expect_history_of(struct letters *g, char from, const char *want)
{
    expect_history(g, &(struct lake_history){.from = g->ids[(int)from]}, want);
}

/* --- histories --- */

LAKE_LAB_TEST(lake_history, a_history_is_by_time_and_has_each_commit_once)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:a d:b e:c f:de g:f", NULL);
    expect_history_of(&g, 'g', "gfedcba");
    expect_history_of(&g, 'e', "eca");
    expect_history_of(&g, 'a', "a");
    expect_history(&g, &(struct lake_history){.from = g.ids['g'], .first_parent = true}, "gfdba");
}

LAKE_LAB_TEST(lake_history, commits_of_one_moment_come_with_children_first)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:b d:c e:d f:ed", (const int[]){5, 5, 5, 5, 5, 5});
    expect_history_of(&g, 'f', "fedcba");
}

LAKE_LAB_TEST(lake_history, a_parent_never_comes_before_its_child_whatever_the_clocks_say)
{
    struct letters g = {.lab = lab};

    /* The parent c is newer than its child e, and d, another child, is newer than both. */
    letters_add(&g, "a: b:a c:b d:c e:c f:de", (const int[]){1, 2, 90, 95, 10, 100});
    expect_history_of(&g, 'f', "fdecba");
    /* A long side branch with a broken clock. */
    letters_add(&g, "h:a i:h j:i k:j l:fk", (const int[]){99, 98, 3, 97, 200});
    expect_history_of(&g, 'l', "lfkdecjihba");
}

LAKE_LAB_TEST(lake_history, old_commits_are_left_out_with_all_behind_them)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:b d:b e:cd", (const int[]){1, 5, 2, 6, 7});
    /* c is too old; b is reached through d. */
    expect_history(&g, &(struct lake_history){.from = g.ids['e'], .since_ms = 5000}, "edb");
    expect_history(&g, &(struct lake_history){.from = g.ids['e'], .since_ms = 8000}, "");
}

LAKE_LAB_TEST(lake_history, wrong_generations_neither_lose_nor_repeat_a_commit)
{
    struct letters g = {.lab = lab};
    struct str ids[40];
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};
    size_t count = 0;

    letters_add(&g, "a:", NULL);
    ids[0] = ids[1] = g.ids['a'];
    for (int i = 2; i < 40; i++) { /* a ladder with two ways at each step */
        struct str parents[] = {ids[i - 1], ids[i - 2]};
        ids[i] = lake_lab_commit(lab, &(struct lake_commit){.message = STR("x"),
                                                            .created_ms = 1000 * i,
                                                            .parents = parents,
                                                            .parent_count = 2,
                                                            .version = 1,
                                                            .generation = 1 + i * 7 % 5});
    }
    CHECK_OK(lake_iter_history(&it, lab->lake, &lab->repo, &(struct lake_history){.from = ids[39]},
                               &err));
    while (lake_iter_next(it, &item, &err) == 0)
        count++;
    CHECK_INT(count, 39);
    lake_iter_free(it);
}

/* A random graph: commit i has up to three parents among those before it. */
enum { GRAPHS = 24, NODES = 24 };

struct random_graph {
    struct str ids[NODES];
    bool has_parent[NODES][NODES]; /* [child][parent] */
};

static void random_graph_make(struct random_graph *g, struct lake_lab *lab, bool wrong)
{
    *g = (struct random_graph){0};
    for (int i = 0; i < NODES; i++) {
        struct str parents[3];
        size_t count = 0;
        for (size_t k = random_below(4); k > 0 && i > 0; k--) {
            int p = (int)random_below((uint64_t)i);
            if (!g->has_parent[i][p])
                parents[count++] = g->ids[p];
            g->has_parent[i][p] = true;
        }
        g->ids[i] = lake_lab_commit(
            lab,
            &(struct lake_commit){.message = arena_fmt(&lab->arena, "%d-%" PRIu64, i, random_u64()),
                                  .created_ms = 1000 * (int64_t)(1 + random_below(20)),
                                  .parents = parents,
                                  .parent_count = count,
                                  .version = 1,
                                  .generation = wrong ? 1 + (int32_t)random_below(9) : 0});
    }
}

/* Marks the ancestors of a commit, and the commit itself. */
static void random_graph_reach(const struct random_graph *g, int from, bool reached[NODES])
{
    reached[from] = true;
    for (int p = 0; p < NODES; p++)
        if (g->has_parent[from][p] && !reached[p])
            random_graph_reach(g, p, reached);
}

static int random_graph_find(const struct random_graph *g, struct str id)
{
    int i = 0;

    while (i < NODES && !str_eq(g->ids[i], id))
        i++;
    return i;
}

/* The history of the last commit has its ancestors, each once, and, unless generations are wrong,
 * no parent before its child. */
static void random_graph_check(const struct random_graph *g, struct lake_lab *lab, bool wrong)
{
    bool reached[NODES] = {false}, given[NODES] = {false};
    struct lake_history h = {.from = g->ids[NODES - 1]};
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};

    random_graph_reach(g, NODES - 1, reached);
    CHECK_OK(lake_iter_history(&it, lab->lake, &lab->repo, &h, &err));
    while (lake_iter_next(it, &item, &err) == 0) {
        int at = random_graph_find(g, item.id);
        CHECK(at < NODES && !given[at]);
        given[at] = true;
        for (int child = 0; child < NODES && !wrong; child++)
            CHECK(!(g->has_parent[child][at] && reached[child] && !given[child]));
    }
    for (int i = 0; i < NODES; i++)
        CHECK_INT(given[i], reached[i]);
    lake_iter_free(it);
}

LAKE_LAB_TEST(lake_history, histories_of_random_graphs_are_whole_and_in_order)
{
    struct random_graph g;

    for (int i = 0; i < GRAPHS; i++) {
        random_graph_make(&g, lab, i % 2);
        random_graph_check(&g, lab, i % 2);
    }
}

LAKE_LAB_TEST(lake_history, a_missing_commit_is_damage_and_not_the_end)
{
    struct letters g = {.lab = lab};
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};
    int code;

    letters_add(&g, "a: b:a c:b d:c", NULL);
    /* The lab has read the commits for their generations; another lake has not. */
    struct kv *kv = NULL;
    struct lake *second = lake_lab_open_second(lab, &kv);
    CHECK_OK(kv_remove(kv, lake_key_commit(&lab->arena, lab->repo.partition, g.ids['b']), &err));
    CHECK_OK(lake_iter_history(&it, second, &lab->repo, &(struct lake_history){.from = g.ids['d']},
                               &err));
    while ((code = lake_iter_next(it, &item, &err)) == 0) {
    }
    CHECK_ERR(code, ERR_CORRUPT);
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_CORRUPT);
    lake_iter_free(it);
    CHECK_OK(lake_iter_history(&it, second, &lab->repo, &(struct lake_history){.from = g.ids['b']},
                               &err));
    CHECK_ERR(lake_iter_next(it, &item, &err), ERR_NOT_FOUND);
    lake_iter_free(it);
    lake_close(second);
    kv_close(kv);
}

/* --- logs --- */

static void expect_log(struct letters *g, const char *ref, const struct lake_log_options *o,
                       const char *want, bool want_more)
{
    struct lake_commit *list = NULL;
    struct buf got = {0};
    struct err err = {0};
    size_t count = 0;
    bool more = false;

    CHECK_OK(lake_log(g->lab->lake, &g->lab->arena, &g->lab->repo, str_z(ref), o, &list, &count,
                      &more, &err));
    for (size_t i = 0; i < count; i++)
        buf_append_char(&got, letter_of(g, list[i].id));
    CHECK_STR(buf_str(&got), str_z(want));
    CHECK_INT(more, want_more);
    buf_release(&got);
}

LAKE_LAB_TEST(lake_log, a_log_has_pages_and_ends_where_it_is_told)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:a d:b e:c f:de g:f", NULL);
    lake_lab_set_head(lab, "main", g.ids['g']);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 100}, "gfedcba", false);
    expect_log(&g, "main~1", &(struct lake_log_options){.limit = 100}, "fedcba", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 3}, "gfe", true);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 3, .after = g.ids['e']}, "dcb",
               true);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 3, .after = g.ids['b']}, "a", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 3, .after = g.ids['a']}, "", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 7}, "gfedcba", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 9, .first_parent = true}, "gfdba",
               false);
    expect_log(&g, "main",
               &(struct lake_log_options){.limit = 2, .first_parent = true, .after = g.ids['f']},
               "db", true);
    /* A page behind a commit of another history has nothing of that history. */
    expect_log(&g, "main~1",
               &(struct lake_log_options){.limit = 9, .first_parent = true, .after = g.ids['g']},
               "", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 9, .stop_at = g.ids['d']}, "gfed",
               false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 9, .stop_at = STR("main~1")}, "gf",
               false);
    expect_log(&g, "main",
               &(struct lake_log_options){.limit = 9, .stop_at = g.ids['d'], .after = g.ids['d']},
               "", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 9, .since_ms = 4000}, "gfed", false);
    expect_log(&g, "main", &(struct lake_log_options){.limit = 0}, "", true);
}

/* Appends the letters of all pages of a log. */
static void read_pages(struct letters *g, struct lake *lake, struct lake_log_options o,
                       struct buf *got)
{
    struct lake_commit *list = NULL;
    struct err err = {0};
    size_t count = 0;
    bool more = true;

    while (more) {
        CHECK_OK(lake_log(lake, &g->lab->arena, &g->lab->repo, STR("main"), &o, &list, &count,
                          &more, &err));
        for (size_t i = 0; i < count; i++)
            buf_append_char(got, letter_of(g, list[i].id));
        CHECK(!more || count == o.limit);
        o.after = count ? list[count - 1].id : STR_EMPTY;
    }
}

LAKE_LAB_TEST(lake_log, pages_together_are_the_whole_log)
{
    struct letters g = {.lab = lab};
    struct buf got = {0};

    /* Two long lines side by side, so that commits beside `after` follow it. */
    letters_add(&g, "a: b:a c:a d:b e:c f:d g:e h:f i:g j:h k:i l:jk", NULL);
    lake_lab_set_head(lab, "main", g.ids['l']);
    for (size_t limit = 1; limit < 14; limit++) {
        for (int turn = 0; turn < 2; turn++) {
            read_pages(&g, lab->lake, (struct lake_log_options){.limit = limit}, &got);
            CHECK_STR(buf_str(&got), STR("lkjihgfedcba"));
            buf_reset(&got);
        }
        read_pages(&g, lab->lake, (struct lake_log_options){.limit = limit, .stop_at = g.ids['d']},
                   &got);
        CHECK_STR(buf_str(&got), STR("lkjihgfed"));
        buf_reset(&got);
        read_pages(&g, lab->lake, (struct lake_log_options){.limit = limit, .first_parent = true},
                   &got);
        CHECK_STR(buf_str(&got), STR("ljhfdba"));
        buf_reset(&got);
    }
    buf_release(&got);
}

LAKE_LAB_TEST(lake_log, two_readers_of_one_log_do_not_disturb_each_other)
{
    struct letters g = {.lab = lab};
    struct lake_log_options o = {.limit = 2};

    letters_add(&g, "a: b:a c:a d:b e:c f:de", NULL);
    lake_lab_set_head(lab, "main", g.ids['f']);
    expect_log(&g, "main", &o, "fe", true);
    expect_log(&g, "main", &o, "fe", true);
    o.after = g.ids['e'];
    expect_log(&g, "main", &o, "dc", true); /* takes the walk that was paused */
    expect_log(&g, "main", &o, "dc", true); /* finds none, and walks from the beginning */
    struct lake_log_options other = {.limit = 1, .after = g.ids['e'], .since_ms = 3500};
    expect_log(&g, "main", &other, "d", false);
    o.after = g.ids['c'];
    expect_log(&g, "main", &o, "ba", false);
}

/* A walk from the head of "main". */
static struct log_pause pause_of(struct lake_lab *lab)
{
    struct lake_history h = {.from = lake_lab_head(lab, "main")};
    struct log_pause pause = {0};
    struct err err = {0};

    CHECK_OK(lake_iter_history(&pause.history, lab->lake, &lab->repo, &h, &err));
    return pause;
}

LAKE_LAB_TEST(lake_log, paused_walks_are_given_once_and_the_oldest_are_dropped)
{
    struct log_pauses *p = log_pauses_new(7000); /* three walks, as each counts for 2000 */
    struct log_pause pause;

    CHECK(!log_pauses_take(p, STR("a"), &pause));
    for (const char *key = "abcd"; *key; key++) {
        pause = pause_of(lab);
        log_pauses_put(p, str_n(key, 1), &pause, 10);
    }
    CHECK(!log_pauses_take(p, STR("a"), &pause));
    CHECK(log_pauses_take(p, STR("c"), &pause));
    lake_iter_free(pause.history);
    CHECK(!log_pauses_take(p, STR("c"), &pause));
    pause = pause_of(lab);
    log_pauses_put(p, STR("d"), &pause, 10); /* in place of the other */
    pause = pause_of(lab);
    log_pauses_put(p, STR("huge"), &pause, 100000); /* too large to be kept */
    CHECK(!log_pauses_take(p, STR("huge"), &pause));
    CHECK(log_pauses_take(p, STR("b"), &pause));
    lake_iter_free(pause.history);
    pause = pause_of(lab);
    log_pauses_put(p, STR("e"), &pause, 10);
    CHECK(log_pauses_take(p, STR("e"), &pause));
    lake_iter_free(pause.history);
    log_pauses_free(p);
    log_pauses_free(NULL);
}

LAKE_LAB_TEST(lake_log, a_log_needs_a_commit)
{
    struct lake_commit *list = NULL;
    struct err err = {0};
    size_t count = 0;
    bool more = false;
    struct lake_log_options o = {.limit = 1};

    CHECK_ERR(lake_log(lab->lake, &lab->arena, &lab->repo, STR("nothing"), &o, &list, &count, &more,
                       &err),
              ERR_NOT_FOUND);
    CHECK_ERR(
        lake_log(lab->lake, &lab->arena, &lab->repo, STR("main$"), &o, &list, &count, &more, &err),
        ERR_INVALID);
    o.stop_at = STR("nothing");
    CHECK_ERR(
        lake_log(lab->lake, &lab->arena, &lab->repo, STR("main"), &o, &list, &count, &more, &err),
        ERR_NOT_FOUND);
}

/* One changed path, for tree_apply(). */
struct one_change {
    struct tree_record record;
    bool given;
};

static int one_change_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct one_change *c = ctx;

    if (c->given)
        return ERR_END;
    c->given = true;
    *out = c->record;
    return 0;
}

/* A commit named by a letter, on `parents`, whose tree is that of the first one with a path set to
 * a content ("": removed). */
static void letters_change(struct letters *g, char letter, const char *parents, const char *path,
                           const char *content)
{
    static int64_t now_ms = 1000;
    struct lake_lab *lab = g->lab;
    struct one_change change = {.record = {.key = str_z(path), .data = str_z(content)}};
    unsigned char identity[LAKE_IDENTITY_LEN];
    struct str ids[4];
    struct lake_commit parent = {0}, c = {.created_ms = now_ms += 1000, .version = 1};
    struct tree_result result = {0};
    struct tree_store trees;
    struct err err = {0};

    for (c.parent_count = 0; parents[c.parent_count]; c.parent_count++)
        ids[c.parent_count] = g->ids[(int)parents[c.parent_count]];
    c.parents = ids;
    c.message = str_n(&letter, 1);
    if (c.parent_count)
        CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, ids[0], &parent, &err));
    lake_entry_identity(identity, &(struct lake_entry){.etag = str_z(content)});
    if (*content)
        change.record.identity = str_n(identity, sizeof(identity));
    CHECK_OK(lake_tree_store(lab->lake, &lab->repo, &trees, &err));
    CHECK_OK(tree_apply(&trees, parent.tree, &(struct tree_changes){one_change_next, &change}, NULL,
                        &result, &err));
    lake_tree_store_release(lab->lake, &trees);
    c.tree = arena_str(&lab->arena, str_z(result.root));
    g->ids[(int)letter] = lake_lab_commit(lab, &c);
}

static void expect_log_of(struct letters *g, const char *object, const char *prefix,
                          const char *want)
{
    struct str objects[] = {str_z(object)}, prefixes[] = {str_z(prefix)};

    expect_log(g, "main",
               &(struct lake_log_options){.limit = 100,
                                          .objects = objects,
                                          .object_count = object != NULL,
                                          .prefixes = prefixes,
                                          .prefix_count = prefix != NULL},
               want, false);
}

LAKE_LAB_TEST(lake_log, a_log_of_paths_has_the_commits_that_changed_them)
{
    struct letters g = {.lab = lab};

    letters_change(&g, 'a', "", "x/one", "1");
    letters_change(&g, 'b', "a", "x/two", "1");
    letters_change(&g, 'c', "b", "y", "1");
    letters_change(&g, 'd', "c", "x/one", "2");
    letters_change(&g, 'e', "d", "x/one", "2"); /* the same content: no change */
    letters_change(&g, 'f', "c", "x/two", "");  /* on a side branch */
    letters_change(&g, 'm', "ef", "x/two", ""); /* merged */
    letters_change(&g, 'n', "m", "x/", "folder");
    lake_lab_set_head(lab, "main", g.ids['n']);
    expect_log_of(&g, "x/one", NULL, "da");
    expect_log_of(&g, "x/two", NULL, "fb");
    expect_log_of(&g, "y", NULL, "c");
    expect_log_of(&g, "x/", NULL, "n");
    expect_log_of(&g, "nothing", NULL, "");
    expect_log_of(&g, NULL, "x/", "nfdba");
    expect_log_of(&g, NULL, "x/t", "fb");
    expect_log_of(&g, NULL, "y", "c");
    expect_log_of(&g, "y", "x/o", "dca");
    expect_log_of(&g, NULL, "", "nfdcba");

    struct str prefix = STR("x/");
    struct buf got = {0};
    read_pages(&g, lab->lake,
               (struct lake_log_options){.limit = 1, .prefixes = &prefix, .prefix_count = 1}, &got);
    CHECK_STR(buf_str(&got), STR("nfdba"));
    buf_release(&got);
}

LAKE_LAB_TEST(lake_log, a_log_of_paths_reads_no_node_for_commits_with_the_same_tree)
{
    struct letters g = {.lab = lab};
    struct lake_commit c;
    struct str objects[] = {STR("x")};
    struct err err = {0};

    letters_change(&g, 'a', "", "x", "1");
    CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, g.ids['a'], &c, &err));
    struct str parent = g.ids['a'];
    for (int i = 0; i < 20; i++)
        parent = lake_lab_commit(lab, &(struct lake_commit){.message = STR("empty"),
                                                            .created_ms = 1000 * (i + 100),
                                                            .tree = c.tree,
                                                            .parents = &parent,
                                                            .parent_count = 1,
                                                            .version = 1});
    lake_lab_set_head(lab, "main", parent);
    lab->fail_read = ERR_UNAVAILABLE;
    struct lake_log_options o = {
        .limit = 1, .objects = objects, .object_count = 1, .stop_at = STR("main~19")};
    expect_log(&g, "main", &o, "", false);
}

/* --- the cost of a log of paths --- */

enum { WIDE_OBJECTS = 8000, WIDE_STEP = 100, WIDE_COMMITS = 6, WIDE_HEIGHT = 2 };

/* Changes of every WIDE_STEP-th object, so that every leaf changes, or all objects. */
struct wide_changes {
    unsigned at, step, version;
    char path[16], identity[LAKE_IDENTITY_LEN], data[120];
};

static int wide_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct wide_changes *c = ctx;

    if (c->at >= WIDE_OBJECTS)
        return ERR_END;
    int len = snprintf(c->path, sizeof(c->path), "f/%05u", c->at);
    memset(c->identity, (char)c->version, sizeof(c->identity));
    memset(c->data, 'd', sizeof(c->data));
    *out =
        (struct tree_record){str_n(c->path, (size_t)len), str_n(c->identity, sizeof(c->identity)),
                             str_n(c->data, sizeof(c->data))};
    c->at += c->step;
    return 0;
}

/* A chain of commits on main: the first one makes all objects, and each later one changes some of
 * every leaf. Returns the number of nodes of the first tree. */
static size_t wide_history(struct lake_lab *lab)
{
    struct tree_result result = {0};
    struct str parent = STR_EMPTY;
    struct tree_store trees;
    size_t nodes = 0;
    struct err err = {0};

    CHECK_OK(lake_tree_store(lab->lake, &lab->repo, &trees, &err));
    for (unsigned i = 0; i < WIDE_COMMITS; i++) {
        struct wide_changes changes = {.step = i ? WIDE_STEP : 1, .version = i + 1};
        struct str base = arena_str(&lab->arena, str_z(result.root));
        CHECK_OK(tree_apply(&trees, base, &(struct tree_changes){wide_next, &changes}, NULL,
                            &result, &err));
        nodes = i ? nodes : result.nodes;
        CHECK(result.nodes >= nodes - 1); /* every leaf is new */
        parent = lake_lab_commit(lab, &(struct lake_commit){.message = STR("wide"),
                                                            .created_ms = 1000 * (i + 1),
                                                            .tree = str_z(result.root),
                                                            .parents = &parent,
                                                            .parent_count = i > 0,
                                                            .version = 1});
    }
    lake_tree_store_release(lab->lake, &trees);
    lake_lab_set_head(lab, "main", parent);
    return nodes;
}

/* Reads the log in a lake whose cache is empty. Returns how many nodes were read. */
static size_t wide_reads(struct lake_lab *lab, const struct lake_log_options *o, size_t commits)
{
    struct lake_commit *list = NULL;
    struct kv *kv = NULL;
    struct lake *cold = lake_lab_open_second(lab, &kv);
    size_t count = 0, before = lab->read;
    bool more = false;
    struct err err = {0};

    CHECK_OK(lake_log(cold, &lab->arena, &lab->repo, STR("main"), o, &list, &count, &more, &err));
    CHECK_INT(count, commits);
    CHECK(!more);
    lake_close(cold);
    kv_close(kv);
    return lab->read - before;
}

/* Of each tree the log reads the nodes on the way to the path, and not the other leaves, although
 * all of them have changed. */
LAKE_LAB_TEST(lake_log, a_log_of_a_path_reads_one_way_down_in_each_tree)
{
    enum { MOST = WIDE_COMMITS * WIDE_HEIGHT };
    struct str untouched = STR("f/04150"), touched = STR("f/04100");
    size_t nodes = wide_history(lab);

    CHECK(nodes > 10); /* a comparison of whole trees reads all of them in each commit */
    struct lake_log_options object = {.limit = 100, .objects = &untouched, .object_count = 1};
    CHECK(wide_reads(lab, &object, 1) <= MOST);
    object.objects = &touched;
    CHECK(wide_reads(lab, &object, WIDE_COMMITS) <= MOST);
    struct lake_log_options prefix = {.limit = 100, .prefixes = &untouched, .prefix_count = 1};
    CHECK(wide_reads(lab, &prefix, 1) <= MOST + WIDE_COMMITS); /* a leaf may end at the prefix */
}

/* --- merge bases --- */

static void expect_base(struct letters *g, char left, char right, const char *want)
{
    struct lake_commit c = {0};
    struct err err = {0};

    for (int turn = 0; turn < 2; turn++) {
        char a = turn ? right : left, b = turn ? left : right;
        int code = lake_merge_base(g->lab->lake, &g->lab->arena, &g->lab->repo, g->ids[(int)a],
                                   g->ids[(int)b], &c, &err);
        char got = code == 0 ? letter_of(g, c.id) : '-';
        if (!strchr(want, got))
            test_fail(__FILE__, __LINE__, "the base of %c and %c is %c, not %s", a, b, got, want);
        if (code < 0)
            CHECK_ERR(code, ERR_NOT_FOUND);
    }
}

LAKE_LAB_TEST(lake_merge_base, the_base_is_the_best_common_ancestor)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:b d:b e:cd f:d g:e h:f", NULL);
    expect_base(&g, 'a', 'a', "a");
    expect_base(&g, 'b', 'a', "a");
    expect_base(&g, 'c', 'd', "b");
    expect_base(&g, 'e', 'f', "d");
    expect_base(&g, 'g', 'h', "d");
    expect_base(&g, 'e', 'd', "d");
    letters_add(&g, "x: y:x", NULL);
    expect_base(&g, 'y', 'g', "-");
}

LAKE_LAB_TEST(lake_merge_base, times_do_not_mislead)
{
    struct letters g = {.lab = lab};

    /* b, the base, is much older than a, its ancestor. */
    letters_add(&g, "a: b:a c:b d:b", (const int[]){100, 1, 50, 60});
    expect_base(&g, 'c', 'd', "b");
    /* A long way on one side, a short one on the other. */
    letters_add(&g, "e:c f:e g:f h:g i:h", (const int[]){2, 3, 4, 5, 6});
    expect_base(&g, 'i', 'd', "b");
    expect_base(&g, 'i', 'e', "e");
}

LAKE_LAB_TEST(lake_merge_base, a_criss_cross_has_one_of_its_two_bases)
{
    struct letters g = {.lab = lab};

    letters_add(&g, "a: b:a c:a d:bc e:cb f:d g:e", NULL);
    expect_base(&g, 'f', 'g', "bc");
    expect_base(&g, 'd', 'e', "bc");
}

LAKE_LAB_TEST(lake_merge_base, refs_can_be_named)
{
    struct letters g = {.lab = lab};
    struct lake_commit c;
    struct err err = {0};

    letters_add(&g, "a: b:a c:b d:b", NULL);
    lake_lab_set_head(lab, "main", g.ids['d']);
    CHECK_OK(
        lake_merge_base(lab->lake, &lab->arena, &lab->repo, STR("main"), g.ids['c'], &c, &err));
    CHECK_STR(c.id, g.ids['b']);
    CHECK_OK(
        lake_merge_base(lab->lake, &lab->arena, &lab->repo, STR("main~2"), STR("main"), &c, &err));
    CHECK_STR(c.id, g.ids['a']);
    CHECK_ERR(
        lake_merge_base(lab->lake, &lab->arena, &lab->repo, STR("main$"), g.ids['c'], &c, &err),
        ERR_INVALID);
    CHECK_ERR(
        lake_merge_base(lab->lake, &lab->arena, &lab->repo, STR("none"), g.ids['c'], &c, &err),
        ERR_NOT_FOUND);
}

enum { SIDE = 5 };

/* In a grid where each commit has the one to its left and the one above it as parents, the
 * ancestors of (x, y) are all with smaller coordinates. So the base of two is the smaller of both.
 */
LAKE_LAB_TEST(lake_merge_base, bases_in_a_grid_are_the_smaller_coordinates)
{
    struct str grid[SIDE][SIDE];
    struct lake_commit c;
    struct err err = {0};

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            struct str parents[2];
            size_t count = 0;
            if (x > 0)
                parents[count++] = grid[y][x - 1];
            if (y > 0)
                parents[count++] = grid[y - 1][x];
            grid[y][x] = lake_lab_commit_at(lab, 1000 + (x * 7 + y * 13) % 11 * 1000,
                                            (char[]){'a' + y, 'a' + x, 0}, parents, count);
        }
    for (int one = 0; one < SIDE * SIDE; one++)
        for (int two = 0; two <= one; two++) {
            int x1 = one % SIDE, y1 = one / SIDE, x2 = two % SIDE, y2 = two / SIDE;
            int x = x1 < x2 ? x1 : x2, y = y1 < y2 ? y1 : y2;
            CHECK_OK(lake_merge_base(lab->lake, &lab->arena, &lab->repo, grid[y1][x1], grid[y2][x2],
                                     &c, &err));
            CHECK_STR(c.id, grid[y][x]);
        }
}
