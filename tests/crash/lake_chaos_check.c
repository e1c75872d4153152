/* What lake_chaos.c finds after a kill, judged by the model.
 *
 *   1. Every acknowledged commit is in the history of its branch by first parents (L7), and holds
 *      states of the branch's prefixes that are not older than those acknowledged before it began
 *      (L3), of one moment, and never older than those of the commit before it.
 *   2. A merge has exactly what a merge of its two parents over their bases must have, and so have
 *      reverts and cherry-picks (L6).
 *   3. Each prefix is in its last acknowledged state, or in the one that was under way (L4). A
 *      change of a whole branch that was under way was made in all prefixes, or in none (L6).
 *   4. Counters have the greatest number that was won, or a later one; prizes have their winners;
 *      tags have their commits.
 *   5. Twins have what lake_twins.c says.
 *   6. Once the cleaner has run, the cleanup list is empty and no token but those of branches has a
 *      row. */
#include "crash/lake_chaos.h"

#include "base/clock.h"
#include "lake/merge_base.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLEAN_TRIES = 50, CLEAN_WAIT_US = 10000 };
enum { BASE_MERGES_MAX = 64 }; /* as src/lake/base_tree.c has it */

/* One branch that is being checked. */
struct checking {
    struct chaos_lake lake;
    struct lake_repo repo;
    struct arena arena;
    bool quiet; /* nothing is printed */
    bool good;
    unsigned branch;
    struct lake_branch record;
    uint32_t at[MODEL_THREADS]; /* the states that the last commit was found to hold */
};

static void check_say(struct checking *k, const char *what, const char *detail)
{
    k->good = false;
    if (!k->quiet)
        printf("%s, %s: %s%s%s\n", k->lake.kv->driver, model_branches[k->branch], what,
               detail ? ": " : "", detail ? detail : "");
}

static void check_must(struct checking *k, int code, const char *what, const struct err *err)
{
    char text[640];

    if (code == 0)
        return;
    snprintf(text, sizeof(text), "%s: %s", err_name(code), err->text);
    check_say(k, what, text);
}

static struct content check_read(struct checking *k, struct str ref)
{
    struct content found = {0};
    struct arena a = {0};
    struct err err = {0};

    check_must(k, chaos_content(&k->lake, &a, &k->repo, ref, &found, &err), "listing", &err);
    arena_release(&a);
    return found;
}

/* --- history --- */

static struct model_commit *check_find(struct checking *k, struct str id)
{
    struct model *m = k->lake.model;

    for (uint32_t i = 0; i < m->commit_count && i < MODEL_COMMITS; i++)
        if (m->commits[i].branch == k->branch && !m->commits[i].is_gone &&
            str_eq(str_z(m->commits[i].id), id))
            return &m->commits[i];
    return NULL;
}

/* The states of a commit go forward from commit to commit. */
static void check_states(struct checking *k, const struct lake_commit *c,
                         const struct content *found)
{
    struct model *m = k->lake.model;
    const struct model_commit *acked = check_find(k, c->id);
    struct model_range range;

    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        const struct model_prefix *p = &m->prefixes[k->branch][i];
        uint32_t from = acked && acked->range.from[i] > k->at[i] ? acked->range.from[i] : k->at[i];
        uint32_t to = acked ? acked->range.to[i] : (uint32_t)p->begun;
        int64_t state = model_find(p, &found->prefixes[k->branch][i], from, to);
        /* The outcome of a reset that was under way at the kill is not known. */
        if (state < 0 && p->filled < p->begun && to == p->begun)
            state = p->begun;
        if (state < 0) {
            check_say(k, "a commit holds a state that it cannot hold", arena_z(&k->arena, c->id));
            return;
        }
        range.from[i] = k->at[i] = (uint32_t)state;
        range.to[i] = to;
    }
    const char *wrong =
        acked ? model_judge(m, k->branch, found, &range, acked->is_whole, NULL) : NULL;
    if (wrong)
        check_say(k, wrong, arena_z(&k->arena, c->id));
}

static bool check_base(struct checking *k, const struct merge_bases *bases, unsigned *merges,
                       struct content *out);

/* The base of the merge of `right` with the first `count` of `left`. No common ancestor: nothing.
 */
static bool check_base_of(struct checking *k, const struct str *left, size_t count,
                          struct str right, unsigned *merges, struct content *out)
{
    struct merge_bases bases;
    struct err err = {0};
    int code =
        lake_merge_bases(k->lake.lake, &k->arena, &k->repo, left, count, right, &bases, &err);

    *out = (struct content){0};
    if (code == ERR_NOT_FOUND)
        return true;
    check_must(k, code, "merge bases", &err);
    /* NOLINTNEXTLINE(misc-no-recursion): bounded by BASE_MERGES_MAX */
    return code == 0 && check_base(k, &bases, merges, out);
}

/* What several merge bases are together (docs/lake-trees.md, "Several merge bases"). False: they
 * take too many merges. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by BASE_MERGES_MAX */
static bool check_base(struct checking *k, const struct merge_bases *bases, unsigned *merges,
                       struct content *out)
{
    struct content lower, source, joined;

    *out = check_read(k, bases->ids[0]);
    for (size_t i = 1; i < bases->count; i++) {
        if ((*merges)++ == BASE_MERGES_MAX)
            return false;
        if (!check_base_of(k, bases->ids, i, bases->ids[i], merges, &lower))
            return false;
        source = check_read(k, bases->ids[i]);
        content_join(&joined, &lower, &source, out);
        *out = joined;
    }
    return true;
}

static void check_merge(struct checking *k, const struct lake_commit *c,
                        const struct content *found)
{
    struct content base, want;
    struct merge_bases bases;
    struct err err = {0};
    unsigned merges = 0;

    int code = lake_merge_bases(k->lake.lake, &k->arena, &k->repo, &c->parents[1], 1, c->parents[0],
                                &bases, &err);
    check_must(k, code, "merge bases", &err);
    if (code < 0)
        return;
    if (!check_base(k, &bases, &merges, &base))
        base = check_read(k, bases.ids[0]);
    struct content dest = check_read(k, c->parents[0]), source = check_read(k, c->parents[1]);
    if (!content_merge(&want, &base, &source, &dest, chaos_merge_strategy(c->message)))
        check_say(k, "a merge with a conflict was made", arena_z(&k->arena, c->id));
    else if (memcmp(&want, found, sizeof(want)) != 0)
        check_say(k, "a merge has another result", arena_z(&k->arena, c->id));
}

static void check_pick(struct checking *k, const struct lake_commit *c, bool is_revert,
                       const struct content *found)
{
    struct content want;
    struct arena a = {0};
    struct err err = {0};

    if (!chaos_pick(&k->lake, &a, &k->repo, c, is_revert, &want, &err) ||
        memcmp(&want, found, sizeof(want)) != 0)
        check_say(k, "a revert or a cherry-pick has another result", arena_z(&k->arena, c->id));
    arena_release(&a);
}

/* A plain commit leaves the paths of other branches as they were. */
static void check_plain(struct checking *k, const struct lake_commit *c,
                        const struct content *found)
{
    struct content parent = check_read(k, c->parents[0]);

    memcpy(parent.prefixes[k->branch], found->prefixes[k->branch],
           sizeof(parent.prefixes[k->branch]));
    if (memcmp(parent.prefixes, found->prefixes, sizeof(parent.prefixes)) != 0)
        check_say(k, "a commit changed paths that nobody wrote", arena_z(&k->arena, c->id));
    for (unsigned i = 0; i < MODEL_COUNTERS; i++)
        if (found->counters[i] < parent.counters[i])
            check_say(k, "a commit has an older counter", arena_z(&k->arena, c->id));
}

static void check_commit(struct checking *k, const struct lake_commit *c)
{
    struct content found = check_read(k, c->id);

    check_states(k, c, &found);
    if (c->parent_count == 2)
        check_merge(k, c, &found);
    else if (str_starts(c->message, STR(CHAOS_REVERT)))
        check_pick(k, c, true, &found);
    else if (str_starts(c->message, STR(CHAOS_PICK)))
        check_pick(k, c, false, &found);
    else if (c->parent_count == 1)
        check_plain(k, c, &found);
}

/* Reads the commits from the head back to the one that the last run ended with. */
static struct lake_commit *check_chain(struct checking *k, size_t *count)
{
    struct str stop = str_z(k->lake.model->checked[k->branch]), id = k->record.commit_id;
    struct lake_commit *chain = arena_array(&k->arena, MODEL_COMMITS, sizeof(*chain));
    struct err err = {0};

    for (*count = 0; id.len && !str_eq(id, stop) && *count < MODEL_COMMITS; (*count)++) {
        struct lake_commit *c = &chain[*count];
        int code = lake_commit_get(k->lake.lake, &k->arena, &k->repo, id, c, &err);
        check_must(k, code, "commit", &err);
        if (code < 0)
            break;
        id = lake_commit_first_parent(c);
    }
    if (stop.len && !str_eq(id, stop))
        check_say(k, "the history lost the head of the last run", arena_z(&k->arena, stop));
    return chain;
}

static void check_history(struct checking *k)
{
    struct model *m = k->lake.model;
    size_t count, found = 0, acked = 0;
    struct lake_commit *chain = check_chain(k, &count);

    for (uint32_t i = 0; i < m->commit_count && i < MODEL_COMMITS; i++)
        acked += m->commits[i].branch == k->branch && m->commits[i].id[0] && !m->commits[i].is_gone;
    for (size_t i = count; i-- > 0 && k->good;) {
        found += check_find(k, chain[i].id) != NULL;
        check_commit(k, &chain[i]);
    }
    if (k->good && found != acked)
        check_say(k, "acknowledged commits are not in the history", NULL);
}

/* --- the present --- */

/* Whether the paths of these bits are as in `other`, and the rest as it was. */
static bool state_mixes(const struct model_state *now, const struct model_state *was,
                        const struct model_state *other, uint32_t paths)
{
    for (int i = 0; i < MODEL_PATHS; i++)
        if (now->values[i] != (paths >> i & 1 ? other : was)->values[i])
            return false;
    return true;
}

/* A change of unknown outcome that was under way has made no difference, or all of it: then its
 * paths are as in the head. */
static bool prefix_is_right(const struct model_prefix *p, const struct model_state *now,
                            const struct model_state *head)
{
    if (p->filled == p->begun)
        return model_find(p, now, p->acked, p->begun) >= 0;
    return state_mixes(now, model_now(p), head, 0) ||
           state_mixes(now, model_now(p), head, p->unknown);
}

/* A change of the whole branch was under way: it was made, or it was not. */
static void check_changing(struct checking *k, const struct content *head,
                           const struct content *now)
{
    const struct model_prefix *prefixes = k->lake.model->prefixes[k->branch];
    const struct model_state *seen = now->prefixes[k->branch];
    bool is_old = true,
         is_new = memcmp(seen, head->prefixes[k->branch], sizeof(now->prefixes[0])) == 0;

    for (unsigned i = 0; i < MODEL_THREADS; i++)
        is_old = is_old &&
                 model_find(&prefixes[i], &seen[i], prefixes[i].acked, prefixes[i].filled) >= 0;
    if (!is_old && !is_new)
        check_say(k, "a change of the whole branch was made in part", NULL);
}

static void check_shared(struct checking *k, const struct content *head, const struct content *now)
{
    struct model *m = k->lake.model;
    bool is_changing = m->is_changing[0]; /* then they may also be as in the head */

    for (unsigned i = 0; i < MODEL_COUNTERS; i++)
        if ((now->counters[i] < m->counters[i].acked || now->counters[i] > m->counters[i].begun) &&
            !(is_changing && now->counters[i] == head->counters[i]))
            check_say(k, "a counter has a number that it cannot have", NULL);
    for (unsigned i = 0; i < MODEL_PRIZES; i++)
        if (m->prizes[i] && now->prizes[i] != m->prizes[i] &&
            !(is_changing && now->prizes[i] == head->prizes[i]))
            check_say(k, "a prize has another winner", NULL);
}

static void check_present(struct checking *k, const struct content *head, const struct content *now)
{
    struct model *m = k->lake.model;
    char text[64];

    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (!prefix_is_right(&m->prefixes[k->branch][i], &now->prefixes[k->branch][i],
                             &head->prefixes[k->branch][i])) {
            snprintf(text, sizeof(text), "of thread %u", i);
            check_say(k, "a prefix is in a state that it cannot be in", text);
        }
    if (m->is_changing[k->branch])
        check_changing(k, head, now);
    if (k->branch == 0)
        check_shared(k, head, now);
}

static void check_branch(struct checking *k)
{
    struct model *m = k->lake.model;
    struct err err = {0};

    memset(k->at, 0, sizeof(k->at));
    int code = lake_branch_get(k->lake.lake, &k->arena, &k->repo, str_z(model_branches[k->branch]),
                               &k->record, &err);
    if (code == ERR_NOT_FOUND && !m->is_ready && !m->checked[k->branch][0])
        return; /* the kill came before the branch was made */
    check_must(k, code, "branch", &err);
    if (code < 0)
        return;
    check_history(k);
    struct content head = check_read(k, k->record.commit_id),
                   now = check_read(k, str_z(model_branches[k->branch]));
    check_present(k, &head, &now);
    model_restart(m, k->branch, &head, &now);
    if (k->branch == 0)
        model_set_shared(m, &now);
    snprintf(m->checked[k->branch], sizeof(m->checked[0]), STR_FMT, STR_ARG(k->record.commit_id));
}

/* --- names --- */

static void check_tags(struct checking *k)
{
    struct model *m = k->lake.model;
    struct lake_tag found;
    struct err err = {0};

    for (uint32_t i = 0; i < m->tag_count && i < MODEL_TAGS; i++) {
        struct model_tag *t = &m->tags[i];
        int code = t->name[0] ? lake_tag_get(k->lake.lake, &k->arena, &k->repo, str_z(t->name),
                                             &found, &err)
                              : ERR_NOT_FOUND;
        bool right = t->state == TAG_MADE ? code == 0 && str_eq(found.commit_id, str_z(t->id))
                     : t->state == TAG_IS_REMOVED ? code == ERR_NOT_FOUND
                                                  : code == 0 || code == ERR_NOT_FOUND;
        if (!right)
            check_say(k, "a tag is wrong", t->name);
    }
    memset(m->tags, 0, sizeof(m->tags));
    m->tag_count = 0;
}

/* Deletes the branches that workers had not deleted yet. */
static void remove_fleeting(struct checking *k)
{
    struct lake_page page = {.prefix = STR("fleeting-"), .limit = LAKE_LIST_MAX};
    struct lake_branch *found = NULL;
    size_t count = 0;
    struct err err = {0};
    bool more;

    check_must(k,
               lake_branch_list(k->lake.lake, &k->arena, &k->repo, &page, true, &found, &count,
                                &more, &err),
               "list of branches", &err);
    for (size_t i = 0; i < count; i++)
        check_must(k,
                   lake_branch_delete(k->lake.lake, &k->arena, &k->repo, found[i].id, false, &err),
                   "deletion of a branch", &err);
}

/* --- leftovers --- */

bool chaos_range_is_empty(struct kv *kv, struct str partition, struct str prefix)
{
    struct kv_range range = {.prefix = prefix};
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};

    must(kv_scan_open(&scan, kv, NULL, partition, &range, &err), &err);
    int code = kv_scan_next(scan, &key, &value, &err);
    kv_scan_free(scan);
    must(code == ERR_END ? 0 : code, &err);
    return code == ERR_END;
}

static bool partition_is_empty(struct checking *k, struct str partition)
{
    return chaos_range_is_empty(k->lake.kv, partition, STR_EMPTY);
}

static bool branches_name(struct checking *k, struct str token)
{
    struct err err = {0};
    struct lake_branch b;

    for (unsigned i = 0; i < MODEL_BRANCHES; i++) {
        if (lake_branch_get(k->lake.lake, &k->arena, &k->repo, str_z(model_branches[i]), &b, &err) <
            0)
            continue;
        bool named = str_eq(b.staging, token);
        for (size_t n = 0; n < b.sealed_count; n++)
            named = named || str_eq(b.sealed[n], token);
        if (named)
            return true;
    }
    return false;
}

/* Drafts are dropped after an hour, and tokens twice: the clock moves. */
static void clean_all(struct checking *k)
{
    struct err err = {0};

    chaos_clock_move(2 * (int64_t)MS_PER_HOUR);
    for (int i = 0; i < CLEAN_TRIES; i++) {
        check_must(k, lake_clean(k->lake.lake, &err), "the cleaner", &err);
        if (partition_is_empty(k, LAKE_CLEANUP))
            return;
        usleep(CLEAN_WAIT_US);
    }
    check_say(k, "the cleanup list does not become empty", NULL);
}

static void check_tokens(struct checking *k)
{
    struct model *m = k->lake.model;
    uint32_t kept = 0,
             count = m->token_count < MODEL_TOKENS ? (uint32_t)m->token_count : MODEL_TOKENS;

    for (uint32_t i = 0; i < count; i++) {
        struct str token = str_z(m->tokens[i]);
        if (token.len == 0 || partition_is_empty(k, token))
            continue;
        if (!branches_name(k, token))
            check_say(k, "rows of a token are left over", m->tokens[i]);
        else if (kept != i)
            memcpy(m->tokens[kept], m->tokens[i], MODEL_TOKEN_SIZE);
        kept++;
    }
    memset(m->tokens[kept], 0, (size_t)(count - kept) * MODEL_TOKEN_SIZE);
    m->token_count = kept;
}

static void check_all(struct checking *k)
{
    struct model *m = k->lake.model;

    for (k->branch = 0; k->branch < MODEL_BRANCHES && k->good; k->branch++)
        check_branch(k);
    k->branch = 0;
    if (!k->good)
        return;
    memset(m->commits, 0, sizeof(m->commits));
    m->commit_count = 0;
    check_tags(k);
    remove_fleeting(k);
    k->good = twins_check(&k->lake, &k->arena, k->quiet) && k->good;
    clean_all(k);
    check_tokens(k);
}

bool chaos_check(struct crash *c)
{
    struct chaos *s = container_of(c, struct chaos, crash);
    struct checking k = {.good = true, .quiet = c->lie};
    struct err err = {0};

    chaos_lake_open(&k.lake, s, 0);
    int code = lake_repo_get(k.lake.lake, &k.arena, STR("chaos"), &k.repo, &err);
    /* Unless the kill came before the repository was made. */
    if (code != ERR_NOT_FOUND || k.lake.model->is_ready) {
        check_must(&k, code, "repository", &err);
        check_all(&k);
    }
    arena_release(&k.arena);
    return k.good;
}
