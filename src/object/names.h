/* The names that S3 has for what is kept with an object: for those who speak it to clients and for
 * those who speak it to storages. */
#ifndef OBJECT_NAMES_H
#define OBJECT_NAMES_H

#include "object/digest.h"

/* NULL for MD5, which is no checksum of S3's. */
const char *checksum_header(enum digest_kind kind);    /* "x-amz-checksum-crc32" */
const char *checksum_element(enum digest_kind kind);   /* "ChecksumCRC32" */
const char *checksum_algorithm(enum digest_kind kind); /* "CRC32" */
/* The other way, in any case; false when it is none. */
bool checksum_by_header(struct str name, enum digest_kind *kind);
bool checksum_by_algorithm(struct str name, enum digest_kind *kind);

/* Headers that come back as they were put, in any case. */
bool header_is_kept(struct str name);
bool header_is_user_meta(struct str name); /* "x-amz-meta-..."; kept as well */

#endif
