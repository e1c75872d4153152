/* Checks of the lake's names, made once, where a request enters weir (docs/lake.md, "Names and
 * limits"). All functions return ERR_INVALID with a text that names the rule. They do no I/O; any
 * thread may call them. */
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
int lake_refuse_metadata(struct err *err); /* sets the error of metadata that is too large */
/* Checks a storage namespace, s3://<bucket>[/<prefix>], and returns its parts. The prefix has no
 * slash at its end. */
int lake_check_space(struct str space, struct str *bucket, struct str *prefix,
                     struct err *err) MUST_CHECK;

/* Whether the text is a whole commit id, or the beginning of one: lower-case hex digits. */
bool lake_is_commit_id(struct str text);
bool lake_is_id_prefix(struct str text);

#endif
