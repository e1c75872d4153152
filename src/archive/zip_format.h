/* The bytes of a ZIP file's own structures (APPNOTE.TXT, PKWARE, version 6.3). */
#ifndef ARCHIVE_ZIP_FORMAT_H
#define ARCHIVE_ZIP_FORMAT_H

#include "base/buf.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8, ZIP_NAME_MAX = UINT16_MAX };

struct zip_entry {
    struct str name; /* ends with '/' for a folder */
    unsigned mode;   /* of Unix, such as 0100644 */
    unsigned method; /* ZIP_STORED, ZIP_DEFLATED */
    uint32_t crc;
    uint64_t size, stored; /* bytes, before and after deflating */
    uint64_t at;           /* offset of its local header in the file */
    int64_t time_s;        /* seconds since 1970 */
};

/* The header before the data of an entry. */
void zip_local_header(struct buf *out, const struct zip_entry *e);
/* The entry's row in the directory at the end of the file. */
void zip_directory_row(struct buf *out, const struct zip_entry *e);

struct zip_end {
    uint64_t entries;
    uint64_t directory_at, directory_len;
    struct str comment;
};
/* The end of the file, behind the directory. */
void zip_end_record(struct buf *out, const struct zip_end *e);

#endif
