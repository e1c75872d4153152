/* Sweeps a bucket: lists versions and uploads page by page, and performs the actions that are due.
 * A guard checks each version again inside the commit of its change. */
#include "s3/lifecycle/lifecycle_sweep.h"

#include "s3/documents/storage_class.h"

/* The page that is being worked on. */
struct page {
    struct lifecycle_sweep *s;
    struct arena arena;
    struct str text; /* the configuration as it is stored */
    struct lifecycle config;
    int64_t now_ms;
};

/* The decision about a version. The guard still_so() makes the same decision again. */
struct decision {
    const struct page *page;
    struct str etag;
    struct lifecycle_facts facts;
    struct lifecycle_due due;
};

void lifecycle_sweep_init(struct lifecycle_sweep *s, struct bucket *b, int64_t day_ms,
                          const struct lifecycle_progress *from)
{
    *s = (struct lifecycle_sweep){.b = b, .day_ms = day_ms, .page = LIFECYCLE_PAGE};
    if (!from || from->done)
        return;
    s->uploads = from->uploads;
    s->counts = from->counts;
    buf_append_str(&s->whole, from->cursor);
    if (!s->uploads)
        buf_append_str(&s->key, from->cursor);
}

void lifecycle_sweep_release(struct lifecycle_sweep *s)
{
    buf_release(&s->key);
    buf_release(&s->version);
    buf_release(&s->whole);
}

static void cursor_set(struct buf *b, struct str value)
{
    buf_reset(b);
    buf_append_str(b, value);
}

static int info_read_tags(struct tag_set *out, struct arena *a, const struct object_info *info,
                          struct err *err)
{
    *out = (struct tag_set){0};
    return info->meta.tags.len ? tagging_parse(out, a, info->meta.tags, TAGS_OF_OBJECT, err) : 0;
}

/* --- performing actions --- */

/* The guard (docs/lifecycle.md, C1): checks inside the commit that the version is unchanged and the
 * action is still due. */
static int still_so(void *ctx, const struct object_info *info, struct err *err)
{
    const struct decision *d = ctx;
    struct lifecycle_facts facts = d->facts;
    struct arena a = ARENA_INIT(0);
    struct tag_set tags;
    int code = info_read_tags(&tags, &a, info, err);

    facts.tags = &tags;
    facts.storage_class = info->meta.storage_class;
    if (code == 0 && (info->modified_ms != facts.modified_ms || info->size != facts.size ||
                      !str_eq(info->etag, d->etag) || info->is_latest != facts.is_latest ||
                      info->is_marker != facts.is_marker))
        code = err_code(err, ERR_CONFLICT);
    if (code == 0) {
        struct lifecycle_due due =
            lifecycle_due(&d->page->config, &facts, d->page->now_ms, d->page->s->day_ms);
        if (due.action != d->due.action || due.at_ms > d->page->now_ms ||
            !str_eq(due.storage_class, d->due.storage_class))
            code = err_code(err, ERR_CONFLICT);
    }
    arena_release(&a);
    return code;
}

/* Prepares the event notification of a change; *out is NULL when no rule asks for a
 * notification. */
static int page_note(struct page *p, struct notify_event *e, const struct change_note **out,
                     struct err *err)
{
    struct bucket_info *info = arena_new(&p->arena, struct bucket_info);
    struct bucket *b = p->s->b;
    bool wanted = false;
    int code;

    if (!p->s->notify)
        return 0;
    code = info ? b->ops->info(b, &p->arena, info, err) : err_code(err, ERR_NO_MEMORY);
    e->bucket = info;
    if (code == 0)
        code = notify_event_own(e, p->s->notify, &p->arena, b, &wanted, err);
    *out = wanted ? &e->note : NULL;
    return code;
}

static int act(struct page *p, const struct object_info *info, struct decision *d, struct err *err)
{
    bool moves = d->due.action == LIFECYCLE_TRANSITION;
    struct notify_event e = {.key = info->key,
                             .event = moves ? S3_EVENT_TRANSITION : S3_EVENT_EXPIRED_DELETE};
    const struct change_note *note = NULL;
    struct bucket *b = p->s->b;
    struct object_meta meta = {.storage_class = storage_class_kept(d->due.storage_class)};
    struct meta_options m = {.guard = {still_so, d}};
    struct remove_options o = {.guard = m.guard};
    struct remove_result out;
    int code = page_note(p, &e, &note, err);

    m.note = o.note = note;
    if (d->due.action != LIFECYCLE_EXPIRE)
        o.version = info->version;
    if (code == 0 && moves)
        code = b->ops->set_meta(b, &p->arena, info->key, info->version, META_CLASS, &meta, &m, err);
    else if (code == 0)
        code = b->ops->remove(b, &p->arena, info->key, &o, &out, err);
    if (code == 0 && note)
        notify_sent(&e);
    return code;
}

static uint64_t *counter(struct lifecycle_counts *c, enum lifecycle_action action)
{
    switch (action) {
    case LIFECYCLE_EXPIRE:
        return &c->expired;
    case LIFECYCLE_REMOVE_MARKER:
        return &c->markers;
    case LIFECYCLE_REMOVE:
        return &c->removed;
    default:
        return &c->transitions;
    }
}

/* Whether the error code means a refusal and not a failure: the guard or a lock refused the change,
 * or the version no longer exists. */
static bool sweep_is_refusal(int code)
{
    return code == ERR_CONFLICT || code == ERR_NOT_FOUND || code == ERR_DENIED;
}

/* Compares the page's configuration with the stored configuration (docs/lifecycle.md, C2). Returns
 * ERR_AGAIN when the stored configuration has changed since the page began. */
static int unchanged(struct page *p, struct err *err)
{
    struct bucket *b = p->s->b;
    struct arena a = ARENA_INIT(0);
    struct str text = STR_EMPTY;
    int code = b->ops->get_document(b, &a, "lifecycle", &text, err);

    if (code == ERR_NOT_FOUND || (code == 0 && !str_eq(text, p->text)))
        code = ERR_AGAIN;
    arena_release(&a);
    return code;
}

static int page_settle(struct page *p, const struct object_info *info, struct decision *d,
                       struct err *err)
{
    int code = unchanged(p, err);

    if (code < 0)
        return code;
    code = act(p, info, d, err);
    if (code == 0)
        ++*counter(&p->s->counts, d->due.action);
    if (sweep_is_refusal(code)) {
        p->s->counts.refused++;
        code = 0;
    }
    return code;
}

/* --- deciding --- */

static void sweep_advance(struct lifecycle_sweep *s, const struct object_info *info, bool same_key)
{
    if (!same_key) {
        cursor_set(&s->whole, buf_str(&s->key));
        cursor_set(&s->key, info->key);
        s->noncurrent = 0;
    }
    s->newer_ms = info->modified_ms;
    s->noncurrent += !info->is_latest;
    s->counts.examined++;
    cursor_set(&s->version, info->version);
}

/* Decides about a version and performs the action that is due. `next` is the version listed after
 * it, or NULL. */
static int page_judge(struct page *p, const struct object_info *info,
                      const struct object_info *next, struct err *err)
{
    struct lifecycle_sweep *s = p->s;
    bool same_key = str_eq(info->key, buf_str(&s->key));
    struct tag_set tags;
    struct decision d = {
        .page = p,
        .etag = info->etag,
        .facts = {.key = info->key,
                  .size = info->size,
                  .tags = &tags,
                  .modified_ms = info->modified_ms,
                  .is_latest = info->is_latest,
                  .is_marker = info->is_marker,
                  .is_alone = info->is_latest && !(next && str_eq(next->key, info->key)),
                  .storage_class = info->meta.storage_class},
    };
    int code = info_read_tags(&tags, &p->arena, info, err);

    if (code < 0)
        return code;
    d.facts.noncurrent_since_ms = s->newer_ms;
    d.facts.newer_noncurrent = same_key ? s->noncurrent : 0;
    d.due = lifecycle_due(&p->config, &d.facts, p->now_ms, s->day_ms);
    if (d.due.action != LIFECYCLE_NONE && d.due.at_ms <= p->now_ms)
        code = page_settle(p, info, &d, err);
    if (code == 0)
        sweep_advance(s, info, same_key);
    return code;
}

/* Returns the longest prefix that the prefixes of all enabled rules share. Only keys with this
 * prefix are listed. */
static struct str common_prefix(const struct lifecycle *config)
{
    struct str common = STR_EMPTY;
    bool first = true;

    for (size_t i = 0; i < config->count; i++) {
        struct str prefix = config->rules[i].filter.prefix;
        size_t n = 0;
        if (!config->rules[i].enabled)
            continue;
        while (!first && n < common.len && n < prefix.len && common.p[n] == prefix.p[n])
            n++;
        common = first ? prefix : str_head(common, n);
        first = false;
    }
    return common;
}

static bool sweep_stopped(const struct lifecycle_sweep *s)
{
    return s->stop && atomic_load(s->stop);
}

static void begin_uploads(struct lifecycle_sweep *s)
{
    s->uploads = true;
    buf_reset(&s->key);
    buf_reset(&s->version);
}

static int versions_page(struct page *p, struct err *err)
{
    struct lifecycle_sweep *s = p->s;
    struct list_options o = {.prefix = common_prefix(&p->config),
                             .after = buf_str(&s->key),
                             .after_version = buf_str(&s->version),
                             .limit = s->page,
                             .tags = true};
    struct list_result list = {0};
    int code = s->b->ops->list_versions(s->b, &p->arena, &o, &list, err);

    BUG_ON(code == 0 && list.count && !list.entries);
    for (size_t i = 0; code == 0 && i < list.count && !sweep_stopped(s); i++) {
        const struct object_info *info = &list.entries[i].info;
        const struct object_info *next = i + 1 < list.count ? &list.entries[i + 1].info : NULL;
        /* Whether the key has versions beside this delete marker is known only on the next page,
         * which begins with the marker. */
        if (!next && list.more && i > 0 && info->is_marker && info->is_latest)
            return 0;
        code = page_judge(p, info, next, err);
    }
    if (code == 0 && !list.more && !sweep_stopped(s))
        begin_uploads(s);
    return code;
}

static int judge_upload(struct page *p, const struct upload_info *u, struct err *err)
{
    struct lifecycle_sweep *s = p->s;
    struct lifecycle_due due;
    int code = 0;

    s->counts.examined++;
    if (!lifecycle_abort(&p->config, u->key, u->started_ms, s->day_ms, &due) ||
        due.at_ms > p->now_ms)
        return 0;
    code = unchanged(p, err);
    if (code < 0)
        return code;
    code = s->b->ops->upload_abort(s->b, u, err);
    if (code == 0)
        s->counts.uploads++;
    if (code == ERR_NOT_FOUND) {
        s->counts.refused++; /* the upload was completed or aborted meanwhile */
        code = 0;
    }
    return code;
}

static int uploads_page(struct page *p, struct err *err)
{
    struct lifecycle_sweep *s = p->s;
    struct list_options o = {.prefix = common_prefix(&p->config),
                             .after = buf_str(&s->key),
                             .after_version = buf_str(&s->version),
                             .limit = s->page};
    struct upload_list list = {0};
    int code = s->b->ops->list_uploads(s->b, &p->arena, &o, &list, err);

    for (size_t i = 0; code == 0 && i < list.count && !sweep_stopped(s); i++) {
        code = judge_upload(p, &list.uploads[i], err);
        if (code == 0) {
            cursor_set(&s->key, list.uploads[i].key);
            cursor_set(&s->version, list.uploads[i].id);
        }
    }
    if (code == 0 && !list.more && !sweep_stopped(s))
        s->done = true;
    return code;
}

static bool has_rules(const struct lifecycle *config)
{
    for (size_t i = 0; i < config->count; i++)
        if (config->rules[i].enabled)
            return true;
    return false;
}

int lifecycle_sweep_page(struct lifecycle_sweep *s, int64_t now_ms, struct err *err)
{
    struct page p = {.s = s, .arena = ARENA_INIT(0), .now_ms = now_ms};
    int code = s->b->ops->get_document(s->b, &p.arena, "lifecycle", &p.text, err);

    if (code == 0)
        code = lifecycle_read(&p.config, &p.arena, p.text, err);
    if (code == ERR_NOT_FOUND || (code == 0 && !has_rules(&p.config))) {
        s->done = true;
        code = 0;
    } else if (code == 0) {
        code = s->uploads ? uploads_page(&p, err) : versions_page(&p, err);
    }
    arena_release(&p.arena);
    return code == ERR_AGAIN ? 0 : code;
}
