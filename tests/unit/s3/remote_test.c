/* A remote storage: the conformance suite of storages, against a gateway of this process. */
#include "unit/object/bucket_conformance.h"
#include "unit/s3/remote_lab.h"

static void with_storage(void (*fn)(struct lab *))
{
    struct remote_lab *l = remote_lab_start();
    struct lab lab = {
        .storage = remote_lab_storage(l), .part_min = REMOTE_LAB_PART_MIN, .wire = true};

    fn(&lab);
    remote_lab_stop(l);
}

#define X(name)                                                                                    \
    TEST(remote_bucket, name)                                                                      \
    {                                                                                              \
        with_storage(conform_##name);                                                              \
    }
BUCKET_CONFORMANCE(X)
#undef X
