/* Joins the forge's list with the record. */
#include "archive/plan.h"

#include "base/clock.h"

enum { PLAN_ARENA_MAX = 512 * 1024 * 1024 };

void plan_init(struct plan *p, const struct archive_record *old, int64_t now_ms)
{
    *p = (struct plan){.old = old, .now_ms = now_ms, .arena = ARENA_INIT(PLAN_ARENA_MAX)};
    map_init(&p->by_id);
    vec_each (&old->repos, struct record_repo *, r) {
        if (r->id.len)
            map_put(&p->by_id, r->id, r);
    }
}

void plan_release(struct plan *p)
{
    vec_release(&p->items);
    vec_release(&p->pages);
    vec_release(&p->sent);
    map_release(&p->by_id);
    arena_release(&p->arena);
}

/* Whether the refs of a repository must be compared although the list shows no push: refs of pull
 * requests change without a push. The period differs by up to a quarter between repositories, so
 * that repositories that were added together are not all due at once. */
static bool plan_look_is_due(const struct plan *p, const struct record_repo *old)
{
    uint64_t spread = p->look_ms ? hash_xxh3(old->id, 0) % (p->look_ms / 4 + 1) : 0;

    return p->now_ms < old->looked_ms ||
           (uint64_t)(p->now_ms - old->looked_ms) >= p->look_ms - spread;
}

/* Decides what to do with a listed repository. If its last outcome was a done one (outcome.h) and
 * the forge's entry has not changed, nothing is done until a comparison of the refs is due. */
static enum plan_step plan_decide(const struct plan *p, const struct plan_item *i)
{
    const struct record_repo *old = i->old;

    if (!old || i->foreign || !archive_codes[old->code].permanent || old->code == ARCHIVE_RENAMED ||
        old->code == ARCHIVE_GONE)
        return PLAN_SYNC;
    if (!str_eq(old->name, i->next.name) || !str_eq(old->pushed_at, i->next.pushed_at))
        return PLAN_SYNC;
    if (i->disabled != (old->code == ARCHIVE_DISABLED))
        return PLAN_SYNC;
    return plan_look_is_due(p, old) ? PLAN_SYNC : PLAN_KEEP;
}

int plan_add(struct plan *p, const struct plan_listed *r, struct err *err)
{
    struct plan_item item = {.old = map_get(&p->by_id, r->id),
                             .size_kb = r->size_kb,
                             .disabled = r->disabled,
                             .foreign = r->foreign,
                             .has_wiki = r->has_wiki};

    if (p->sent.len == RECORD_REPOS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the list has more than %d repositories",
                       RECORD_REPOS_MAX);
    if (item.old)
        item.next = *item.old;
    item.next.id = arena_str(&p->arena, r->id);
    item.next.name = arena_str(&p->arena, r->name);
    item.next.pushed_at = arena_str(&p->arena, r->pushed_at);
    item.next.url = arena_str(&p->arena, r->url);
    item.next.listed = true;
    if (arena_error(&p->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    vec_push(&p->sent, item);
    return 0;
}

/* Finds the page of the record with this URL, and the index of its first repository. */
static const struct record_page *plan_old_page(const struct plan *p, struct str url, size_t *first)
{
    *first = 0;
    vec_each (&p->old->pages, const struct record_page *, page) {
        if (str_eq(page->url, url))
            return page;
        *first += page->repos;
    }
    return NULL;
}

/* Adds the repositories of a page that has not changed, from the record. */
static int plan_keep_page(struct plan *p, const struct plan_page *page, struct err *err)
{
    size_t first;
    const struct record_page *old = plan_old_page(p, page->url, &first);

    if (!old || first + old->repos > p->old->repos.len)
        return err_set(err, ERR_CORRUPT, "the record lacks a page that the forge calls unchanged");
    for (size_t i = first; i < first + old->repos; i++) {
        const struct record_repo *r = &p->old->repos.items[i];
        struct plan_item item = {.old = r, .next = *r, .disabled = r->code == ARCHIVE_DISABLED};
        vec_push(&p->items, item);
    }
    vec_push(&p->pages, *old);
    return 0;
}

static int plan_sent_page(struct plan *p, const struct plan_page *page, size_t *taken,
                          struct err *err)
{
    struct record_page next = {arena_str(&p->arena, page->url), arena_str(&p->arena, page->etag),
                               page->repos};

    if (*taken + page->repos > p->sent.len)
        return err_set(err, ERR_CORRUPT, "the list is shorter than its pages");
    for (size_t i = 0; i < page->repos; i++)
        vec_push(&p->items, p->sent.items[(*taken)++]);
    vec_push(&p->pages, next);
    return 0;
}

/* If the list changes while its pages are read, a repository may be listed twice. The first entry
 * is kept. The next record then has no pages, so the next sync reads the whole list again. */
static void plan_drop_doubles(struct plan *p)
{
    struct map seen;
    size_t kept = 0, before = p->items.len;

    map_init(&seen);
    for (size_t i = 0; i < before; i++) {
        struct plan_item *item = &p->items.items[i];
        if (item->next.id.len && map_put(&seen, item->next.id, item))
            continue;
        p->items.items[kept++] = *item;
    }
    p->items.len = kept;
    if (kept != before)
        p->pages.len = 0;
    map_release(&seen);
}

/* The listed repositories by number and by name. */
struct plan_index {
    struct map by_id, by_name;
};

static void plan_index(struct plan *p, struct plan_index *x)
{
    map_init(&x->by_id);
    map_init(&x->by_name);
    vec_each (&p->items, struct plan_item *, i) {
        map_put(&x->by_id, i->next.id, i);
        map_put(&x->by_name, i->next.name, i);
    }
}

/* Adds a repository that is in the record but not in the list. If another repository now has its
 * name, it is called `<name>@<number>`, like the copy of its bundle. */
static void plan_add_missing(struct plan *p, const struct record_repo *r, bool name_is_taken)
{
    bool over = r->code == ARCHIVE_GONE || r->code == ARCHIVE_RENAMED;
    struct plan_item item = {
        .step = over && !name_is_taken ? PLAN_KEEP : PLAN_ASK, .old = r, .next = *r};

    item.next.listed = false;
    if (name_is_taken) {
        item.next.name =
            arena_fmt(&p->arena, STR_FMT "@" STR_FMT, STR_ARG(r->name), STR_ARG(r->id));
        item.next.refs_digest = item.next.etag = STR_EMPTY;
        item.next.bytes = 0;
    }
    vec_push(&p->items, item);
}

static void plan_compare(struct plan *p)
{
    struct plan_index x;

    plan_index(p, &x);
    vec_each (&p->items, struct plan_item *, i) {
        i->step = plan_decide(p, i);
        i->old_name_taken =
            i->old && !str_eq(i->old->name, i->next.name) && map_get(&x.by_name, i->old->name);
    }
    vec_each (&p->old->repos, const struct record_repo *, r) {
        if (!map_get(&x.by_id, r->id))
            plan_add_missing(p, r, map_get(&x.by_name, r->name) != NULL);
    }
    map_release(&x.by_id);
    map_release(&x.by_name);
}

int plan_end(struct plan *p, const struct plan_page *pages, size_t count, struct err *err)
{
    size_t taken = 0;
    int code = 0;

    vec_grow(&p->items, p->sent.len + p->old->repos.len);
    for (size_t i = 0; i < count && code == 0; i++)
        code = pages[i].unchanged ? plan_keep_page(p, &pages[i], err)
                                  : plan_sent_page(p, &pages[i], &taken, err);
    if (code == 0 && taken != p->sent.len)
        code = err_set(err, ERR_CORRUPT, "the list is longer than its pages");
    if (code < 0)
        return code;
    vec_release(&p->sent);
    plan_drop_doubles(p);
    plan_compare(p);
    return arena_error(&p->arena);
}
