/* The cache of derived keys: a table in which each entry has exactly one possible slot. So a
 * look-up is one comparison, and the limit on entries needs no list of recently used ones. The name
 * of an entry is 128 bits of keyed hashes, so that nobody who does not know the hash keys can make
 * two names collide. */
#include "base/hash.h"
#include "os/thread.h"
#include "sign/sign.h"

#include <stdlib.h>

/* NAMED_MAX limits the bytes of secret and scope together, so that computing a name needs no
 * allocation. Keys with a longer secret or scope, which are very rare, are not cached. */
enum { STRIPES = 16, SLOTS = 128, NAMED_MAX = 256 };

struct name {
    uint64_t a, b;
};

struct slot {
    struct name name; /* both numbers 0: the slot is empty */
    struct sign_key key;
};

struct key_stripe {
    struct mutex lock; /* class "sign.keys"; guards `slots` */
    struct slot slots[SLOTS];
};

struct sign_keys {
    struct hash_key a, b;
    struct key_stripe stripes[STRIPES];
};

struct sign_keys *sign_keys_new(void)
{
    struct sign_keys *keys = xcalloc(1, sizeof(*keys));

    hash_key_random(&keys->a);
    hash_key_random(&keys->b);
    for (int i = 0; i < STRIPES; i++)
        mutex_init(&keys->stripes[i].lock, "sign.keys");
    return keys;
}

void sign_keys_free(struct sign_keys *keys)
{
    if (!keys)
        return;
    for (int i = 0; i < STRIPES; i++)
        mutex_release(&keys->stripes[i].lock);
    secure_zero(keys, sizeof(*keys));
    free(keys);
}

/* Computes the name of an entry. In the bytes that are hashed each part is preceded by its length,
 * so that different parts never make the same bytes. Returns false when secret and scope are too
 * long. */
static bool name_of(struct name *out, const struct sign_keys *keys, struct str secret,
                    const struct sign_scope *scope)
{
    const struct str parts[] = {secret, scope->date, scope->region, scope->service};
    char bytes[NAMED_MAX];
    size_t len = 0;
    bool fits = true;

    for (size_t i = 0; fits && i < ARRAY_SIZE(parts); i++) {
        fits = parts[i].len < sizeof(bytes) - len;
        if (!fits)
            continue;
        bytes[len++] = (char)parts[i].len; /* below NAMED_MAX, so it fits into a byte */
        if (parts[i].len)
            memcpy(bytes + len, parts[i].p, parts[i].len);
        len += parts[i].len;
    }
    if (fits) {
        out->a = hash_sip(&keys->a, str_n(bytes, len));
        out->b = hash_xxh3(str_n(bytes, len), keys->b.k0);
    }
    secure_zero(bytes, len);
    return fits;
}

static struct slot *key_slot(struct sign_keys *keys, struct name name, struct key_stripe **stripe)
{
    *stripe = &keys->stripes[name.a % STRIPES];
    return &(*stripe)->slots[name.a / STRIPES % SLOTS];
}

bool sign_keys_get(struct sign_keys *keys, struct sign_key *out, struct str secret,
                   const struct sign_scope *scope)
{
    struct name name;
    bool found = false;

    if (keys && name_of(&name, keys, secret, scope)) {
        struct key_stripe *stripe;
        struct slot *slot = key_slot(keys, name, &stripe);
        mutex_lock(&stripe->lock);
        found = slot->name.a == name.a && slot->name.b == name.b;
        if (found)
            *out = slot->key;
        mutex_unlock(&stripe->lock);
    }
    if (!found)
        sign_derive(out, secret, scope);
    return found;
}

void sign_keys_keep(struct sign_keys *keys, const struct sign_key *key, struct str secret,
                    const struct sign_scope *scope)
{
    struct key_stripe *stripe;
    struct slot *slot;
    struct name name;

    if (!name_of(&name, keys, secret, scope))
        return;
    slot = key_slot(keys, name, &stripe);
    mutex_lock(&stripe->lock);
    *slot = (struct slot){name, *key};
    mutex_unlock(&stripe->lock);
}
