/* Node files of weir: whatever the bytes are, reading them ends, and stays inside them. The id that
 * is asked for is the one in the footer. */
#include "lake/node_file.h"
#include "read_node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node_id id = {0};

    if (size >= NODE_FOOTER)
        memcpy(id.bytes, data + size - NODE_FOOTER + FOOTER_ID, NODE_ID_LEN);
    read_node(str_n(data, size), &id);
    return 0;
}
