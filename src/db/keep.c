/* Space, ranges that go at once, copies, numbers. */
#include "db/db_int.h"

#include "base/clock.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPACE_CHECK_BYTES = 1024 * 1024, SPACE_CHECK_NS = 100 * 1000 * 1000 };

/* Refusing while a reserve is left keeps RocksDB from ever meeting a full disk in the middle of a
 * log record, and leaves it room to compact, which is what frees space again. */
int space_check(struct db *db, size_t bytes, struct err *err)
{
    struct space *s = &db->group.space;
    uint64_t now = clock_mono_ns(), available, total;

    s->written += bytes;
    if (s->checked_ns != 0 && s->written < SPACE_CHECK_BYTES &&
        now - s->checked_ns < SPACE_CHECK_NS)
        return 0;
    int code = file_free_space(db->path, &available, &total, err);
    if (code != 0)
        return code;
    s->checked_ns = 0;
    if (available < s->reserve + bytes)
        return err_set(err, ERR_NO_SPACE,
                       "%s: the disk is full: %llu MiB free, %llu MiB are kept in reserve",
                       db->path, (unsigned long long)(available / MIB),
                       (unsigned long long)(s->reserve / MIB));
    s->checked_ns = now;
    s->written = 0;
    return 0;
}
