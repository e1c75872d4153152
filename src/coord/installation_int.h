/* Between the files of the installation. */
#ifndef COORD_INSTALLATION_INT_H
#define COORD_INSTALLATION_INT_H

#include "coord/installation.h"
#include "os/thread.h"

enum { RUN_MAX = 96, BOOT_MAX = 64 };

/* The file `installation`. It is written as a whole and renamed whenever a member changes. */
struct remembered {
    char id[ID_HEX_LEN + 1];     /* of the installation; empty: none is remembered */
    char folder[ID_HEX_LEN + 1]; /* of this data folder, made by its first start */
    char run[RUN_MAX + 1];       /* of the store's server, when the file was written */
    bool clean;                  /* written by an orderly stop: `number` is the last one */
    uint64_t number;             /* the highest acknowledged number (coord/seen.h) */
    uint64_t config;             /* changes of the configuration in the copy on disk */
};
/* ERR_NOT_FOUND: there is no such file. */
int remembered_read(struct remembered *out, const char *path, struct err *err) MUST_CHECK;
int remembered_write(const struct remembered *r, const char *path, struct err *err) MUST_CHECK;

/* The file `installation.number`, mapped into memory: the highest acknowledged number at every
 * moment. It survives a kill of the process. After a crash of the machine it is not used. */
struct number_page {
    char magic[16], boot[BOOT_MAX];
    _Atomic(uint64_t) number;
};
/* *kept: the file was written since the machine was started. */
int number_page_open(struct number_page **out, const char *path, struct str boot, bool *kept,
                     struct err *err) MUST_CHECK;
void number_page_close(struct number_page *p);

struct installation {
    struct installation_options o;
    struct buf path;
    struct number_page *page;
    struct seen seen;
    _Atomic(bool) halted;
    struct remembered r; /* belongs to the thread that asks, as the next three */
    bool certain;        /* no number above the known one was acknowledged */
    bool kept;           /* the file exists */
    bool asked;          /* the store was found to be the known one at least once */
    struct mutex lock;   /* class "installation"; guards what follows */
    struct installation_status status;
    bool asking; /* a thread asks; only one at a time, so that an older answer never follows a newer
                    one */
    struct cond asked_last;
};

#endif
