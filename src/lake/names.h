/* Checks of the lake's names (docs/lake.md, "Names and limits"). A name is checked only once, where
 * the request enters weir. All functions return ERR_INVALID with a text that names the broken rule.
 * They do no I/O; any thread may call them. */
#ifndef LAKE_NAMES_H
#define LAKE_NAMES_H

#include "base/err.h"
#include "base/proto.h"

int lake_check_repo(struct str id, struct err *err) MUST_CHECK;
int lake_check_branch(struct str name, struct err *err) MUST_CHECK;
int lake_check_tag(struct str name, struct err *err) MUST_CHECK;
int lake_check_path(struct str path, struct err *err) MUST_CHECK;
int lake_check_message(struct str message, struct err *err) MUST_CHECK;
int lake_check_metadata(const struct str_pairs *p, struct err *err) MUST_CHECK;
int lake_refuse_metadata(struct err *err); /* sets the error of too much metadata, and returns it */
/* Checks a storage namespace, s3://<bucket>[/<prefix>], and returns its parts. The prefix has no
 * slash at its end. */
int lake_check_space(struct str space, struct str *bucket, struct str *prefix,
                     struct err *err) MUST_CHECK;

/* The first function returns whether the text is a whole commit id: 64 hex digits in lower case.
 * The second one returns whether it can be the beginning of a commit id. */
bool lake_is_commit_id(struct str text);
bool lake_is_id_prefix(struct str text);

#endif
