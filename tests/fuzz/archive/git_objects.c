/* The table of a pack's entries, and the ZIP file of its tree. The trailer of an input is made
 * right, so that entries and deltas are what is judged. The first byte says the kind of ids; then
 * comes the id of the commit, and then the pack. Whatever the pack is, each object that is found
 * has the size that the table says, and the ZIP file ends or fails within its limits. */
#include "archive/zip.h"
#include "object/digest.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *scratch(void)
{
    const char *folder = getenv("TMPDIR");

    return folder ? folder : "/tmp";
}

static void read_zip(struct zip *z)
{
    char piece[4096];
    struct zip_result count;
    struct err err = {0};
    uint64_t bytes = 0;
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(zip_reader(z), piece, sizeof(piece), &got, &err);
        bytes += code == 0 ? got : 0;
    }
    zip_count(z, &count);
    BUG_ON(code < 0 && err.text[0] == '\0');
    BUG_ON(code == 0 && bytes != count.size);
    BUG_ON(count.files + count.links + count.folders > 1000 || count.bytes > 1 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zip_options o = {.repo = STR("r"),
                            .branch = STR("b"),
                            .folder = scratch(),
                            .pack = {1 << 20, 1 << 20, 1 << 20, 200},
                            .limits = {20, 1000, 1 << 20, 1 << 20}};
    struct digest_value sum;
    struct buf pack = {0};
    struct str_reader r;
    struct zip *z = NULL;
    struct err err = {0};

    if (size < 1 + GIT_ID_MAX)
        return 0;
    o.is_sha256 = data[0] & 1;
    memcpy(o.tip, data + 1, sizeof(o.tip));
    buf_append(&pack, data + 1 + GIT_ID_MAX, size - 1 - GIT_ID_MAX);
    digest_of(o.is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, buf_str(&pack), &sum);
    buf_append(&pack, sum.bytes, sum.len);
    str_reader_init(&r, buf_str(&pack));
    int code = zip_open(&z, &r.reader, &o, &err);
    BUG_ON(code < 0 && err.text[0] == '\0');
    if (code == 0)
        read_zip(z);
    zip_close(z);
    buf_release(&pack);
    return 0;
}
