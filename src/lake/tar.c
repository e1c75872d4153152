/* Writes tar archives. */
#include "lake/tar.h"

#include <stdio.h>

/* Offsets in the header of a file. Numbers are octal digits that end with a NUL. */
enum {
    TAR_NAME = 0,
    TAR_MODE = 100,
    TAR_USER = 108,
    TAR_GROUP = 116,
    TAR_SIZE = 124,
    TAR_MODIFIED = 136,
    TAR_SUM = 148,
    TAR_TYPE = 156,
    TAR_MAGIC = 257,
    TAR_SUM_LEN = 8,
};

static void tar_octal(char *header, size_t at, int digits, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%0*llo", digits, (unsigned long long)value);
    memcpy(header + at, text, (size_t)digits + 1);
}

/* Computes the checksum of the header: the sum of all its bytes, with blanks in the place of the
 * checksum. */
static unsigned tar_sum(const char *header)
{
    unsigned sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)header[i];
    return sum;
}

static void tar_fill(struct buf *out)
{
    static const char zeros[TAR_BLOCK];

    if (out->len % TAR_BLOCK)
        buf_append(out, zeros, TAR_BLOCK - out->len % TAR_BLOCK);
}

void tar_add(struct buf *out, const char *name, struct str bytes, int64_t modified_s)
{
    char header[TAR_BLOCK] = {0};

    snprintf(header + TAR_NAME, TAR_NAME_MAX + 1, "%s", name);
    tar_octal(header, TAR_MODE, 7, 0644);
    tar_octal(header, TAR_USER, 7, 0);
    tar_octal(header, TAR_GROUP, 7, 0);
    tar_octal(header, TAR_SIZE, 11, bytes.len);
    tar_octal(header, TAR_MODIFIED, 11, (uint64_t)modified_s);
    header[TAR_TYPE] = '0';
    memcpy(header + TAR_MAGIC, "ustar\00000", 8);
    memset(header + TAR_SUM, ' ', TAR_SUM_LEN);
    tar_octal(header, TAR_SUM, 6, tar_sum(header));
    buf_append(out, header, sizeof(header));
    buf_append_str(out, bytes);
    tar_fill(out);
}

void tar_end(struct buf *out)
{
    static const char zeros[2 * TAR_BLOCK];

    buf_append(out, zeros, sizeof(zeros));
}
