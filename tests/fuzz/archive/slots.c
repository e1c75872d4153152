/* Tables of slots: a table that reads is written and read again the same. */
#include "archive/slots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct slots t, again;
    struct buf out = {0};
    struct err err = {0};

    if (slots_read(&t, str_n(data, size), &err) < 0)
        return 0;
    slots_write(&out, &t);
    BUG_ON(slots_read(&again, buf_str(&out), &err) < 0 || memcmp(&t, &again, sizeof(t)) != 0);
    buf_release(&out);
    return 0;
}
