/* The listings of the initial copy. Each task lists one prefix. The tasks of a page and the new
 * cursor are written by one script. */
#include "replica/tasks/tasks_int.h"

#include "base/hash.h"

enum {
    TOGETHER_MAX = 32, /* most small objects that one task copies */
    /* Most bytes of the names of these objects, before JSON escapes them. */
    TOGETHER_NAMES_MAX = 8 * 1024,
    TOGETHER_SIZE_MAX = 1024 * 1024,      /* largest size of one of these objects, in bytes */
    TOGETHER_BYTES_MAX = 4 * 1024 * 1024, /* most bytes of all these objects together */
};
_Static_assert((int)TOGETHER_MAX <= (int)PAYLOAD_OBJECTS_MAX, "a payload holds them");

/* The destination's entries among the names that one page of the source's listing covers. */
struct there {
    const struct list_entry *entries; /* sorted by name */
    size_t count, at;
    struct str last; /* `entries` has all names up to and with this name */
    /* `entries` reaches the end of the listing: there are no names after `last`. */
    bool all;
};

struct listing {
    struct job *j;
    bool versions;
    bool resync; /* this is a resync, so objects that only the destination has are listed too */
    struct str after, last;
    struct listed *items;
    size_t count;
    int priority;
    struct there there;
    struct task_payload_object together[TOGETHER_MAX];
    size_t together_count, together_names;
    uint64_t together_bytes;
    struct arena a; /* memory for one page */
};

/* Returns the id of a task, such as "mgr:co:<from>:<to>:<bucket>:<object>[:<to bucket>]". `kind` is
 * the part before <from>. */
static struct str page_task_id(struct arena *a, const char *kind, const struct replication_id *id,
                               struct str name)
{
    struct buf text = {0};

    buf_append_z(&text, kind);
    store_key_part(&text, id->from);
    buf_append_char(&text, ':');
    store_key_part(&text, id->to);
    buf_append_char(&text, ':');
    store_key_part(&text, id->bucket);
    buf_append_char(&text, ':');
    store_key_part(&text, name);
    if (id->to_bucket.len) {
        buf_append_char(&text, ':');
        store_key_part(&text, id->to_bucket);
    }
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

static struct str payload_in(struct arena *a, const struct task_payload *p,
                             enum task_payload_kind kind)
{
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX);

    task_payload_write(&text, p, kind);
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

struct task task_of_listing(struct arena *a, const struct replication_id *id, struct str prefix,
                            bool versions)
{
    struct task_payload p = {.id = *id, .prefix = prefix};

    return (struct task){.type = versions ? STR("migrate:object:list_versions")
                                          : STR("migrate:bucket:list_objects"),
                         .payload = payload_in(a, &p, PAYLOAD_LIST),
                         .id = page_task_id(a, versions ? "mgr:lov:" : "mgr:lo:", id, prefix),
                         .queue = STR("migrate_bucket_list_obj")};
}

struct task task_of_copy(struct arena *a, const struct replication_id *id,
                         const struct task_payload_object *object, struct str queue)
{
    struct task_payload p = {.id = *id, .object = object->name, .size = object->size};

    return (struct task){.type = STR("migrate:object:copy"),
                         .payload = payload_in(a, &p, PAYLOAD_COPY),
                         .id = page_task_id(a, "mgr:co:", id, object->name),
                         .queue = queue};
}

static struct str copy_queue(const struct listing *l, struct arena *a)
{
    return arena_fmt(a, "migrate_obj_copy%d", l->priority + 1);
}

static struct task task_of_versions(const struct listing *l, struct arena *a,
                                    const struct object_info *info)
{
    struct task_payload p = {.id = l->j->p.id, .object = info->key, .size = info->size};

    return (struct task){.type = STR("migrate:object:copy_versioned"),
                         .payload = payload_in(a, &p, PAYLOAD_COPY),
                         .id = page_task_id(a, "mgr:cov:", &l->j->p.id, info->key),
                         .queue = copy_queue(l, a)};
}

/* --- small objects that share a task --- */

/* Makes a task that copies several small objects. Its id depends on the objects. So the task is
 * left out only if a task with the same objects is queued already. */
static struct task task_of_copies(const struct listing *l, struct arena *a)
{
    struct task_payload p = {
        .id = l->j->p.id, .objects = l->together, .object_count = l->together_count};
    uint64_t hash = 0;

    for (size_t i = 0; i < l->together_count; i++)
        hash = hash_xxh3(l->together[i].name, hash + 1);
    return (struct task){.type = STR("migrate:objects:copy"),
                         .payload = payload_in(a, &p, PAYLOAD_COPIES),
                         .id =
                             page_task_id(a, "mgr:cos:", &p.id,
                                          arena_fmt(a, "%016llx:" STR_FMT, (unsigned long long)hash,
                                                    STR_ARG(l->together[0].name))),
                         .queue = copy_queue(l, a)};
}

static void end_together(struct listing *l)
{
    size_t count = l->together_count;

    if (count == 0)
        return;
    l->items[l->count++] = (struct listed){
        .task = count == 1 ? task_of_copy(&l->a, &l->j->p.id, l->together, copy_queue(l, &l->a))
                           : task_of_copies(l, &l->a),
        .bytes = l->together_bytes,
        .objects = count};
    l->together_count = l->together_names = 0;
    l->together_bytes = 0;
}

static void page_add_together(struct listing *l, const struct task_payload_object *object)
{
    if (l->together_count == TOGETHER_MAX ||
        l->together_names + object->name.len > TOGETHER_NAMES_MAX ||
        l->together_bytes + object->size > TOGETHER_BYTES_MAX)
        end_together(l);
    l->together[l->together_count++] = *object;
    l->together_names += object->name.len;
    l->together_bytes += object->size;
}

/* --- listing the destination --- */

static int list_side(const struct listing *l, struct bucket *b, struct arena *a,
                     const struct list_options *o, struct list_result *out, struct err *err)
{
    return (l->versions ? b->ops->list_versions : b->ops->list)(b, a, o, out, err);
}

/* Lists the destination into l->there. A resync needs this list. For any other copy it is only a
 * hint, so it is no failure if the destination cannot be listed. */
static int look_there(struct listing *l, const struct list_options *o, struct err *err)
{
    struct list_result page = {0};

    l->there = (struct there){0};
    if (l->versions && !l->resync)
        return 0;
    int code = list_side(l, l->j->destination.bucket, &l->a, o, &page, l->resync ? err : NULL);
    if (code < 0)
        return l->resync ? code : 0;
    l->there =
        (struct there){.entries = page.entries,
                       .count = page.count,
                       .last = page.count ? page.entries[page.count - 1].info.key : STR_EMPTY,
                       .all = !page.more};
    return 0;
}

/* Returns whether the destination lacks the key. The function must be called with keys in the order
 * of their names. */
static bool is_absent(struct there *t, struct str key)
{
    while (t->at < t->count && str_cmp(t->entries[t->at].info.key, key) < 0)
        t->at++;
    if (t->at < t->count)
        return !str_eq(t->entries[t->at].info.key, key);
    return t->all;
}

static int find_priority(struct listing *l, struct err *err)
{
    const struct replication_id *id = &l->j->p.id;
    const struct replication *const *all;
    struct replication_view *view = NULL;
    int code = replications_view(l->j->t->o.replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; i < count; i++)
        if (str_eq(all[i]->id.user, id->user) && str_eq(all[i]->id.bucket, id->bucket) &&
            str_eq(all[i]->id.from, id->from) && str_eq(all[i]->id.to, id->to) &&
            str_eq(all[i]->id.to_bucket, id->to_bucket))
            l->priority = all[i]->priority;
    replication_view_unref(view);
    return code;
}

/* Adds a key or prefix that is not UTF-8. No task's payload can hold such a name, so the key or
 * prefix gets a task that has the percent-encoded name and fails. The listing goes on. */
static void add_odd(struct listing *l, const struct list_entry *e)
{
    struct buf name = BUF_INIT(4 * OBJECT_KEY_MAX);

    url_encode(&name, e->info.key, true);
    struct task_payload p = {.id = l->j->p.id,
                             .object = arena_str(&l->a, buf_str(&name)),
                             .size = e->info.size,
                             .encoded = true};
    l->items[l->count++] =
        (struct listed){.task = {.type = STR("migrate:object:copy"),
                                 .payload = payload_in(&l->a, &p, PAYLOAD_COPY),
                                 .id = page_task_id(&l->a, "mgr:odd:", &p.id, p.object),
                                 .queue = copy_queue(l, &l->a)},
                        .bytes = e->is_prefix ? 0 : e->info.size};
    buf_release(&name);
}

/* Adds a key or prefix. A key with many versions is added once. */
static void add_entry(struct listing *l, const struct list_entry *e, bool absent)
{
    bool again = l->count && l->versions && !e->is_prefix && str_eq(l->last, e->info.key);

    l->last = e->info.key;
    if (again)
        return;
    if (!str_is_utf8(e->info.key)) {
        add_odd(l, e);
        return;
    }
    struct task_payload_object object = {e->info.key, e->info.size, absent};
    if (!e->is_prefix && !l->versions && e->info.size <= TOGETHER_SIZE_MAX) {
        page_add_together(l, &object);
        return;
    }
    struct listed *item = &l->items[l->count];
    *item = (struct listed){.listing = e->is_prefix};
    if (e->is_prefix)
        item->task = task_of_listing(&l->a, &l->j->p.id, e->info.key, l->versions);
    else if (l->versions)
        item->task = task_of_versions(l, &l->a, &e->info);
    else
        item->task = task_of_copy(&l->a, &l->j->p.id, &object, copy_queue(l, &l->a));
    item->bytes = e->is_prefix ? 0 : e->info.size;
    item->prefix = e->is_prefix ? e->info.key : STR_EMPTY;
    l->count++;
}

/* Adds an object that only the destination has. Its task finds that the source does not have the
 * object, and removes it from the destination. A bucket of another name may have had objects before
 * it became a destination; such objects stay. */
static void add_extra(struct listing *l, const struct list_entry *e)
{
    const struct job *j = l->j;
    struct list_entry extra = *e;

    extra.info.size = 0;
    if (e->is_prefix || !j->p.id.to_bucket.len || e->info.modified_ms >= j->status.created_ms)
        add_entry(l, &extra, false);
    l->last = e->info.key;
}

/* Merges the pages of both sides, as far as both reach. Used by a resync. */
static int merge_pages(struct listing *l, const struct list_result *from, bool *more,
                       struct err *err)
{
    const struct there *to = &l->there;
    size_t i = 0, j = 0, n = 0;

    for (; n < QUEUE_BATCH_MAX; n++) {
        const struct list_entry *x = i < from->count ? &from->entries[i] : NULL,
                                *y = j < to->count ? &to->entries[j] : NULL;
        if ((!x && !y) || (!x && from->more) || (!y && !to->all))
            break;
        int order = !x ? 1 : !y ? -1 : str_cmp(x->info.key, y->info.key);
        if (order <= 0)
            add_entry(l, x, order < 0);
        else
            add_extra(l, y);
        i += order <= 0;
        j += order >= 0;
    }
    *more = i < from->count || j < to->count || from->more || !to->all;
    if (*more && n == 0)
        return err_set(err, ERR_PEER, "a page of a listing is empty, and not the last");
    return 0;
}

static int listing_read_page(struct listing *l, bool *more, struct err *err)
{
    struct list_options o = {.prefix = l->j->p.prefix,
                             .delimiter = STR("/"),
                             .after = l->after,
                             .limit = OBJECT_LIST_MAX};
    struct list_result page = {0};
    int code = list_side(l, l->j->source.bucket, &l->a, &o, &page, err);

    l->count = 0;
    l->last = STR_EMPTY;
    if (code == 0)
        code = look_there(l, &o, err);
    if (code < 0)
        return code;
    l->items = arena_array(&l->a, page.count + l->there.count + 1, sizeof(*l->items));
    if (!l->items)
        return err_code(err, ERR_NO_MEMORY);
    if (l->resync)
        code = merge_pages(l, &page, more, err);
    for (size_t i = 0; !l->resync && i < page.count; i++)
        add_entry(l, &page.entries[i], is_absent(&l->there, page.entries[i].info.key));
    end_together(l);
    if (!l->resync)
        *more = page.more;
    /* Without versions the next page begins at page.next. With versions it begins after the last
     * key, so that the key's other versions are skipped. */
    if (!l->resync && page.more && !l->versions)
        l->last = page.next;
    return code < 0 ? code : arena_error(&l->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Reads the present status of the replication. ERR_AGAIN: the replication is paused, or too many
 * copies are open. */
static int check_status(struct listing *l, struct err *err)
{
    struct job *j = l->j;
    struct replication_status *s = &j->status;
    int code = replication_read(j->t->o.replications, &l->a, &j->p.id, s, err);

    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_END : code;
    if (s->paused) {
        j->run->put_back_s = j->t->o.pause_retry_s;
        return err_set(err, ERR_AGAIN, "the replication is paused");
    }
    if (s->listed - s->done - s->failed > (int64_t)j->t->o.outstanding_max) {
        j->run->put_back_s = LISTING_S;
        return err_set(err, ERR_AGAIN, "copies lag behind the listing");
    }
    return job_watch(j, 0, err);
}

static int source_list_page(struct listing *l, bool *more, struct err *err)
{
    struct job *j = l->j;
    struct replications *r = j->t->o.replications;
    int code = check_status(l, err);

    if (code == 0)
        code = replication_cursor(r, &l->a, &j->p.id, j->p.prefix, &l->after, err);
    if (code == 0)
        code = listing_read_page(l, more, err);
    if (code < 0)
        return code;
    struct listed_page page = {.id = j->p.id,
                               .task = j->run->task,
                               .prefix = j->p.prefix,
                               .after = l->after,
                               .last = *more ? l->last : STR_EMPTY,
                               .items = l->items,
                               .count = l->count};
    code = replication_page(r, &page, err);
    if (code == 0 && !*more)
        j->run->done = true;
    return code == ERR_NOT_FOUND ? ERR_END : code;
}

static int list_prefix(struct task_run *run, bool versions, struct err *err)
{
    struct job j;
    struct listing l = {.j = &j, .versions = versions, .a = ARENA_INIT(0)};
    bool more = true;
    int code = job_begin(&j, run, PAYLOAD_LIST, 1, err);

    if (code == 0)
        code = job_open(&j, false, err);
    if (code == 0)
        code = find_priority(&l, err);
    l.resync = j.status.resynced_ms != 0;
    while (code == 0 && more) {
        arena_reset(&l.a);
        code = source_list_page(&l, &more, err);
    }
    if (code == ERR_NO_BUCKET) /* the source has no bucket, so there is nothing to list */
        code = ERR_END;
    arena_release(&l.a);
    return job_end(&j, code, err);
}

int task_list_objects(struct task_run *run, struct err *err)
{
    return list_prefix(run, false, err);
}

int task_list_versions(struct task_run *run, struct err *err)
{
    return list_prefix(run, true, err);
}
