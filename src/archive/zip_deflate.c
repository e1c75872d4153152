/* Deflates the data of one file, by ISA-L. */
#include "archive/zip_deflate.h"

#include "os/scratch.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { DEFLATER_KEEP = 64 * 1024 }; /* room of this size is kept for the next file */

struct zip_deflater {
    const char *folder;
    struct isal_zstream stream;
    struct scratch_mem out;
    unsigned char work[ISAL_DEF_LVL2_DEFAULT];
};

struct zip_deflater *zip_deflater_new(const char *folder)
{
    struct zip_deflater *d = xzalloc(sizeof(*d));

    d->folder = folder;
    return d;
}

void zip_deflater_free(struct zip_deflater *d)
{
    if (!d)
        return;
    scratch_mem_release(&d->out);
    free(d);
}

/* Provides room for the result. It need not be larger than the data, because a larger result is not
 * used. */
static int zip_deflater_room(struct zip_deflater *d, size_t size, struct err *err)
{
    if (d->out.p && d->out.size >= size && d->out.size <= size_max(4 * size, DEFLATER_KEEP))
        return 0;
    scratch_mem_release(&d->out);
    return scratch_mem_init(&d->out, d->folder, size_max(size, 4096), err);
}

/* Deflates the next bytes. Returns false when the room is full. */
static bool deflater_step(struct isal_zstream *s, struct str piece, bool is_last)
{
    s->next_in = (unsigned char *)(uintptr_t)piece.p;
    s->avail_in = (uint32_t)piece.len;
    s->end_of_stream = is_last;
    do {
        if (isal_deflate(s) != COMP_OK)
            return false;
    } while (s->avail_out && (s->avail_in || (is_last && s->internal_state.state != ZSTATE_END)));
    return is_last ? s->internal_state.state == ZSTATE_END : s->avail_in == 0;
}

int zip_deflater_run(struct zip_deflater *d, struct str data, zip_passed_fn *passed, void *ctx,
                     struct str *out, struct err *err)
{
    struct isal_zstream *s = &d->stream;
    bool fits = true;
    size_t at = 0;
    int code = zip_deflater_room(d, data.len, err);

    if (code < 0)
        return code;
    isal_deflate_init(s);
    s->level = 2;
    s->level_buf = d->work;
    s->level_buf_size = sizeof(d->work);
    s->gzip_flag = IGZIP_DEFLATE;
    s->next_out = d->out.p;
    s->avail_out = (uint32_t)d->out.size;
    do {
        struct str piece = str_head(str_skip(data, at), SCRATCH_STEP);
        at += piece.len;
        fits = deflater_step(s, piece, at == data.len);
        if (passed && piece.len == SCRATCH_STEP) {
            passed(ctx);
            scratch_mem_drop(&d->out);
        }
    } while (fits && at < data.len);
    *out = str_n(d->out.p, fits ? s->total_out : data.len);
    return 0;
}

void zip_deflater_drop(struct zip_deflater *d)
{
    scratch_mem_drop(&d->out);
}
