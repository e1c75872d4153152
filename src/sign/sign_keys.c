/* The table of derived keys: direct mapped, so that a look-up is one comparison and the bound needs
 * no list of what was used last. An entry's name is 128 bits of keyed hash, which nobody outside
 * can make collide. */
#include "base/hash.h"
#include "os/thread.h"
#include "sign/sign.h"

#include <stdlib.h>

enum { SHARDS = 16, SLOTS = 128 };

struct name {
    uint64_t a, b;
};

struct slot {
    struct name name; /* both 0: empty */
    struct sign_key key;
};

struct shard {
    struct mutex lock; /* guards slots */
    struct slot slots[SLOTS];
};

struct sign_keys {
    struct hash_key a, b;
    struct shard shards[SHARDS];
};

struct sign_keys *sign_keys_new(void)
{
    struct sign_keys *keys = xcalloc(1, sizeof(*keys));

    hash_key_random(&keys->a);
    hash_key_random(&keys->b);
    for (int i = 0; i < SHARDS; i++)
        mutex_init(&keys->shards[i].lock, "sign.keys");
    return keys;
}

void sign_keys_free(struct sign_keys *keys)
{
    if (!keys)
        return;
    for (int i = 0; i < SHARDS; i++)
        mutex_release(&keys->shards[i].lock);
    secure_zero(keys, sizeof(*keys));
    free(keys);
}

/* The secret's length stands in front of it, and no part of a scope has a '/': no two sets of parts
 * make the same bytes. */
static struct name name_of(const struct sign_keys *keys, struct str secret,
                           const struct sign_scope *scope)
{
    struct buf b = BUF_INIT(0);
    struct name name;

    buf_reserve(&b, 256); /* nearly always all of it, at once */
    buf_append_be64(&b, secret.len);
    buf_append_str(&b, secret);
    sign_append_scope(&b, scope);
    name.a = hash_sip(&keys->a, buf_str(&b));
    name.b = hash_sip(&keys->b, buf_str(&b));
    secure_zero(b.p, b.len);
    buf_release(&b);
    return name;
}

static struct slot *slot_of(struct sign_keys *keys, struct name name, struct shard **shard)
{
    *shard = &keys->shards[name.a % SHARDS];
    return &(*shard)->slots[name.a / SHARDS % SLOTS];
}

bool sign_keys_get(struct sign_keys *keys, struct sign_key *out, struct str secret,
                   const struct sign_scope *scope)
{
    bool found = false;

    if (keys) {
        struct shard *shard;
        struct name name = name_of(keys, secret, scope);
        struct slot *slot = slot_of(keys, name, &shard);
        mutex_lock(&shard->lock);
        found = slot->name.a == name.a && slot->name.b == name.b;
        if (found)
            *out = slot->key;
        mutex_unlock(&shard->lock);
    }
    if (!found)
        sign_derive(out, secret, scope);
    return found;
}

void sign_keys_keep(struct sign_keys *keys, const struct sign_key *key, struct str secret,
                    const struct sign_scope *scope)
{
    struct shard *shard;
    struct name name = name_of(keys, secret, scope);
    struct slot *slot = slot_of(keys, name, &shard);

    mutex_lock(&shard->lock);
    *slot = (struct slot){name, *key};
    mutex_unlock(&shard->lock);
}
