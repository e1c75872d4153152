/* Reads the forges of the store and of the configuration file. */
#include "archive/forge_int.h"
#include "archive/forges.h"

#include "base/hex.h"
#include "conf/conf.h"
#include "os/file.h"
#include "sign/hmac.h"
#include "store/fields.h"

enum { TOKEN_ID_BYTES = 6, TOKEN_FILE_MAX = 64 * 1024 };

/* --- keys --- */

struct str forges_key(struct arena *a, const char *prefix, struct str host)
{
    struct buf key = {0};

    buf_append_z(&key, prefix);
    store_key_part(&key, host);
    struct str out = arena_str(a, buf_str(&key));
    buf_release(&key);
    return out;
}

struct str forges_seal_owner(struct arena *a, struct str host, struct str id)
{
    return arena_fmt(a, STR_FMT ":" STR_FMT, STR_ARG(forges_key(a, "forge:", host)), STR_ARG(id));
}

struct str forges_token_id(struct forges *f, struct arena *a, struct str host, struct str token)
{
    struct str text =
        arena_fmt(a, "forge token\n" STR_FMT "\n" STR_FMT, STR_ARG(host), STR_ARG(token));
    unsigned char mac[HMAC_SHA256_LEN];

    hmac_sha256(str_n(f->key.bytes, sizeof(f->key.bytes)), text, mac);
    if (text.p)
        secure_zero((char *)text.p, text.len);
    return arena_hex(a, mac, TOKEN_ID_BYTES);
}

/* --- the store --- */

struct forge_row_text {
    struct str kind, api, git, bucket, wants;
};
static const struct field_row forge_text_rows[] = {
#define TEXT(name, member) FIELD_ROW(struct forge_row_text, name, FIELD_TEXT, member)
    TEXT("kind", kind),     TEXT("api", api),     TEXT("git", git),
    TEXT("bucket", bucket), TEXT("wants", wants),
#undef TEXT
};
static const struct fields forge_text_fields = FIELDS(forge_text_rows);

static int forge_kind_read(enum forge_kind *out, struct str name, struct err *err)
{
    for (size_t i = 0; i < FORGE_KINDS; i++)
        if (str_eq(name, str_z(forge_kind_names[i]))) {
            *out = (enum forge_kind)i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "the kind of a forge is github, gitlab or gitea");
}

static int forge_read_hash(struct forge *out, struct arena *a, struct str host,
                           const struct reply *hash, struct err *err)
{
    struct forge_row_text t = {0};
    int code = fields_read(&t, &forge_text_fields, hash, NULL, err);

    *out = (struct forge){
        .host = host, .api = t.api, .git = t.git, .bucket = t.bucket, .source = FORGE_STORED};
    if (code == 0)
        code = forge_kind_read(&out->kind, t.kind, err);
    if (code == 0)
        code = forge_wants_read(&out->wants, t.wants, err);
    if (code == 0)
        code = forges_complete(out, a, err);
    return code < 0 ? err_wrap(err, ERR_CORRUPT, "the stored forge " STR_FMT, STR_ARG(host)) : 0;
}

static int forge_read_token(struct forges *f, struct arena *a, struct forge_entry *e, struct str id,
                            struct str sealed, struct err *err)
{
    struct buf secret = BUF_INIT(SEAL_PLAIN_MAX);
    int code = unseal(&f->key, forges_seal_owner(a, e->forge.host, id), sealed, &secret);

    if (code < 0)
        code = err_set(err, ERR_CORRUPT,
                       "a token of " STR_FMT " is not sealed with this weir's key file",
                       STR_ARG(e->forge.host));
    else
        forge_entry_add_token(e, id, buf_str(&secret));
    if (secret.p)
        secure_zero(secret.p, secret.cap);
    buf_release(&secret);
    return code;
}

/* Reads one forge. *out stays NULL when the forge was removed after its name was read. */
static int forge_load(struct forges *f, struct arena *a, struct str host, struct forge_entry **out,
                      struct err *err)
{
    struct reply *hash = NULL, *tokens = NULL;
    struct forge forge;
    int code = store_call(f->config, a, &hash, err, STR("HGETALL"), forges_key(a, "forge:", host));

    if (code == 0)
        code = reply_expect(hash, REPLY_ARRAY, err);
    if (code < 0 || hash->count == 0)
        return code;
    code = store_call(f->config, a, &tokens, err, STR("HGETALL"),
                      forges_key(a, "forge_tokens:", host));
    if (code == 0)
        code = reply_expect(tokens, REPLY_ARRAY, err);
    if (code == 0)
        code = forge_read_hash(&forge, a, host, hash, err);
    if (code < 0)
        return code;
    struct forge_entry *e = forge_entry_new(&forge);
    for (size_t i = 0; code == 0 && i + 1 < tokens->count; i += 2)
        code = forge_read_token(f, a, e, tokens->items[i].str, tokens->items[i + 1].str, err);
    if (code < 0)
        forge_entry_unref(e);
    else
        *out = e;
    return code;
}

int forges_load(struct forges *f, struct err *err)
{
    struct arena a = {0};
    struct reply *hosts = NULL;
    VEC(struct forge_entry *) next = {0};
    int code = store_call(f->config, &a, &hosts, err, STR("SMEMBERS"), FORGES_HOSTS);

    BUG_ON(!f->busy);
    if (code == 0)
        code = reply_expect(hosts, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < hosts->count; i++) {
        struct forge_entry *e = NULL;
        code = forge_load(f, &a, hosts->items[i].str, &e, err);
        if (e)
            vec_push(&next, e);
    }
    if (code == 0)
        code = store_is_known(f->config, err);
    if (code == 0) {
        forges_mark_buckets(f, next.items, next.len);
        mutex_lock(&f->lock);
        struct forge_entry **old = f->stored.items;
        size_t count = f->stored.len;
        f->stored.items = next.items;
        f->stored.len = next.len;
        f->stored.cap = next.cap;
        mutex_unlock(&f->lock);
        next.items = old;
        next.len = count;
    }
    while (next.len)
        forge_entry_unref(vec_pop(&next));
    vec_release(&next);
    arena_release(&a);
    return code;
}

/* --- the configuration file --- */

/* Adds the tokens of a text, in which commas, blanks or line ends separate them. */
static int forge_add_tokens(struct forges *f, struct forge_entry *e, struct str text,
                            struct err *err)
{
    struct arena a = {0};
    struct str token;
    int code = 0;

    while (code == 0 && str_token(&text, ", \t\r\n", &token))
        if (!forges_token_ok(token))
            code = err_set(err, ERR_INVALID,
                           "forges." STR_FMT ": a token has 4 to %d printable characters",
                           STR_ARG(e->forge.host), FORGE_TOKEN_MAX);
        else if (!forge_entry_add_token(e, forges_token_id(f, &a, e->forge.host, token), token))
            code = err_set(err, ERR_TOO_LARGE, "forges." STR_FMT ": a host has at most %d tokens",
                           STR_ARG(e->forge.host), FORGE_TOKENS_MAX);
    arena_release(&a);
    return code;
}

static int forge_add_token_file(struct forges *f, struct forge_entry *e, const char *path,
                                struct err *err)
{
    struct buf text = BUF_INIT(TOKEN_FILE_MAX);
    int code = file_read(path, &text, err);

    if (code < 0)
        code = err_wrap(err, code, "forges." STR_FMT ".token_file", STR_ARG(e->forge.host));
    else
        code = forge_add_tokens(f, e, buf_str(&text), err);
    if (text.p)
        secure_zero(text.p, text.cap);
    buf_release(&text);
    return code;
}

static int forge_add_conf(struct forges *f, const struct conf_forge *c, struct err *err)
{
    struct arena a = {0};
    struct forge forge = {.host = str_z(c->host),
                          .api = str_z(c->api),
                          .git = str_z(c->git),
                          .bucket = str_z(c->bucket),
                          .source = FORGE_FIXED,
                          .wants = {.zip = c->zip,
                                    .wikis = c->wikis,
                                    .gists = c->gists,
                                    .lfs = c->lfs,
                                    .issues = c->issues,
                                    .pulls = c->pulls,
                                    .releases = c->releases}};
    int code = *c->kind ? forge_kind_read(&forge.kind, str_z(c->kind), err) : 0;

    if (code == 0)
        code = forges_complete(&forge, &a, err);
    if (code == 0)
        code = forges_check_bucket(f, &a, forge.host, forge.bucket, err);
    if (code == 0) {
        struct forge_entry *e = forge_entry_new(&forge);
        vec_push(&f->fixed, e);
        code = forge_add_tokens(f, e, str_z(c->token), err);
        if (code == 0 && *c->token_file)
            code = forge_add_token_file(f, e, c->token_file, err);
    }
    arena_release(&a);
    return code;
}

int forges_add_fixed(struct forges *f, const struct conf *conf, struct err *err)
{
    struct arena a = {0};
    struct forge github = {.host = STR("github.com"),
                           .kind = FORGE_GITHUB,
                           .source = FORGE_BUILT_IN,
                           .wants = {.zip = true}};
    bool named = false;
    int code = 0;

    for (size_t i = 0; code == 0 && conf && i < conf->forges.len; i++) {
        named |= str_ieq(str_z(conf->forges.items[i].host), github.host);
        code = forge_add_conf(f, &conf->forges.items[i], err);
    }
    if (code == 0 && !named) {
        code = forges_complete(&github, &a, err);
        if (code == 0)
            code = forges_check_bucket(f, &a, github.host, github.bucket, err);
        if (code == 0)
            vec_push(&f->fixed, forge_entry_new(&github));
    }
    arena_release(&a);
    return code;
}
