/* What the tests of storages share. */
#include "unit/object/bucket_conformance.h"

#include <stdlib.h>

const struct list_options lab_everything = {0};

struct str lab_bytes(size_t len, uint64_t seed)
{
    char *bytes = xzalloc(len + 8);
    static struct arena kept; /* reachable to the end, so no leak is reported */
    char *copy = NULL;
    uint64_t h = seed * 2 + 1;

    if (!kept.max)
        kept = ARENA_INIT(GIB);
    for (size_t i = 0; i < len; i += 8) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        memcpy(bytes + i, &h, 8);
    }
    copy = arena_alloc(&kept, len + 1);
    memcpy(copy, bytes, len);
    free(bytes);
    return str_n(copy, len);
}

struct bucket *lab_bucket(struct storage *s, const char *name)
{
    struct bucket_info info = {.name = str_z(name), .owner = STR("owner")};
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(storage_create_bucket(s, &info, &err));
    CHECK_OK(storage_open_bucket(&b, s, STR("owner"), info.name, &err));
    return b;
}

struct put_result lab_put(struct bucket *b, struct arena *a, const char *key, struct str body)
{
    struct str_reader r;
    struct put_options o = {0};
    struct put_result out = {0};
    struct err err = {0};

    str_reader_init(&r, body);
    CHECK_OK(b->ops->put(b, a, str_z(key), &r.reader, body.len, &o, &out, &err));
    return out;
}

static void same_info(const struct object_info *l, const struct object_info *r)
{
    CHECK_STR(l->key, r->key);
    CHECK_STR(l->version, r->version);
    CHECK_STR(l->etag, r->etag);
    CHECK_INT(l->size, r->size);
    CHECK_INT(l->modified_ms, r->modified_ms);
    CHECK_INT(l->part_count, r->part_count);
    CHECK_STR(l->meta.tags, r->meta.tags);
    CHECK_STR(l->meta.owner, r->meta.owner);
    CHECK_STR(l->meta.checksum.value, r->meta.checksum.value);
    CHECK_INT(l->meta.header_count, r->meta.header_count);
    for (size_t i = 0; i < l->meta.header_count; i++) {
        CHECK_STR(l->meta.headers[i].name, r->meta.headers[i].name);
        CHECK_STR(l->meta.headers[i].value, r->meta.headers[i].value);
    }
}

/* Compares two answers, and closes the bodies. */
static void same_answer(struct get_result *l, struct get_result *r)
{
    struct buf bytes[2] = {BUF_INIT(256 * MIB), BUF_INIT(256 * MIB)};
    struct err err = {0};

    same_info(&l->info, &r->info);
    CHECK_INT(l->first, r->first);
    CHECK_INT(l->len, r->len);
    CHECK_INT(l->partial, r->partial);
    CHECK_STR(l->part_checksum.value, r->part_checksum.value);
    CHECK_INT(l->body != NULL, r->body != NULL);
    if (l->body) {
        CHECK_OK(reader_read_all(l->body, &bytes[0], &err));
        CHECK_OK(reader_read_all(r->body, &bytes[1], &err));
        CHECK(str_eq(buf_str(&bytes[0]), buf_str(&bytes[1])));
    }
    reader_close(l->body);
    reader_close(r->body);
    buf_release(&bytes[0]);
    buf_release(&bytes[1]);
}

int lab_head(struct bucket *b, struct arena *a, struct str key, struct str version,
             const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct get_result now = {0};
    int quick = b->ops->head_now ? b->ops->head_now(b, a, key, version, c, &now, err) : ERR_AGAIN;
    int code = b->ops->head(b, a, key, version, c, out, err);

    if (quick != ERR_AGAIN) {
        CHECK_INT(quick, code);
        same_answer(&now, out);
    }
    return code;
}

int lab_get(struct bucket *b, struct arena *a, struct str key, struct str version,
            const struct object_conditions *c, const struct object_range *range,
            struct get_result *out, struct err *err)
{
    struct get_result now = {0}, waits = {0};
    int quick =
        b->ops->get_now ? b->ops->get_now(b, a, key, version, c, range, &now, err) : ERR_AGAIN;

    if (quick != ERR_AGAIN) {
        CHECK_INT(quick, b->ops->get(b, a, key, version, c, range, &waits, err));
        same_answer(&now, &waits);
    }
    return b->ops->get(b, a, key, version, c, range, out, err);
}

void lab_expect(struct bucket *b, const char *key, struct str version, struct str want)
{
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct buf body = BUF_INIT(256 * MIB);
    struct err err = {0};
    int code = lab_get(b, &a, str_z(key), version, NULL, NULL, &got, &err);

    if (!want.p) {
        CHECK_ERR(code, ERR_NOT_FOUND);
    } else {
        CHECK_OK(code);
        CHECK_INT(got.info.size, want.len);
        CHECK_INT(got.len, want.len);
        CHECK_OK(reader_read_all(got.body, &body, &err));
        CHECK_INT(body.len, want.len);
        CHECK(str_eq(buf_str(&body), want));
        reader_close(got.body);
    }
    buf_release(&body);
    arena_release(&a);
}

void lab_expect_list(struct bucket *b, const struct list_options *o, bool versions,
                     const char *want)
{
    struct arena a = ARENA_INIT(0);
    struct list_result got;
    struct buf text = BUF_INIT(0);
    struct list_options all = *o;
    struct err err = {0};

    if (all.limit == 0)
        all.limit = OBJECT_LIST_MAX;
    CHECK_OK((versions ? b->ops->list_versions : b->ops->list)(b, &a, &all, &got, &err));
    for (size_t i = 0; i < got.count; i++) {
        const struct list_entry *e = &got.entries[i];
        if (i > 0)
            buf_append_char(&text, ' ');
        buf_appendf(&text, e->is_prefix ? "[" STR_FMT "]" : STR_FMT, STR_ARG(e->info.key));
        if (e->info.is_marker)
            buf_append_char(&text, '!');
        if (versions && e->info.is_latest)
            buf_append_char(&text, '*');
    }
    if (got.more)
        buf_append_z(&text, " ...");
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
    arena_release(&a);
}

struct remove_result lab_remove(struct bucket *b, struct arena *a, const char *key,
                                struct str version)
{
    struct remove_options o = {.version = version};
    struct remove_result out = {0};
    struct err err = {0};

    CHECK_OK(b->ops->remove(b, a, str_z(key), &o, &out, &err));
    return out;
}

struct upload_info lab_upload(struct bucket *b, struct arena *a, const char *key)
{
    struct upload_info u = {.key = str_z(key)};
    struct object_meta meta = {0};
    struct err err = {0};

    CHECK_OK(b->ops->upload_begin(b, a, u.key, &meta, &u.id, &err));
    return u;
}

struct upload_part lab_part(struct bucket *b, struct arena *a, const struct upload_info *u,
                            uint32_t number, struct str body)
{
    struct str_reader r;
    struct put_options o = {0};
    struct upload_part out = {0};
    struct err err = {0};

    str_reader_init(&r, body);
    CHECK_OK(b->ops->upload_part(b, a, u, number, &r.reader, body.len, &o, &out, &err));
    return out;
}
