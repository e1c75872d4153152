/* The options of one account (docs/archive.md, O9 and O10): what is saved beside its bundles, in
 * the place of the options of its forge. They are the object `<login>.options`, a text such as
 * "zip,wikis"; an empty text means that no option is on. An account without this object has the
 * options of its forge. Any thread may call these functions; they block. */
#ifndef ARCHIVE_ACCOUNT_OPTIONS_H
#define ARCHIVE_ACCOUNT_OPTIONS_H

#include "archive/archive.h"
#include "archive/forge.h"
#include "archive/shelf.h"

/* Reads the options of an account. If the account has none of its own, *wants stays as it is, and
 * *own is false. ERR_CORRUPT: the object has a word that is not an option. */
int account_options_on(struct shelf *s, struct arena *a, const struct archive_account *c,
                       struct forge_wants *wants, bool *own, struct err *err) MUST_CHECK;
/* Sets the options of an account. If `wants` is NULL, the account has those of its forge again. */
int account_options_set(struct archive *x, const struct archive_account *c,
                        const struct forge_wants *wants, struct err *err) MUST_CHECK;
/* Gives an account the options that another account of the same forge has for itself. */
int account_options_copy(struct archive *x, const struct archive_account *from,
                         const struct archive_account *to, struct err *err) MUST_CHECK;

#endif
