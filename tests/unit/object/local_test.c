/* The local storage: the conformance suite, and what is its own. */
#include "unit/object/local_lab.h"

static void with_storage(void (*fn)(struct lab *))
{
    struct local_lab l;

    local_lab_open(&l, NULL);
    fn(&l.lab);
    local_lab_expect_whole(&l);
    local_lab_close(&l);
}

#define X(name)                                                                                    \
    TEST(local_bucket, name)                                                                       \
    {                                                                                              \
        with_storage(conform_##name);                                                              \
    }
BUCKET_CONFORMANCE(X)
#undef X
