/* Listings of the initial copy: one prefix each, a page and its cursor in one script. */
#include "replica/tasks_int.h"

struct listing {
    struct job *j;
    bool versions;
    struct str after, last;
    struct listed *items;
    size_t count;
    int priority;
    struct arena a; /* of a page */
};

/* "mgr:co:<from>:<to>:<bucket>:<object>[:<to bucket>]" */
static struct str task_id(struct arena *a, const char *kind, const struct replication_id *id,
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

static struct str payload_in(struct arena *a, const struct payload *p, enum payload_kind kind)
{
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX);

    payload_write(&text, p, kind);
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

struct task task_of_listing(struct arena *a, const struct replication_id *id, struct str prefix,
                            bool versions)
{
    struct payload p = {.id = *id, .prefix = prefix};

    return (struct task){.type = versions ? STR("migrate:object:list_versions")
                                          : STR("migrate:bucket:list_objects"),
                         .payload = payload_in(a, &p, PAYLOAD_LIST),
                         .id = task_id(a, versions ? "mgr:lov:" : "mgr:lo:", id, prefix),
                         .queue = STR("migrate_bucket_list_obj")};
}

static struct task task_of_copy(const struct listing *l, struct arena *a,
                                const struct object_info *info)
{
    struct payload p = {.id = l->j->p.id, .object = info->key, .size = info->size};

    return (struct task){
        .type = l->versions ? STR("migrate:object:copy_versioned") : STR("migrate:object:copy"),
        .payload = payload_in(a, &p, PAYLOAD_COPY),
        .id = task_id(a, l->versions ? "mgr:cov:" : "mgr:co:", &l->j->p.id, info->key),
        .queue = arena_fmt(a, "migrate_obj_copy%d", l->priority + 1)};
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

/* Keys come once, though their versions are many. */
static void add_entry(struct listing *l, const struct list_entry *e)
{
    struct listed *item = &l->items[l->count];
    bool again = l->count && l->versions && !e->is_prefix && str_eq(l->last, e->info.key);

    l->last = e->info.key;
    if (again)
        return;
    *item = (struct listed){.listing = e->is_prefix};
    item->task = e->is_prefix ? task_of_listing(&l->a, &l->j->p.id, e->info.key, l->versions)
                              : task_of_copy(l, &l->a, &e->info);
    item->bytes = e->is_prefix ? 0 : e->info.size;
    item->prefix = e->is_prefix ? e->info.key : STR_EMPTY;
    l->count++;
}

static int read_page(struct listing *l, bool *more, struct err *err)
{
    struct bucket *b = l->j->source.bucket;
    struct list_options o = {.prefix = l->j->p.prefix,
                             .delimiter = STR("/"),
                             .after = l->after,
                             .limit = OBJECT_LIST_MAX};
    struct list_result page = {0};
    int code = (l->versions ? b->ops->list_versions : b->ops->list)(b, &l->a, &o, &page, err);

    l->count = 0;
    l->last = STR_EMPTY;
    if (code < 0)
        return code;
    l->items = arena_array(&l->a, page.count + 1, sizeof(*l->items));
    if (!l->items)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < page.count; i++)
        add_entry(l, &page.entries[i]);
    *more = page.more;
    /* by key, so that the rest of the versions of one is skipped */
    if (page.more && !l->versions)
        l->last = page.next;
    return arena_error(&l->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Status as it is now; ERR_AGAIN while its copies lag. */
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

static int list_page(struct listing *l, bool *more, struct err *err)
{
    struct job *j = l->j;
    struct replications *r = j->t->o.replications;
    int code = check_status(l, err);

    if (code == 0)
        code = replication_cursor(r, &l->a, &j->p.id, j->p.prefix, &l->after, err);
    if (code == 0)
        code = read_page(l, more, err);
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
    while (code == 0 && more) {
        arena_reset(&l.a);
        code = list_page(&l, &more, err);
    }
    if (code == ERR_NO_BUCKET) /* of the source: nothing to list (any more) */
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
