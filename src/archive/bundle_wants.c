/* Computes the request to a server, its wants and haves, from the server's refs and the stored
 * bundle. */
#include "archive/bundle.h"

#include <stdlib.h>

/* A sorted set of ids. */
struct id_set {
    unsigned char (*ids)[GIT_ID_MAX];
    bool *marks; /* one flag for each id, for the caller's use */
    size_t count;
};

static int id_order(const void *a, const void *b)
{
    return memcmp(a, b, GIT_ID_MAX);
}

static void id_set_add(struct id_set *s, const unsigned char *id)
{
    memcpy(s->ids[s->count++], id, GIT_ID_MAX);
}

static void id_set_sort(struct id_set *s)
{
    size_t kept = 0;

    if (s->count)
        qsort(s->ids, s->count, GIT_ID_MAX, id_order);
    for (size_t i = 0; i < s->count; i++)
        if (i == 0 || memcmp(s->ids[i], s->ids[kept - 1], GIT_ID_MAX) != 0)
            memmove(s->ids[kept++], s->ids[i], GIT_ID_MAX);
    s->count = kept;
    s->marks = xcalloc(kept + 1, sizeof(*s->marks));
}

static void id_set_release(struct id_set *s)
{
    free(s->ids);
    free(s->marks);
}

/* Returns the index of the id, or -1. */
static ptrdiff_t id_set_find(const struct id_set *s, const unsigned char *id)
{
    const unsigned char(*at)[GIT_ID_MAX] =
        s->count ? bsearch(id, s->ids, s->count, GIT_ID_MAX, id_order) : NULL;

    return at ? at - (const unsigned char(*)[GIT_ID_MAX])s->ids : -1;
}

/* --- the two sets --- */

/* Collects every id in the header's lines. */
static void wants_known(struct id_set *out, const struct bundle_header *h)
{
    size_t most = h ? h->refs.list.len + h->points.len + 1 : 1;

    *out = (struct id_set){.ids = xcalloc(most, GIT_ID_MAX)};
    if (h && h->refs.has_head)
        id_set_add(out, h->refs.head);
    for (size_t i = 0; h && i < h->refs.list.len; i++)
        id_set_add(out, h->refs.list.items[i].id);
    for (size_t i = 0; h && i < h->points.len; i++)
        id_set_add(out, h->points.items[i].id);
    id_set_sort(out);
}

/* Collects at most `max` tips that are not known. Returns how many such tips there are in all. */
static size_t wants_missing(struct id_set *out, const struct git_refs *refs,
                            const struct id_set *known, size_t max)
{
    *out = (struct id_set){.ids = xcalloc(refs->list.len + 1, GIT_ID_MAX)};
    if (refs->has_head && id_set_find(known, refs->head) < 0)
        id_set_add(out, refs->head);
    vec_each (&refs->list, const struct git_ref *, ref)
        if (id_set_find(known, ref->id) < 0)
            id_set_add(out, ref->id);
    id_set_sort(out);
    size_t all = out->count;
    out->count = size_min(all, max);
    return all;
}

/* --- haves --- */

struct have_list {
    unsigned char *to; /* ids, git_id_len() bytes each */
    size_t count, id_len;
    struct id_set *known; /* ids of the header; a marked id is in the list already */
};

static void have_add(struct have_list *l, const unsigned char *id)
{
    ptrdiff_t at = id_set_find(l->known, id);

    if (l->count == BUNDLE_HAVES_MAX || l->known->marks[at])
        return;
    l->known->marks[at] = true;
    memcpy(l->to + l->count++ * l->id_len, id, l->id_len);
}

static void have_add_below(struct have_list *l, const struct git_refs *old, const char *prefix)
{
    vec_each (&old->list, const struct git_ref *, ref)
        if (str_starts(ref->name, str_z(prefix)))
            have_add(l, ref->id);
}

static void wants_haves(struct have_list *l, const struct bundle_header *h,
                        const struct git_refs *refs)
{
    vec_each (&h->refs.list, const struct git_ref *, was) {
        const struct git_ref *is = git_refs_find(refs, was->name);
        if (!is || memcmp(is->id, was->id, sizeof(is->id)) != 0)
            have_add(l, was->id);
    }
    have_add_below(l, &h->refs, "refs/heads/");
    have_add_below(l, &h->refs, "refs/tags/");
    have_add_below(l, &h->refs, "");
    for (size_t i = h->points.len; i > 0; i--) /* the newest first */
        have_add(l, h->points.items[i - 1].id);
    if (h->refs.has_head)
        have_add(l, h->refs.head);
}

/* --- a part of the refs --- */

static void some_push(struct git_refs *r, const struct git_ref *ref)
{
    struct git_ref copy = *ref;

    copy.name = arena_str(&r->arena, ref->name);
    vec_push(&r->list, copy);
}

/* Collects the refs whose tips are stored already or asked for in this request. A ref whose new tip
 * must wait for another fetch keeps its old tip. */
static void wants_some(struct git_refs *out, const struct git_refs *refs,
                       const struct bundle_header *h, const struct id_set sets[2])
{
    git_refs_init(out, refs->is_sha256);
    vec_each (&refs->list, const struct git_ref *, ref) {
        const struct git_ref *was = h ? git_refs_find(&h->refs, ref->name) : NULL;
        if (id_set_find(&sets[0], ref->id) >= 0 || id_set_find(&sets[1], ref->id) >= 0)
            some_push(out, ref);
        else if (was)
            some_push(out, was);
    }
    bool comes = refs->has_head &&
                 (id_set_find(&sets[0], refs->head) >= 0 || id_set_find(&sets[1], refs->head) >= 0);
    const struct git_refs *head = comes ? refs : h ? &h->refs : NULL;
    if (!head)
        return;
    out->has_head = head->has_head;
    memcpy(out->head, head->head, sizeof(out->head));
    out->head_target = arena_str(&out->arena, head->head_target);
}

void bundle_wants_init(struct bundle_wants *out, const struct bundle_old *old,
                       const struct git_refs *refs, size_t max)
{
    const struct bundle_header *h =
        old && old->header.refs.is_sha256 == refs->is_sha256 ? &old->header : NULL;
    size_t id_len = git_id_len(refs->is_sha256);
    struct id_set sets[2]; /* known ids, missing ids */
    struct have_list haves;

    *out = (struct bundle_wants){.refs = refs};
    wants_known(&sets[0], h);
    out->more = wants_missing(&sets[1], refs, &sets[0], max) > sets[1].count;
    out->ids = xcalloc(sets[1].count + size_min(sets[0].count, BUNDLE_HAVES_MAX) + 1, id_len);
    for (size_t i = 0; i < sets[1].count; i++)
        memcpy(out->ids + i * id_len, sets[1].ids[i], id_len);
    haves = (struct have_list){
        .to = out->ids + sets[1].count * id_len, .id_len = id_len, .known = &sets[0]};
    if (h && sets[1].count)
        wants_haves(&haves, h, refs);
    out->fetch = (struct git_fetch){.wants = out->ids,
                                    .want_count = sets[1].count,
                                    .haves = haves.to,
                                    .have_count = haves.count};
    if (out->more) {
        wants_some(&out->some, refs, h, sets);
        out->refs = &out->some;
    }
    id_set_release(&sets[0]);
    id_set_release(&sets[1]);
}

void bundle_wants_release(struct bundle_wants *w)
{
    git_refs_release(&w->some);
    free(w->ids);
    *w = (struct bundle_wants){0};
}
