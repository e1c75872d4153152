/* The first administrator's keys. The configuration sets them, or weir makes random keys at its
 * first start. The file "credentials" in the data folder, with mode 0600, stores them as two lines,
 * access_key=... and secret_key=... */
#ifndef CONF_CREDENTIALS_H
#define CONF_CREDENTIALS_H

#include "base/err.h"
#include "conf/conf.h"

enum { CREDENTIALS_MAX = 128, CREDENTIALS_ACCESS_LEN = 20, CREDENTIALS_SECRET_LEN = 40 };

struct credentials {
    char access_key[CREDENTIALS_MAX + 1];
    char secret_key[CREDENTIALS_MAX + 1];
};

/* Finds the administrator's keys: those of the configuration, or else those in the data folder.
 * ERR_NOT_FOUND: neither has keys. */
int credentials_find(struct credentials *out, const struct conf *conf, struct err *err) MUST_CHECK;
/* Makes new random keys. */
void credentials_make(struct credentials *out);
/* Writes the keys to the file, unless the file has the same keys already. */
int credentials_keep(const struct credentials *c, const char *data, struct err *err) MUST_CHECK;
/* Appends the value of the Authorization header for these keys, "Basic ...". */
void credentials_basic(struct buf *out, const struct credentials *c);
void credentials_release(struct credentials *c); /* overwrites the keys in memory */

#endif
