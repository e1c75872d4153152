/* Puts the ZIP file of a repository on a shelf. */
#include "archive/shelf.h"
#include "archive/zip.h"

int zip_put(struct shelf *s, struct arena *a, struct str key, struct reader *pack,
            const struct zip_options *o, struct zip_result *out, struct err *err)
{
    struct http_header headers[2] = {{STR("Content-Type"), STR("application/zip")}};
    struct put_options put = {.meta = {.headers = headers, .header_count = 1}};
    struct put_result result;
    struct zip *z = NULL;
    int code = zip_open(&z, pack, o, err);

    if (code < 0)
        return code;
    if (o->mtime_ms)
        headers[put.meta.header_count++] = shelf_mtime(a, o->mtime_ms);
    code = shelf_put(s, a, key, zip_reader(z), UINT64_MAX, &put, &result, err);
    if (code == 0 && out)
        zip_count(z, out);
    zip_close(z);
    return code;
}
