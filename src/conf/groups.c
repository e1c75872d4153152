/* Reads the three groups of the file whose members have names that the user chooses: storages,
 * users and forges.
 *
 *     storages:
 *       ceph:
 *         url: https://s3.example.org
 *         credentials:
 *           alice: {access_key: ..., secret_key: ...}
 *     users:
 *       alice: {access_key: ..., secret_key: ...}
 *     forges:
 *       git.example.org: {kind: gitea, token_file: /etc/weir/forge.token}
 *
 * Only the file can set these groups; the environment and flags cannot. */
#include "conf/groups.h"
#include "conf/conf_int.h"
#include "conf/nearest.h"

#include "base/hash.h"

#include <stdlib.h>

enum kind { TEXT, SECRET, BOOL, STYLE, FRAMING, DURATION, NUMBER, SIZE };

struct field {
    const char *name;
    enum kind kind;
    const char *doc;
    size_t offset;
    bool required;
};

#define STORAGE(member)    offsetof(struct conf_storage, member)
#define USER(member)       offsetof(struct conf_user, member)
#define FORGE(member)      offsetof(struct conf_forge, member)
#define CREDENTIAL(member) offsetof(struct conf_credential, member)

static const struct field storage_fields[] = {
    {"url", TEXT, "The storage's endpoint: http://host[:port] or https://host[:port].",
     STORAGE(url), true},
    {"region", TEXT,
     "The region for which weir signs requests to the storage; us-east-1 when left out.",
     STORAGE(region), false},
    {"style", STYLE,
     "Where URLs have the bucket's name: path (host/bucket) or host (bucket.host); path when left "
     "out.",
     STORAGE(virtual_host), false},
    {"framing", FRAMING,
     "trailer: the storage accepts checksums that follow a body; plain: it does not. plain when "
     "left out.",
     STORAGE(trailers), false},
    {"ca", TEXT,
     "Absolute path of the certificates against which the endpoint is checked; the system's when "
     "left out.",
     STORAGE(ca), false},
    {"insecure", BOOL, "true: the endpoint's certificate is not checked; false when left out.",
     STORAGE(insecure), false},
    {"connect_timeout", DURATION,
     "How long connecting may take, with name look-up and TLS: 100ms to 60s; 3s when left out.",
     STORAGE(connect_timeout_ms), false},
    {"response_timeout", DURATION,
     "How long an answer may take to begin: 1s to 1h; 60s when left out.",
     STORAGE(response_timeout_ms), false},
    {"idle_timeout", DURATION,
     "How long a body, either way, may make no progress: 1s to 1h; 30s when left out.",
     STORAGE(idle_timeout_ms), false},
    {"requests_per_minute", NUMBER,
     "How many requests a minute replication may send to the storage, all workers together; any "
     "number when left out.",
     STORAGE(requests_per_minute), false},
    {"bytes_per_second", SIZE,
     "How many bytes a second replication may read and write on the storage, all workers together; "
     "any number when left out.",
     STORAGE(bytes_per_second), false},
    {"main", BOOL,
     "true: this is the main storage, where buckets without a routing policy are; false when left "
     "out.",
     STORAGE(main), false},
};

static const struct field credential_fields[] = {
    {"access_key", TEXT, "The user's access key on the storage.", CREDENTIAL(access_key), true},
    {"secret_key", SECRET, "The user's secret key on the storage.", CREDENTIAL(secret_key), true},
};

static const struct field user_fields[] = {
    {"access_key", TEXT, "The user's access key.", USER(access_key), true},
    {"secret_key", SECRET, "The user's secret key.", USER(secret_key), true},
    {"id", TEXT,
     "The user's id, which is recorded as the owner of buckets; the name when left out.", USER(id),
     false},
    {"display_name", TEXT, "The name that S3 answers show for the user.", USER(display_name),
     false},
    {"email", TEXT, "The user's e-mail address, by which access lists may name the user.",
     USER(email), false},
    {"admin", BOOL,
     "true: the user may use every bucket and the management API; false when left out.",
     USER(admin), false},
};

static const struct field forge_fields[] = {
    {"kind", TEXT, "The kind of forge: github, gitlab or gitea; only github.com may leave it out.",
     FORGE(kind), false},
    {"api", TEXT,
     "Base URL of the API; https://HOST/api/v3 (GitHub Enterprise), /api/v4 (GitLab) or /api/v1 "
     "(Gitea) when left out.",
     FORGE(api), false},
    {"git", TEXT,
     "Base URL of the repositories; https://HOST, and the clone URLs of the API, when left out.",
     FORGE(git), false},
    {"bucket", TEXT,
     "The bucket that holds the forge's accounts; the host, with '-' instead of ':', when left "
     "out.",
     FORGE(bucket), false},
    {"token", SECRET,
     "A token for the API and for git, or several with commas between them; requests are sent "
     "without one when left out.",
     FORGE(token), false},
    {"token_file", TEXT, "Absolute path of a file with a token on each line.", FORGE(token_file),
     false},
    {"zip", BOOL, "false: default branches are not saved as ZIP files; true when left out.",
     FORGE(zip), false},
    {"wikis", BOOL, "true: wikis are saved; false when left out.", FORGE(wikis), false},
    {"gists", BOOL, "true: the gists of accounts are saved (GitHub); false when left out.",
     FORGE(gists), false},
    {"lfs", BOOL, "true: the LFS objects of default branches are saved; false when left out.",
     FORGE(lfs), false},
    {"issues", BOOL, "true: issues and their comments are saved; false when left out.",
     FORGE(issues), false},
    {"pulls", BOOL, "true: pull requests are saved; false when left out.", FORGE(pulls), false},
    {"releases", BOOL, "true: releases and their files are saved; false when left out.",
     FORGE(releases), false},
};

static const struct {
    const char
        /* In the documentation these are the placeholders NAME, USER and HOST, unchanged. */
        *prefix;
    const struct field *fields;
    size_t count;
} documented[] = {
    {"storages.NAME.", storage_fields, ARRAY_SIZE(storage_fields)},
    {"storages.NAME.credentials.USER.", credential_fields, ARRAY_SIZE(credential_fields)},
    {"users.NAME.", user_fields, ARRAY_SIZE(user_fields)},
    {"forges.HOST.", forge_fields, ARRAY_SIZE(forge_fields)},
};

/* The entry and the field to which a value belongs. */
struct place {
    const struct field *fields;
    size_t count;
    void *entry; /* a conf_storage, conf_credential, conf_user or conf_forge */
    unsigned *given;
    struct str field;
};

/* --- entries --- */

static const char *conf_keep_text(struct conf *c, struct str text)
{
    return arena_z(&c->arena, text);
}

static struct conf_storage *storage_of(struct conf *c, struct str name, size_t line)
{
    vec_each (&c->storages, struct conf_storage *, s)
        if (str_eq(str_z(s->name), name))
            return s;
    vec_push(
        &c->storages,
        ((struct conf_storage){
            .name = conf_keep_text(c, name), .url = "", .region = "", .ca = "", .line = line}));
    return vec_last(&c->storages);
}

static struct conf_credential *storage_credential(struct conf *c, struct conf_storage *s,
                                                  struct str user, size_t line)
{
    vec_each (&s->credentials, struct conf_credential *, found)
        if (str_eq(str_z(found->user), user))
            return found;
    vec_push(
        &s->credentials,
        ((struct conf_credential){
            .user = conf_keep_text(c, user), .access_key = "", .secret_key = "", .line = line}));
    return vec_last(&s->credentials);
}

static struct conf_user *user_of(struct conf *c, struct str name, size_t line)
{
    vec_each (&c->users, struct conf_user *, u)
        if (str_eq(str_z(u->name), name))
            return u;
    vec_push(&c->users, ((struct conf_user){.name = conf_keep_text(c, name),
                                            .id = "",
                                            .display_name = "",
                                            .email = "",
                                            .access_key = "",
                                            .secret_key = "",
                                            .line = line}));
    return vec_last(&c->users);
}

static struct conf_forge *forge_of(struct conf *c, struct str host, size_t line)
{
    vec_each (&c->forges, struct conf_forge *, f)
        if (str_ieq(str_z(f->host), host))
            return f;
    vec_push(&c->forges, ((struct conf_forge){.host = conf_keep_text(c, host),
                                              .kind = "",
                                              .api = "",
                                              .git = "",
                                              .bucket = "",
                                              .token = "",
                                              .token_file = "",
                                              .zip = true,
                                              .line = line}));
    return vec_last(&c->forges);
}

/* Splits "name.field" at the last '.', because names of users and hosts may contain dots. */
static bool cut_field(struct str text, struct str *name, struct str *field)
{
    for (size_t i = text.len; i-- > 0;)
        if (text.p[i] == '.') {
            *name = str_head(text, i);
            *field = str_skip(text, i + 1);
            return i > 0;
        }
    return false;
}

static bool find_place(struct conf *c, struct str name, size_t line, struct place *out)
{
    struct str of_storages = STR("storages."), of_users = STR("users."), in = STR("credentials.");
    struct str of_forges = STR("forges.");
    struct str entry, rest, user;

    if (str_starts(name, of_users) &&
        cut_field(str_skip(name, of_users.len), &entry, &out->field)) {
        struct conf_user *u = user_of(c, entry, line);
        *out = (struct place){user_fields, ARRAY_SIZE(user_fields), u, &u->given, out->field};
        return true;
    }
    if (str_starts(name, of_forges) &&
        cut_field(str_skip(name, of_forges.len), &entry, &out->field)) {
        struct conf_forge *f = forge_of(c, entry, line);
        *out = (struct place){forge_fields, ARRAY_SIZE(forge_fields), f, &f->given, out->field};
        return true;
    }
    if (!str_starts(name, of_storages) ||
        !str_cut(str_skip(name, of_storages.len), '.', &entry, &rest) || !entry.len || !rest.len)
        return false;
    struct conf_storage *s = storage_of(c, entry, line);
    if (str_starts(rest, in) && cut_field(str_skip(rest, in.len), &user, &out->field)) {
        struct conf_credential *k = storage_credential(c, s, user, line);
        *out = (struct place){credential_fields, ARRAY_SIZE(credential_fields), k, &k->given,
                              out->field};
        return true;
    }
    *out = (struct place){storage_fields, ARRAY_SIZE(storage_fields), s, &s->given, rest};
    return true;
}

/* --- values --- */

static int set_choice(bool *out, struct str value, const char *off, const char *on, struct err *err)
{
    *out = str_eq(value, str_z(on));
    return *out || str_eq(value, str_z(off))
               ? 0
               : err_set(err, ERR_INVALID, "must be %s or %s", off, on);
}

static int group_set_field(struct conf *c, const struct field *f, void *entry, struct str value,
                           struct err *err)
{
    void *at = (char *)entry + f->offset;

    switch (f->kind) {
    case TEXT:
    case SECRET:
        if (value.len == 0 || value.len > 1024 || memchr(value.p, '\0', value.len))
            return err_set(err, ERR_INVALID, "must be 1 to 1024 characters");
        *(const char **)at = conf_keep_text(c, value);
        return 0;
    case BOOL:
        return set_choice(at, value, "false", "true", err);
    case STYLE:
        return set_choice(at, value, "path", "host", err);
    case FRAMING:
        return set_choice(at, value, "plain", "trailer", err);
    case DURATION:
        if (str_duration_ms(value, at) < 0 || *(uint64_t *)at == 0)
            return err_set(err, ERR_INVALID, "must be a duration such as 500ms, 30s or 5m");
        return 0;
    case NUMBER:
        return str_u64(value, at) < 0 ? err_set(err, ERR_INVALID, "must be a number") : 0;
    case SIZE:
        return str_size(value, at) < 0
                   ? err_set(err, ERR_INVALID, "must be a size such as 64KiB or 16MiB")
                   : 0;
    }
    return ERR_INVALID;
}

static void unknown_field(const struct place *p, const struct conf_where *w)
{
    struct nearest near = NEAREST_INIT(p->field);
    struct buf quoted = BUF_INIT(1024);

    conf_quote(&quoted, w->name);
    for (size_t i = 0; i < p->count; i++)
        nearest_offer(&near, p->fields[i].name);
    if (near.best)
        conf_problem(w->problems, "%s:%zu: %s is not a key; did you mean %s?", w->file, w->line,
                     quoted.p, near.best);
    else
        conf_problem(w->problems, "%s:%zu: %s is not a key; docs/config.md lists them", w->file,
                     w->line, quoted.p);
    buf_release(&quoted);
}

bool conf_group_value(struct conf *c, const struct conf_where *w, struct str value)
{
    struct place p = {0};
    struct err err = {0};
    size_t i = 0;

    if (!find_place(c, w->name, w->line, &p))
        return false;
    while (i < p.count && !str_eq(str_z(p.fields[i].name), p.field))
        i++;
    if (i == p.count) {
        unknown_field(&p, w);
        return true;
    }
    struct buf quoted = BUF_INIT(1024);
    conf_quote(&quoted, w->name);
    if (*p.given & 1u << i)
        conf_problem(w->problems, "%s:%zu: %s is given twice", w->file, w->line, quoted.p);
    else if (group_set_field(c, &p.fields[i], p.entry, value, &err) < 0)
        conf_problem(w->problems, "%s:%zu: %s %s", w->file, w->line, quoted.p, err.text);
    buf_release(&quoted);
    *p.given |= 1u << i;
    c->groups_digest =
        hash_xxh3(w->name, c->groups_digest) ^ hash_xxh3(value, c->groups_digest + i + 1);
    return true;
}

/* --- fields that must be there --- */

static void check_given(const struct place *p, const char *prefix, size_t line,
                        const struct conf_where *w)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->fields[i].required && !(*p->given & 1u << i))
            conf_problem(w->problems, "%s:%zu: %s has no %s", w->file, line, prefix,
                         p->fields[i].name);
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static void check_storage(struct conf_storage *s, const struct conf_where *w)
{
    struct place p = {storage_fields, ARRAY_SIZE(storage_fields), s, &s->given, STR_EMPTY};
    struct buf prefix = BUF_INIT(2048);

    buf_appendf(&prefix, "storages.%s", s->name);
    check_given(&p, prefix.p, s->line, w);
    if (*s->url && !is_url(s->url))
        conf_problem(w->problems, "%s:%zu: %s.url must begin with http:// or https://", w->file,
                     s->line, prefix.p);
    vec_each (&s->credentials, struct conf_credential *, c) {
        struct place at = {credential_fields, ARRAY_SIZE(credential_fields), c, &c->given,
                           STR_EMPTY};
        buf_reset(&prefix);
        buf_appendf(&prefix, "storages.%s.credentials.%s", s->name, c->user);
        check_given(&at, prefix.p, c->line, w);
    }
    buf_release(&prefix);
}

static void check_forge(const struct conf_forge *f, const struct conf_where *w)
{
    static const char *const kinds[] = {"github", "gitlab", "gitea"};
    bool known = !*f->kind && str_ieq(str_z(f->host), STR("github.com"));

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        known |= strcmp(f->kind, kinds[i]) == 0;
    if (!known)
        conf_problem(w->problems, "%s:%zu: forges.%s.kind must be github, gitlab or gitea", w->file,
                     f->line, f->host);
    if ((*f->api && !is_url(f->api)) || (*f->git && !is_url(f->git)))
        conf_problem(w->problems,
                     "%s:%zu: forges.%s: api and git must begin with http:// or https://", w->file,
                     f->line, f->host);
    if (*f->token_file && f->token_file[0] != '/')
        conf_problem(w->problems, "%s:%zu: forges.%s.token_file must be an absolute path", w->file,
                     f->line, f->host);
}

void conf_groups_check(struct conf *c, const struct conf_where *w)
{
    const struct conf_storage *main_storage = NULL;

    vec_each (&c->storages, struct conf_storage *, s) {
        check_storage(s, w);
        if (s->main && main_storage)
            conf_problem(w->problems,
                         "%s:%zu: storages.%s.main: storages.%s is the main one already", w->file,
                         s->line, s->name, main_storage->name);
        if (s->main)
            main_storage = s;
    }
    vec_each (&c->users, struct conf_user *, u) {
        struct place p = {user_fields, ARRAY_SIZE(user_fields), u, &u->given, STR_EMPTY};
        struct buf prefix = BUF_INIT(2048);
        buf_appendf(&prefix, "users.%s", u->name);
        check_given(&p, prefix.p, u->line, w);
        buf_release(&prefix);
    }
    vec_each (&c->forges, struct conf_forge *, f)
        check_forge(f, w);
}

static void secret_wipe(const char *secret)
{
    if (*secret)
        secure_zero((char *)secret, strlen(secret));
}

void conf_groups_release(struct conf *c)
{
    vec_each (&c->storages, struct conf_storage *, s) {
        vec_each (&s->credentials, struct conf_credential *, k)
            secret_wipe(k->secret_key);
        vec_release(&s->credentials);
    }
    vec_each (&c->users, struct conf_user *, u)
        secret_wipe(u->secret_key);
    vec_each (&c->forges, struct conf_forge *, f)
        secret_wipe(f->token);
    vec_release(&c->forges);
    vec_release(&c->storages);
    vec_release(&c->users);
}

void conf_groups_document(void (*row)(void *ctx, const char *prefix, const char *name,
                                      const char *doc),
                          void *ctx)
{
    for (size_t i = 0; i < ARRAY_SIZE(documented); i++)
        for (size_t k = 0; k < documented[i].count; k++)
            row(ctx, documented[i].prefix, documented[i].fields[k].name,
                documented[i].fields[k].doc);
}
