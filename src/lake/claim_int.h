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
    struct str text;           /* what the object says when the claim is made */
    bool bare;
};

/* A claim that is there. */
struct claim_seen {
    struct str text; /* text.p is NULL: there is none */
    struct str etag;
    int64_t modified_ms;
};

/* What a claim says. `life` is empty in claims of weirs that knew no lives. */
struct claim_words {
    struct str partition, id; /* `id` is the name of the repository */
    struct str life, rival;
};

/* The arena must be released also after a failure. */
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

/* Gives the id of this process's life; the row of the life is durable. The id is borrowed until the
 * lake is closed. */
int claims_life(struct lake *l, struct str *out, struct err *err) MUST_CHECK;
/* Whether the life is one of this lake, by its row. A claim without a life has none to doubt. */
int claims_knows_life(struct lake *l, struct arena *a, struct str life, bool *out,
                      struct err *err) MUST_CHECK;
/* Forgets that this process has looked at the claim. */
void claims_forget(struct lake *l, struct str partition);

#endif
