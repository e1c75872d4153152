/* The first administrator's keys: random on the first start or set by configuration, kept in the
 * data folder's file "credentials" (mode 0600) as two lines, access_key=... and secret_key=... */
#ifndef CONF_CREDENTIALS_H
#define CONF_CREDENTIALS_H

#include "base/err.h"
#include "conf/conf.h"

enum { CREDENTIALS_MAX = 128, CREDENTIALS_ACCESS_LEN = 20, CREDENTIALS_SECRET_LEN = 40 };

struct credentials {
    char access_key[CREDENTIALS_MAX + 1];
    char secret_key[CREDENTIALS_MAX + 1];
};

/* The keys that apply: those of the configuration, else those in the data folder. ERR_NOT_FOUND:
 * there are neither. */
int credentials_find(struct credentials *out, const struct conf *conf, struct err *err) MUST_CHECK;
/* Makes new random keys. */
void credentials_make(struct credentials *out);
/* Writes the keys to the file, unless the file holds them already. */
int credentials_keep(const struct credentials *c, const char *data, struct err *err) MUST_CHECK;
/* Appends the value of the Authorization header for these keys, "Basic ...". */
void credentials_basic(struct buf *out, const struct credentials *c);
void credentials_release(struct credentials *c); /* overwrites them */

#endif
