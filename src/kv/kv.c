/* The calls of the key-value store: they check the arguments and pass valid ones to the driver. */
#include "kv/kv.h"
#include "base/hash.h"
#include "kv/kv_int.h"

#include <stdatomic.h>
#include <stdlib.h>

/* --- checks --- */

static int name_check(const struct kv_name *name, struct err *err)
{
    if (name->partition.len == 0)
        return err_set(err, ERR_INVALID, "the partition of a row is missing");
    if (name->key.len == 0)
        return err_set(err, ERR_INVALID, "the key of a row is missing");
    if (name->partition.len > KV_PARTITION_MAX)
        return err_set(err, ERR_INVALID, "a partition of %zu bytes; the limit is %d",
                       name->partition.len, KV_PARTITION_MAX);
    if (name->key.len > KV_KEY_MAX)
        return err_set(err, ERR_INVALID, "a key of %zu bytes; the limit is %d", name->key.len,
                       KV_KEY_MAX);
    return 0;
}

static int names_check(const struct kv_name *names, size_t count, struct err *err)
{
    int code = 0;

    if (count > KV_GETS_MAX)
        return err_set(err, ERR_INVALID, "%zu rows in one read; the limit is %d", count,
                       KV_GETS_MAX);
    for (size_t i = 0; i < count && code == 0; i++)
        code = name_check(&names[i], err);
    return code;
}

static int change_check(const struct kv_change *c, struct err *err)
{
    /* Whether a change of this kind may have this condition: fits[kind][condition]. */
    static const bool fits[][KV_SAME + 1] = {
        [KV_PUT] = {true, true, true, true},
        [KV_REMOVE] = {true, false, true, true},
        [KV_CHECK] = {false, false, true, true},
        [KV_GLANCE] = {false, false, false, true},
    };

    if (c->what > KV_GLANCE || c->when > KV_SAME || !fits[c->what][c->when])
        return err_set(err, ERR_INVALID, "a change of this kind cannot have this condition");
    if (c->what == KV_PUT && !c->value.p)
        return err_set(err, ERR_INVALID, "the value of a row is missing");
    if (c->what == KV_PUT && c->value.len > KV_VALUE_MAX)
        return err_set(err, ERR_INVALID, "a value of %zu bytes; the limit is %d", c->value.len,
                       KV_VALUE_MAX);
    if (c->when == KV_SAME && c->stamp.len > KV_VALUE_MAX)
        return err_set(err, ERR_INVALID, "a stamp of %zu bytes", c->stamp.len);
    return name_check(&c->name, err);
}

static size_t change_bytes(const struct kv_change *c)
{
    return c->name.partition.len + c->name.key.len + (c->what == KV_PUT ? c->value.len : 0) +
           (c->when == KV_SAME ? c->stamp.len : 0);
}

/* up to this number of names, each name is compared with each other one */
enum { FEW_CHANGES = 8 };

static bool few_names_recur(const struct kv_change *changes, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (kv_name_is_same(&changes[i].name, &changes[k].name))
                return true;
    return false;
}

/* Whether two changes have the same name. Uses a hash table with the index plus one of each earlier
 * change. */
static bool many_names_recur(const struct kv_change *changes, size_t count)
{
    size_t room = 2 * FEW_CHANGES;
    bool recur = false;

    while (room < 2 * count)
        room *= 2;
    uint16_t *seen = xcalloc(room, sizeof(*seen));
    for (size_t i = 0; i < count && !recur; i++) {
        const struct kv_name *name = &changes[i].name;
        size_t at = hash_xxh3(name->key, hash_xxh3(name->partition, 0)) & (room - 1);
        for (; seen[at] && !recur; at = (at + 1) & (room - 1))
            recur = kv_name_is_same(&changes[seen[at] - 1].name, name);
        seen[at] = (uint16_t)(i + 1);
    }
    free(seen);
    return recur;
}

static int changes_check(const struct kv_change *changes, size_t count, struct err *err)
{
    size_t bytes = 0;
    int code = 0;

    if (count > KV_CHANGES_MAX)
        return err_set(err, ERR_INVALID, "%zu changes in one write; the limit is %d", count,
                       KV_CHANGES_MAX);
    for (size_t i = 0; i < count && code == 0; i++) {
        code = change_check(&changes[i], err);
        bytes += change_bytes(&changes[i]);
    }
    if (code == 0 && bytes > KV_WRITE_MAX)
        code =
            err_set(err, ERR_INVALID, "a write of %zu bytes; the limit is %d", bytes, KV_WRITE_MAX);
    if (code == 0 && (count > FEW_CHANGES ? many_names_recur : few_names_recur)(changes, count))
        code = err_set(err, ERR_INVALID, "two changes of one write have the same name");
    return code;
}

static int partition_check(struct str partition, struct err *err)
{
    return name_check(&(struct kv_name){partition, STR("key")}, err);
}

/* --- opening --- */

/* Runs a step of the driver that is not about a row, and checks that the store is the known one. */
static int kv_step_run(struct kv *kv, int (*step)(struct kv *kv, struct err *err), struct err *err)
{
    uint64_t began_ns;
    int code = kv_call_begins(kv, &began_ns, err);

    if (code < 0)
        return code;
    code = step(kv, err);
    if (code == 0 && kv->known)
        code = kv_known_check(kv, err);
    return kv_call_ends(kv, began_ns, code);
}

int kv_prepare(struct kv *kv, struct err *err)
{
    if (atomic_load_explicit(&kv->prepared, memory_order_acquire))
        return 0;
    int code = kv_step_run(kv, kv->ops->prepare, err);
    if (code == 0)
        atomic_store_explicit(&kv->prepared, true, memory_order_release);
    /* Only the preparation has timed out. The caller's own call has not run, but ERR_TIMEOUT would
     * say that it may have run (K6). */
    return code == ERR_TIMEOUT ? err_wrap(err, ERR_UNAVAILABLE, "preparing the key-value store")
                               : code;
}

int kv_opened(struct kv **out, struct kv *kv, const struct log *log, struct err *err)
{
    static const int passing[] = {ERR_UNAVAILABLE, ERR_BUSY, ERR_STORE};

    kv->log = log;
    int code = kv_prepare(kv, err);
    for (size_t i = 0; i < ARRAY_SIZE(passing) && code < 0; i++)
        if (code == passing[i]) {
            log_warn(log, "kv.not_reached", log_z("driver", kv->driver),
                     log_z("error", err ? err->text : err_text(code)));
            code = 0;
        }
    if (code == 0)
        *out = kv;
    else
        kv->ops->close(kv);
    return code;
}

int kv_probe(struct kv *kv, struct err *err)
{
    int code = kv_prepare(kv, err);

    return code < 0 ? code : kv_step_run(kv, kv->ops->probe, err);
}

void kv_close(struct kv *kv)
{
    if (!kv)
        return;
    char *known = kv->known;
    kv->ops->close(kv);
    free(known);
}

/* --- reading --- */

bool kv_is_at_hand(const struct kv *kv)
{
    return kv->can & KV_AT_HAND && atomic_load_explicit(&kv->prepared, memory_order_acquire);
}

int kv_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    int code = kv_prepare(kv, err);

    return code < 0 ? code : kv->ops->view_open(out, kv, err);
}

void kv_view_close(struct kv *kv, struct kv_view *view)
{
    if (view)
        kv->ops->view_close(kv, view);
}

int kv_get_run(struct kv *kv, struct kv_view *view, struct arena *a, const struct kv_name *names,
               size_t count, struct kv_value *out, struct err *err)
{
    uint64_t began_ns;
    int code = kv_call_begins(kv, &began_ns, err);

    return code < 0 ? code
                    : kv_call_ends(kv, began_ns, kv->ops->get(kv, view, a, names, count, out, err));
}

int kv_get_many(struct kv *kv, struct kv_view *view, struct arena *a, const struct kv_name *names,
                size_t count, struct kv_value *out, struct err *err)
{
    int code = names_check(names, count, err);

    if (code == 0 && count > 0)
        code = kv_prepare(kv, err);
    return code < 0 || count == 0 ? code : kv_get_run(kv, view, a, names, count, out, err);
}

int kv_get(struct kv *kv, struct kv_view *view, struct arena *a, struct kv_name name,
           struct kv_value *out, struct err *err)
{
    struct kv_value value = {0};
    int code = kv_get_many(kv, view, a, &name, 1, &value, err);

    if (code < 0)
        return code;
    if (!kv_is_there(&value))
        return err_code(err, ERR_NOT_FOUND);
    *out = value;
    return 0;
}

/* Shortens the start of a range to KV_KEY_MAX + 1 bytes. A key has at most KV_KEY_MAX bytes, so the
 * bytes that are cut off do not change which keys are at or after the start. */
static struct str start_cut(struct str from)
{
    return str_head(from, KV_KEY_MAX + 1);
}

int kv_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view, struct str partition,
                 const struct kv_range *range, struct err *err)
{
    struct kv_range all = range ? *range : (struct kv_range){0};
    int code = partition_check(partition, err);

    if (code == 0 && all.prefix.len > KV_KEY_MAX)
        code = err_set(err, ERR_INVALID, "a prefix of %zu bytes; the limit is %d", all.prefix.len,
                       KV_KEY_MAX);
    if (code == 0)
        code = kv_prepare(kv, err);
    if (code < 0)
        return code;
    all.from = start_cut(str_cmp(all.from, all.prefix) < 0 ? all.prefix : all.from);
    return kv->ops->scan_open(out, kv, view, partition, &all, err);
}

int kv_scan_next(struct kv_scan *scan, struct str *key, struct str *value, struct err *err)
{
    return scan->kv->ops->scan_next(scan, key, value, err);
}

void kv_scan_seek(struct kv_scan *scan, struct str key)
{
    scan->kv->ops->scan_seek(scan, start_cut(key));
}

void kv_scan_close(struct kv_scan *scan)
{
    scan->kv->ops->scan_close(scan);
}

void kv_scan_free(struct kv_scan *scan)
{
    if (!scan)
        return;
    kv_scan_close(scan);
    scan->kv->ops->scan_free(scan);
}

/* --- writing --- */

bool kv_changes_free(const struct kv_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].what == KV_PUT && !changes[i].frees)
            return false;
    return true;
}

bool kv_changes_later(const struct kv_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((changes[i].what == KV_PUT || changes[i].what == KV_REMOVE) && !changes[i].later)
            return false;
    return true;
}

int kv_write_run(struct kv *kv, const struct kv_write_call *c)
{
    uint64_t began_ns;
    int code = kv_call_begins(kv, &began_ns, c->err);

    return code < 0 ? code
                    : kv_call_ends(kv, began_ns,
                                   kv->ops->write(kv, c->changes, c->count, c->failed, c->arena,
                                                  c->names, c->name_count, c->out, c->err));
}

int kv_write_get(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                 struct arena *a, const struct kv_name *names, size_t name_count,
                 struct kv_value *out, struct err *err)
{
    size_t first = 0;
    struct kv_write_call call = {changes, count, &first, a, names, name_count, out, err};
    int code = changes_check(changes, count, err);

    if (code == 0 && count == 0)
        return kv_get_many(kv, NULL, a, names, name_count, out, err);
    if (code == 0)
        code = names_check(names, name_count, err);
    if (code == 0)
        code = kv_prepare(kv, err);
    if (code == 0)
        code = kv_group_write(kv, &call);
    if (code == ERR_PRECONDITION && failed)
        *failed = first;
    return code;
}

int kv_write(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
             struct err *err)
{
    return kv_write_get(kv, changes, count, failed, NULL, NULL, 0, NULL, err);
}

static int write_one(struct kv *kv, struct kv_change change, struct err *err)
{
    return kv_write(kv, &change, 1, NULL, err);
}

int kv_set(struct kv *kv, struct kv_name name, struct str value, struct err *err)
{
    return write_one(kv, (struct kv_change){.what = KV_PUT, .name = name, .value = value}, err);
}

int kv_set_if(struct kv *kv, struct kv_name name, struct str value, const struct str *stamp,
              struct err *err)
{
    return write_one(kv,
                     (struct kv_change){.what = KV_PUT,
                                        .name = name,
                                        .value = value,
                                        .when = stamp ? KV_SAME : KV_ABSENT,
                                        .stamp = stamp ? *stamp : STR_EMPTY},
                     err);
}

int kv_remove(struct kv *kv, struct kv_name name, struct err *err)
{
    return write_one(kv, (struct kv_change){.what = KV_REMOVE, .name = name}, err);
}

int kv_drop_run(struct kv *kv, struct str partition, struct err *err)
{
    uint64_t began_ns;
    int code = kv_call_begins(kv, &began_ns, err);

    return code < 0 ? code : kv_call_ends(kv, began_ns, kv->ops->drop(kv, partition, err));
}

int kv_drop(struct kv *kv, struct str partition, struct err *err)
{
    int code = partition_check(partition, err);

    if (code == 0)
        code = kv_prepare(kv, err);
    return code < 0 ? code : kv_drop_run(kv, partition, err);
}
