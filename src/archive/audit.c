/* Reads and writes the verdicts of audits, and decides when an audit is due. */
#include "archive/audit_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

/* --- verdicts as JSON --- */

void audit_verdict_write(struct buf *out, const struct audit_verdict *v)
{
    char at[CLOCK_ISO_LEN + 1];
    struct json_out w;

    clock_iso(v->at_ms, at);
    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "etag", str_z(v->etag));
    json_out_member_str(&w, "at", str_z(at));
    json_out_member_bool(&w, "ok", v->ok);
    json_out_member_u64(&w, "bytes", v->bytes);
    json_out_member_u64(&w, "objects", v->objects);
    json_out_member_u64(&w, "doubles", v->doubles);
    json_out_member_u64(&w, "tidied_bytes", v->tidied_bytes);
    json_out_member_str(&w, "words", str_z(v->words));
    json_out_close(&w, '}');
    buf_append_char(out, '\n');
}

static bool verdict_number(const json_t *doc, const char *name, uint64_t *out)
{
    int64_t n = json_get_i64(doc, name, -1);

    *out = n < 0 ? 0 : (uint64_t)n;
    return n >= 0;
}

static bool verdict_fill(struct audit_verdict *v, const json_t *doc)
{
    struct str etag = json_get_str(doc, "etag", STR_EMPTY);
    struct str words = json_get_str(doc, "words", STR_EMPTY);

    if (etag.len == 0 || etag.len > AUDIT_ETAG_MAX ||
        clock_parse_iso(json_get_str(doc, "at", STR_EMPTY), &v->at_ms) < 0)
        return false;
    snprintf(v->etag, sizeof(v->etag), STR_FMT, STR_ARG(etag));
    snprintf(v->words, sizeof(v->words), STR_FMT, STR_ARG(str_head(words, AUDIT_WORDS_MAX)));
    v->ok = json_get_bool(doc, "ok", false);
    return verdict_number(doc, "bytes", &v->bytes) && verdict_number(doc, "objects", &v->objects) &&
           verdict_number(doc, "doubles", &v->doubles) &&
           verdict_number(doc, "tidied_bytes", &v->tidied_bytes);
}

int audit_verdict_read(struct audit_verdict *out, struct str text, struct err *err)
{
    json_t *doc;

    *out = (struct audit_verdict){0};
    if (json_read(&doc, text, err) < 0)
        return err_wrap(err, ERR_CORRUPT, "the verdict of an audit");
    bool fine = json_is_object(doc) && verdict_fill(out, doc);
    json_decref(doc);
    return fine ? 0 : err_set(err, ERR_CORRUPT, "the verdict of an audit cannot be read");
}

/* --- verdicts beside their bundles --- */

int audit_look(struct audit_verdict *out, const struct audit_job *job, struct err *err)
{
    struct get_result got = {0};
    struct buf text = BUF_INIT(AUDIT_TEXT_MAX);
    int code = job->bucket->ops->get(job->bucket, job->arena, job->verdict, STR_EMPTY, NULL, NULL,
                                     &got, err);

    if (code == 0)
        code = reader_read_all(got.body, &text, err);
    reader_close(got.body);
    if (code == 0)
        code = audit_verdict_read(out, buf_str(&text), err);
    buf_release(&text);
    if (code == ERR_CORRUPT || code == ERR_TOO_LARGE)
        return err_set(err, ERR_NOT_FOUND, "the bundle was never audited");
    return code;
}

int audit_store(const struct audit_work *w, struct err *err)
{
    const struct audit_job *job = w->job;
    struct http_header headers[] = {{STR("Content-Type"), STR("application/json")}};
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)}};
    struct put_result result;
    struct str_reader r;
    struct buf text = BUF_INIT(AUDIT_TEXT_MAX);

    audit_verdict_write(&text, &w->verdict);
    int code = buf_error(&text);
    str_reader_init(&r, buf_str(&text));
    if (code == 0)
        code = job->bucket->ops->put(job->bucket, job->arena, job->verdict, &r.reader, text.len, &o,
                                     &result, err);
    buf_release(&text);
    return code;
}

int audit_run(struct audit_verdict *out, const struct audit_job *job, struct err *err)
{
    struct audit_work w;
    int code = audit_work_init(&w, job, err);

    if (code == 0)
        code = audit_store(&w, err);
    if (code == 0)
        *out = w.verdict;
    audit_work_release(&w);
    return code;
}

/* --- when --- */

static bool audit_has_grown(const struct audit_verdict *v, uint64_t bytes)
{
    return v && v->tidied_bytes &&
           bytes > v->tidied_bytes + v->tidied_bytes / 100 * AUDIT_GROWN_PERCENT;
}

enum audit_due audit_is_due(struct str name, const struct bundle_meta *meta, uint64_t bytes,
                            const struct audit_verdict *v, int64_t now_s)
{
    int64_t week = now_s / (7 * S_PER_DAY);

    /* A pack with deltas by id cannot be appended to, so it is tidied too. */
    if (meta->ref_deltas == REF_DELTAS_SOME || meta->appends >= AUDIT_APPENDS_MAX ||
        (meta->appends && audit_has_grown(v, bytes)))
        return AUDIT_TIDY;
    if (v && v->at_ms / MS_PER_S / (7 * S_PER_DAY) == week)
        return AUDIT_NOTHING;
    return hash_xxh3(name, (uint64_t)week) % AUDIT_SAMPLE == 0 ? AUDIT_AUDIT : AUDIT_NOTHING;
}
