/* The set of webhooks. They are stored in configDB, in the hash "webhooks", which maps a name to
 * {"url", "secret"}. In memory each webhook has a thread. */
#include "s3/notify/notify_int.h"

#include "base/json.h"
#include "http/wire.h"
#include "store/store.h"

#include <stdlib.h>

enum { SECRET_MAX = 256 };

static const struct str HASH = {"webhooks", 8};

/* --- one webhook --- */

static void free_secret(char *secret)
{
    if (secret)
        secure_zero(secret, strlen(secret));
    free(secret);
}

void webhook_free(struct webhook *w)
{
    if (!w)
        return;
    cond_release(&w->wake);
    vec_release(&w->progress);
    free_secret(w->secret);
    free(w->name);
    free(w->url);
    free(w);
}

/* Writes the name of the secret's owner. The name is sealed together with the secret, so that the
 * secret cannot be used for another webhook. */
static void seal_owner(struct buf *out, struct str name)
{
    buf_append_z(out, "webhook:");
    buf_append_str(out, name);
}

static int read_value(struct notify *n, struct str name, struct str text, struct webhook **out,
                      struct err *err)
{
    struct buf owner = BUF_INIT(256), secret = BUF_INIT(SEAL_PLAIN_MAX);
    json_t *object = NULL;
    int code = json_read(&object, text, err);
    struct str url = json_get_str(object, "url", STR_EMPTY);
    struct str sealed = json_get_str(object, "secret", STR_EMPTY);

    seal_owner(&owner, name);
    if (code < 0 || url.len == 0 ||
        (sealed.len && unseal(&n->key, buf_str(&owner), sealed, &secret) < 0))
        code = err_set(err, ERR_CORRUPT, "the webhook " STR_FMT " cannot be read", STR_ARG(name));
    if (code == 0) {
        struct webhook *w = xcalloc(1, sizeof(*w));
        w->n = n;
        w->name = str_dup(name);
        w->url = str_dup(url);
        w->secret = str_dup(buf_str(&secret));
        cond_init(&w->wake);
        *out = w;
    }
    if (secret.p)
        secure_zero(secret.p, secret.cap);
    buf_release(&secret);
    buf_release(&owner);
    json_decref(object);
    return code;
}

/* --- all webhooks --- */

typedef VEC(struct webhook *) webhook_vec;

static void free_all(webhook_vec *list)
{
    vec_each (list, struct webhook **, w)
        webhook_free(*w);
    vec_release(list);
}

static int webhooks_read(struct notify *n, webhook_vec *out, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;
    int code = store_call(n->o.config, &arena, &reply, err, STR("HGETALL"), HASH);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2) {
        struct webhook *w = NULL;
        code = read_value(n, reply->items[i].str, reply->items[i + 1].str, &w, err);
        if (code == 0)
            vec_push(out, w);
    }
    arena_release(&arena);
    return code == 0 ? store_is_known(n->o.config, err) : code;
}

static struct webhook *take_named(webhook_vec *list, const char *name)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->items[i]->name, name) == 0) {
            struct webhook *w = list->items[i];
            vec_remove(list, i);
            return w;
        }
    return NULL;
}

static void swap_text(char **a, char **b)
{
    char *t = *a;
    *a = *b;
    *b = t;
}

/* Compares the webhooks in memory with *wanted, the stored webhooks. Webhooks that are in both get
 * the stored URL and secret and are removed from *wanted. Webhooks that are only in memory are
 * moved to *gone. */
static void webhooks_compare(struct notify *n, webhook_vec *wanted, webhook_vec *gone)
{
    webhook_vec kept = {0};

    mutex_lock(&n->lock);
    vec_each (&n->webhooks, struct webhook **, w) {
        struct webhook *same = take_named(wanted, (*w)->name);
        if (!same) {
            vec_push(gone, *w);
            continue;
        }
        swap_text(&(*w)->url, &same->url);
        swap_text(&(*w)->secret, &same->secret);
        webhook_free(same);
        vec_push(&kept, *w);
    }
    n->webhooks.len = 0;
    vec_each (&kept, struct webhook **, w)
        vec_push(&n->webhooks, *w);
    n->is_known = true;
    mutex_unlock(&n->lock);
    vec_release(&kept);
}

static void end_all(webhook_vec *gone)
{
    vec_each (gone, struct webhook **, w) {
        sender_stop(*w);
        sender_forget(*w); /* events of a removed webhook are dropped */
        webhook_free(*w);
    }
    vec_release(gone);
}

static int begin_all(struct notify *n, webhook_vec *added, struct err *err)
{
    int code = 0;

    while (code == 0 && added->len) {
        struct webhook *w = vec_pop(added);
        int64_t count = 0;
        code = sender_count(w, &count, err);
        if (code < 0) {
            webhook_free(w);
            break;
        }
        atomic_store(&w->pending, count);
        mutex_lock(&n->lock);
        vec_push(&n->webhooks, w);
        mutex_unlock(&n->lock);
        code = sender_start(w, err);
    }
    return code;
}

int webhooks_load(void *ctx, struct err *err)
{
    struct notify *n = ctx;
    webhook_vec wanted = {0}, gone = {0};
    int code;

    mutex_lock(&n->lock);
    while (n->loading)
        cond_wait(&n->loaded, &n->lock);
    n->loading = true;
    mutex_unlock(&n->lock);

    code = webhooks_read(n, &wanted, err);
    if (code == 0) {
        webhooks_compare(n, &wanted, &gone);
        end_all(&gone);
        code = begin_all(n, &wanted, err);
    }
    free_all(&wanted);

    mutex_lock(&n->lock);
    n->loading = false;
    cond_broadcast(&n->loaded);
    mutex_unlock(&n->lock);
    return code;
}

/* --- changing --- */

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_'))
            return false;
    }
    return name.len > 0 && name.len <= NOTIFY_NAME_MAX;
}

static int check_url(struct str url, struct err *err)
{
    struct err ignored = {0};
    struct url parts = {0};

    if (url.len > NOTIFY_URL_MAX || str_chr(url, '\0') >= 0 ||
        url_parse(&parts, url, &ignored) < 0 || parts.host.len == 0 ||
        !(str_eq(parts.scheme, STR("http")) || str_eq(parts.scheme, STR("https"))))
        return err_set(err, ERR_INVALID, "a webhook's url is http:// or https:// with a host");
    return 0;
}

static int check_room(struct notify *n, struct str name, struct err *err)
{
    mutex_lock(&n->lock);
    bool full = n->webhooks.len >= NOTIFY_WEBHOOKS_MAX && !notify_find(n, name);
    mutex_unlock(&n->lock);
    return full ? err_set(err, ERR_TOO_LARGE, "there are %d webhooks already", NOTIFY_WEBHOOKS_MAX)
                : 0;
}

/* Changes the stored set and publishes the change in one atomic step; then loads the new set. */
static int webhooks_change(struct notify *n, struct store_args command, int64_t *answer,
                           struct err *err)
{
    const struct str count_up[] = {STR("INCR"), STORE_CONFIG_COUNT};
    const struct str publish[] = {STR("PUBLISH"), WEBHOOKS_CHANNEL, STR("changed")};
    struct store_args commands[] = {
        command, {count_up, ARRAY_SIZE(count_up)}, {publish, ARRAY_SIZE(publish)}};
    struct arena arena = {0};
    struct reply *reply;
    int code = store_atomic(n->o.config, &arena, &reply, commands, ARRAY_SIZE(commands), err);

    if (code == 0)
        code = reply_expect(&reply->items[0], REPLY_INTEGER, err);
    if (code == 0)
        *answer = reply->items[0].integer;
    arena_release(&arena);
    return code == 0 ? reload_now(&n->reload, err) : code;
}

static void write_value(struct notify *n, struct str name, struct str url, struct str secret,
                        struct buf *out)
{
    struct buf owner = BUF_INIT(256), sealed = BUF_INIT(0);
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "url", url);
    if (secret.len) {
        seal_owner(&owner, name);
        seal(&n->key, buf_str(&owner), secret, &sealed);
        json_out_member_str(&w, "secret", buf_str(&sealed));
    }
    json_out_close(&w, '}');
    buf_release(&owner);
    buf_release(&sealed);
}

int notify_add_webhook(struct notify *n, struct str name, struct str url, struct str secret,
                       struct err *err)
{
    struct buf value = BUF_INIT(0);
    int64_t answer;
    int code = check_url(url, err);

    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "a webhook's name has 1 to %d letters, digits, '-' and '_'",
                       NOTIFY_NAME_MAX);
    if (secret.len > SECRET_MAX || str_chr(secret, '\0') >= 0)
        return err_set(err, ERR_INVALID, "a webhook's secret has at most %d bytes", SECRET_MAX);
    if (code == 0)
        code = check_room(n, name, err);
    if (code < 0)
        return code;
    write_value(n, name, url, secret, &value);
    const struct str set[] = {STR("HSET"), HASH, name, buf_str(&value)};
    code = webhooks_change(n, (struct store_args){set, ARRAY_SIZE(set)}, &answer, err);
    buf_release(&value);
    return code;
}

int notify_remove_webhook(struct notify *n, struct str name, struct err *err)
{
    const struct str remove[] = {STR("HDEL"), HASH, name};
    int64_t answer = 0;
    int code = webhooks_change(n, (struct store_args){remove, ARRAY_SIZE(remove)}, &answer, err);

    if (code == 0 && answer == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no webhook " STR_FMT, STR_ARG(name));
    return code;
}
