/* Checks keys that are sent by HTTP Basic (RFC 7617). */
#include "api/auth.h"
#include "route/users.h"

void auth_init(struct auth *a, const struct credentials *admin, struct users *users)
{
    a->admin = admin;
    a->users = users;
    guesses_init(&a->guesses);
}

/* Whether `access` and `secret` are the first administrator's keys. Both are compared completely
 * even if the first differs, so the time does not reveal which one is wrong. */
static bool auth_is_first(const struct credentials *admin, struct str access, struct str secret)
{
    bool same_access = guesses_same(str_z(admin->access_key), access);
    bool same_key = guesses_same(str_z(admin->secret_key), secret);

    return same_access && same_key;
}

/* Checks a user's keys. With an unknown access key the check takes as long as with a known access
 * key and a wrong secret. */
static int auth_check_user(struct users *users, struct str access, struct str secret)
{
    struct arena arena = ARENA_INIT(64 * KIB);
    struct str real = STR("nobody's secret, which is compared all the same");
    struct user user = {0};
    int code = users_by_key(users, &arena, access, &user, &real, NULL);
    bool same = guesses_same(real, secret);

    if (code == 0) {
        secure_zero((char *)real.p, real.len);
        code = same && user.admin ? 0 : ERR_DENIED;
    }
    arena_release(&arena);
    return code == ERR_NOT_FOUND ? ERR_DENIED : code;
}

static int auth_check_keys(struct auth *a, struct str header)
{
    struct basic keys;
    int code;

    if (!basic_read(&keys, header))
        return ERR_DENIED;
    code = auth_is_first(a->admin, keys.user, keys.password) ? 0
           : a->users ? auth_check_user(a->users, keys.user, keys.password)
                      : ERR_DENIED;
    basic_release(&keys);
    return code;
}

int auth_check(struct auth *a, struct str header, const struct sock_addr *peer, uint64_t now)
{
    if (header.len == 0)
        return ERR_DENIED;
    if (!guesses_allowed(&a->guesses, peer, now))
        return ERR_BUSY;
    int code = auth_check_keys(a, header);
    if (code == ERR_DENIED)
        guesses_count(&a->guesses, peer, now);
    return code;
}

static bool auth_is_token(struct str real, struct str header, struct str shown)
{
    struct str scheme, token;
    struct basic keys;
    bool same;

    str_cut(header, ' ', &scheme, &token);
    if (str_ieq(scheme, STR("bearer")))
        shown = str_trim(token);
    else if (basic_read(&keys, header))
        shown = keys.password;
    same = guesses_same(real, shown);
    basic_release(&keys);
    return same;
}

/* NOLINTNEXTLINE(readability-function-size): each of the six parameters is needed */
int auth_check_token(struct auth *a, struct str real, struct str header, struct str shown,
                     const struct sock_addr *peer, uint64_t now)
{
    if (header.len == 0 && shown.len == 0)
        return ERR_DENIED;
    if (!guesses_allowed(&a->guesses, peer, now))
        return ERR_BUSY;
    if (auth_is_token(real, header, shown))
        return 0;
    guesses_count(&a->guesses, peer, now);
    return ERR_DENIED;
}
