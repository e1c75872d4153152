/* The metadata of a bundle, as headers x-amz-meta-*. */
#include "archive/bundle_int.h"

#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>

static const char meta_prefix[] = "x-amz-meta-";

static const char *const ref_delta_words[] = {
    [REF_DELTAS_UNKNOWN] = "", [REF_DELTAS_NONE] = "none", [REF_DELTAS_SOME] = "some"};

/* --- kinds of values --- */

/* A value is accepted only in the exact form in which weir writes it. */
static bool value_hex(void *to, size_t size, struct str text)
{
    if (text.len == 0 || text.len >= size)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (hex_digit(text.p[i]) < 0)
            return false;
    memcpy(to, text.p, text.len);
    return true;
}

static bool value_name(void *to, size_t size, struct str text)
{
    if (text.len == 0 || text.len >= size)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr("-._", c))
            return false;
    }
    memcpy(to, text.p, text.len);
    return true;
}

static bool value_number(void *to, size_t size, struct str text)
{
    uint64_t n = 0;
    uint32_t small;

    if (str_u64(text, &n) < 0 || (size == sizeof(small) && n > UINT32_MAX))
        return false;
    small = (uint32_t)n;
    memcpy(to, size == sizeof(small) ? (void *)&small : (void *)&n, size);
    return true;
}

static bool value_seconds(void *to, size_t size, struct str text)
{
    int64_t s = 0;

    if (str_i64(text, &s) < 0 || s <= 0)
        return false;
    memcpy(to, &s, size);
    return true;
}

/* rclone writes seconds since 1970, with a varying number of decimals. */
static bool value_time(void *to, size_t size, struct str text)
{
    struct str whole, part;
    uint64_t s = 0, ms = 0, unit = 100;

    (void)size;
    if (str_cut(text, '.', &whole, &part) && part.len == 0)
        return false;
    if (str_u64(whole, &s) < 0 || s > INT64_MAX / 1000 - 1)
        return false;
    for (size_t i = 0; i < part.len; i++, unit /= 10) {
        if (part.p[i] < '0' || part.p[i] > '9')
            return false;
        ms += unit * (uint64_t)(part.p[i] - '0');
    }
    int64_t all = (int64_t)(s * 1000 + ms);
    memcpy(to, &all, sizeof(all));
    return true;
}

static bool value_ref_deltas(void *to, size_t size, struct str text)
{
    for (size_t i = 1; i < ARRAY_SIZE(ref_delta_words); i++)
        if (str_eq(text, str_z(ref_delta_words[i]))) {
            enum bundle_ref_deltas value = (enum bundle_ref_deltas)i;
            memcpy(to, &value, size);
            return true;
        }
    return false;
}

static struct str text_of(struct arena *a, const void *from, size_t size)
{
    (void)size;
    return arena_str(a, str_z(from));
}

static struct str text_of_number(struct arena *a, const void *from, size_t size)
{
    uint64_t n = 0;
    uint32_t small;

    memcpy(&small, from, sizeof(small));
    memcpy(&n, from, size);
    return arena_fmt(a, "%" PRIu64, size == sizeof(small) ? small : n);
}

static struct str text_of_time(struct arena *a, const void *from, size_t size)
{
    int64_t ms;

    memcpy(&ms, from, size);
    if (ms % 1000 == 0)
        return arena_fmt(a, "%" PRId64, ms / 1000);
    struct str text = arena_fmt(a, "%" PRId64 ".%03" PRId64, ms / 1000, ms % 1000);
    while (text.len && text.p[text.len - 1] == '0')
        text.len--;
    return text;
}

static struct str text_of_seconds(struct arena *a, const void *from, size_t size)
{
    int64_t s;

    memcpy(&s, from, size);
    return s ? arena_fmt(a, "%" PRId64, s) : STR_EMPTY;
}

static struct str text_of_ref_deltas(struct arena *a, const void *from, size_t size)
{
    enum bundle_ref_deltas value;

    (void)a;
    memcpy(&value, from, size);
    return str_z(ref_delta_words[value]);
}

/* --- the table --- */

#define FIELD(member)                                                                              \
    offsetof(struct bundle_meta, member), sizeof(((struct bundle_meta *)0)->member)

static const struct meta_row {
    const char *name;
    size_t at, size;
    bool (*read)(void *to, size_t size, struct str text);
    struct str (*write)(struct arena *a, const void *from, size_t size);
} meta_rows[] = {
    {"mtime", FIELD(mtime_ms), value_time, text_of_time},
    {"first", FIELD(first_s), value_seconds, text_of_seconds},
    {"source-id", FIELD(source_id), value_name, text_of},
    {"format", FIELD(format), value_name, text_of},
    {"head", FIELD(head), value_hex, text_of},
    {"pack-offset", FIELD(pack_offset), value_number, text_of_number},
    {"objects", FIELD(objects), value_number, text_of_number},
    {"pack-sum", FIELD(pack_sum), value_hex, text_of},
    {"refs-digest", FIELD(refs_digest), value_hex, text_of},
    {"header-sum", FIELD(header_sum), value_hex, text_of},
    {"appends", FIELD(appends), value_number, text_of_number},
    {"fence", FIELD(fence), value_number, text_of_number},
    {"ref-deltas", FIELD(ref_deltas), value_ref_deltas, text_of_ref_deltas},
};
_Static_assert(ARRAY_SIZE(meta_rows) < BUNDLE_HEADERS_MAX, "one header is the Content-Type");

int bundle_meta_read(struct bundle_meta *out, const struct object_info *info)
{
    const struct object_meta *from = &info->meta;
    char name[64];

    *out = (struct bundle_meta){0};
    for (size_t i = 0; i < ARRAY_SIZE(meta_rows); i++) {
        const struct meta_row *row = &meta_rows[i];
        snprintf(name, sizeof(name), "%s%s", meta_prefix, row->name);
        struct str text = http_header_among(from->headers, from->header_count, name);
        if (text.len)
            row->read((char *)out + row->at, row->size, text);
    }
    return out->pack_offset ? 0 : ERR_NOT_FOUND;
}

size_t bundle_meta_headers(struct http_header out[BUNDLE_HEADERS_MAX], struct arena *a,
                           const struct bundle_meta *m)
{
    size_t count = 0;

    out[count++] = (struct http_header){STR("Content-Type"), STR("application/x-git-bundle")};
    for (size_t i = 0; i < ARRAY_SIZE(meta_rows); i++) {
        const struct meta_row *row = &meta_rows[i];
        struct str text = row->write(a, (const char *)m + row->at, row->size);
        if (text.len)
            out[count++] = (struct http_header){arena_fmt(a, "%s%s", meta_prefix, row->name), text};
    }
    return count;
}

/* --- what a write knows --- */

int bundle_sum_reader(char out[GIT_DIGEST_LEN + 1], struct reader *from, uint64_t *len,
                      struct err *err)
{
    struct digests *sum = digests_new(1u << DIGEST_SHA256);
    struct digest_value value;
    char piece[4096];
    size_t got = 1;
    int code = 0;

    for (*len = 0; code == 0 && got; *len += got) {
        code = reader_read(from, piece, sizeof(piece), &got, err);
        digests_update(sum, str_n(piece, code == 0 ? got : 0));
    }
    digests_final(sum, DIGEST_SHA256, &value);
    digests_free(sum);
    hex_write(out, value.bytes, value.len);
    out[GIT_DIGEST_LEN] = '\0';
    return code;
}

int bundle_meta_begin(struct bundle_meta *out, const struct bundle_job *job,
                      const struct git_refs *refs, struct err *err)
{
    *out = (struct bundle_meta){.fence = job->fence, .mtime_ms = job->now_s * 1000};
    if (job->source_id.len && !value_name(out->source_id, sizeof(out->source_id), job->source_id))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not the id of a repository",
                       STR_ARG(job->source_id));
    snprintf(out->format, sizeof(out->format), "%s", refs->is_sha256 ? "sha256" : "sha1");
    if (refs->has_head)
        hex_write(out->head, refs->head, git_id_len(refs->is_sha256));
    git_refs_digest(out->refs_digest, refs);
    return 0;
}
