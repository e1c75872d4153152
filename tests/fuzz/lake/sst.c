/* lakeFS's tables, and Snappy: whatever the bytes are, reading them ends, and stays inside them. */
#include "lake/sst_unpack.h"
#include "read_node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { UNPACKED_MAX = 1 << 20 };
    struct node_id id = {0};
    struct buf out = {0};

    if (node_is_table(str_n(data, size)))
        read_node(str_n(data, size), &id);
    else if (sst_unpack(&out, str_n(data, size), UNPACKED_MAX))
        BUG_ON(out.len > UNPACKED_MAX);
    buf_release(&out);
    return 0;
}
