/* Notifications of storages: whatever comes is refused, or names objects within the limits; and the
 * same bytes as a bucket's configuration. */
#include "object/bucket.h"
#include "replica/notice.h"
#include "replica/notice_setup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct notices *n)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct notice *one = &n->list[i];
        BUG_ON(!one->bucket.len || !one->changes || !one->key_count);
        BUG_ON(one->key_count > NOTICE_KEYS);
        for (size_t k = 0; k < one->key_count; k++)
            BUG_ON(!one->keys[k].len || one->keys[k].len > OBJECT_KEY_MAX ||
                   !str_is_utf8(one->keys[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT(64 * MIB);
    struct buf spliced = BUF_INIT(4 * MIB), again = BUF_INIT(4 * MIB);
    struct str text = str_n(data, size);
    struct notices n;

    if (notices_read(&n, &a, text, NULL) == 0)
        check(&n);
    if (notice_splice(&spliced, text, STR("weir-1"), STR("<Topic/>"), NULL) == 0)
        BUG_ON(notice_splice(&again, buf_str(&spliced), STR("weir-1"), STR_EMPTY, NULL) < 0);
    (void)!notice_target_check(text, NULL);
    buf_release(&spliced);
    buf_release(&again);
    arena_release(&a);
    return 0;
}
