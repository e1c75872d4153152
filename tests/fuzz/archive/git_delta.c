/* Deltas: whatever they say, they stay inside their base and their result. The first byte is the
 * length of the base, which comes next; the rest is the delta. */
#include "archive/delta.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESULT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct delta_sizes sizes;
    struct err err = {0};

    if (size == 0 || size - 1 < data[0])
        return 0;
    /* copies of their own, so that a byte beyond them is noticed */
    size_t base_len = data[0], delta_len = size - 1 - base_len;
    char *base = str_dup(str_n(data + 1, base_len));
    char *copy = str_dup(str_n(data + 1 + base_len, delta_len));
    struct str delta = str_n(copy, delta_len);
    if (delta_sizes_read(&sizes, &delta, &err) == 0 && sizes.result <= RESULT_MAX) {
        unsigned char *to = xrealloc(NULL, sizes.result + 1);
        to[sizes.result] = 77;
        int code = delta_apply(to, (size_t)sizes.result, str_n(base, base_len), delta, &err);
        BUG_ON(code < 0 && code != ERR_PARSE);
        BUG_ON(to[sizes.result] != 77);
        free(to);
    }
    free(base);
    free(copy);
    return 0;
}
