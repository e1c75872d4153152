/* `.error` objects. */
#include "archive/error_object.h"

int error_object_read(struct shelf *s, struct arena *a, struct str key, struct archive_error *out,
                      struct err *err)
{
    struct buf text = BUF_INIT(ARCHIVE_ERROR_MAX);
    int code = shelf_read(s, a, key, ARCHIVE_ERROR_MAX, &text, NULL, err);

    if (code == ERR_TOO_LARGE)
        code = err_set(err, ERR_PARSE, "the .error object is too long");
    if (code == 0)
        code = archive_error_read(out, arena_str(a, buf_str(&text)), err);
    buf_release(&text);
    return code;
}

int error_object_put(struct shelf *s, struct arena *a, struct str key, struct archive_error *e,
                     struct err *err)
{
    struct buf text = BUF_INIT(ARCHIVE_ERROR_MAX);
    struct archive_error last;
    int code = error_object_read(s, a, key, &last, err);

    e->attempts = 1;
    e->first_seen_ms = e->at_ms;
    if (code == 0 && last.code == e->code) {
        e->attempts = last.attempts + 1;
        e->first_seen_ms = last.first_seen_ms ? last.first_seen_ms : last.at_ms;
    }
    if (code == ERR_NOT_FOUND || code == ERR_PARSE)
        code = 0;
    archive_error_write(&text, e);
    if (code == 0)
        code = shelf_put_bytes(s, a, key, buf_str(&text), NULL, "text/plain; charset=utf-8",
                               e->at_ms, NULL, err);
    buf_release(&text);
    return code;
}
