/* Walks over all keys of a bucket, by merging the listings of its versions and of its uploads. */
#include "shard/keys.h"

void shard_keys_open(struct shard_keys *w, struct bucket *b, struct str after)
{
    *w = (struct shard_keys){.bucket = b};
    w->objects.more = w->uploads.more = true;
    buf_append_str(&w->after, after);
    w->objects.next = w->uploads.next_key = buf_str(&w->after);
}

void shard_keys_close(struct shard_keys *w)
{
    arena_release(&w->objects_arena);
    arena_release(&w->uploads_arena);
    buf_release(&w->key);
    buf_release(&w->after);
}

/* Reads the next page of versions, which begins where the page w->objects ends. */
static int walk_read_objects(struct shard_keys *w, struct err *err)
{
    struct buf after = BUF_INIT(0), version = BUF_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};

    buf_append_str(&after, w->objects.next);
    buf_append_str(&version, w->objects.next_version);
    o.after = buf_str(&after);
    o.after_version = buf_str(&version);
    arena_reset(&w->objects_arena);
    int code = w->bucket->ops->list_versions(w->bucket, &w->objects_arena, &o, &w->objects, err);
    w->object = 0;
    buf_release(&after);
    buf_release(&version);
    return code;
}

static int walk_read_uploads(struct shard_keys *w, struct err *err)
{
    struct buf after = BUF_INIT(0), id = BUF_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};

    buf_append_str(&after, w->uploads.next_key);
    buf_append_str(&id, w->uploads.next_id);
    o.after = buf_str(&after);
    o.after_version = buf_str(&id);
    arena_reset(&w->uploads_arena);
    int code = w->bucket->ops->list_uploads(w->bucket, &w->uploads_arena, &o, &w->uploads, err);
    w->upload = 0;
    buf_release(&after);
    buf_release(&id);
    return code;
}

/* Moves past the entries of the current key. Then reads pages until both listings have a next entry
 * or have ended. */
static int walk_pass(struct shard_keys *w, struct err *err)
{
    struct str key = buf_str(&w->key);
    bool first = w->key.len == 0;
    int code = 0;

    for (;;) {
        if (w->object < w->objects.count) {
            if (first || !str_eq(w->objects.entries[w->object].info.key, key))
                break;
            w->object++;
        } else if (!w->objects.more) {
            break;
        } else if ((code = walk_read_objects(w, err)) < 0) {
            return code;
        }
    }
    for (;;) {
        if (w->upload < w->uploads.count) {
            if (first || !str_eq(w->uploads.uploads[w->upload].key, key))
                break;
            w->upload++;
        } else if (!w->uploads.more) {
            break;
        } else if ((code = walk_read_uploads(w, err)) < 0) {
            return code;
        }
    }
    return 0;
}

int shard_keys_next(struct shard_keys *w, struct err *err)
{
    int code = walk_pass(w, err);

    if (code < 0)
        return code;
    const struct object_info *object =
        w->object < w->objects.count ? &w->objects.entries[w->object].info : NULL;
    const struct upload_info *upload =
        w->upload < w->uploads.count ? &w->uploads.uploads[w->upload] : NULL;
    if (!object && !upload)
        return ERR_END;
    bool by_object = object && (!upload || str_cmp(object->key, upload->key) <= 0);
    buf_reset(&w->key);
    buf_append_str(&w->key, by_object ? object->key : upload->key);
    w->modified_ms = by_object ? object->modified_ms : 0;
    return 0;
}
