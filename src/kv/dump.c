/* Dumps and loads rows. */
#include "kv/dump.h"
#include "base/json.h"
#include "sign/base64.h"

/* --- dump --- */

static void dump_member(struct json_out *w, const char *name, struct str bytes, struct buf *work)
{
    buf_reset(work);
    base64_encode(work, bytes);
    json_out_member_str(w, name, buf_str(work));
}

static int dump_row(struct buf *line, struct buf *work, const struct kv_name *name,
                    struct str value, struct err *err)
{
    struct json_out w;

    buf_reset(line);
    json_out_init(&w, line);
    json_out_open(&w, '{');
    dump_member(&w, "partition", name->partition, work);
    dump_member(&w, "key", name->key, work);
    dump_member(&w, "value", value, work);
    json_out_close(&w, '}');
    int code = buf_error(line);
    return code < 0 ? err_code(err, code) : 0;
}

int kv_dump(struct kv *kv, struct kv_view *view, struct str partition, kv_line_fn *line, void *ctx,
            struct err *err)
{
    struct buf text = BUF_INIT(0), work = BUF_INIT(0);
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, kv, view, partition, NULL, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        code = dump_row(&text, &work, &(struct kv_name){partition, key}, value, err);
        if (code == 0)
            code = line(ctx, buf_str(&text), err);
    }
    kv_scan_free(scan);
    buf_release(&text);
    buf_release(&work);
    return code == ERR_END ? 0 : code;
}

/* --- load --- */

static int load_member(struct buf *out, const json_t *row, const char *name)
{
    struct str text = json_get_str(row, name, STR_EMPTY);

    buf_append_z(out, ""); /* even an empty value must have a pointer */
    return text.p ? base64_decode(out, text) : ERR_PARSE;
}

int kv_load_line(struct kv *kv, struct str line, struct err *err)
{
    struct buf partition = BUF_INIT(0), key = BUF_INIT(0), value = BUF_INIT(0);
    json_t *row = NULL;
    int code = json_read(&row, line, err);

    if (code == 0) {
        code = load_member(&partition, row, "partition");
        if (code == 0)
            code = load_member(&key, row, "key");
        if (code == 0)
            code = load_member(&value, row, "value");
        if (code < 0)
            code = err_set(err, code, "a line of a dump needs partition, key and value in base64");
    }
    if (code == 0)
        code =
            kv_set(kv, (struct kv_name){buf_str(&partition), buf_str(&key)}, buf_str(&value), err);
    json_decref(row);
    buf_release(&partition);
    buf_release(&key);
    buf_release(&value);
    return code;
}
