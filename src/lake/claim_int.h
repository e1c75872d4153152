/* The object of a claim, for claim.c and claim_hold.c alone. */
#ifndef LAKE_CLAIM_INT_H
#define LAKE_CLAIM_INT_H

#include "lake/claim.h"
#include "lake/lake_int.h"

/* Work on the claim of one namespace. */
struct claim {
    struct lake *lake;
    struct arena arena;
    const struct lake_repo *repo;
    struct str bucket, prefix; /* the namespace */
    struct str text;           /* the content of the object when the claim is made */
    bool bare;
};

/* The object of a claim as it was read. */
struct claim_seen {
    struct str text; /* text.p is NULL: there is no claim */
    struct str etag;
    int64_t modified_ms;
};

/* The parts of a claim's text. `life` is the life that uses the namespace (lake/claim.h); it is
 * empty in claims of old versions of weir. `rival` is the life of a second lake: that lake found a
 * life in the claim that its records do not have. Empty: there is no rival. */
struct claim_words {
    struct str partition, id; /* `id` is the name of the repository */
    struct str life, rival;
};

/* Fills *c for the namespace of a repository. The caller must release c->arena, also after a
 * failure. */
int claim_init(struct claim *c, struct lake *l, const struct lake_repo *r,
               struct err *err) MUST_CHECK;
/* Returns the key of an object below a prefix of the bucket. */
struct str claim_key(struct claim *c, struct str prefix, const char *name);
int claim_see(struct claim *c, struct str key, struct claim_seen *out, struct err *err) MUST_CHECK;
/* Returns false if the text is not a claim of a weir. */
bool claim_parse(struct str text, struct claim_words *out);
struct str claim_format(struct arena *a, const struct claim_words *words);
/* Writes `text` as the claim if nothing has changed since `seen`: the same claim is still there, or
 * there is still none. ERR_PRECONDITION, ERR_CONFLICT: it has changed. */
int claim_put(struct claim *c, const struct claim_seen *seen, struct str text,
              struct err *err) MUST_CHECK;

/* Gives the id of this process's life, after making the row of the life durable. The id is borrowed
 * until the lake is closed. */
int claims_life(struct lake *l, struct str *out, struct err *err) MUST_CHECK;
/* Whether the life is one of this lake: the records have its row. An empty life counts as one of
 * this lake. */
int claims_knows_life(struct lake *l, struct arena *a, struct str life, bool *out,
                      struct err *err) MUST_CHECK;
/* Forgets that this process has looked at the claim. */
void claims_forget(struct lake *l, struct str partition);

#endif
