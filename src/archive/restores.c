/* Restores as tasks: wishes, and the state that is kept in appDB (archive/restores.h). */
#include "archive/restores_int.h"

#include "archive/rebuild.h"
#include "archive/saved.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "http/wire.h"
#include "route/seal.h"
#include "room/services.h"
#include "store/store.h"

#include <inttypes.h>
#include <limits.h>

enum {
    RESTORE_RETRIES = 8,
    RESTORE_GONE_MS = MS_PER_MINUTE, /* a restore of this age has a task, unless it has ended */
    RESTORE_LISTED = 1000,           /* the most restores that are listed: the newest */
};

/* How long the state of a restore is kept: after its end, and in all. */
#define RESTORE_ENDED_MS STR("604800000")
#define RESTORE_KEEP_MS  INT64_C(2592000000)

#define RESTORES_KEY STR("w:archive:restores")

const char *const restore_state_names[RESTORE_STATES] = {
    [RESTORE_QUEUED] = "queued", [RESTORE_RUNNING] = "running", [RESTORE_RETRY] = "retry",
    [RESTORE_DONE] = "done",     [RESTORE_FAILED] = "failed",   [RESTORE_CANCELED] = "canceled",
};

static struct str restore_key(struct arena *a, struct str id)
{
    return arena_fmt(a, "w:archive:restore:" STR_FMT, STR_ARG(id));
}

static struct str restore_task_id(struct arena *a, struct str id)
{
    return arena_fmt(a, RESTORE_TASK_TYPE ":" STR_FMT, STR_ARG(id));
}

/* --- wishes --- */

struct str restore_id(struct arena *a, const struct restore_wish *w)
{
    struct buf text = {0};

    buf_appendf(&text, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n%d %" PRId64 " %d",
                STR_ARG(archive_account_member(&w->account, a)), STR_ARG(w->name), STR_ARG(w->url),
                w->has_at, w->has_at ? w->at_s : 0, w->all);
    uint64_t hash = hash_xxh3(buf_str(&text), 0);
    buf_release(&text);
    return arena_fmt(a, "%016" PRIx64, hash);
}

static int restore_seal_key(struct archive *x, struct seal_key *out, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    bool made;

    services_path(x->services, "secrets.key", &path);
    int code = seal_key_open(out, path.p, &made, err);
    buf_release(&path);
    return code;
}

static struct str restore_seal_owner(struct arena *a, const struct restore_wish *w)
{
    return arena_fmt(a, RESTORE_TASK_TYPE " " STR_FMT, STR_ARG(w->url));
}

static int wish_seal(struct archive *x, const struct restore_wish *w, struct buf *out,
                     struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct seal_key key;
    int code = w->credentials.len ? restore_seal_key(x, &key, err) : 0;

    if (code == 0 && w->credentials.len) {
        seal(&key, restore_seal_owner(&a, w), w->credentials, out);
        seal_key_release(&key);
    }
    arena_release(&a);
    return code;
}

int restore_wish_write(struct archive *x, const struct restore_wish *w, struct str id,
                       struct buf *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct buf sealed = {0};
    struct json_out j;
    int code = wish_seal(x, w, &sealed, err);

    json_out_init(&j, out);
    json_out_open(&j, '{');
    json_out_member_str(&j, "id", id);
    json_out_member_str(&j, "account", archive_account_member(&w->account, &a));
    json_out_member_str(&j, "name", w->name);
    json_out_member_str(&j, "url", w->url);
    json_out_member_str(&j, "credentials", buf_str(&sealed));
    if (w->has_at)
        json_out_member_i64(&j, "at", w->at_s);
    json_out_member_bool(&j, "all", w->all);
    json_out_close(&j, '}');
    buf_release(&sealed);
    arena_release(&a);
    return code;
}

static int wish_unseal(struct archive *x, struct arena *a, struct str sealed,
                       struct restore_wish *w, struct err *err)
{
    struct seal_key key;
    struct buf plain = {0};

    if (sealed.len == 0)
        return 0;
    int code = restore_seal_key(x, &key, err);
    if (code < 0)
        return code;
    code = unseal(&key, restore_seal_owner(a, w), sealed, &plain);
    seal_key_release(&key);
    w->credentials = arena_str(a, buf_str(&plain));
    buf_release(&plain);
    return code < 0 ? err_set(err, ERR_INVALID,
                              "the credentials of the restore were sealed with another secrets.key")
                    : 0;
}

int restore_wish_read(struct archive *x, struct arena *a, struct str payload,
                      struct restore_wish *out, struct err *err)
{
    json_t *doc = NULL;

    *out = (struct restore_wish){0};
    if (json_read(&doc, payload, err) < 0)
        return ERR_INVALID;
    int code = archive_account_read(&out->account, a, json_get_str(doc, "account", STR_EMPTY), err);
    out->name = arena_str(a, json_get_str(doc, "name", STR_EMPTY));
    out->url = arena_str(a, json_get_str(doc, "url", STR_EMPTY));
    out->at_s = json_get_i64(doc, "at", -1);
    out->has_at = out->at_s >= 0;
    out->all = json_get_bool(doc, "all", false);
    struct str sealed = arena_str(a, json_get_str(doc, "credentials", STR_EMPTY));
    json_decref(doc);
    return code < 0 ? ERR_INVALID : wish_unseal(x, a, sealed, out, err);
}

static bool wish_text_ok(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] <= ' ' || (unsigned char)text.p[i] > '~')
            return false;
    return true;
}

static int wish_check(const struct restore_wish *w, struct err *err)
{
    struct url url;

    if (w->url.len > RESTORE_URL_MAX || !wish_text_ok(w->url) ||
        url_parse(&url, w->url, NULL) < 0 || !url.host.len || url.query.len ||
        (!str_eq(url.scheme, STR("https")) && !str_eq(url.scheme, STR("http"))))
        return err_set(err, ERR_INVALID,
                       "weir pushes to URLs like https://host[:port]/path, without a query");
    if (url.user.len || url.password.len)
        return err_set(err, ERR_INVALID, "the URL has a user name; pass it as `credentials`");
    if (w->credentials.len > RESTORE_CREDENTIALS_MAX || !wish_text_ok(w->credentials) ||
        (w->credentials.len && str_chr(w->credentials, ':') < 0))
        return err_set(err, ERR_INVALID, "credentials are USER:PASSWORD, of at most %d bytes",
                       RESTORE_CREDENTIALS_MAX);
    return w->name.len && !saved_name_ok(w->name)
               ? err_set(err, ERR_INVALID, "'" STR_FMT "' cannot be the name of a repository",
                         STR_ARG(str_head(w->name, ARCHIVE_REPO_MAX)))
               : 0;
}

/* --- state --- */

int restore_note(struct archive *x, struct str id, const struct str *pairs, size_t count,
                 struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct str *args = arena_array(&a, count + 2, sizeof(*args));
    struct reply *reply;
    int code = args ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0) {
        args[0] = STR("HSET");
        args[1] = restore_key(&a, id);
        memcpy(args + 2, pairs, count * sizeof(*pairs));
        code = store_command(x->app, &a, &reply, args, count + 2, err);
    }
    arena_release(&a);
    return code;
}

int restore_note_end(struct archive *x, struct str id, enum restore_state state, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    const struct str pairs[] = {STR("state"), str_z(restore_state_names[state]),
                                STR("now"),   STR_EMPTY,
                                STR("ended"), arena_fmt(&a, "%" PRId64, clock_wall_ms())};
    struct reply *reply;
    int code = restore_note(x, id, pairs, ARRAY_SIZE(pairs), err);

    if (code == 0)
        code = store_call(x->app, &a, &reply, err, STR("PEXPIRE"), restore_key(&a, id),
                          RESTORE_ENDED_MS);
    arena_release(&a);
    return code;
}

/* Forgets an earlier restore with the same id, and notes the new one. */
static int restore_note_begin(struct archive *x, const struct restore_wish *w, struct str id,
                              struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    int64_t now_ms = clock_wall_ms();
    struct str at = arena_fmt(&a, "%" PRId64, now_ms);
    const struct str pairs[] = {STR("account"), archive_account_member(&w->account, &a),
                                STR("name"),    w->name,
                                STR("url"),     w->url,
                                STR("state"),   str_z(restore_state_names[RESTORE_QUEUED]),
                                STR("asked"),   at};
    struct reply *reply;
    int code = store_call(x->app, &a, &reply, err, STR("DEL"), restore_key(&a, id));

    if (code == 0) /* their hashes have expired */
        code = store_call(x->app, &a, &reply, err, STR("ZREMRANGEBYSCORE"), RESTORES_KEY,
                          STR("-inf"), arena_fmt(&a, "%" PRId64, now_ms - RESTORE_KEEP_MS));
    if (code == 0)
        code = store_call(x->app, &a, &reply, err, STR("ZADD"), RESTORES_KEY, at, id);
    if (code == 0)
        code = restore_note(x, id, pairs, ARRAY_SIZE(pairs), err);
    if (code == 0)
        code = store_call(x->app, &a, &reply, err, STR("PEXPIRE"), restore_key(&a, id),
                          arena_fmt(&a, "%" PRId64, RESTORE_KEEP_MS));
    arena_release(&a);
    return code;
}

/* The fields of the hash that are numbers or texts of the progress. */
static const struct restore_number {
    const char *name;
    size_t offset;
} restore_numbers[] = {
    {"total", offsetof(struct restore_progress, total)},
    {"total_bytes", offsetof(struct restore_progress, total_bytes)},
    {"done", offsetof(struct restore_progress, done)},
    {"failed", offsetof(struct restore_progress, failed)},
    {"refs", offsetof(struct restore_progress, refs)},
    {"bytes", offsetof(struct restore_progress, bytes)},
    {"rate", offsetof(struct restore_progress, rate)},
    {"asked", offsetof(struct restore_progress, asked_ms)},
    {"ended", offsetof(struct restore_progress, ended_ms)},
};
static const struct restore_number restore_texts[] = {
    {"account", offsetof(struct restore_progress, account)},
    {"name", offsetof(struct restore_progress, name)},
    {"url", offsetof(struct restore_progress, url)},
    {"now", offsetof(struct restore_progress, now)},
    {"error", offsetof(struct restore_progress, error)},
};

static void progress_set(struct restore_progress *p, struct str name, struct str value)
{
    uint64_t n;

    for (size_t i = 0; i < ARRAY_SIZE(restore_numbers); i++)
        if (str_eq(name, str_z(restore_numbers[i].name)) && str_u64(value, &n) == 0)
            memcpy((char *)p + restore_numbers[i].offset, &n, sizeof(n));
    for (size_t i = 0; i < ARRAY_SIZE(restore_texts); i++)
        if (str_eq(name, str_z(restore_texts[i].name)))
            memcpy((char *)p + restore_texts[i].offset, &value, sizeof(value));
    for (size_t i = 0; i < RESTORE_STATES && str_eq(name, STR("state")); i++)
        if (str_eq(value, str_z(restore_state_names[i])))
            p->state = (enum restore_state)i;
}

int restore_resume_read(struct archive *x, struct arena *a, struct str id,
                        struct restore_resume *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(x->app, a, &reply, err, STR("HGETALL"), restore_key(a, id));

    *out = (struct restore_resume){.at.id = arena_str(a, id)};
    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2) {
        struct str name = reply->items[i].str, value = reply->items[i + 1].str;
        progress_set(&out->at, name, value);
        if (str_eq(name, STR("after")))
            out->after = value;
        if (str_eq(name, STR("bytes_done")) && str_u64(value, &out->bytes_done) < 0)
            out->bytes_done = 0;
        out->canceled |= str_eq(name, STR("canceled"));
    }
    return code;
}

/* --- asking --- */

/* Whether the state cannot change any more. */
static bool restore_has_ended(enum restore_state state)
{
    return state >= RESTORE_DONE;
}

/* Corrects the state by the task of the restore: the hash says nothing about tries that failed. */
static int restore_ask_task(struct archive *x, struct arena *a, struct restore_progress *p,
                            struct err *err)
{
    struct task_info t = {0};
    int code = queue_task(x->queue, a, STR(ARCHIVE_QUEUE), restore_task_id(a, p->id), &t, err);

    if (code == ERR_NOT_FOUND && p->asked_ms + RESTORE_GONE_MS < clock_wall_ms()) {
        p->state = RESTORE_FAILED;
        p->error = STR("its task was removed from the queue");
    }
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    if (t.state == TASK_ARCHIVED)
        p->state = RESTORE_FAILED;
    else if (t.state == TASK_RETRY)
        p->state = RESTORE_RETRY;
    if (t.state == TASK_ARCHIVED || t.state == TASK_RETRY)
        p->error = t.task.error;
    return 0;
}

int restores_find(struct archive *x, struct arena *a, struct str id, struct restore_progress *out,
                  struct err *err)
{
    struct restore_resume r;
    int code = restore_resume_read(x, a, id, &r, err);

    if (code < 0)
        return code;
    if (r.at.account.len == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such restore");
    *out = r.at;
    return restore_has_ended(out->state) ? 0 : restore_ask_task(x, a, out, err);
}

int restores_list(struct archive *x, struct arena *a, struct restore_progress **out, size_t *count,
                  struct err *err)
{
    struct reply *ids, *reply;
    int code = store_call(x->app, a, &ids, err, STR("ZRANGE"), RESTORES_KEY,
                          arena_fmt(a, "%d", -RESTORE_LISTED), STR("-1"));

    *count = 0;
    if (code < 0)
        return code;
    *out = arena_array(a, ids->count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < ids->count && code == 0; i++) {
        code = restores_find(x, a, ids->items[i].str, &(*out)[*count], err);
        *count += code == 0;
        if (code == ERR_NOT_FOUND) /* it has expired */
            code = store_call(x->app, a, &reply, err, STR("ZREM"), RESTORES_KEY, ids->items[i].str);
    }
    return code;
}

/* Whether a task of this restore waits or runs. */
static int restore_is_queued(struct archive *x, struct arena *a, struct str id, bool *out,
                             struct err *err)
{
    struct task_info t = {0};
    int code = queue_task(x->queue, a, STR(ARCHIVE_QUEUE), restore_task_id(a, id), &t, err);

    *out = code == 0 && t.state != TASK_ARCHIVED && t.state != TASK_COMPLETED;
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int restore_queue(struct archive *x, struct arena *a, const struct restore_wish *w,
                         struct str id, struct err *err)
{
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX);
    int code = restore_wish_write(x, w, id, &payload, err);
    struct task t = {.type = STR(RESTORE_TASK_TYPE),
                     .payload = buf_str(&payload),
                     .queue = STR(ARCHIVE_QUEUE),
                     .id = restore_task_id(a, id),
                     .retry_max = RESTORE_RETRIES};

    if (code == 0)
        code = buf_error(&payload) < 0 ? err_code(err, ERR_NO_MEMORY)
                                       : queue_add(x->queue, &t, 0, err);
    buf_release(&payload);
    return code == ERR_EXISTS ? 0 : code;
}

int restores_begin(struct archive *x, struct arena *a, const struct restore_wish *w, struct str *id,
                   struct err *err)
{
    bool queued = false;
    int code = wish_check(w, err);

    if (code < 0)
        return code;
    *id = restore_id(a, w);
    code = restore_is_queued(x, a, *id, &queued, err);
    if (code < 0 || queued)
        return code;
    code = restore_note_begin(x, w, *id, err);
    return code < 0 ? code : restore_queue(x, a, w, *id, err);
}

int restores_cancel(struct archive *x, struct str id, struct err *err)
{
    const struct str mark[] = {STR("canceled"), STR("1")};
    struct arena a = ARENA_INIT(256 * KIB);
    struct restore_progress p;
    int code = restores_find(x, &a, id, &p, err);
    bool ended = code == 0 && restore_has_ended(p.state);

    /* The mark is written first: if the worker dies, the next run of the task sees it. */
    if (code == 0 && !ended)
        code = restore_note(x, id, mark, ARRAY_SIZE(mark), err);
    if (code == 0 && !ended) {
        struct str task = restore_task_id(&a, id);
        code = queue_delete(x->queue, STR(ARCHIVE_QUEUE), task, err);
        if (code == 0 || code == ERR_NOT_FOUND)
            code = restore_note_end(x, id, RESTORE_CANCELED, err);
        else if (code == ERR_CONFLICT) /* it runs */
            code = queue_cancel(x->queue, task, err);
    }
    arena_release(&a);
    return code;
}
