/* Finds out whether several sides have the same object under one key. It uses the listings if they
 * are enough, else checksums of the whole objects, else the bytes. */
#include "copy/compare_int.h"
#include "copy/copy_int.h"

#include <stdlib.h>

enum { READ_SIZE = 256 * 1024, WATCH_STEP = 4 * 1024 * 1024, MD5_HEX = 32 };

/* --- digests --- */

static int digest_body(struct digest_value *out, const struct compare_options *o, size_t side,
                       struct reader *body, struct err *err)
{
    struct digests *d = digests_new(1u << DIGEST_SHA256);
    char *bytes = xzalloc(READ_SIZE);
    uint64_t since = 0;
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(body, bytes, READ_SIZE, &got, err);
        if (code == 0)
            digests_update(d, str_n(bytes, got));
        since += got;
        if (code == 0 && since && (since >= WATCH_STEP || !got)) {
            code = compare_watch(o, side, since, err);
            since = 0;
        }
    }
    if (code == 0)
        digests_final(d, DIGEST_SHA256, out);
    digests_free(d);
    free(bytes);
    return code;
}

static int compared_unlock(const struct compare_options *o, struct bucket *b,
                           struct get_result *got, struct err *err)
{
    struct envelope e = {0};
    struct sealed_key key = {{0}};
    int code = copy_unseal(&e, o->keys, b, &got->info, &key, err);

    if (code == 0)
        code = got->unlock(got->body, &key, err);
    secure_zero(&key, sizeof(key));
    return code;
}

int compare_digest(struct str *out, struct arena *a, const struct compare_options *o, size_t side,
                   const struct object_info *info, struct err *err)
{
    struct bucket *b = o->buckets[side];
    struct object_conditions is = {.if_match =
                                       arena_fmt(a, "\"" STR_FMT "\"", STR_ARG(info->etag))};
    struct get_result got = {0};
    struct digest_value value = {0};
    int code = compare_watch(o, side, 0, err);

    if (code < 0)
        return code;
    code =
        b->ops->get(b, a, info->key, o->versions ? info->version : STR_EMPTY, &is, NULL, &got, err);
    if (code == ERR_PRECONDITION || code == ERR_NOT_FOUND)
        return err_set(err, ERR_CONFLICT, "it changed meanwhile");
    if (code < 0)
        return code;
    if (got.unlock)
        code = compared_unlock(o, b, &got, err);
    if (code == 0)
        code = digest_body(&value, o, side, got.body, err);
    reader_close(got.body);
    if (code == 0)
        *out = arena_hex(a, value.bytes, value.len);
    return code < 0 ? code : arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Returns the reason why an object cannot be read; NULL: the side itself has failed. An unreadable
 * object is a difference (DIFFERENCE_UNKNOWN); a side that fails ends the comparison. */
static const char *unreadable(int code)
{
    static const struct {
        int code;
        const char *why;
    } table[] = {
        {ERR_CONFLICT, "it changed meanwhile"},
        {ERR_UNSUPPORTED, "it is sealed with a key that is not here"},
        {ERR_INVALID, "the storage refuses to give it"},
        {ERR_DENIED, "the storage refuses to give it"},
        {ERR_CORRUPT, "its bytes are damaged"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (table[i].code == code)
            return table[i].why;
    return NULL;
}

static int compared_read(struct compared *c, size_t i, struct err *err)
{
    struct object_info info = *c->infos[i];
    int code = 0;

    info.key = c->key;
    if (!c->sides[i].digest.len)
        code = compare_digest(&c->sides[i].digest, &c->a, c->o, i, &info, err);
    if (code == 0)
        *c->bytes += info.size;
    return code;
}

/* Compares the bytes of each side with the bytes of the first side. */
static int by_bytes(struct compared *c, bool *same, struct difference *d, struct err *err)
{
    *same = true;
    d->kind = DIFFERENCE_CONTENT;
    for (size_t i = 0; i < c->o->count; i++) {
        struct err own = {0};
        int code = compared_read(c, i, &own);
        const char *why = unreadable(code);
        if (code < 0 && !why)
            return err_set(err, code, "%s", own.text);
        if (why) {
            *same = false;
            d->kind = DIFFERENCE_UNKNOWN;
            d->why = why;
            return 0;
        }
        *same = *same && str_eq(c->sides[i].digest, c->sides[0].digest);
    }
    return 0;
}

/* --- checksums of the whole objects --- */

enum verdict { SAME, OTHER, OPEN };

static enum verdict by_checksum(const struct object_info *x, const struct object_info *y)
{
    const struct object_checksum *a = &x->meta.checksum, *b = &y->meta.checksum;

    if (str_eq(x->etag, y->etag) && x->etag.len)
        return SAME;
    if (a->type != CHECKSUM_FULL_OBJECT || b->type != CHECKSUM_FULL_OBJECT || a->kind != b->kind ||
        !a->value.len || !b->value.len)
        return OPEN;
    return str_eq(a->value, b->value) ? SAME : OTHER;
}

static int compared_look(struct compared *c, size_t i, struct object_info *out, bool *gone,
                         struct err *err)
{
    struct bucket *b = c->o->buckets[i];
    struct get_result got = {0};
    int code = compare_watch(c->o, i, 0, err);

    if (code == 0)
        code = b->ops->head(b, &c->a, c->key, c->o->versions ? c->infos[i]->version : STR_EMPTY,
                            NULL, &got, err);
    *out = got.info;
    *gone = code == ERR_NOT_FOUND || (code == 0 && !str_eq(got.info.etag, c->infos[i]->etag));
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Decides whether all sides have the same object when their ETags cannot be compared. Checksums
 * decide if they can, else the bytes. */
static int compared_settle(struct compared *c, bool *same, struct difference *d, struct err *err)
{
    struct object_info first, other;
    bool gone = false, open = false;
    int code = compared_look(c, 0, &first, &gone, err);

    d->kind = DIFFERENCE_ETAG;
    for (size_t i = 1; code == 0 && !gone && i < c->o->count; i++) {
        code = compared_look(c, i, &other, &gone, err);
        enum verdict v = code == 0 && !gone ? by_checksum(&first, &other) : OPEN;
        if (v == OTHER)
            return 0;
        open = open || v == OPEN;
    }
    if (code == 0 && gone) {
        d->kind = DIFFERENCE_UNKNOWN;
        d->why = unreadable(ERR_CONFLICT);
    }
    if (code < 0 || gone)
        return code;
    *same = !open;
    return open ? by_bytes(c, same, d, err) : 0;
}

/* --- listings --- */

/* Returns whether an ETag is an MD5. The ETags of objects made of parts, and of objects that weir
 * sealed with a named key, have a dash. */
static bool is_md5(struct str etag)
{
    bool hex = etag.len == MD5_HEX;

    for (size_t i = 0; hex && i < etag.len; i++) {
        char x = etag.p[i];
        hex = (x >= '0' && x <= '9') || (x >= 'a' && x <= 'f');
    }
    return hex;
}

/* The facts that the listings give about one key. */
struct listed_facts {
    bool missing;      /* some side does not have the key */
    bool marker;       /* some sides have a delete marker, other sides have bytes */
    bool markers;      /* all sides have a delete marker */
    bool sizes, etags; /* all sides have the same size; the same ETag */
    bool md5s;         /* all ETags are MD5s */
    bool empty;        /* all sides have 0 bytes */
};

static struct listed_facts listed_facts_gather(struct compared *c)
{
    struct listed_facts f = {.markers = true, .sizes = true, .etags = true, .md5s = true};
    const struct object_info *first = NULL;

    f.empty = true;
    for (size_t i = 0; i < c->o->count; i++) {
        const struct object_info *x = c->infos[i];
        f.missing = f.missing || !x;
        if (!x)
            continue;
        c->sides[i] = (struct difference_side){.found = true,
                                               .is_marker = x->is_marker,
                                               .size = x->size,
                                               .etag = x->etag,
                                               .version = x->version};
        first = first ? first : x;
        f.marker = f.marker || x->is_marker != first->is_marker;
        f.markers = f.markers && x->is_marker;
        f.sizes = f.sizes && x->size == first->size;
        f.etags = f.etags && x->etag.len && str_eq(x->etag, first->etag);
        f.md5s = f.md5s && is_md5(x->etag);
        f.empty = f.empty && x->size == 0;
    }
    return f;
}

int compare_one(struct compared *c, bool *same, struct difference *d, struct err *err)
{
    const struct compare_options *o = c->o;
    struct listed_facts f = listed_facts_gather(c);

    *same = false;
    if (f.missing || f.marker) {
        d->kind = f.missing ? DIFFERENCE_MISSING : DIFFERENCE_MARKER;
        return 0;
    }
    *same = f.markers;
    d->kind = DIFFERENCE_SIZE;
    if (f.markers || (!f.sizes && !o->ignore_sizes))
        return 0;
    *same = f.empty || (!o->contents && (o->ignore_etags || f.etags));
    d->kind = DIFFERENCE_ETAG;
    if (*same || (!f.sizes && !o->contents) || (f.md5s && !o->contents))
        return 0;
    return o->contents ? by_bytes(c, same, d, err) : compared_settle(c, same, d, err);
}
