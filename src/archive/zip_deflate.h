/* Deflates files for a ZIP file, where the pack does not have their data in deflated form. */
#ifndef ARCHIVE_ZIP_DEFLATE_H
#define ARCHIVE_ZIP_DEFLATE_H

#include "base/err.h"
#include "base/str.h"

struct zip_deflater;

/* `folder` is for scratch files; borrowed. */
struct zip_deflater *zip_deflater_new(const char *folder);
void zip_deflater_free(struct zip_deflater *d); /* NULL is fine */

/* Deflates the data, which must have less than 2 GiB. *out is borrowed until the next call. If the
 * data do not become smaller, *out has as many bytes as the data. */
int zip_deflater_run(struct zip_deflater *d, struct str data, struct str *out,
                     struct err *err) MUST_CHECK;

#endif
