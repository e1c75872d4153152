/* Tokens that POST /auth/login gives: JSON Web Tokens (RFC 7519) signed by HMAC with SHA-256.
 *
 * The token's header names the access key with which the caller logged in (`kid`, RFC 7515 §4.1.4).
 * The signing key is derived from weir's own key, the access key and its secret. So a token stops
 * being valid when its access key is removed or gets another secret. */
#include "base/ids.h"
#include "lake/rest/web.h"
#include "sign/base64.h"

#define TOKEN_ISSUER   "auth"
#define TOKEN_AUDIENCE "login"

enum { TOKEN_MAX = 4096 };

static void token_write_claims(struct buf *out, const struct user *user, int64_t expires_ms)
{
    char id[ID_UUID_LEN + 1];
    struct json_out w;

    id_uuid(id);
    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "aud", STR(TOKEN_AUDIENCE));
    json_out_member_i64(&w, "exp", expires_ms / MS_PER_S);
    json_out_member_i64(&w, "iat", clock_wall_ms() / MS_PER_S);
    json_out_member_str(&w, "iss", STR(TOKEN_ISSUER));
    json_out_member_str(&w, "jti", str_z(id));
    json_out_member_str(&w, "sub", user->name);
    json_out_member_str(&w, "uid", user->id);
    json_out_close(&w, '}');
}

static void token_write_header(struct buf *out, struct str access)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "alg", STR("HS256"));
    json_out_member_str(&w, "kid", access);
    json_out_member_str(&w, "typ", STR("JWT"));
    json_out_close(&w, '}');
}

static void token_sign(const struct lake_web *w, const struct user_key *key, struct str signed_part,
                       unsigned char out[HMAC_SHA256_LEN])
{
    unsigned char own[HMAC_SHA256_LEN];
    struct buf text = BUF_INIT(TOKEN_MAX);

    buf_append_str(&text, key->access);
    buf_append_char(&text, '\0');
    buf_append_str(&text, key->secret);
    hmac_sha256_by(&w->token_key, buf_str(&text), own);
    hmac_sha256(str_n(own, sizeof(own)), signed_part, out);
    secure_zero(text.p, text.len);
    secure_zero((char *)own, sizeof(own));
    buf_release(&text);
}

struct str web_token(const struct lake_web *w, struct arena *a, const struct user *user,
                     const struct user_key *key, int64_t expires_ms)
{
    struct buf header = BUF_INIT(TOKEN_MAX), claims = BUF_INIT(TOKEN_MAX);
    struct buf text = BUF_INIT(4 * TOKEN_MAX);
    unsigned char mac[HMAC_SHA256_LEN];

    token_write_header(&header, key->access);
    token_write_claims(&claims, user, expires_ms);
    base64url_encode(&text, buf_str(&header));
    buf_append_char(&text, '.');
    base64url_encode(&text, buf_str(&claims));
    token_sign(w, key, buf_str(&text), mac);
    buf_append_char(&text, '.');
    base64url_encode(&text, str_n(mac, sizeof(mac)));
    struct str token = arena_str(a, buf_str(&text));
    buf_release(&header);
    buf_release(&claims);
    buf_release(&text);
    return token;
}

/* A token, split into its parts. */
struct token {
    struct str header, claims, signature;
    struct str signed_part; /* header and claims, which the signature covers */
};

static int token_cut(struct token *out, struct str text)
{
    struct str rest;

    if (text.len > TOKEN_MAX || !str_cut(text, '.', &out->header, &rest) ||
        !str_cut(rest, '.', &out->claims, &out->signature))
        return ERR_DENIED;
    out->signed_part = str_head(text, out->header.len + 1 + out->claims.len);
    return 0;
}

static bool token_is_signed(const struct lake_web *w, const struct user_key *key,
                            const struct token *t)
{
    struct buf given = BUF_INIT(HMAC_SHA256_LEN);
    unsigned char mac[HMAC_SHA256_LEN];

    token_sign(w, key, t->signed_part, mac);
    bool same = base64url_decode(&given, t->signature) == 0 &&
                str_eq_secret(str_n(mac, sizeof(mac)), buf_str(&given));
    buf_release(&given);
    return same;
}

/* Decodes a part of the token: a JSON object in base64url. */
static int token_read_part(struct str part, json_t **out)
{
    struct buf text = BUF_INIT(TOKEN_MAX);
    int code = base64url_decode(&text, part);

    if (code == 0)
        code = json_read(out, buf_str(&text), NULL);
    buf_release(&text);
    return code;
}

static bool token_has(const json_t *object, const char *name, struct str value)
{
    return str_eq(json_get_str(object, name, STR_EMPTY), value);
}

static bool token_is_good(const json_t *header, const json_t *claims, int64_t now_ms)
{
    return token_has(header, "alg", STR("HS256")) && token_has(claims, "iss", STR(TOKEN_ISSUER)) &&
           token_has(claims, "aud", STR(TOKEN_AUDIENCE)) &&
           json_get_i64(claims, "exp", 0) > now_ms / MS_PER_S;
}

int web_token_access(struct arena *a, struct str text, struct str *out)
{
    json_t *header = NULL;
    struct token t;
    int code = token_cut(&t, text);

    if (code == 0 && token_read_part(t.header, &header) < 0)
        code = ERR_DENIED;
    if (code == 0)
        *out = arena_str(a, json_get_str(header, "kid", STR_EMPTY));
    json_decref(header);
    return code == 0 && !out->len ? ERR_DENIED : code;
}

int web_token_user(const struct lake_web *w, struct arena *a, struct str text,
                   const struct user_key *key, int64_t now_ms, struct str *out)
{
    json_t *header = NULL, *claims = NULL;
    int code = ERR_DENIED;
    struct token t;

    if (token_cut(&t, text) == 0 && token_is_signed(w, key, &t) &&
        token_read_part(t.header, &header) == 0 && token_read_part(t.claims, &claims) == 0 &&
        token_has(header, "kid", key->access) && token_is_good(header, claims, now_ms)) {
        *out = arena_str(a, json_get_str(claims, "uid", STR_EMPTY));
        code = out->len ? 0 : ERR_DENIED;
    }
    json_decref(header);
    json_decref(claims);
    return code;
}
