/* Deflates files for a ZIP file, where the pack does not have their data in deflated form. */
#ifndef ARCHIVE_ZIP_DEFLATE_H
#define ARCHIVE_ZIP_DEFLATE_H

#include "base/err.h"
#include "base/str.h"

struct zip_deflater;

/* `folder` is for scratch files; borrowed. */
struct zip_deflater *zip_deflater_new(const char *folder);
void zip_deflater_free(struct zip_deflater *d); /* NULL is fine */

/* Called when a part of large data was read, so that its memory can be dropped; may be NULL. */
typedef void zip_passed_fn(void *ctx);

/* Deflates the data, which must have less than 2 GiB. *out is borrowed until the next call. If the
 * data do not become smaller, *out has as many bytes as the data. */
int zip_deflater_run(struct zip_deflater *d, struct str data, zip_passed_fn *passed, void *ctx,
                     struct str *out, struct err *err) MUST_CHECK;
/* Lets the last result leave the memory, as far as it lies in a scratch file. It can still be
 * used. */
void zip_deflater_drop(struct zip_deflater *d);

#endif
