/* Puts, copies, opens and removes the bodies of the lake's objects. */
#include "lake/body.h"

#include "lake/address.h"
#include "lake/lake_int.h"
#include "object/md5.h"

#include "base/clock.h"
#include "base/hex.h"

/* --- a body that passes through weir --- */

struct body_pass {
    struct reader reader;
    struct reader *from;
    struct arena *arena;
    struct object_place *place;
    const struct put_options *asked;
    bool hashes; /* the MD5 is computed here, because the storage does not compute it */
    struct md5 md5;
    unsigned char sum[MD5_LEN];
    struct object_checksum checksum;
};

static int body_pass_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct body_pass *b = container_of(r, struct body_pass, reader);
    int code = reader_read(b->from, to, len, got, err);

    if (code == 0)
        md5_update(&b->md5, str_n(to, *got));
    return code;
}

static const struct reader_ops body_pass_ops = {.read = body_pass_read};

struct body_pass *body_pass_new(struct arena *a, struct object_place *p, struct reader *from,
                                const struct put_options *asked)
{
    struct body_pass *b = arena_new(a, struct body_pass);

    if (!b)
        return NULL;
    *b = (struct body_pass){.reader.ops = &body_pass_ops,
                            .from = from,
                            .arena = a,
                            .place = p,
                            .asked = asked,
                            .hashes = !bucket_can(p->bucket, STORAGE_FOLDER),
                            .checksum = asked->meta.checksum};
    md5_init(&b->md5);
    return b;
}

struct reader *body_pass_reader(struct body_pass *b)
{
    return b->hashes ? &b->reader : b->from;
}

/* Makes the last checks, after the body has ended and before the object is visible. */
static int body_pass_verify(void *ctx, struct object_meta *meta, struct err *err)
{
    struct body_pass *b = ctx;
    int code = 0;

    if (b->hashes) {
        md5_final(&b->md5, b->sum);
        if (b->asked->md5)
            memcpy(b->asked->md5, b->sum, MD5_LEN);
    }
    if (b->asked->verify)
        code = b->asked->verify(b->asked->ctx, meta, err);
    if (meta->checksum.type != CHECKSUM_NONE)
        b->checksum = meta->checksum;
    return code < 0 ? code : object_place_may(b->place, err);
}

struct put_options body_pass_options(struct body_pass *b)
{
    return (struct put_options){.verify = body_pass_verify,
                                .ctx = b,
                                .md5 = b->hashes ? NULL : b->asked->md5,
                                .seal = object_place_seal_key,
                                .seal_ctx = b->place};
}

struct object_checksum body_pass_checksum(const struct body_pass *b)
{
    return b->checksum;
}

struct str body_pass_etag(const struct body_pass *b, struct str stored)
{
    if (b->asked->etag.len)
        return b->asked->etag;
    return b->hashes ? arena_hex(b->arena, b->sum, MD5_LEN) : stored;
}

/* --- the object that holds the body --- */

/* Returns the meta of the object that stores a body. All other meta is in the entry, because it can
 * change while the body stays. */
static struct object_meta body_meta(struct arena *a, const struct lake_repo *r,
                                    const struct object_meta *asked)
{
    struct object_meta meta = {.owner = r->owner, .storage_class = asked->storage_class};

    if (asked->checksum.type == CHECKSUM_FULL_OBJECT)
        meta.checksum = asked->checksum;
    meta.headers = arena_array(a, 1, sizeof(*meta.headers));
    for (size_t i = 0; meta.headers && i < asked->header_count; i++)
        if (str_eq(asked->headers[i].name, STR("content-type"))) {
            meta.headers[0] = asked->headers[i];
            meta.header_count = 1;
        }
    return meta;
}

static void body_describe(struct lake_entry *entry, uint64_t size, struct str etag,
                          const struct object_checksum *sum)
{
    entry->modified_ms = clock_wall_ms();
    entry->size = size;
    entry->etag = etag;
    entry->checksum_type = sum->type;
    entry->checksum_kind = sum->kind;
    entry->checksum = sum->value;
}

/* Opens the place of a new body and puts its address into the entry. */
static int body_open_new(struct object_place *p, struct lake *l, struct arena *a,
                         const struct lake_repo *r, struct lake_entry *entry, struct err *err)
{
    entry->address = lake_new_address(a);
    entry->address_type = LAKE_RELATIVE;
    return lake_address_open(p, l, a, r, entry, PLACE_PUT, err);
}

int lake_body_put(struct lake *l, struct arena *a, const struct lake_repo *r, struct reader *body,
                  uint64_t size, const struct put_options *o, struct lake_entry *entry,
                  struct err *err)
{
    struct put_result put = {0};
    struct object_place p;
    int code = body_open_new(&p, l, a, r, entry, err);

    if (code < 0)
        return code;
    struct body_pass *b = body_pass_new(a, &p, body, o);
    code = b ? 0 : err_code(err, ERR_NO_MEMORY);
    if (code == 0) {
        struct put_options own = body_pass_options(b);
        own.meta = body_meta(a, r, &o->meta);
        code = object_place_seal(&p, &own.meta, err);
        if (code == 0)
            code =
                p.bucket->ops->put(p.bucket, a, p.key, body_pass_reader(b), size, &own, &put, err);
    }
    if (code == 0) {
        struct object_checksum sum = body_pass_checksum(b);
        body_describe(entry, put.size, body_pass_etag(b, put.etag), &sum);
    }
    return object_place_end(&p, code, err);
}

int lake_body_copy(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_body_source *from, const struct put_options *o,
                   struct lake_entry *entry, struct err *err)
{
    struct put_options own = {.meta = body_meta(a, r, &o->meta)};
    struct put_result put = {0};
    struct object_place p;
    int code = body_open_new(&p, l, a, r, entry, err);

    if (code < 0)
        return code;
    if (p.bucket->ops != from->bucket->ops || p.bucket->storage != from->bucket->storage)
        code = ERR_UNSUPPORTED;
    if (code == 0)
        code = object_place_seal(&p, &own.meta, err);
    /* The namespace's bucket encrypts new objects. A copy inside the storage cannot encrypt, so the
     * caller must read the object and put it. */
    if (code == 0 && own.meta.encryption.len)
        code = ERR_UNSUPPORTED;
    if (code == 0)
        code = object_place_may(&p, err);
    if (code == 0)
        code = p.bucket->ops->copy(p.bucket, a, p.key, from->bucket, from->info, &own, &put, err);
    if (code == 0)
        body_describe(entry, from->info->size, from->info->etag, &o->meta.checksum);
    return object_place_end(&p, code, err);
}

/* --- reading --- */

/* Translates the code of a storage: an entry whose object is absent has lost its bytes. */
static int body_result(const struct lake_entry *entry, int code, struct err *err)
{
    return code == ERR_NOT_FOUND || code == ERR_NO_BUCKET
               ? err_set(err, ERR_GONE, "the bytes at " STR_FMT " are gone",
                         STR_ARG(str_head(entry->address, 255)))
               : code;
}

/* Opens the object that the entry names. */
static int body_open_entry(struct lake *l, struct arena *a, const struct lake_repo *r,
                           const struct lake_entry *entry, const struct object_range *range,
                           enum place_use use, struct get_result *out, struct err *err)
{
    struct object_place p;
    int code = lake_address_open(&p, l, a, r, entry, use, err);

    if (code == 0) {
        code = p.bucket->ops->get(p.bucket, a, p.key, STR_EMPTY, NULL, range, out, err);
        if (code == 0)
            code = lake_address_check(&p, entry, &out->info, err);
        if (code == 0)
            code = object_place_unlock(&p, out, err);
        code = object_place_end(&p, code, err);
    }
    return body_result(entry, code, err);
}

/* If `code` is 0, gives the opened body to the caller of lake_body_get(), with the members of `got`
 * that lake_body_get() fills. If `code` is an error, closes the body. */
static int body_give(struct get_result got, int code, struct get_result *out)
{
    if (code < 0) {
        reader_close(got.body);
        return code;
    }
    out->body = got.body;
    out->first = got.first;
    out->len = got.len;
    out->partial = got.partial;
    out->part_checksum = got.part_checksum;
    return 0;
}

int lake_body_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_entry *entry, const struct object_range *range,
                  struct get_result *out, struct err *err)
{
    struct get_result got = {0};
    int code = body_open_entry(l, a, r, entry, range, PLACE_READ, &got, err);

    return body_give(got, code, out);
}

int lake_body_get_now(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry, const struct object_range *range,
                      struct get_result *out, struct err *err)
{
    struct get_result got = {0};
    int code = body_open_entry(l, a, r, entry, range, PLACE_READ_NOW, &got, err);

    /* Reading several parts may wait. The entry of an imported object does not say whether its body
     * has parts, so the info of the opened object is used. */
    if (code == 0 && got.info.part_count && !entry->part_count)
        code = ERR_AGAIN;
    return body_give(got, code, out);
}

int lake_body_etag(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_entry *entry, struct str *out, struct err *err)
{
    struct get_result head = {0};
    struct object_place p;
    int code = lake_address_open(&p, l, a, r, entry, PLACE_READ, err);

    if (code == 0) {
        code = p.bucket->ops->head(p.bucket, a, p.key, STR_EMPTY, NULL, &head, err);
        if (code == 0)
            code = lake_address_check(&p, entry, &head.info, err);
        code = object_place_end(&p, code, err);
    }
    *out = head.info.etag;
    return body_result(entry, code, err);
}

/* --- removing --- */

void lake_body_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry)
{
    struct remove_options o = {0};
    struct remove_result removed;
    struct err err = {0};
    struct object_place p;
    int code = lake_address_open(&p, l, a, r, entry, PLACE_REMOVE, &err);

    if (code == 0) {
        code = object_place_may(&p, &err);
        if (code == 0)
            code = p.bucket->ops->remove(p.bucket, a, p.key, &o, &removed, &err);
        code = object_place_end(&p, code, &err);
    }
    if (code < 0)
        log_warn(l->o.log, "lake.body_left", log_s("repository", r->id),
                 log_s("address", entry->address), log_z("error", err.text));
}

bool lake_body_is_free(int stage_code, bool may_be_there)
{
    return stage_code < 0 && !may_be_there && err_kind(stage_code) == ERR_KIND_EXPECTED;
}
