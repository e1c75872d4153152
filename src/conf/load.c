/* Loads the layers (defaults, file, environment, flags), then checks values that depend on each
 * other. */
#include "conf/conf_int.h"
#include "conf/groups.h"
#include "conf/nearest.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

/* The state of loading a configuration: the snapshot that is being made, and the problems found. */
struct load {
    struct conf *conf;
    const char *file;
    struct conf_problems problems;
};

static int layer_file(struct load *l, const char *path);
static void layer_text(struct load *l, struct str text);
static void layer_environment(struct load *l, const char *const *environ);
static void layer_flags(struct load *l, const struct conf_flag *flags, size_t count);
static void conf_check_together(struct load *l);
static struct conf *conf_new(void);
static int load_finish(struct conf **out, struct load *l);

int conf_load(struct conf **out, const struct conf_input *in, struct buf *problems)
{
    struct load l = {.conf = conf_new(), .file = "", .problems = {.lines = problems}};
    const char *file = conf_find_file(in);

    if (!file || layer_file(&l, file) == 0) {
        layer_environment(&l, in->environ);
        layer_flags(&l, in->flags, in->flag_count);
    }
    return load_finish(out, &l);
}

int conf_load_text(struct conf **out, const char *file, struct str text, struct buf *problems)
{
    struct load l = {.conf = conf_new(), .file = file, .problems = {.lines = problems}};

    layer_text(&l, text);
    return load_finish(out, &l);
}

static int load_finish(struct conf **out, struct load *l)
{
    if (l->problems.count == 0)
        conf_check_together(l);
    if (l->problems.count == 0 && arena_error(&l->conf->arena) < 0)
        conf_problem(&l->problems, "the configuration is too large");
    if (l->problems.count > 0) {
        conf_unref(l->conf);
        return ERR_INVALID;
    }
    *out = l->conf;
    return 0;
}

/* --- snapshots --- */

static struct conf *conf_new(void)
{
    struct conf *c = xcalloc(1, sizeof(*c));

    atomic_init(&c->refs, 1);
    arena_init(&c->arena, 4 * MIB);
    c->file = "";
    c->origins = arena_array(&c->arena, conf_key_count, sizeof(*c->origins));
    for (size_t i = 0; i < conf_key_count; i++) {
        c->origins[i].text = conf_keys[i].fallback;
        BUG_ON(conf_value_set(c, &conf_keys[i], str_z(conf_keys[i].fallback), NULL) < 0);
    }
    return c;
}

struct conf *conf_ref(struct conf *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

/* Overwrites the secret value of key number `i`. The value is stored twice: in its field, and in
 * its origin as the user wrote it. (A default is not a secret, and its text is a literal.) */
static void conf_wipe_secret(struct conf *c, size_t i)
{
    char *value = *(char **)((char *)c + conf_keys[i].offset);
    char *text = (char *)c->origins[i].text;

    if (c->origins[i].layer == CONF_DEFAULT)
        return;
    secure_zero(value, strlen(value));
    secure_zero(text, strlen(text));
}

void conf_unref(struct conf *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    for (size_t i = 0; i < conf_key_count; i++)
        if (conf_keys[i].flags & CONF_SECRET)
            conf_wipe_secret(c, i);
    conf_groups_release(c);
    arena_release(&c->arena);
    free(c);
}

static struct conf_origin *origin_of(const struct conf *c, const struct conf_key *key)
{
    return &c->origins[key - conf_keys];
}

/* Sets a key. A wrong value leaves the key unchanged, and the caller reports it. */
static int assign(struct load *l, const struct conf_key *key, struct str value,
                  struct conf_origin origin, struct err *err)
{
    int code = conf_value_set(l->conf, key, value, err);

    if (code == 0) {
        origin.text = arena_z(&l->conf->arena, value);
        *origin_of(l->conf, key) = origin;
    }
    return code;
}

/* --- problems --- */

bool conf_problems_full(const struct conf_problems *p)
{
    return p->count >= CONF_MAX_PROBLEMS;
}

void conf_problem(struct conf_problems *p, const char *fmt, ...)
{
    va_list ap;

    if (conf_problems_full(p))
        return;
    p->count++;
    va_start(ap, fmt);
    buf_vappendf(p->lines, fmt, ap);
    va_end(ap);
    buf_append_char(p->lines, '\n');
}

/* Reports that `name` is not a key, and suggests the key with the most similar name. */
static void unknown_key(struct load *l, const char *where, struct str name)
{
    struct nearest near = NEAREST_INIT(name);
    struct buf quoted = BUF_INIT(1024);

    conf_quote(&quoted, name);
    for (size_t i = 0; i < conf_key_count; i++) {
        struct str key = str_z(conf_keys[i].name);
        nearest_offer(&near, conf_keys[i].name);
        if (str_starts(key, name) && key.len > name.len && key.p[name.len] == '.') {
            conf_problem(&l->problems, "%s: %s is a group of keys (%s, ...), not a key", where,
                         quoted.p, key.p);
            goto out;
        }
        if (str_starts(name, key) && name.len > key.len && name.p[key.len] == '.') {
            conf_problem(&l->problems, "%s: %s: %s takes a value, not a group of keys", where,
                         quoted.p, key.p);
            goto out;
        }
    }
    if (near.best)
        conf_problem(&l->problems, "%s: %s is not a key; did you mean %s?", where, quoted.p,
                     near.best);
    else
        conf_problem(&l->problems, "%s: %s is not a key; `weir config` lists them", where,
                     quoted.p);
out:
    buf_release(&quoted);
}

/* --- the file --- */

const char *conf_find_file(const struct conf_input *in)
{
    static const char *const places[] = {"./weir.yaml", "/etc/weir/weir.yaml"};

    if (in->file)
        return in->file;
    for (const char *const *e = in->environ; e && *e; e++)
        if (str_starts(str_z(*e), STR("WEIR_CONFIG=")) && (*e)[12])
            return *e + 12;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (file_exists(places[i]))
            return places[i];
    return NULL;
}

static int layer_file(struct load *l, const char *path)
{
    struct buf text = BUF_INIT(CONF_MAX_FILE);
    struct err err = {0};
    int code = file_read(path, &text, &err);

    l->file = path;
    if (code == ERR_TOO_LARGE)
        conf_problem(&l->problems, "%s: larger than %d KiB", path, CONF_MAX_FILE / 1024);
    else if (code < 0)
        conf_problem(&l->problems, "%s", err.text);
    else
        layer_text(l, buf_str(&text));
    if (text.p)
        secure_zero(text.p, text.cap);
    buf_release(&text);
    return code;
}

static void on_yaml_value(void *ctx, size_t line, struct str name, struct str value)
{
    struct load *l = ctx;
    const struct conf_key *key = conf_key_find(name);
    struct conf_origin *origin = key ? origin_of(l->conf, key) : NULL;
    struct conf_where w = {l->file, line, name, &l->problems};
    struct err err = {0};

    if (!key && conf_group_value(l->conf, &w, value))
        return;
    if (!key) {
        char where[512];
        snprintf(where, sizeof(where), "%s:%zu", l->file, line);
        unknown_key(l, where, name);
    } else if (origin->layer == CONF_FILE) {
        conf_problem(&l->problems, "%s:%zu: %s is given twice; first on line %zu", l->file, line,
                     key->name, origin->line);
    } else if (assign(l, key, value, (struct conf_origin){.layer = CONF_FILE, .line = line}, &err) <
               0) {
        conf_problem(&l->problems, "%s:%zu: %s %s", l->file, line, key->name, err.text);
    }
}

static void layer_text(struct load *l, struct str text)
{
    l->conf->file = arena_z(&l->conf->arena, str_z(l->file));
    conf_yaml_walk(l->file, text, &l->problems, on_yaml_value, l);
}

/* --- the environment --- */

/* Reports a variable whose name is similar to that of a key, because it is probably a typing
 * mistake. Other variables are not reported, because they may have another purpose: Kubernetes sets
 * WEIR_SERVICE_HOST and the like for a service called weir. */
static void check_near_variable(struct load *l, struct str name)
{
    struct buf env = BUF_INIT(256);

    for (size_t i = 0; i < conf_key_count; i++) {
        buf_reset(&env);
        conf_key_env(&conf_keys[i], &env);
        if (nearest_distance(name, buf_str(&env)) > 2)
            continue;
        conf_problem(&l->problems, "environment " STR_FMT ": not a key; did you mean %s?",
                     STR_ARG(str_head(name, 64)), env.p);
        break;
    }
    buf_release(&env);
}

static const struct conf_key *key_of_variable(struct str name)
{
    const struct conf_key *found = NULL;
    struct buf env = BUF_INIT(256);

    for (size_t i = 0; i < conf_key_count && !found; i++) {
        buf_reset(&env);
        conf_key_env(&conf_keys[i], &env);
        if (str_eq(name, buf_str(&env)))
            found = &conf_keys[i];
    }
    buf_release(&env);
    return found;
}

static void layer_environment(struct load *l, const char *const *environ)
{
    for (; environ && *environ; environ++) {
        struct str name, value;
        const struct conf_key *key;
        struct err err = {0};

        if (!str_starts(str_z(*environ), STR("WEIR_")))
            continue;
        str_cut(str_z(*environ), '=', &name, &value);
        key = key_of_variable(name);
        if (!key)
            check_near_variable(l, name);
        else if (assign(l, key, value, (struct conf_origin){.layer = CONF_ENVIRONMENT}, &err) < 0)
            conf_problem(&l->problems, "environment " STR_FMT ": %s %s", STR_ARG(name), key->name,
                         err.text);
    }
}

/* --- flags --- */

static void layer_flags(struct load *l, const struct conf_flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct conf_key *key = conf_key_find(flags[i].name);
        struct err err = {0};

        if (!key)
            unknown_key(l, "flag", flags[i].name);
        else if (key->flags & CONF_SECRET)
            conf_problem(&l->problems,
                         "flag --%s: secrets are not taken from flags, which everybody can see "
                         "with ps; use the file or the environment",
                         key->name);
        else if (assign(l, key, flags[i].value, (struct conf_origin){.layer = CONF_FLAG}, &err) < 0)
            conf_problem(&l->problems, "flag --%s: %s %s", key->name, key->name, err.text);
    }
}

/* --- checks of two keys --- */

static void problem_of(struct load *l, const char *key, const char *what)
{
    struct buf source = BUF_INIT(1024);

    conf_source_text(l->conf, conf_key_find(str_z(key)), &source);
    conf_problem(&l->problems, "%s: %s %s", source.p, key, what);
    buf_release(&source);
}

static void check_pair(struct load *l, const char *have, const char *with)
{
    const struct conf *c = l->conf;
    const struct conf_origin *a = origin_of(c, conf_key_find(str_z(have)));
    const struct conf_origin *b = origin_of(c, conf_key_find(str_z(with)));
    struct buf source = BUF_INIT(1024);

    if (!*a->text == !*b->text)
        return;
    conf_source_text(c, conf_key_find(str_z(*a->text ? have : with)), &source);
    conf_problem(&l->problems, "%s: %s is set but %s is not; set both or none", source.p,
                 *a->text ? have : with, *a->text ? with : have);
    buf_release(&source);
}

/* Whether the URL names a database, as redis://host/3, redis+sentinel://host,host/name/3 and
 * unix:///path?db=3 do. A password may contain a '/', so the part before the last '@' is skipped.
 */
static bool names_database(struct str url)
{
    bool unix_socket = str_starts(url, STR("unix:"));
    bool sentinels = str_find(url, STR("+sentinel://")) >= 0;
    struct str rest = str_skip(url, (size_t)(str_find(url, STR("://")) + 3)), query, skipped;
    size_t host = 0;

    str_cut(rest, '?', &rest, &query);
    if (str_starts(query, STR("db=")) || str_find(query, STR("&db=")) >= 0)
        return true;
    for (size_t i = 0; i < rest.len; i++)
        if (rest.p[i] == '@')
            host = i + 1;
    rest = str_skip(rest, host);
    if (unix_socket || (sentinels && !str_cut(rest, '/', &skipped, &rest)))
        return false;
    return str_cut(rest, '/', &skipped, &rest) && rest.len > 0;
}

/* Reports a database number in the URL store.redis.url. The number would override appDB, queueDB,
 * lockDB, configDB and swarmDB, and all of them would share one database. */
static void check_redis_url(struct load *l)
{
    if (names_database(str_z(l->conf->store.redis.url)))
        problem_of(l, "store.redis.url",
                   "must not name a database; store.redis.appDB, queueDB, lockDB, configDB and "
                   "swarmDB do");
}

static void check_storage_classes(struct load *l)
{
    struct str rest = str_z(l->conf->s3.storage_classes), name;

    while (str_token(&rest, ",", &name)) {
        size_t i = 0;
        while (i < name.len && ((name.p[i] >= 'A' && name.p[i] <= 'Z') || name.p[i] == '_' ||
                                (name.p[i] >= '0' && name.p[i] <= '9')))
            i++;
        if (i < name.len || name.len > 64) {
            problem_of(l, "s3.storage_classes",
                       "must be names of A to Z, 0 to 9 and _ with commas between them");
            return;
        }
    }
}

static void conf_check_together(struct load *l)
{
    check_storage_classes(l);
    check_redis_url(l);
    conf_groups_check(l->conf, &(struct conf_where){l->file, 0, STR_EMPTY, &l->problems});
    check_pair(l, "access_key", "secret_key");
    check_pair(l, "s3.tls.cert", "s3.tls.key");
    check_pair(l, "api.tls.cert", "api.tls.key");
    if (strchr(l->conf->access_key, ':'))
        problem_of(l, "access_key", "must not hold a colon");
}

/* --- reload --- */

void conf_keep_fixed(struct conf *next, const struct conf *old, struct buf *kept)
{
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        const struct conf_origin *was = origin_of(old, key);
        struct conf_origin *is = origin_of(next, key);

        if ((key->flags & CONF_RELOADABLE) || strcmp(was->text, is->text) == 0)
            continue;
        buf_appendf(kept, "%s%s", kept->len ? ", " : "", key->name);
        *is = *was;
        is->text = arena_z(&next->arena, str_z(was->text));
        BUG_ON(conf_value_set(next, key, str_z(is->text), NULL) < 0);
    }
    if (next->groups_digest != old->groups_digest)
        buf_appendf(kept, "%sstorages, users and forges", kept->len ? ", " : "");
    next->groups_digest = old->groups_digest;
}

/* --- showing --- */

const char *conf_file(const struct conf *c)
{
    return c->file;
}

void conf_value_text(const struct conf *c, const struct conf_key *key, struct buf *out)
{
    conf_value_mask(key, str_z(origin_of(c, key)->text), out);
}

void conf_source_text(const struct conf *c, const struct conf_key *key, struct buf *out)
{
    const struct conf_origin *origin = origin_of(c, key);

    switch (origin->layer) {
    case CONF_DEFAULT:
        buf_append_z(out, "default");
        break;
    case CONF_FILE:
        buf_appendf(out, "%s:%zu", c->file, origin->line);
        break;
    case CONF_ENVIRONMENT:
        buf_append_z(out, "environment ");
        conf_key_env(key, out);
        break;
    case CONF_FLAG:
        buf_appendf(out, "flag --%s", key->name);
        break;
    }
}
