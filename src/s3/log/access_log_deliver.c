/* Delivers rows of the access log as objects of the target bucket. */
#include "s3/log/access_log_int.h"

#include "base/clock.h"
#include "base/ids.h"
#include "s3/notify/notify.h"

/* A log object that is being made. */
struct delivery {
    struct access_log *l;
    struct arena a;
    struct str storage, bucket, owner; /* storage, name and owner of the logged bucket */
    struct logging config;
    struct buf key;
};

static int delivery_describe(struct delivery *d, struct str name, const struct log_batch *batch,
                             struct err *err)
{
    struct str rest, config;
    int64_t day = 0;

    str_cut(name, '\0', &d->storage, &rest);
    d->bucket = rest.len ? str_head(rest, rest.len - 1) : rest;
    int code = log_row_source(&d->a, buf_str(&batch->same), &d->owner, &day, &config);
    if (code < 0)
        return err_set(err, code, "a record of the access log cannot be read");
    code = logging_decode(&d->config, &d->a, config, err);
    if (code < 0)
        return code;
    struct logging_source source = {
        .owner = d->owner, .bucket = d->bucket, .region = d->l->o.region};
    buf_reset(&d->key);
    logging_key(&d->key, &d->config, &source, clock_wall_ms(), day, random_u64());
    return 0;
}

/* Returns the ACL of the log object in its stored form: full control for the target's owner, and
 * TargetGrants. Empty: the object has no ACL, because ACLs do not apply in the target bucket or
 * there are no TargetGrants. */
static struct str list_of(struct delivery *d, const struct access_log_target *t)
{
    struct acl acl = {.owner = t->info.owner};
    struct buf text = BUF_INIT(0);

    if (!t->lists || !d->config.grants.count)
        return STR_EMPTY;
    acl.grants = arena_array(&d->a, d->config.grants.count + 1, sizeof(*acl.grants));
    if (!acl.grants)
        return STR_EMPTY;
    acl.grants[acl.count++] = (struct acl_grant){ACL_USER, acl.owner, ACL_FULL_CONTROL};
    for (size_t i = 0; i < d->config.grants.count; i++)
        acl.grants[acl.count++] = d->config.grants.grants[i];
    acl_encode(&text, &acl);
    struct str kept = arena_str(&d->a, buf_str(&text));
    buf_release(&text);
    return kept;
}

static int delivery_note(struct delivery *d, struct access_log_target *t, struct notify_event *e,
                         const struct change_note **out, struct err *err)
{
    bool wanted = false;
    int code;

    if (!d->l->o.notify)
        return 0;
    *e = (struct notify_event){
        .bucket = &t->info, .key = buf_str(&d->key), .event = S3_EVENT_CREATED_PUT};
    code = notify_event_own(e, d->l->o.notify, &d->a, t->bucket, &wanted, err);
    *out = wanted ? &e->note : NULL;
    return code;
}

static int delivery_put(struct delivery *d, struct access_log_target *t, struct str text,
                        struct err *err)
{
    struct http_header type = {STR("Content-Type"), STR("text/plain")};
    struct put_options o = {
        .meta = {
            .headers = &type, .header_count = 1, .owner = t->info.owner, .acl = list_of(d, t)}};
    struct notify_event e;
    struct str_reader body;
    struct put_result result;
    int code = arena_error(&d->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;

    if (code == 0)
        code = delivery_note(d, t, &e, &o.note, err);
    str_reader_init(&body, text);
    if (code == 0)
        code = t->bucket->ops->put(t->bucket, &d->a, buf_str(&d->key), &body.reader, text.len, &o,
                                   &result, err);
    if (code == 0 && o.note)
        notify_sent(&e);
    return code;
}

static int make_object(struct delivery *d, struct str name, const struct log_batch *batch,
                       struct err *err)
{
    struct access_log_target t = {0};
    int code = delivery_describe(d, name, batch, err);
    struct access_log_ask ask = {.routes = d->l->o.routes,
                                 .config = &d->config,
                                 .owner = d->owner,
                                 .bucket = d->bucket,
                                 .storage = d->storage,
                                 .key = buf_str(&d->key)};

    if (code == 0)
        code = access_log_target_open(&t, &d->a, &ask, err);
    if (code < 0)
        return code;
    code = delivery_put(d, &t, buf_str(&batch->text), err);
    t.bucket->ops->unref(t.bucket);
    return code;
}

/* Whether the records must be dropped: they are too old to be tried again, or cannot be read
 * (docs/bucket-logging.md, A4). */
static bool delivery_give_up(struct access_log *l, struct str bucket, const struct log_batch *batch,
                             int code)
{
    bool damaged = code == ERR_CORRUPT;

    if (!damaged && clock_wall_ms() - batch->oldest_ms < LOG_GIVE_UP_MS)
        return false;
    atomic_fetch_add(&l->dropped, batch->records);
    log_error(l->o.log, "access_log.given_up", log_s("bucket", bucket),
              log_u("records", batch->records), log_z("error", err_name(code)));
    return true;
}

/* Makes one object of the rows whose sequence is at least *from, and moves *from behind them. *more
 * is false when no such row waits. */
static int deliver_one(struct access_log *l, struct log_pending *p, uint64_t *from, struct buf *key,
                       bool *more, struct err *err)
{
    struct delivery d = {.l = l, .a = ARENA_INIT(0), .key = BUF_INIT(0)};
    struct log_batch batch = {0};
    struct str name = buf_str(&p->name);
    int code = log_rows_read(l, name, *from, &batch, err);

    *more = batch.sequences.len > 0;
    if (*more)
        *from = *vec_last(&batch.sequences) + 1;
    if (code == 0 && batch.records) {
        code = make_object(&d, name, &batch, err);
        if (code == 0) {
            atomic_fetch_add(&l->objects, 1);
            atomic_fetch_add(&l->delivered, batch.records);
            buf_reset(key);
            buf_append_str(key, buf_str(&d.key));
        } else if (delivery_give_up(l, d.bucket, &batch, code)) {
            code = 0;
        }
    }
    if (code == 0 && *more)
        code = log_rows_delete(l, name, &batch, err);
    if (code == 0)
        p->bytes -= batch.text.len < p->bytes ? batch.text.len : p->bytes;
    log_batch_release(&batch);
    buf_release(&d.key);
    arena_release(&d.a);
    return code;
}

int log_deliver(struct access_log *l, struct log_pending *p, struct buf *key, struct err *err)
{
    bool more = true;
    uint64_t from = 0;
    int first = 0;

    while (more) {
        struct err why = {0};
        int code = deliver_one(l, p, &from, key, &more, &why);
        if (code < 0 && first == 0) {
            *err = why;
            first = code;
        }
        if (more && loop_is_stopping(&l->loop))
            return ERR_SHUTDOWN;
    }
    return first;
}
