/* Checks keys that are sent by HTTP Basic (RFC 7617), and limits guessing by token buckets. */
#include "api/auth.h"
#include "route/users.h"

#include <openssl/evp.h>

enum { MAX_TOKEN = 512 };

void auth_init(struct auth *a, const struct credentials *admin, struct users *users)
{
    memset(a, 0, sizeof(*a));
    a->admin = admin;
    a->users = users;
    hash_key_random(&a->key);
}

static _Atomic(uint64_t) *auth_bucket(struct auth *a, const struct sock_addr *peer)
{
    unsigned char address[16];

    sock_addr_key(peer, address);
    return &a->full_at[hash_sip(&a->key, str_n(address, sizeof(address))) % AUTH_BUCKETS];
}

/* Takes a token out of a bucket. A bucket that lacks n tokens is full again after n refills, so the
 * time when it is full is its whole state. */
static void auth_take_token(_Atomic(uint64_t) *full_at, uint64_t now)
{
    uint64_t old = atomic_load(full_at), next;

    do {
        next = (old > now ? old : now) + AUTH_REFILL_MS;
    } while (!atomic_compare_exchange_weak(full_at, &old, next));
}

static bool auth_has_token(_Atomic(uint64_t) *full_at, uint64_t now)
{
    return atomic_load(full_at) + AUTH_REFILL_MS <= now + (uint64_t)AUTH_BURST * AUTH_REFILL_MS;
}

/* Decodes "Basic <base64>" to "user:password". *plain is that text; its bytes are in `out`. False:
 * the header has another form. */
static bool auth_decode_basic(struct str header, char out[MAX_TOKEN], struct str *plain)
{
    struct str scheme, token;
    int len;
    size_t padding = 0;

    str_cut(header, ' ', &scheme, &token);
    token = str_trim(token);
    if (!str_ieq(scheme, STR("basic")) || token.len == 0 || token.len % 4 != 0 ||
        token.len > MAX_TOKEN)
        return false;
    while (padding < 2 && token.p[token.len - 1 - padding] == '=')
        padding++;
    len = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)token.p, (int)token.len);
    if (len < (int)padding)
        return false;
    *plain = str_n(out, (size_t)len - padding);
    return true;
}

static bool auth_same_secret(struct str real, struct str given)
{
    return str_eq_secret(real, given.len ? given : STR("?"));
}

/* Whether `access` and `secret` are the first administrator's keys. Both are compared in full even
 * if the first differs, so that the time reveals nothing. */
static bool auth_is_first(const struct credentials *admin, struct str access, struct str secret)
{
    bool same_access = auth_same_secret(str_z(admin->access_key), access);
    bool same_key = auth_same_secret(str_z(admin->secret_key), secret);

    return same_access && same_key;
}

/* Checks a user's keys. An unknown access key takes as long as a known one with a wrong secret. */
static int auth_check_user(struct users *users, struct str access, struct str secret)
{
    struct arena arena = ARENA_INIT(64 * KIB);
    struct str real = STR("nobody's secret, which is compared all the same");
    struct user user = {0};
    int code = users_by_key(users, &arena, access, &user, &real, NULL);
    bool same = auth_same_secret(real, secret);

    if (code == 0) {
        secure_zero((char *)real.p, real.len);
        code = same && user.admin ? 0 : ERR_DENIED;
    }
    arena_release(&arena);
    return code == ERR_NOT_FOUND ? ERR_DENIED : code;
}

static int auth_check_keys(struct auth *a, struct str header)
{
    char decoded[MAX_TOKEN];
    struct str plain, access, secret;
    int code;

    if (!auth_decode_basic(header, decoded, &plain))
        return ERR_DENIED;
    str_cut(plain, ':', &access, &secret);
    code = auth_is_first(a->admin, access, secret) ? 0
           : a->users                              ? auth_check_user(a->users, access, secret)
                                                   : ERR_DENIED;
    secure_zero(decoded, sizeof(decoded));
    return code;
}

int auth_check(struct auth *a, struct str header, const struct sock_addr *peer, uint64_t now)
{
    _Atomic(uint64_t) *bucket = auth_bucket(a, peer);
    int code;

    if (header.len == 0)
        return ERR_DENIED;
    if (!auth_has_token(bucket, now))
        return ERR_BUSY;
    code = auth_check_keys(a, header);
    if (code == ERR_DENIED) {
        auth_take_token(bucket, now);
        atomic_fetch_add(&a->failures, 1);
    }
    return code;
}

static bool auth_is_token(struct str real, struct str header, struct str shown)
{
    char decoded[MAX_TOKEN];
    struct str scheme, token, name;
    bool same;

    str_cut(header, ' ', &scheme, &token);
    if (str_ieq(scheme, STR("bearer")))
        shown = str_trim(token);
    else if (auth_decode_basic(header, decoded, &token))
        str_cut(token, ':', &name, &shown);
    same = auth_same_secret(real, shown);
    secure_zero(decoded, sizeof(decoded));
    return same;
}

/* NOLINTNEXTLINE(readability-function-size): each of the six parameters is needed */
int auth_check_token(struct auth *a, struct str real, struct str header, struct str shown,
                     const struct sock_addr *peer, uint64_t now)
{
    _Atomic(uint64_t) *bucket = auth_bucket(a, peer);

    if (header.len == 0 && shown.len == 0)
        return ERR_DENIED;
    if (!auth_has_token(bucket, now))
        return ERR_BUSY;
    if (auth_is_token(real, header, shown))
        return 0;
    auth_take_token(bucket, now);
    atomic_fetch_add(&a->failures, 1);
    return ERR_DENIED;
}
