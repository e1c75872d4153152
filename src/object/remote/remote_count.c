/* The peer's own count of what a bucket holds. */
#include "object/remote/remote_int.h"

/* Reads a header of the answer that is a number. ERR_PEER: it is something else. */
static int count_read(struct ask *q, const char *name, uint64_t *out, struct err *err)
{
    struct str text = ask_answer(q, name);

    if (text.len == 0)
        return err_set(err, ERR_UNSUPPORTED, "the storage does not count what a bucket holds");
    if (str_u64(text, out) < 0)
        return err_set(err, ERR_PEER, "the storage gives '" STR_FMT "' for %s", STR_ARG(text),
                       name);
    return 0;
}

int remote_count(struct bucket *b, struct remote_count *out, struct err *err)
{
    struct remote_count count = {0};
    struct ask q;

    ask_init_bucket(&q, remote_bucket_of(b), "HEAD", STR_EMPTY);
    ask_param(&q, "read-stats", STR("true"));
    int code = ask_send(&q, err);
    if (code == 0)
        code = count_read(&q, "x-rgw-object-count", &count.versions, err);
    if (code == 0)
        code = count_read(&q, "x-rgw-bytes-used", &count.bytes, err);
    if (code == 0)
        *out = count;
    ask_release(&q);
    return code;
}
