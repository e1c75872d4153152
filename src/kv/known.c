/* Remembers in a file which key-value store this weir uses, so that an empty store or another store
 * is refused (docs/kv.md, K12). */
#include "base/ids.h"
#include "kv/kv_int.h"
#include "os/file.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_HEAD "weir key-value store "

enum { KNOWN_BYTES_MAX = 256 };

static const struct kv_name id_name = {STR("kv-internal-metadata"), STR("kv/store/id")};

/* Reads the store's id from the file. ERR_NOT_FOUND: there is no file. */
static int known_read(const char *path, struct arena *a, struct str *out, struct err *err)
{
    struct buf text = BUF_INIT(KNOWN_BYTES_MAX);
    struct str line, rest;
    int code = file_read(path, &text, err);

    if (code == 0 && (!str_starts(buf_str(&text), STR(KNOWN_HEAD)) ||
                      !str_cut(buf_str(&text), '\n', &line, &rest)))
        code = err_set(err, ERR_CORRUPT, "%s is not a file that weir has written", path);
    if (code == 0)
        *out = arena_str(a, str_skip(line, sizeof(KNOWN_HEAD) - 1));
    buf_release(&text);
    return code;
}

static int known_write(const char *path, struct str id, struct err *err)
{
    struct buf text = BUF_INIT(KNOWN_BYTES_MAX);

    buf_appendf(&text, KNOWN_HEAD STR_FMT "\n", STR_ARG(id));
    int code = file_write_durable(path, buf_str(&text), 0600, err);
    buf_release(&text);
    return code;
}

static int store_id_read(struct kv *kv, struct arena *a, struct str *out, struct err *err)
{
    struct kv_value value = {0};
    int code = kv->ops->get(kv, NULL, a, &id_name, 1, &value, err);

    *out = value.bytes;
    return code < 0 || kv_is_there(&value) ? code : err_code(err, ERR_NOT_FOUND);
}

/* Gives the store an id, unless another process has just done so. */
static int store_id_make(struct kv *kv, struct arena *a, struct str *out, struct err *err)
{
    char id[ID_HEX_LEN + 1];
    size_t failed;

    id_hex(id);
    struct kv_change put = {.what = KV_PUT, .name = id_name, .value = str_z(id), .when = KV_ABSENT};
    int code = kv->ops->write(kv, &put, 1, &failed, NULL, NULL, 0, NULL, err);
    return code < 0 && code != ERR_PRECONDITION ? code : store_id_read(kv, a, out, err);
}

static int known_refuse(const struct kv *kv, bool is_empty, struct err *err)
{
    return err_set(err, ERR_STORE,
                   "the key-value store on %s is %s, not the one that this weir has worked with: "
                   "put its data back; to begin with it all the same, remove the file %s and start "
                   "weir again",
                   kv->driver, is_empty ? "empty" : "another one", kv->known);
}

int kv_known_check(struct kv *kv, struct err *err)
{
    struct arena a = ARENA_INIT(2 * KV_VALUE_MAX);
    struct str known = STR_EMPTY, id = STR_EMPTY;
    int code = known_read(kv->known, &a, &known, err);
    bool is_new = code == ERR_NOT_FOUND;

    if (code == 0 || is_new)
        code = store_id_read(kv, &a, &id, err);
    if (code == ERR_NOT_FOUND)
        code = is_new ? store_id_make(kv, &a, &id, err) : known_refuse(kv, true, err);
    else if (code == 0 && !is_new && !str_eq(id, known))
        code = known_refuse(kv, false, err);
    if (code == 0 && is_new)
        code = known_write(kv->known, id, err);
    arena_release(&a);
    /* Here ERR_NOT_FOUND means that the row of the store's id is absent. A caller would understand
     * that its own row is absent (K5), so the code is changed. */
    return code == ERR_NOT_FOUND ? err_wrap(err, ERR_UNAVAILABLE, "remembering the key-value store")
                                 : code;
}

int kv_know(struct kv *kv, const char *path, struct err *err)
{
    kv->known = xstrdup(path);
    if (!atomic_load(&kv->prepared))
        return 0;
    int code = kv_known_check(kv, err);
    if (code < 0)
        atomic_store(&kv->prepared, false);
    return code;
}
