/* The values of condition keys that every HTTP request has, whatever it asks for: its time, its
 * connection and its sender. The gateway and all other parts of weir that evaluate a bucket's
 * policy use them. Any thread may call. */
#ifndef S3_ACCESS_REQUEST_VALUE_H
#define S3_ACCESS_REQUEST_VALUE_H

#include "http/server.h"
#include "route/users.h"
#include "s3/access/policy.h"

/* The sources of the values. All pointers are borrowed for the call. */
struct request_facts {
    struct http_request *http;
    const struct user *user; /* NULL: the request is anonymous */
    int64_t now_ms;          /* the time of the request, from clock_wall_ms() */
    struct str region;
    struct str bucket_owner; /* user id of the owner of the bucket that is judged; may be empty */
    struct arena *arena;     /* for values that have to be written */
};

/* Returns the value of the key. Its p is NULL when the request has none, or when the value depends
 * on what the request asks for. */
struct str request_value(const struct request_facts *f, enum policy_key key);
/* Returns the value of one of the tags, which are in their stored form. Its p is NULL when there is
 * no such tag. */
struct str request_tag_value(struct arena *a, struct str tags, struct str name);

#endif
