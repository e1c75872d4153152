/* Stored maps of sharded buckets: a text that is read is written back, and then read as the same
 * map; any other text is an error with a text. */
#include "shard/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shard_map *m = NULL, *again = NULL;
    struct buf text = {0}, second = {0};
    struct err err = {0};
    int code = map_parse(&m, str_n(data, size), &err);

    BUG_ON(code < 0 && !err.text[0]);
    if (code < 0)
        return 0;
    map_write(m, &text);
    BUG_ON(map_parse(&again, buf_str(&text), &err) < 0);
    map_write(again, &second);
    BUG_ON(!str_eq(buf_str(&text), buf_str(&second)));
    for (size_t i = 0; i < m->segment_count; i++) {
        BUG_ON(map_segment_after(m, m->segments[i].after) != i);
        BUG_ON(i && map_segment_of(m, m->segments[i].after) != i - 1);
    }
    map_unref(m);
    map_unref(again);
    buf_release(&text);
    buf_release(&second);
    return 0;
}
