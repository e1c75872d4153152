/* Computes the request to a server, its wants and haves, from the server's refs and the stored
 * bundle. */
#include "archive/bundle.h"

#include <stdlib.h>

/* A sorted set of ids, which are borrowed. */
struct id_set {
    const unsigned char **ids;
    bool *marks; /* one flag for each id, for the caller's use */
    size_t count, id_len;
};

static int id_order(const void *a, const void *b, void *id_len)
{
    return memcmp(*(const unsigned char *const *)a, *(const unsigned char *const *)b,
                  *(const size_t *)id_len);
}

static void id_set_init(struct id_set *s, size_t most, size_t id_len)
{
    *s = (struct id_set){.ids = xcalloc(most + 1, sizeof(*s->ids)), .id_len = id_len};
}

static void id_set_add(struct id_set *s, const unsigned char *id)
{
    s->ids[s->count++] = id;
}

static void id_set_sort(struct id_set *s)
{
    size_t kept = 0;

    qsort_r(s->ids, s->count, sizeof(*s->ids), id_order, &s->id_len);
    for (size_t i = 0; i < s->count; i++)
        if (i == 0 || memcmp(s->ids[i], s->ids[kept - 1], s->id_len) != 0)
            s->ids[kept++] = s->ids[i];
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
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(s->ids[middle], id, s->id_len);
        if (order == 0)
            return (ptrdiff_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* --- the two sets --- */

/* Collects every id in the header's lines. */
static void wants_known(struct id_set *out, const struct bundle_header *h, size_t id_len)
{
    id_set_init(out, h ? h->refs.list.len + h->points.len + 1 : 0, id_len);
    if (h && h->refs.has_head)
        id_set_add(out, h->refs.head);
    for (size_t i = 0; h && i < h->refs.list.len; i++)
        id_set_add(out, git_ref_id(&h->refs.list.items[i]));
    for (size_t i = 0; h && i < h->points.len; i++)
        id_set_add(out, git_ref_id(&h->points.items[i].ref));
    id_set_sort(out);
}

/* Collects at most `max` tips that are not known. Returns how many such tips there are in all. */
static size_t wants_missing(struct id_set *out, const struct git_refs *refs,
                            const struct id_set *known, size_t max)
{
    id_set_init(out, refs->list.len + 1, known->id_len);
    if (refs->has_head && id_set_find(known, refs->head) < 0)
        id_set_add(out, refs->head);
    vec_each (&refs->list, const struct git_ref *, ref)
        if (id_set_find(known, git_ref_id(ref)) < 0)
            id_set_add(out, git_ref_id(ref));
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
        if (str_starts(git_ref_name(ref), str_z(prefix)))
            have_add(l, git_ref_id(ref));
}

static void wants_haves(struct have_list *l, const struct bundle_header *h,
                        const struct git_refs *refs)
{
    vec_each (&h->refs.list, const struct git_ref *, was) {
        const struct git_ref *is = git_refs_find(refs, git_ref_name(was));
        if (!is || memcmp(git_ref_id(is), git_ref_id(was), l->id_len) != 0)
            have_add(l, git_ref_id(was));
    }
    have_add_below(l, &h->refs, "refs/heads/");
    have_add_below(l, &h->refs, "refs/tags/");
    have_add_below(l, &h->refs, "");
    for (size_t i = h->points.len; i > 0; i--) /* the newest first */
        have_add(l, git_ref_id(&h->points.items[i - 1].ref));
    if (h->refs.has_head)
        have_add(l, h->refs.head);
}

/* --- a part of the refs --- */

/* Collects the refs whose tips are stored already or asked for in this request. A ref whose new tip
 * must wait for another fetch keeps its old tip. */
static void wants_some(struct git_refs *out, const struct git_refs *refs,
                       const struct bundle_header *h, const struct id_set sets[2])
{
    git_refs_init(out, refs->is_sha256);
    vec_each (&refs->list, const struct git_ref *, ref) {
        const struct git_ref *was = h ? git_refs_find(&h->refs, git_ref_name(ref)) : NULL;
        const unsigned char *id = git_ref_id(ref);
        if (id_set_find(&sets[0], id) >= 0 || id_set_find(&sets[1], id) >= 0)
            vec_push(&out->list, *ref);
        else if (was)
            vec_push(&out->list, *was);
    }
    bool comes = refs->has_head &&
                 (id_set_find(&sets[0], refs->head) >= 0 || id_set_find(&sets[1], refs->head) >= 0);
    const struct git_refs *head = comes ? refs : h ? &h->refs : NULL;
    if (!head)
        return;
    out->has_head = head->has_head;
    memcpy(out->head, head->head, sizeof(out->head));
    out->head_target = head->head_target;
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
    wants_known(&sets[0], h, id_len);
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
