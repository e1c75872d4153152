/* Tokens of POST /auth/login: JSON Web Tokens (RFC 7519) signed by HMAC with SHA-256. */
#include "base/ids.h"
#include "lake/rest/web.h"
#include "sign/base64.h"

#define TOKEN_HEADER   "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"
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

static void token_sign(const struct lake_web *w, struct str signed_part,
                       unsigned char out[HMAC_SHA256_LEN])
{
    hmac_sha256_by(&w->token_key, signed_part, out);
}

struct str web_token(const struct lake_web *w, struct arena *a, const struct user *user,
                     int64_t expires_ms)
{
    struct buf claims = BUF_INIT(TOKEN_MAX), text = BUF_INIT(2 * TOKEN_MAX);
    unsigned char mac[HMAC_SHA256_LEN];

    token_write_claims(&claims, user, expires_ms);
    base64url_encode(&text, STR(TOKEN_HEADER));
    buf_append_char(&text, '.');
    base64url_encode(&text, buf_str(&claims));
    token_sign(w, buf_str(&text), mac);
    buf_append_char(&text, '.');
    base64url_encode(&text, str_n(mac, sizeof(mac)));
    struct str token = arena_str(a, buf_str(&text));
    buf_release(&claims);
    buf_release(&text);
    return token;
}

static bool token_is_signed(const struct lake_web *w, struct str signed_part, struct str signature)
{
    struct buf given = BUF_INIT(HMAC_SHA256_LEN);
    unsigned char mac[HMAC_SHA256_LEN];

    token_sign(w, signed_part, mac);
    bool same = base64url_decode(&given, signature) == 0 &&
                str_eq_secret(str_n(mac, sizeof(mac)), buf_str(&given));
    buf_release(&given);
    return same;
}

/* Reads a part of the token, which is a JSON object in base64url. */
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

int web_token_user(const struct lake_web *w, struct arena *a, struct str token, int64_t now_ms,
                   struct str *out)
{
    struct str header, claims, signature, rest;
    json_t *head = NULL, *body = NULL;
    int code = ERR_DENIED;

    if (token.len > TOKEN_MAX || !str_cut(token, '.', &header, &rest) ||
        !str_cut(rest, '.', &claims, &signature))
        return ERR_DENIED;
    struct str signed_part = str_head(token, header.len + 1 + claims.len);
    if (token_is_signed(w, signed_part, signature) && token_read_part(header, &head) == 0 &&
        token_read_part(claims, &body) == 0 && token_is_good(head, body, now_ms)) {
        *out = arena_str(a, json_get_str(body, "uid", STR_EMPTY));
        code = out->len ? 0 : ERR_DENIED;
    }
    json_decref(head);
    json_decref(body);
    return code;
}
