/* Metadata of bundles, plans of part copies, and what a server is asked for. */
#include "archive/bundle_int.h"
#include "unit/archive/bundle_lab.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

/* --- metadata --- */

static void expect_meta(const struct bundle_meta *m, const struct bundle_meta *want)
{
    CHECK_STR(str_z(m->source_id), str_z(want->source_id));
    CHECK_STR(str_z(m->format), str_z(want->format));
    CHECK_STR(str_z(m->head), str_z(want->head));
    CHECK(m->pack_offset == want->pack_offset);
    CHECK_INT(m->objects, want->objects);
    CHECK_STR(str_z(m->pack_sum), str_z(want->pack_sum));
    CHECK_STR(str_z(m->refs_digest), str_z(want->refs_digest));
    CHECK_STR(str_z(m->header_sum), str_z(want->header_sum));
    CHECK_INT(m->appends, want->appends);
    CHECK(m->fence == want->fence);
    CHECK_INT(m->mtime_ms, want->mtime_ms);
    CHECK_INT(m->first_s, want->first_s);
    CHECK_INT(m->ref_deltas, want->ref_deltas);
}

TEST(archive_bundle_meta, what_is_written_is_read)
{
    struct bundle_meta m = {.source_id = "MDEwOlJlcG9zaXRvcnkxMjk2MjY5",
                            .format = "sha256",
                            .pack_offset = UINT64_MAX,
                            .objects = UINT32_MAX,
                            .appends = UINT32_MAX,
                            .fence = UINT64_MAX,
                            .mtime_ms = 1731939737120,
                            .first_s = INT64_MAX,
                            .ref_deltas = REF_DELTAS_SOME},
                       back;
    struct http_header headers[BUNDLE_HEADERS_MAX];
    struct arena a = ARENA_INIT(0);
    size_t bytes = 0;

    memset(m.head, 'a', 64);
    memset(m.pack_sum, 'b', 64);
    memset(m.refs_digest, 'c', 64);
    memset(m.header_sum, 'd', 64);
    size_t count = bundle_meta_headers(headers, &a, &m);
    struct object_info info = {.meta = {.headers = headers, .header_count = count}};
    CHECK_INT(0, bundle_meta_read(&back, &info));
    expect_meta(&back, &m);
    for (size_t i = 0; i < count; i++)
        bytes += headers[i].name.len + headers[i].value.len;
    CHECK(bytes <= BUNDLE_META_MAX);
    CHECK_STR(http_header_among(headers, count, "x-amz-meta-mtime"), STR("1731939737.12"));
    m.mtime_ms = 1731939737000;
    count = bundle_meta_headers(headers, &a, &m);
    CHECK_STR(http_header_among(headers, count, "x-amz-meta-mtime"), STR("1731939737"));
    arena_release(&a);
}

TEST(archive_bundle_meta, values_that_cannot_be_read_are_left_out)
{
    struct http_header headers[] = {{STR("X-Amz-Meta-Pack-Offset"), STR("17")},
                                    {STR("x-amz-meta-objects"), STR("4294967296")},
                                    {STR("x-amz-meta-head"), STR("xyz")},
                                    {STR("x-amz-meta-source-id"), STR("a b")},
                                    {STR("x-amz-meta-fence"), STR("-1")},
                                    {STR("x-amz-meta-mtime"), STR("1.5.2")},
                                    {STR("x-amz-meta-first"), STR("-5")},
                                    {STR("x-amz-meta-ref-deltas"), STR("many")},
                                    {STR("x-amz-meta-appends"), STR("")},
                                    {STR("x-amz-meta-format"), STR("sha256sha256")}};
    struct object_info info = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)}};
    struct bundle_meta m, want = {.pack_offset = 17};

    CHECK_INT(0, bundle_meta_read(&m, &info));
    expect_meta(&m, &want);
    info.meta.header_count = 0;
    CHECK_ERR(bundle_meta_read(&m, &info), ERR_NOT_FOUND);
}

/* --- plans --- */

static uint64_t part_at(const struct upload_part *parts, size_t count, uint64_t at)
{
    uint64_t end = 0;

    for (size_t i = 0; i < count; i++)
        if ((end += parts[i].size) > at)
            return i;
    return count;
}

/* Any layout of parts: stretches follow each other from the lead on, and only a tail shorter than a
 * lead is left. */
TEST(archive_bundle_plan, stretches_cover_all_but_a_lead_and_a_tail)
{
    static const struct bundle_sizes z = {.small = 1, .lead = 50, .part = 80, .copy = 400};
    unsigned seed = 3;

    for (int round = 0; round < 20000; round++) {
        struct upload_part parts[12] = {0};
        size_t count = (size_t)rand_r(&seed) % ARRAY_SIZE(parts);
        uint64_t size = count ? 0 : 2000, at;
        struct bundle_plan p;
        for (size_t i = 0; i < count; i++)
            size += parts[i].size = 1 + (unsigned)rand_r(&seed) % 700;
        uint64_t first = (unsigned)rand_r(&seed) % 60, end = size > first + 20 ? size - 20 : first;
        bundle_plan_make(&p, &z, first, end, parts, count);
        at = first + p.lead;
        vec_each (&p.copies, const struct bundle_stretch *, s) {
            CHECK_INT(s->first, at);
            CHECK(s->len >= z.lead && s->len <= z.copy + z.lead);
            at += s->len;
        }
        CHECK(at <= end);
        CHECK(p.copies.len == 0 || end - at < z.lead);
        CHECK(p.copies.len == 0 || (p.lead >= z.lead && p.lead < 2 * z.lead));
        bundle_plan_release(&p);
    }
}

/* The layouts that weir writes: a first part of header and lead, then parts of at least a lead. The
 * lead is exact, and no stretch goes over the end of a part. */
TEST(archive_bundle_plan, what_weir_wrote_is_shared_part_by_part)
{
    static const struct bundle_sizes z = {.small = 1, .lead = 50, .part = 80, .copy = 4000};
    unsigned seed = 4;

    for (int round = 0; round < 20000; round++) {
        struct upload_part parts[12] = {0};
        size_t count = 2 + (size_t)rand_r(&seed) % 10;
        uint64_t first = 12 + (unsigned)rand_r(&seed) % 90, size = 0;
        struct bundle_plan p;
        for (size_t i = 0; i < count; i++) {
            parts[i].size = i == 0 ? first + z.lead : z.lead + (unsigned)rand_r(&seed) % 700;
            if (i + 1 == count)
                parts[i].size = 21 + (unsigned)rand_r(&seed) % 100;
            size += parts[i].size;
        }
        bundle_plan_make(&p, &z, first, size - 20, parts, count);
        CHECK(p.copies.len == 0 || p.lead == z.lead);
        vec_each (&p.copies, const struct bundle_stretch *, s)
            CHECK_INT(part_at(parts, count, s->first),
                      part_at(parts, count, s->first + s->len - 1));
        bundle_plan_release(&p);
    }
}

/* --- wants and haves --- */

static void ref_add(struct git_refs *r, int id, const char *name)
{
    char hex[41];
    struct err err = {0};

    for (int i = 0; i < 40; i += 2)
        snprintf(hex + i, 3, "%02x", (unsigned)id);
    CHECK_OK(git_refs_add(r, str_z(hex), str_z(name), &err));
}

static void ids_are(const unsigned char *ids, size_t count, const char *want)
{
    struct buf text = BUF_INIT(0);

    for (size_t i = 0; i < count; i++)
        buf_appendf(&text, "%s%d", i ? " " : "", ids[20 * i]);
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

TEST(archive_bundle_wants, asks_for_tips_that_no_line_has_and_names_changed_refs_first)
{
    struct bundle_old old = {0};
    struct git_refs refs;
    struct bundle_wants w;
    struct err err = {0};

    git_refs_init(&refs, false);
    bundle_header_init(&old.header, false);
    ref_add(&old.header.refs, 1, "HEAD");
    ref_add(&old.header.refs, 9, "refs/notes/x");
    ref_add(&old.header.refs, 1, "refs/heads/a");
    ref_add(&old.header.refs, 2, "refs/heads/b");
    ref_add(&old.header.refs, 3, "refs/tags/t");
    ref_add(&old.header.refs, 4, "refs/tags/u");
    CHECK_OK(git_refs_sort(&old.header.refs, &err));
    struct header_point p = {.at_s = 1};
    unsigned char gone[20];
    memset(gone, 5, sizeof(gone));
    CHECK_OK(
        git_refs_store(&p.ref, &old.header.refs, gone, STR("refs/heads/gone"), sizeof(p), &err));
    vec_push(&old.header.points, p);
    ref_add(&refs, 7, "HEAD");
    ref_add(&refs, 7, "refs/heads/a");
    ref_add(&refs, 2, "refs/heads/b");
    ref_add(&refs, 5, "refs/heads/gone"); /* it comes back */
    ref_add(&refs, 8, "refs/tags/t");
    ref_add(&refs, 6, "refs/tags/new");
    ref_add(&refs, 7, "refs/tags/same");
    CHECK_OK(git_refs_sort(&refs, &err));
    bundle_wants_init(&w, &old, &refs, BUNDLE_WANTS_MAX);
    ids_are(w.fetch.wants, w.fetch.want_count, "6 7 8");
    ids_are(w.fetch.haves, w.fetch.have_count, "1 9 3 4 2 5");
    CHECK(!w.more && w.refs == &refs);
    bundle_wants_release(&w);
    bundle_wants_init(&w, NULL, &refs, BUNDLE_WANTS_MAX);
    ids_are(w.fetch.wants, w.fetch.want_count, "2 5 6 7 8");
    CHECK_INT(w.fetch.have_count, 0);
    bundle_wants_release(&w);
    /* two at a time: what must wait stays as it was */
    bundle_wants_init(&w, &old, &refs, 2);
    ids_are(w.fetch.wants, w.fetch.want_count, "6 7");
    CHECK(w.more);
    CHECK_INT(w.refs->list.len, 6);
    CHECK_INT(git_ref_id(git_refs_find(w.refs, STR("refs/tags/t")))[0], 3);
    CHECK_INT(git_ref_id(git_refs_find(w.refs, STR("refs/heads/a")))[0], 7);
    CHECK_INT(w.refs->head[0], 7);
    bundle_wants_release(&w);
    bundle_wants_init(&w, NULL, &refs, 2);
    ids_are(w.fetch.wants, w.fetch.want_count, "2 5");
    CHECK(w.more && !w.refs->has_head);
    CHECK_INT(w.refs->list.len, 2);
    bundle_wants_release(&w);
    /* nothing new */
    bundle_wants_init(&w, &old, &old.header.refs, BUNDLE_WANTS_MAX);
    CHECK(w.fetch.want_count == 0 && w.fetch.have_count == 0 && !w.more);
    bundle_wants_release(&w);
    git_refs_release(&refs);
    bundle_header_release(&old.header);
}

TEST(archive_bundle_wants, haves_are_limited)
{
    struct bundle_old old = {0};
    struct git_refs refs;
    struct bundle_wants w;

    bundle_header_init(&old.header, false);
    git_refs_release(&old.header.refs);
    bundle_lab_refs(&old.header.refs, false, 1, 30000);
    bundle_lab_refs(&refs, false, 3, 1);
    bundle_wants_init(&w, &old, &refs, BUNDLE_WANTS_MAX);
    CHECK_INT(w.fetch.have_count, BUNDLE_HAVES_MAX);
    bundle_wants_release(&w);
    git_refs_release(&refs);
    bundle_header_release(&old.header);
}
