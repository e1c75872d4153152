/* A hand that works on a lake in tests. */
#include "unit/lake/hand.h"

#include <stdatomic.h>

struct hand hand_of(struct lake_lab *lab)
{
    return (struct hand){.lake = lab->lake, .repo = lab->repo};
}

struct hand hand_second(struct lake_lab *lab)
{
    struct hand h = {.repo = lab->repo};

    h.lake = lake_lab_open_second(lab, &h.kv);
    return h;
}

void hand_release(struct hand *h)
{
    if (h->kv) {
        lake_close(h->lake);
        kv_close(h->kv);
    }
    arena_release(&h->arena);
}

void hand_drop_again(struct hand *h, uint64_t ms)
{
    loop_stop(&h->lake->cleaner); /* its thread reads the option */
    h->lake->o.drop_again_ms = ms;
    CHECK_INT(lake_cleaner_start(h->lake, &h->err), 0);
}

struct lake_entry hand_entry(struct hand *h, const char *content)
{
    static _Atomic(unsigned) addresses;

    return (struct lake_entry){.address = arena_fmt(&h->arena, "data/%u", ++addresses),
                               .address_type = LAKE_RELATIVE,
                               .modified_ms = 1700000000000,
                               .size = strlen(content),
                               .etag = arena_str(&h->arena, str_z(content)),
                               .content_type = STR("text/plain")};
}

/* --- writing --- */

static int hand_stage(struct hand *h, const char *branch, const char *path, const char *content,
                      const struct lake_stage_options *o)
{
    struct lake_entry entry = hand_entry(h, content ? content : "");
    struct lake_put put = {str_z(path), content ? &entry : NULL};

    h->err = (struct err){0};
    return lake_stage(h->lake, &h->arena, &h->repo, str_z(branch), &put, 1, o, &h->err);
}

int hand_try_put(struct hand *h, const char *branch, const char *path, const char *content)
{
    return hand_stage(h, branch, path, content, NULL);
}

void hand_put(struct hand *h, const char *branch, const char *path, const char *content)
{
    CHECK_INT(hand_try_put(h, branch, path, content), 0);
}

static int judge_absent(void *ctx, struct str path, const struct lake_object *present,
                        struct err *err)
{
    return present ? err_code(err, ERR_PRECONDITION) : 0;
}

int hand_try_add(struct hand *h, const char *branch, const char *path, const char *content)
{
    struct lake_stage_options o = {.judge = judge_absent};

    return hand_stage(h, branch, path, content, &o);
}

void hand_remove(struct hand *h, const char *branch, const char *path)
{
    CHECK_INT(hand_stage(h, branch, path, NULL, NULL), 0);
}

/* --- commits --- */

static int hand_make_commit(struct hand *h, const char *branch, const char *message,
                            struct lake_commit *out)
{
    struct lake_commit_options o = {.message = str_z(message), .committer = STR("tester")};

    h->err = (struct err){0};
    return lake_commit(h->lake, &h->arena, &h->repo, str_z(branch), &o, out, &h->err);
}

int hand_try_commit(struct hand *h, const char *branch, const char *message)
{
    struct lake_commit c;

    return hand_make_commit(h, branch, message, &c);
}

struct str hand_commit(struct hand *h, const char *branch, const char *message)
{
    struct lake_commit c;
    int code = hand_make_commit(h, branch, message, &c);

    if (code < 0)
        test_fail(__FILE__, __LINE__, "commit '%s': %s", message, h->err.text);
    return c.id;
}

void hand_branch(struct hand *h, const char *name, const char *source)
{
    struct lake_branch_options o = {.name = str_z(name), .source = str_z(source)};
    struct lake_branch b;

    CHECK_INT(lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err), 0);
}

static int hand_make_merge(struct hand *h, const char *source, const char *dest,
                           struct lake_commit *out)
{
    struct lake_merge_options o = {.committer = STR("tester")};
    struct lake_conflicts conflicts;

    h->err = (struct err){0};
    return lake_merge(h->lake, &h->arena, &h->repo, str_z(source), str_z(dest), &o, out, &conflicts,
                      &h->err);
}

int hand_try_merge(struct hand *h, const char *source, const char *dest)
{
    struct lake_commit c;

    return hand_make_merge(h, source, dest, &c);
}

struct str hand_merge(struct hand *h, const char *source, const char *dest)
{
    struct lake_commit c;
    int code = hand_make_merge(h, source, dest, &c);

    if (code < 0)
        test_fail(__FILE__, __LINE__, "merge '%s': %s", source, h->err.text);
    return c.id;
}

/* --- reading --- */

typedef int hand_stat_fn(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
                         struct str path, struct lake_object *out, struct err *err);

/* Expects the content; `now` allows that the answer would have to wait. */
static void hand_expect_by(struct hand *h, hand_stat_fn *stat, bool now, const char *ref,
                           const char *path, const char *content)
{
    struct lake_object o;
    int code = stat(h->lake, &h->arena, &h->repo, str_z(ref), str_z(path), &o, &h->err);

    if (now && !(lake_kv(h->lake)->can & KV_AT_HAND))
        CHECK_INT(code, ERR_AGAIN);
    if (now && code == ERR_AGAIN)
        return;
    if (!content) {
        CHECK_INT(code, ERR_NOT_FOUND);
        return;
    }
    if (code < 0)
        test_fail(__FILE__, __LINE__, "%s/%s: %s", ref, path, h->err.text);
    CHECK_STR(o.entry.etag, str_z(content));
}

void hand_expect(struct hand *h, const char *ref, const char *path, const char *content)
{
    hand_expect_by(h, lake_stat_now, true, ref, path, content);
    hand_expect_by(h, lake_stat, false, ref, path, content);
}

void hand_expect_list(struct hand *h, const char *ref, const char *want)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page;
    struct buf got = {0};

    CHECK_INT(lake_list(h->lake, &h->arena, &h->repo, str_z(ref), &o, &page, &h->err), 0);
    for (size_t i = 0; i < page.count; i++)
        buf_appendf(&got, "%s" STR_FMT, i ? " " : "", STR_ARG(page.items[i].path));
    CHECK(!page.more);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

static void expect_differences(const struct lake_differences *page, const char *want)
{
    static const char marks[] = {[LAKE_ADDED] = '+',
                                 [LAKE_REMOVED] = '-',
                                 [LAKE_CHANGED] = '~',
                                 [LAKE_CONFLICT] = '!',
                                 [LAKE_PREFIX_CHANGED] = '/'};
    struct buf got = {0};

    for (size_t i = 0; i < page->count; i++)
        buf_appendf(&got, "%s%c" STR_FMT, i ? " " : "", marks[page->items[i].type],
                    STR_ARG(page->items[i].path));
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

void hand_expect_diff(struct hand *h, const char *branch, const char *want)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_differences page;

    CHECK_INT(lake_diff_branch(h->lake, &h->arena, &h->repo, str_z(branch), &o, &page, &h->err), 0);
    expect_differences(&page, want);
}

void hand_expect_diff_refs(struct hand *h, const char *left, const char *right, bool three_dot,
                           const char *want)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_differences page;

    CHECK_INT(lake_diff_refs(h->lake, &h->arena, &h->repo, str_z(left), str_z(right), three_dot, &o,
                             &page, &h->err),
              0);
    expect_differences(&page, want);
}

struct lake_branch hand_read_branch(struct hand *h, const char *name)
{
    struct lake_branch b;

    CHECK_INT(lake_branch_get(h->lake, &h->arena, &h->repo, str_z(name), &b, &h->err), 0);
    return b;
}

struct str hand_history(struct hand *h, const char *branch)
{
    struct str id = hand_read_branch(h, branch).commit_id;
    struct buf all = {0};

    while (id.len) {
        struct lake_commit c;
        CHECK_INT(lake_commit_get(h->lake, &h->arena, &h->repo, id, &c, &h->err), 0);
        buf_appendf(&all, "%s" STR_FMT, all.len ? "|" : "", STR_ARG(c.message));
        id = lake_commit_first_parent(&c);
    }
    struct str out = arena_str(&h->arena, buf_str(&all));
    buf_release(&all);
    return out;
}

size_t hand_count_rows(struct hand *h, struct str partition)
{
    struct kv_scan *scan;
    struct str key, value;
    size_t count = 0;

    CHECK_INT(
        kv_scan_open(&scan, lake_kv(h->lake), NULL, partition, &(struct kv_range){0}, &h->err), 0);
    while (kv_scan_next(scan, &key, &value, &h->err) == 0)
        count++;
    kv_scan_free(scan);
    return count;
}
