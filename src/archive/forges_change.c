/* Adding, changing and removing forges while weir runs. */
#include "archive/forge_int.h"
#include "archive/forges.h"
#include "archive/names.h"

#include "http/wire.h"
#include "s3/gateway/bucket_name.h"

#include <string.h>

enum { FORGES_MAX = 10000 };

/* --- checks and defaults --- */

static bool forges_url_ok(struct str text)
{
    struct url url;

    return text.len <= FORGE_URL_MAX / 2 && url_parse(&url, text, NULL) == 0 && url.host.len &&
           !url.user.len && !url.password.len && !url.query.len &&
           (str_eq(url.scheme, STR("https")) || str_eq(url.scheme, STR("http")));
}

/* Cuts the slashes at the end of a base URL. */
static struct str forges_base(struct arena *a, struct str url)
{
    while (url.len && url.p[url.len - 1] == '/')
        url.len--;
    return arena_str(a, url);
}

static void forges_default_api(struct forge *f, struct arena *a)
{
    if (f->api.len)
        f->api = forges_base(a, f->api);
    else if (str_eq(f->host, STR("github.com")))
        f->api = STR("https://api.github.com");
    else
        f->api = arena_fmt(a, "https://" STR_FMT "%s", STR_ARG(f->host), forge_row(f->kind)->api);
}

/* The bucket has the name of the host. Characters that bucket names do not allow are replaced. */
static int forges_default_bucket(struct forge *f, struct arena *a, struct err *err)
{
    static const char *const replaced[] = {"", ":", ":."};
    bool given = f->bucket.len > 0;

    for (size_t i = 0; !f->bucket.len && i < ARRAY_SIZE(replaced); i++) {
        char *name = arena_z(a, f->host);
        for (char *c = name; name && *c; c++)
            if (strchr(replaced[i], *c))
                *c = '-';
        if (name && bucket_name_check(str_z(name), NULL) == 0)
            f->bucket = str_z(name);
    }
    if (!f->bucket.len || (given && bucket_name_check(f->bucket, NULL) != 0))
        return err_set(err, ERR_INVALID,
                       "the bucket of " STR_FMT
                       " needs a valid name: 3 to 63 characters of a-z, 0-9, '.' and '-'",
                       STR_ARG(f->host));
    return 0;
}

int forges_complete(struct forge *f, struct arena *a, struct err *err)
{
    struct archive_account account;
    int code = archive_account_make(&account, a, f->host, STR("x"), err);

    if (code < 0)
        return err_wrap(err, ERR_INVALID, "the host of a forge");
    f->host = account.host;
    f->git_given = f->git.len > 0;
    f->git =
        f->git_given ? forges_base(a, f->git) : arena_fmt(a, "https://" STR_FMT, STR_ARG(f->host));
    forges_default_api(f, a);
    if (!forges_url_ok(f->api) || !forges_url_ok(f->git))
        return err_set(err, ERR_INVALID,
                       "the URLs of a forge are http://host[:port][/path] or https://...");
    /* github.com may have private addresses only if an administrator has set its URLs. Adding a
     * token is not enough. */
    f->allow_private =
        f->source != FORGE_BUILT_IN && (!str_eq(f->host, STR("github.com")) || f->git_given ||
                                        !str_eq(f->api, STR("https://api.github.com")));
    code = forges_default_bucket(f, a, err);
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

bool forges_token_ok(struct str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return false;
    return token.len >= 4 && token.len <= FORGE_TOKEN_MAX;
}

/* --- changing the store --- */

/* Runs the commands and publishes a message about the change, in one step; then loads the forges
 * again. */
static int forges_commit(struct forges *f, const struct store_args *commands, size_t count,
                         struct err *err)
{
    const struct str count_up[] = {STR("INCR"), STORE_CONFIG_COUNT};
    const struct str publish[] = {STR("PUBLISH"), FORGES_CHANNEL, STR("changed")};
    struct arena a = {0};
    struct store_args *all = arena_array(&a, count + 2, sizeof(*all));
    struct reply *reply = NULL;
    int code = all ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0) {
        memcpy(all, commands, count * sizeof(*commands));
        all[count] = (struct store_args){count_up, ARRAY_SIZE(count_up)};
        all[count + 1] = (struct store_args){publish, ARRAY_SIZE(publish)};
        code = store_atomic(f->config, &a, &reply, all, count + 2, err);
    }
    for (size_t i = 0; code == 0 && i < count; i++)
        if (reply->items[i].type == REPLY_ERROR)
            code = err_set(err, ERR_TYPE, STR_FMT, STR_ARG(reply->items[i].str));
    arena_release(&a);
    return code < 0 ? code : forges_load(f, err);
}

static const struct forge_entry *forges_stored(struct forges *f, struct str host)
{
    for (size_t i = 0; i < f->stored.len; i++)
        if (str_ieq(f->stored.items[i]->forge.host, host))
            return f->stored.items[i];
    return NULL;
}

static const struct forge_entry *forges_fixed(struct forges *f, struct str host)
{
    for (size_t i = 0; i < f->fixed.len; i++)
        if (str_ieq(f->fixed.items[i]->forge.host, host))
            return f->fixed.items[i];
    return NULL;
}

/* Encrypts the new tokens, as arguments of HSET. If such a token was marked as dead, it is used
 * again. */
static int forges_seal_tokens(struct forges *f, struct arena *a, struct str host,
                              const struct forge_change *c, struct str *args, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < c->token_count; i++) {
        struct buf sealed = {0};
        struct str id = forges_token_id(f, a, host, c->tokens[i]);
        seal(&f->key, forges_seal_owner(a, host, id), c->tokens[i], &sealed);
        args[2 * i] = id;
        args[2 * i + 1] = arena_str(a, buf_str(&sealed));
        buf_release(&sealed);
        code = quota_set_dead(f->quota, host, id, STR_EMPTY, err);
    }
    return code;
}

static int forges_store(struct forges *f, struct arena *a, const struct forge *forge,
                        const struct forge_change *c, struct err *err)
{
    struct str key = forges_key(a, "forge:", forge->host);
    struct str tokens = forges_key(a, "forge_tokens:", forge->host);
    struct buf wants = {0};
    struct str *seal_args = arena_array(a, 2 + 2 * c->token_count, sizeof(*seal_args));

    if (!seal_args)
        return err_code(err, ERR_NO_MEMORY);
    forge_wants_write(&wants, &forge->wants);
    struct str set[] = {
        STR("HSET"),   key,           STR("kind"),  str_z(forge_kind_names[forge->kind]),
        STR("api"),    forge->api,    STR("git"),   forge->git_given ? forge->git : STR_EMPTY,
        STR("bucket"), forge->bucket, STR("wants"), arena_str(a, buf_str(&wants))};
    struct str add[] = {STR("SADD"), FORGES_HOSTS, forge->host};
    buf_release(&wants);
    seal_args[0] = STR("HSET");
    seal_args[1] = tokens;
    int code = forges_seal_tokens(f, a, forge->host, c, seal_args + 2, err);
    struct store_args commands[] = {
        {set, ARRAY_SIZE(set)}, {add, ARRAY_SIZE(add)}, {seal_args, 2 + 2 * c->token_count}};
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code < 0 ? code : forges_commit(f, commands, c->token_count ? 3 : 2, err);
}

/* Checks the bucket that results from the change. */
static int forges_judge_bucket(struct forges *f, struct arena *a, const struct forge_change *c,
                               const struct forge *next, struct err *err)
{
    struct forge_entry *now = forges_get(f, c->host);
    int code = forges_check_bucket(f, a, next->host, next->bucket, err);

    if (code == 0 && now && c->leaves && !str_eq(now->forge.bucket, next->bucket))
        code = c->leaves(c->ctx, now->forge.host, now->forge.bucket, err);
    forge_entry_unref(now);
    return code;
}

/* Computes the forge that results from the change. */
static int forges_merge(struct forges *f, struct arena *a, const struct forge_change *c,
                        struct forge *out, struct err *err)
{
    const struct forge_entry *old = forges_stored(f, c->host), *fixed = forges_fixed(f, c->host);
    bool github = str_ieq(c->host, STR("github.com"));

    if (fixed && fixed->forge.source == FORGE_FIXED)
        return err_set(err, ERR_INVALID, STR_FMT " is in the configuration file", STR_ARG(c->host));
    if (!old && !c->has_kind && !github)
        return err_set(err, ERR_INVALID, "say of which kind the forge is: github, gitlab or gitea");
    if (!old && f->stored.len >= FORGES_MAX)
        return err_set(err, ERR_TOO_LARGE, "there are %d forges already", FORGES_MAX);
    *out = (struct forge){.host = c->host, .source = FORGE_STORED, .wants = {.zip = true}};
    if (old) {
        *out = old->forge;
        if (!old->forge.git_given)
            out->git = STR_EMPTY;
    }
    if (c->has_kind && old && old->forge.kind != c->kind)
        out->api = STR_EMPTY; /* the API of another kind of forge is at another path */
    if (c->has_kind)
        out->kind = c->kind;
    if (c->has_wants)
        out->wants = c->wants;
    if (c->api.len)
        out->api = c->api;
    if (c->git.len)
        out->git = c->git;
    if (c->bucket.len)
        out->bucket = c->bucket;
    if ((old ? old->tokens.len : 0) + c->token_count > FORGE_TOKENS_MAX)
        return err_set(err, ERR_TOO_LARGE, "a host has at most %d tokens", FORGE_TOKENS_MAX);
    int code = forges_complete(out, a, err);
    return code < 0 ? code : forges_judge_bucket(f, a, c, out, err);
}

int forges_set(struct forges *f, const struct forge_change *c, bool *was_new, struct err *err)
{
    struct arena a = {0};
    struct forge forge;
    int code = 0;

    for (size_t i = 0; code == 0 && i < c->token_count; i++)
        if (!forges_token_ok(c->tokens[i]))
            code =
                err_set(err, ERR_INVALID, "a token has 4 to %d printable characters without blanks",
                        FORGE_TOKEN_MAX);
    forges_begin(f);
    *was_new = forges_stored(f, c->host) == NULL;
    if (code == 0)
        code = forges_merge(f, &a, c, &forge, err);
    if (code == 0)
        code = forges_store(f, &a, &forge, c, err);
    forges_end(f);
    arena_release(&a);
    return code;
}

/* --- removing --- */

/* Finds the stored forge. Fails with the reason if the forge cannot be changed. */
static int forges_need_stored(struct forges *f, struct str host, const struct forge_entry **out,
                              struct err *err)
{
    const struct forge_entry *fixed = forges_fixed(f, host);

    *out = forges_stored(f, host);
    if (*out)
        return 0;
    if (fixed)
        return err_set(err, ERR_INVALID, "the forge " STR_FMT " is %s", STR_ARG(host),
                       fixed->forge.source == FORGE_FIXED ? "in the configuration file"
                                                          : "built in");
    return err_set(err, ERR_NOT_FOUND, "there is no forge " STR_FMT, STR_ARG(host));
}

int forges_remove(struct forges *f, struct str host, struct err *err)
{
    struct arena a = {0};
    const struct forge_entry *old;

    forges_begin(f);
    int code = forges_need_stored(f, host, &old, err);
    if (code == 0) {
        struct str name = arena_str(&a, old->forge.host);
        for (size_t i = 0; code == 0 && i < old->tokens.len; i++)
            code = quota_forget(f->quota, name, old->tokens.items[i].id, err);
        struct str del[] = {STR("DEL"), forges_key(&a, "forge:", name),
                            forges_key(&a, "forge_tokens:", name)};
        struct str forget[] = {STR("SREM"), FORGES_HOSTS, name};
        struct store_args commands[] = {{del, ARRAY_SIZE(del)}, {forget, ARRAY_SIZE(forget)}};
        if (code == 0)
            code = forges_commit(f, commands, ARRAY_SIZE(commands), err);
    }
    forges_end(f);
    arena_release(&a);
    return code;
}

int forges_remove_token(struct forges *f, struct str host, struct str id, struct err *err)
{
    struct arena a = {0};
    const struct forge_entry *old;
    bool found = false;

    forges_begin(f);
    int code = forges_need_stored(f, host, &old, err);
    if (code == 0)
        vec_each (&old->tokens, const struct forge_token *, t)
            found |= str_eq(t->id, id);
    if (code == 0 && !found)
        code = err_set(err, ERR_NOT_FOUND, STR_FMT " has no token with this id", STR_ARG(host));
    if (code == 0) {
        struct str name = arena_str(&a, old->forge.host);
        struct str del[] = {STR("HDEL"), forges_key(&a, "forge_tokens:", name), id};
        struct store_args commands[] = {{del, ARRAY_SIZE(del)}};
        code = quota_forget(f->quota, name, id, err);
        if (code == 0)
            code = forges_commit(f, commands, ARRAY_SIZE(commands), err);
    }
    forges_end(f);
    arena_release(&a);
    return code;
}
