/* Headers of ZIP files. */
#include "archive/zip_format.h"

#include <time.h>

enum {
    ZIP_VERSION = 20,    /* the version that a reader must know for folders and deflate: 2.0 */
    ZIP_VERSION_64 = 45, /* the version that a reader must know for Zip64: 4.5 */
    ZIP_MADE_BY = 3 << 8 | ZIP_VERSION_64, /* made by a Unix program, so the Unix modes are valid */
    ZIP_UTF8 = 1 << 11,
    EXTRA_TIME = 0x5455,
    EXTRA_64 = 0x0001,
    DOS_FOLDER = 0x10,
};

static bool is_long(uint64_t v)
{
    return v >= UINT32_MAX;
}

static uint32_t short_of(uint64_t v)
{
    return is_long(v) ? UINT32_MAX : (uint32_t)v;
}

/* --- times --- */

/* DOS counts years from 1980 to 2107, in steps of two seconds. */
static uint32_t dos_time(int64_t time_s)
{
    static const int64_t first = 315532800, last = 4354819198; /* 1980-01-01, 2107-12-31 */
    time_t at = time_s < first ? first : time_s > last ? last : time_s;
    struct tm d = {0};

    gmtime_r(&at, &d);
    uint32_t date =
        (uint32_t)(d.tm_year - 80) << 9 | (uint32_t)(d.tm_mon + 1) << 5 | (uint32_t)d.tm_mday;
    uint32_t time = (uint32_t)d.tm_hour << 11 | (uint32_t)d.tm_min << 5 | (uint32_t)d.tm_sec / 2;
    return date << 16 | time;
}

static bool time_fits(int64_t time_s)
{
    return time_s >= 0 && time_s <= INT32_MAX;
}

static void append_time(struct buf *out, int64_t time_s)
{
    if (!time_fits(time_s))
        return;
    buf_append_le16(out, EXTRA_TIME);
    buf_append_le16(out, 5);
    buf_append_char(out, 1); /* the extra field has only the time of the last change */
    buf_append_le32(out, (uint32_t)time_s);
}

static size_t time_len(int64_t time_s)
{
    return time_fits(time_s) ? 9 : 0;
}

/* --- entries --- */

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] >= 128)
            return false;
    return true;
}

/* The fields that both headers of an entry have, from the version to the lengths. */
static void append_common(struct buf *out, const struct zip_entry *e, bool is_64, size_t extra)
{
    bool utf8 = !is_ascii(e->name) && str_is_utf8(e->name);

    buf_append_le16(out, is_64 ? ZIP_VERSION_64 : ZIP_VERSION);
    buf_append_le16(out, utf8 ? ZIP_UTF8 : 0);
    buf_append_le16(out, (uint16_t)e->method);
    buf_append_le32(out, dos_time(e->time_s));
    buf_append_le32(out, e->crc);
    /* If one of the two sizes needs Zip64, both are written in the extra field: a local header
     * requires that, and the directory does the same. */
    bool both = is_long(e->size) || is_long(e->stored);
    buf_append_le32(out, both ? UINT32_MAX : (uint32_t)e->stored);
    buf_append_le32(out, both ? UINT32_MAX : (uint32_t)e->size);
    buf_append_le16(out, (uint16_t)e->name.len);
    buf_append_le16(out, (uint16_t)extra);
}

void zip_local_header(struct buf *out, const struct zip_entry *e)
{
    bool is_64 = is_long(e->size) || is_long(e->stored);

    buf_append_le32(out, 0x04034b50);
    append_common(out, e, is_64, time_len(e->time_s) + (is_64 ? 20 : 0));
    buf_append_str(out, e->name);
    append_time(out, e->time_s);
    if (!is_64)
        return;
    buf_append_le16(out, EXTRA_64);
    buf_append_le16(out, 16);
    buf_append_le64(out, e->size);
    buf_append_le64(out, e->stored);
}

void zip_directory_row(struct buf *out, const struct zip_entry *e)
{
    bool sizes = is_long(e->size) || is_long(e->stored), place = is_long(e->at);
    size_t len_64 = (sizes ? 16 : 0) + (place ? 8 : 0);
    bool is_folder = str_ends(e->name, STR("/"));

    buf_append_le32(out, 0x02014b50);
    buf_append_le16(out, ZIP_MADE_BY);
    append_common(out, e, len_64 > 0, time_len(e->time_s) + (len_64 ? 4 + len_64 : 0));
    buf_append_le16(out, 0); /* comment */
    buf_append_le16(out, 0); /* disk */
    buf_append_le16(out, 0); /* internal attributes */
    buf_append_le32(out, (uint32_t)e->mode << 16 | (is_folder ? DOS_FOLDER : 0));
    buf_append_le32(out, short_of(e->at));
    buf_append_str(out, e->name);
    append_time(out, e->time_s);
    if (!len_64)
        return;
    buf_append_le16(out, EXTRA_64);
    buf_append_le16(out, (uint16_t)len_64);
    if (sizes) {
        buf_append_le64(out, e->size);
        buf_append_le64(out, e->stored);
    }
    if (place)
        buf_append_le64(out, e->at);
}

/* --- the end --- */

static void append_end_64(struct buf *out, const struct zip_end *e)
{
    buf_append_le32(out, 0x06064b50);
    buf_append_le64(out, 44); /* bytes of this record that follow this number */
    buf_append_le16(out, ZIP_MADE_BY);
    buf_append_le16(out, ZIP_VERSION_64);
    buf_append_le32(out, 0);
    buf_append_le32(out, 0);
    buf_append_le64(out, e->entries);
    buf_append_le64(out, e->entries);
    buf_append_le64(out, e->directory_len);
    buf_append_le64(out, e->directory_at);
    buf_append_le32(out, 0x07064b50); /* the locator of the record */
    buf_append_le32(out, 0);
    buf_append_le64(out, e->directory_at + e->directory_len);
    buf_append_le32(out, 1);
}

void zip_end_record(struct buf *out, const struct zip_end *e)
{
    uint16_t entries = e->entries >= UINT16_MAX ? UINT16_MAX : (uint16_t)e->entries;

    if (entries == UINT16_MAX || is_long(e->directory_at) || is_long(e->directory_len))
        append_end_64(out, e);
    buf_append_le32(out, 0x06054b50);
    buf_append_le16(out, 0);
    buf_append_le16(out, 0);
    buf_append_le16(out, entries);
    buf_append_le16(out, entries);
    buf_append_le32(out, short_of(e->directory_len));
    buf_append_le32(out, short_of(e->directory_at));
    buf_append_le16(out, (uint16_t)e->comment.len);
    buf_append_str(out, e->comment);
}
