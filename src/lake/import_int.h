/* The record of an import, for the files import*.c alone. */
#ifndef LAKE_IMPORT_INT_H
#define LAKE_IMPORT_INT_H

#include "lake/import.h"
#include "lake/lake_int.h"

/* The row imports/<id> of the repository's partition. Fields up to 99 are lakeFS's message
 * ImportStatusData. */
struct import_record {
    struct lake_import_status status;
    struct str branch, message, committer, user;
    struct str_pairs metadata;
    bool force, needs_objects;
    struct lake_import_path paths[LAKE_IMPORT_PATHS_MAX];
    size_t path_count;
    struct str stamp; /* the row as it was read, for conditions of writes; not in the record */
};

struct kv_name import_key(struct arena *a, const struct lake_repo *r, struct str id);
/* Appends the encoded record. */
void import_record_write(struct buf *out, const struct import_record *rec);
/* Reads an encoded record into *out, whose members must be zero. Its strings point into `in`.
 * ERR_CORRUPT: the bytes are not such a record, or name too many paths. */
int import_record_read(struct import_record *out, struct arena *a, struct str in,
                       struct err *err) MUST_CHECK;
/* Encodes the record in the arena, with the present time. An empty string: it is too large. */
struct str import_record_encode(struct arena *a, struct import_record *rec);
/* Reads the record into the arena. ERR_NOT_FOUND: there is no such import, or the repository was
 * deleted. */
int import_record_load(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                       struct import_record **out, struct err *err) MUST_CHECK;
/* Writes the record if the row is still as it was read. ERR_CONFLICT: it has changed, for example
 * because the import was canceled. ERR_NOT_FOUND: the repository was deleted. */
int import_record_save(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct import_record *rec, struct err *err) MUST_CHECK;

#endif
