/* Facts of a bucket: its info and its documents, decoded once and shared by all requests until the
 * info or a document changes (docs/gateway.md, "Facts").
 *
 * The table is direct mapped: each bucket can be in one slot only, which it shares with other
 * buckets. A look-up is one comparison, under a lock that two threads rarely want at the same time.
 * The table has a fixed size, so it needs no list of recent uses. */
#include "s3/gateway/gateway_int.h"

#include "base/hash.h"
#include "object/generation.h"
#include "object/overlay.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    SLOTS = 256,
    FACTS_MAX = 4 * 1024 * 1024, /* limit on the bytes of one bucket's facts while they are made */
    KEPT_MAX = 128 * 1024,       /* facts of at most this many bytes are kept for later requests */
    ALWAYS_DOCUMENTS = 7,
};

/* The names of the documents. Documents that every request needs come first. The other documents
 * are read only if the facts can be kept for later requests. */
static const char *const names[] = {
    "policy",       "policyBindsOwner", "acl",         "publicAccessBlock", "ownershipControls",
    "logging",      "requestPayment",   "cors",        "encryption",        "lifecycle",
    "notification", "object-lock",      "replication", "website",
};

enum {
    POLICY,
    BINDS_OWNER,
    ACL,
    PUBLIC_BLOCK,
    OWNERSHIP,
    LOGGING,
    PAYMENT,
    CORS,
    ENCRYPTION,
    LIFECYCLE
};

struct facts {
    _Atomic(unsigned) refs;
    /* The bucket's generation when the facts were read. 0: the facts cannot be kept. */
    uint64_t generation;
    struct arena arena;
    struct call_target target;
    struct str documents[ARRAY_SIZE(names)]; /* empty: the bucket has no such document */
    bool all; /* all documents were read; false: only the first ALWAYS_DOCUMENTS */
};

struct slot {
    struct mutex lock;
    struct facts *facts; /* a reference; NULL: the slot is free */
};

struct facts_table {
    uint64_t seed;
    struct slot slots[SLOTS];
};

struct facts_table *facts_table_new(void)
{
    struct facts_table *t = xcalloc(1, sizeof(*t));
    struct hash_key key;

    hash_key_random(&key);
    t->seed = key.k0;
    for (size_t i = 0; i < SLOTS; i++)
        mutex_init(&t->slots[i].lock, "s3.facts");
    return t;
}

void facts_table_free(struct facts_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        facts_unref(t->slots[i].facts);
        mutex_release(&t->slots[i].lock);
    }
    free(t);
}

void facts_unref(struct facts *f)
{
    if (!f || atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    if (f->target.bucket)
        f->target.bucket->ops->unref(f->target.bucket);
    arena_release(&f->arena);
    free(f);
}

void facts_fill(struct call_target *t)
{
    struct call_target known = t->facts->target;

    known.at = t->at;
    known.facts_at = t->facts_at;
    *t = known;
}

/* Finds the bucket's document of this name; empty: the bucket has no such document. Returns false
 * if the facts do not include that document. */
static bool facts_document(const struct facts *f, const char *name, struct str *out)
{
    for (size_t i = 0; i < (f->all ? ARRAY_SIZE(names) : ALWAYS_DOCUMENTS); i++)
        if (strcmp(names[i], name) == 0) {
            *out = f->documents[i];
            return true;
        }
    return false;
}

int call_document(struct call *c, struct bucket *b, const char *name, struct str *out,
                  struct err *err)
{
    if (b == c->target.bucket && c->target.facts && facts_document(c->target.facts, name, out))
        return 0;
    int code = b->ops->get_document(b, c->a, name, out, err);

    if (code == ERR_NOT_FOUND) {
        *out = STR_EMPTY;
        return 0;
    }
    return code;
}

/* --- making facts --- */

/* Returns the number that the bucket's home has for it now. 0: there is none, or the name is now a
 * bucket of the other kind. The kinds are a plain bucket, and one that lies over several storages
 * and has its documents on its home. */
static uint64_t facts_generation(const struct bucket *b)
{
    const struct storage *home = bucket_home(b);
    bool same_kind = home && (storage_overlay_of(home, b->name) != NULL) == (b->storage == NULL);

    return same_kind ? generation_get(home->generations, b->name) : 0;
}

/* Turns an error of reading a document into ERR_CORRUPT. Documents are checked when they are set,
 * so a document that cannot be read now is damaged, and nobody gets access (docs/gateway.md,
 * G4). */
static int facts_damaged(int code, struct err *err, const char *name)
{
    return code < 0 && code != ERR_NO_MEMORY
               ? err_set(err, ERR_CORRUPT, "the bucket's %s document cannot be read", name)
               : code;
}

static int facts_read_documents(struct facts *f, struct err *err)
{
    struct bucket *b = f->target.bucket;
    int code = 0;

    for (size_t i = 0; code == 0 && i < (f->all ? ARRAY_SIZE(names) : ALWAYS_DOCUMENTS); i++) {
        code = b->ops->get_document(b, &f->arena, names[i], &f->documents[i], err);
        if (code == ERR_NOT_FOUND) {
            f->documents[i] = STR_EMPTY;
            code = 0;
        }
    }
    return code;
}

static int decode_lists(struct facts *f, bool may_block, struct err *err)
{
    struct call_target *t = &f->target;
    int code = 0;

    if (!may_block && f->documents[POLICY].len > POLICY_FAST_BYTES)
        return ERR_AGAIN;
    if (f->documents[POLICY].len)
        code = facts_damaged(
            policy_compile(&t->policy, &f->arena, f->documents[POLICY], t->info.name, err), err,
            names[POLICY]);
    t->policy_binds_owner = t->policy && f->documents[BINDS_OWNER].len;
    if (code < 0 || f->documents[ACL].len == 0)
        return code;
    t->acl = arena_new(&f->arena, struct acl);
    return t->acl ? acl_decode(t->acl, &f->arena, f->documents[ACL], err)
                  : err_code(err, ERR_NO_MEMORY);
}

static int decode_modes(struct facts *f, struct err *err)
{
    struct call_target *t = &f->target;
    int code = 0;

    if (f->documents[PUBLIC_BLOCK].len)
        code =
            facts_damaged(public_block_read(&t->block, &f->arena, f->documents[PUBLIC_BLOCK], err),
                          err, names[PUBLIC_BLOCK]);
    if (code == 0 && f->documents[OWNERSHIP].len)
        code = facts_damaged(ownership_read(&t->ownership, &f->arena, f->documents[OWNERSHIP], err),
                             err, names[OWNERSHIP]);
    return code;
}

int facts_read(struct facts **out, struct bucket *b, bool may_block, struct err *err)
{
    struct facts *f = xcalloc(1, sizeof(*f));
    uint64_t before = facts_generation(b);

    atomic_init(&f->refs, 1);
    arena_init(&f->arena, FACTS_MAX);
    f->target = (struct call_target){.facts = f, .bucket = b};
    f->all = before != 0;
    int code = b->ops->info(b, &f->arena, &f->target.info, err);
    if (code == 0)
        code = facts_read_documents(f, err);
    if (code == 0)
        code = decode_lists(f, may_block, err);
    if (code == 0)
        code = decode_modes(f, err);
    if (code < 0) {
        facts_unref(f);
        return code;
    }
    f->target.logging = f->documents[LOGGING];
    f->target.requester_pays = f->documents[PAYMENT].len > 0;
    /* lifecycle_write() wrote the document, so a document without this text has no such rule. */
    f->target.may_expire = !f->all || str_find(f->documents[LIFECYCLE], STR("<Expiration>")) >= 0;
    f->target.may_encrypt = !f->all || f->documents[ENCRYPTION].len > 0;
    f->generation = facts_generation(b) == before ? before : 0;
    *out = f;
    return 0;
}

/* --- keeping facts --- */

static struct slot *facts_slot(struct facts_table *t, const struct storage *s, struct str bucket)
{
    return &t->slots[hash_xxh3(bucket, t->seed ^ (uintptr_t)s) % SLOTS];
}

struct facts *facts_find(struct facts_table *t, struct storage *s, struct str bucket)
{
    struct slot *slot = facts_slot(t, s, bucket);
    bool overlaid = storage_overlay_of(s, bucket) != NULL;
    uint64_t now = generation_get(s->generations, bucket);
    struct facts *f;

    if (now == 0)
        return NULL;
    mutex_lock(&slot->lock);
    f = slot->facts;
    if (f && f->generation == now && str_eq(f->target.bucket->name, bucket) &&
        bucket_home(f->target.bucket) == s && (f->target.bucket->storage == NULL) == overlaid)
        atomic_fetch_add(&f->refs, 1);
    else
        f = NULL;
    mutex_unlock(&slot->lock);
    return f;
}

bool facts_known(void *ctx, struct storage *s, struct str bucket, struct str *owner)
{
    struct facts_search *search = ctx;

    search->found = facts_find(search->table, s, bucket);
    if (search->found)
        *owner = search->found->target.info.owner;
    return search->found != NULL;
}

void facts_keep(struct facts_table *t, struct facts *f)
{
    struct bucket *b = f->target.bucket;
    struct facts *old;

    if (f->generation == 0 || f->arena.used > KEPT_MAX)
        return;
    struct slot *slot = facts_slot(t, bucket_home(b), b->name);
    atomic_fetch_add(&f->refs, 1);
    mutex_lock(&slot->lock);
    old = slot->facts;
    slot->facts = f;
    mutex_unlock(&slot->lock);
    facts_unref(old);
}
