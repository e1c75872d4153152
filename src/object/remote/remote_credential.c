/* The credentials of users: a table whose entries are reference counted (docs/remote-storage.md,
 * M5). */
#include "object/remote/remote_int.h"

#include <stdlib.h>

void credential_table_init(struct credential_table *c)
{
    mutex_init(&c->lock, "remote.credentials");
    map_init(&c->by_user);
}

void credential_table_release(struct credential_table *c)
{
    size_t cursor = 0;
    struct str user;
    void *value;

    while (map_next(&c->by_user, &cursor, &user, &value)) {
        map_remove(&c->by_user, user);
        credential_unref(value);
    }
    map_release(&c->by_user);
    mutex_release(&c->lock);
}

static struct str copy_to(char **at, struct str s)
{
    struct str copy = str_n(*at, s.len);

    if (s.len)
        memcpy(*at, s.p, s.len);
    *at += s.len;
    return copy;
}

static struct credential *credential_new(const struct remote_credential *from)
{
    size_t size = from->user.len + from->access.len + from->secret.len;
    struct credential *c = xcalloc(1, sizeof(*c) + size);
    char *at = c->bytes;

    atomic_init(&c->refs, 1);
    c->size = size;
    c->user = copy_to(&at, from->user);
    c->access = copy_to(&at, from->access);
    c->secret = copy_to(&at, from->secret);
    return c;
}

static struct credential *credential_ref(struct credential *c)
{
    if (c)
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void credential_unref(struct credential *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    secure_zero(c->bytes, c->size);
    free(c);
}

struct credential *credential_table_get(struct credential_table *c, struct str user)
{
    mutex_lock(&c->lock);
    struct credential *found = credential_ref(map_get(&c->by_user, user));
    mutex_unlock(&c->lock);
    return found;
}

struct credential *credential_table_any(struct credential_table *c)
{
    size_t cursor = 0;
    struct str user;
    void *value = NULL;

    mutex_lock(&c->lock);
    struct credential *found =
        map_next(&c->by_user, &cursor, &user, &value) ? credential_ref(value) : NULL;
    mutex_unlock(&c->lock);
    return found;
}

int credential_table_users(struct credential_table *c, struct arena *a, struct str **out,
                           size_t *count, struct err *err)
{
    size_t cursor = 0, n = 0;
    struct str user, *users;
    void *value;

    mutex_lock(&c->lock);
    users = arena_array(a, c->by_user.len + 1, sizeof(*users));
    while (users && map_next(&c->by_user, &cursor, &user, &value))
        users[n++] = arena_str(a, user);
    mutex_unlock(&c->lock);
    *out = users;
    *count = n;
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Whether the text can be an access key. In the header Authorization a '/' ends the key, and a ','
 * ends each field. */
static bool is_access_key(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == ',' || s.p[i] == '/')
            return false;
    return s.len > 0 && s.len <= 256;
}

int remote_set_credential(struct storage *s, const struct remote_credential *c, struct err *err)
{
    struct credential_table *all = &remote_of(s)->credentials;
    struct credential *old, *made = NULL;

    if (c->user.len == 0 || c->user.len > 1024)
        return err_set(err, ERR_INVALID, "credentials need the id of a user");
    if (c->secret.len && !is_access_key(c->access))
        return err_set(err, ERR_INVALID, "malformed access key");
    if (c->secret.len > 1024)
        return err_set(err, ERR_INVALID, "the secret key is too long");
    if (c->secret.len)
        made = credential_new(c);
    mutex_lock(&all->lock);
    /* The old entry is removed first, because otherwise the table would go on using the old entry's
     * name. */
    old = map_remove(&all->by_user, c->user);
    if (made)
        map_put(&all->by_user, made->user, made);
    mutex_unlock(&all->lock);
    credential_unref(old);
    return 0;
}

bool remote_has_credential(struct storage *s, struct str user)
{
    struct credential *c = credential_table_get(&remote_of(s)->credentials, user);

    credential_unref(c);
    return c != NULL;
}
