/* A configuration file in: a snapshot or problems, no crash, no leak, and problems stay bounded. */
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf problems = {0};
    struct conf *c = NULL;

    if (conf_load_text(&c, "f", str_n(data, size_min(size, CONF_MAX_FILE)), &problems) < 0) {
        size_t lines = 0;
        for (size_t i = 0; i < problems.len; i++)
            lines += problems.p[i] == '\n';
        BUG_ON(lines == 0 || lines > CONF_MAX_PROBLEMS || c);
    } else {
        BUG_ON(problems.len > 0 || !c->data || !*c->data);
    }
    conf_unref(c);
    buf_release(&problems);
    return 0;
}
