/* Reads and writes the stored progress of a bucket's sweeps. */
#include "base/hex.h"
#include "base/json.h"
#include "s3/lifecycle/lifecycle_sweep.h"

void lifecycle_counts_add(struct lifecycle_counts *to, const struct lifecycle_counts *from)
{
#define X(name, help) to->name += from->name;
    LIFECYCLE_COUNTS(X)
#undef X
}

static void write_counts(struct json_out *w, const char *key, const struct lifecycle_counts *c)
{
    json_out_key(w, key);
    json_out_open(w, '{');
#define X(name, help) json_out_member_u64(w, #name, c->name);
    LIFECYCLE_COUNTS(X)
#undef X
    json_out_close(w, '}');
}

static void read_counts(const json_t *object, const char *key, struct lifecycle_counts *c)
{
    const json_t *counts = json_object_get(object, key);

#define X(name, help) c->name = (uint64_t)json_get_i64(counts, #name, 0);
    LIFECYCLE_COUNTS(X)
#undef X
}

/* Decodes a key, which is stored as hex, because it may have bytes that JSON cannot hold. */
static struct str read_hex(struct arena *a, struct str hex)
{
    size_t len = hex.len / 2;
    char *out = arena_alloc(a, len + 1);

    return out && hex_parse(hex, out, len) ? str_n(out, len) : STR_EMPTY;
}

int lifecycle_progress_read(struct lifecycle_progress *out, struct bucket *b, struct arena *a,
                            struct err *err)
{
    struct str text = STR_EMPTY;
    struct err ignored = {0};
    json_t *object = NULL;
    int code = b->ops->get_document(b, a, LIFECYCLE_PROGRESS, &text, err);

    *out = (struct lifecycle_progress){0};
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    if (json_read(&object, text, &ignored) < 0)
        return 0;
    out->slot_ms = json_get_i64(object, "slot", 0);
    out->done = json_get_bool(object, "done", false);
    out->uploads = json_get_bool(object, "at_uploads", false);
    out->cursor = read_hex(a, json_get_str(object, "cursor", STR_EMPTY));
    out->finished_ms = json_get_i64(object, "finished", 0);
    read_counts(object, "counts", &out->counts);
    read_counts(object, "last", &out->last);
    json_decref(object);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int lifecycle_progress_keep(const struct lifecycle_progress *p, struct bucket *b, struct err *err)
{
    struct buf text = BUF_INIT(64 * KIB), cursor = BUF_INIT(4 * KIB);
    struct json_out w;

    buf_append_hex(&cursor, p->cursor.p, p->cursor.len);
    json_out_init(&w, &text);
    json_out_open(&w, '{');
    json_out_member_i64(&w, "slot", p->slot_ms);
    json_out_member_bool(&w, "done", p->done);
    json_out_member_bool(&w, "at_uploads", p->uploads);
    json_out_member_str(&w, "cursor", buf_str(&cursor));
    json_out_member_i64(&w, "finished", p->finished_ms);
    write_counts(&w, "counts", &p->counts);
    write_counts(&w, "last", &p->last);
    json_out_close(&w, '}');
    int code = b->ops->set_document(b, LIFECYCLE_PROGRESS, buf_str(&text), err);
    buf_release(&cursor);
    buf_release(&text);
    return code;
}
