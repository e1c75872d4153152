/* Checks the version of the rows' layout when a driver prepares itself, and writes the version if
 * the store has none (docs/kv.md, K9). */
#include "kv/kv_int.h"

static const struct kv_name version_name = {STR("kv-internal-metadata"), STR("kv/schema/version")};

static int version_judge(struct str text, struct err *err)
{
    uint64_t found, known;

    if (str_u64(STR(KV_SCHEMA_VERSION), &known) < 0 || str_u64(text, &found) < 0)
        return err_set(err, ERR_CORRUPT,
                       "the schema version of the key-value store is not a number");
    if (found == known)
        return 0;
    return err_set(err, ERR_VERSION,
                   "the key-value store has schema version %llu, and this weir knows version %llu; "
                   "another program uses these rows",
                   (unsigned long long)found, (unsigned long long)known);
}

/* Writes the version. ERR_PRECONDITION: another process has written it meanwhile. */
static int version_write(struct kv *kv, struct err *err)
{
    struct kv_change put = {
        .what = KV_PUT, .name = version_name, .value = STR(KV_SCHEMA_VERSION), .when = KV_ABSENT};
    size_t failed;

    return kv->ops->write(kv, &put, 1, &failed, NULL, NULL, 0, NULL, err);
}

int kv_schema_check(struct kv *kv, struct err *err)
{
    struct arena a = ARENA_INIT(2 * KV_VALUE_MAX);
    struct kv_value value = {0};
    int code = kv->ops->get(kv, NULL, &a, &version_name, 1, &value, err);

    if (code == 0 && !kv_is_there(&value)) {
        code = version_write(kv, err);
        if (code == 0)
            value.bytes = STR(KV_SCHEMA_VERSION);
        else if (code == ERR_PRECONDITION)
            code = kv->ops->get(kv, NULL, &a, &version_name, 1, &value, err);
    }
    if (code == 0)
        code = version_judge(value.bytes, err);
    arena_release(&a);
    return code;
}
