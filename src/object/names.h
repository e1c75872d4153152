/* S3's names of checksums and headers that are kept with an object. The gateway uses them towards
 * clients, the remote storage towards peers. */
#ifndef OBJECT_NAMES_H
#define OBJECT_NAMES_H

#include "object/digest.h"

/* S3's names of each kind of checksum; NULL for MD5, which S3 does not count as a checksum. */
struct checksum_name {
    struct str header;     /* "x-amz-checksum-crc32" */
    const char *element;   /* "ChecksumCRC32" */
    const char *algorithm; /* "CRC32" */
};
extern const struct checksum_name checksum_names[DIGEST_KINDS];
/* Finds the kind that has this name, in upper or lower case; false: there is none. */
bool checksum_by_header(struct str name, enum digest_kind *kind);
bool checksum_by_algorithm(struct str name, enum digest_kind *kind);

/* Whether the header is kept with an object and comes back as it was put. The name may be in any
 * case. */
bool header_is_kept(struct str name);
/* Whether the header is "x-amz-meta-...". Such headers are kept too. */
bool header_is_user_meta(struct str name);

#endif
