/* Records of a local storage: the first byte chooses the kind. Whatever is read is written back as
 * the same bytes, so nothing is read that could not have been written. */
#include "object/local/local_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int object_again(struct str in, struct buf *out)
{
    struct arena a = ARENA_INIT(MIB);
    struct object_info info = {0};
    struct object_record r;
    int code = record_get(in, &r, NULL);

    if (code == 0) {
        record_put(out, &r);
        code = record_info(&r, &a, true, &info, NULL);
        BUG_ON(code == 0 && info.meta.header_count != r.meta.header_count);
        code = 0;
    }
    arena_release(&a);
    return code;
}

static int bucket_again(struct str in, struct buf *out)
{
    struct bucket_record r;
    int code = bucket_record_get(in, &r, NULL);
    if (code == 0)
        bucket_record_put(out, &r);
    return code;
}

static int upload_again(struct str in, struct buf *out)
{
    struct upload_record r;
    int code = upload_record_get(in, &r, NULL);
    if (code == 0)
        upload_record_put(out, &r);
    return code;
}

static int part_again(struct str in, struct buf *out)
{
    struct part_record r;
    int code = part_record_get(in, &r, NULL);
    if (code == 0)
        part_record_put(out, &r);
    return code;
}

static int blob_again(struct str in, struct buf *out)
{
    struct blob_record r;
    int code = blob_record_get(in, &r, NULL);
    if (code == 0)
        blob_record_put(out, &r);
    return code;
}

static int finish_again(struct str in, struct buf *out)
{
    struct finish_record r;
    int code = finish_record_get(in, &r, NULL);
    if (code == 0)
        finish_record_put(out, &r);
    return code;
}

static int usage_again(struct str in, struct buf *out)
{
    struct bucket_usage u;
    int code = usage_record_get(in, &u, NULL);
    if (code == 0)
        usage_record_put(out, &u);
    return code;
}

static int tap_again(struct str in, struct buf *out)
{
    struct tapped t;
    int code = tap_record_get(in, &t, NULL);
    if (code == 0)
        tap_record_put(out, &t);
    return code;
}

static int pieces_again(struct str in, struct buf *out)
{
    struct piece p;
    int code;

    while ((code = piece_next(&in, &p, NULL)) == 0)
        piece_put(out, &p);
    return code == ERR_END ? 0 : code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const kinds[])(struct str, struct buf *) = {
        object_again, bucket_again, upload_again, part_again, blob_again,
        finish_again, pieces_again, usage_again,  tap_again};
    struct buf out = BUF_INIT(0);

    if (size == 0)
        return 0;
    struct str in = str_n(data + 1, size - 1);
    if (kinds[data[0] % ARRAY_SIZE(kinds)](in, &out) == 0)
        BUG_ON(!str_eq(buf_str(&out), in));
    buf_release(&out);
    return 0;
}
