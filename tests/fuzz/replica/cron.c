/* Cron lines: never crashes, and the next time lies behind the one that was given, on a minute. */
#include "replica/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times[] = {0, 1, 951782340000, 4102444799999};
    struct cron c;
    struct err err = {0};

    if (cron_parse(&c, str_n((const char *)data, size), &err) < 0)
        return 0;
    BUG_ON(!c.minutes || !c.hours || !c.days || !c.months || !c.weekdays);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        int64_t next = 0;
        if (cron_next(&c, times[i], &next) == 0)
            BUG_ON(next <= times[i] || next % 60000);
    }
    return 0;
}
