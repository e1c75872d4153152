/* Deflates the data of one file at once, by ISA-L. */
#include "archive/zip_deflate.h"

#include "os/scratch.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

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
    if (d->out.p && d->out.size >= size && d->out.size <= size_max(4 * size, SCRATCH_HEAP_MAX))
        return 0;
    scratch_mem_release(&d->out);
    return scratch_mem_init(&d->out, d->folder, size_max(size, 4096), err);
}

int zip_deflater_run(struct zip_deflater *d, struct str data, struct str *out, struct err *err)
{
    struct isal_zstream *s = &d->stream;
    int code = zip_deflater_room(d, data.len, err);

    if (code < 0)
        return code;
    isal_deflate_stateless_init(s);
    s->level = 2;
    s->level_buf = d->work;
    s->level_buf_size = sizeof(d->work);
    s->gzip_flag = IGZIP_DEFLATE;
    s->end_of_stream = 1;
    s->next_in = (unsigned char *)(uintptr_t)data.p;
    s->avail_in = (uint32_t)data.len;
    s->next_out = d->out.p;
    s->avail_out = (uint32_t)d->out.size;
    bool fits = isal_deflate_stateless(s) == COMP_OK;
    *out = str_n(d->out.p, fits ? s->total_out : data.len);
    return 0;
}
