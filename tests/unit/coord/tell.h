/* A process that tells of itself once. */
#ifndef TESTS_UNIT_COORD_TELL_H
#define TESTS_UNIT_COORD_TELL_H

#include "coord/installation.h"
#include "unit/test.h"

static inline void tell_epoch(struct store *config, struct str process, int64_t epoch)
{
    struct installation_options o = {.config = config, .folder = test_dir()};
    struct installation *i = NULL;
    struct err err = {0};

    CHECK_OK(installation_open(&i, &o, &err));
    CHECK_OK(installation_tell(i, process, epoch, &err));
    installation_close(i);
}

#endif
