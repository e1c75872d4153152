/* Memory in whole pages: zeroed, and the system's again when it is freed. */
#include "os/pages.h"
#include "os/process.h"
#include "unit/test.h"

#include <string.h>

enum { COUNT = 64, SIZE = 1024 * 1024 + 1 };

TEST(pages, are_zeroed_and_go_back_to_the_system)
{
    uint8_t *all[COUNT];
    struct process_use before, during, after;

    process_use(&before);
    for (int i = 0; i < COUNT; i++) {
        all[i] = pages_new(SIZE);
        CHECK(all[i][0] == 0 && all[i][SIZE - 1] == 0);
        memset(all[i], 1, SIZE);
    }
    process_use(&during);
    for (int i = 0; i < COUNT; i++)
        pages_free(all[i], SIZE);
    pages_free(NULL, SIZE);
    process_use(&after);
    CHECK(during.rss_bytes >= before.rss_bytes + COUNT / 2 * (uint64_t)SIZE);
    CHECK(after.rss_bytes + COUNT / 2 * (uint64_t)SIZE <= during.rss_bytes);
}
