/* Tables of slots: a table that reads is written and read again the same. */
#include "archive/slots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool slots_are_equal(const struct slots *a, const struct slots *b)
{
    return a->epoch == b->epoch && a->count == b->count &&
           memcmp(a->names, b->names, sizeof(a->names)) == 0 &&
           memcmp(a->of, b->of, sizeof(a->of)) == 0 &&
           memcmp(a->leaves, b->leaves, sizeof(a->leaves)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct slots t, again;
    struct buf out = {0};
    struct err err = {0};

    if (slots_read(&t, str_n(data, size), &err) < 0)
        return 0;
    slots_write(&out, &t);
    BUG_ON(slots_read(&again, buf_str(&out), &err) < 0 || !slots_are_equal(&t, &again));
    buf_release(&out);
    return 0;
}
