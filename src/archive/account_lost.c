/* Finds the bundles and ZIP files that the record has and the satellite lacks.
 *
 * The forge's list does not tell that an object was lost, so a sync would leave the repository
 * alone as long as nobody pushes to it. One listing of the account's folder tells it: a lost or
 * replaced bundle is compared with the server again, and fetched whole if it is missing. */
#include "archive/account_int.h"

/* The state of the comparison. */
struct lost_search {
    struct account_work *work;
    struct map by_name; /* items of the plan that may have lost objects */
};

/* Whether the record says that the item has a bundle, and a sync could fetch it again. */
static bool lost_may_be(const struct plan_item *i)
{
    return i->old && i->next.listed && i->step == PLAN_KEEP && i->old->refs_digest.len;
}

/* Compares a listed object with the record. */
static void lost_compare(struct lost_search *s, const struct object_info *info)
{
    struct archive_object o;
    struct plan_item *i;

    if (archive_key_read(&o, info->key) < 0 ||
        (o.kind != ARCHIVE_BUNDLE && o.kind != ARCHIVE_ZIP) || !(i = map_get(&s->by_name, o.repo)))
        return;
    if (o.kind == ARCHIVE_ZIP)
        i->has_zip = true;
    else
        i->has_bundle = info->size == i->old->bytes && str_eq(info->etag, i->old->etag);
}

static int lost_list(struct lost_search *s, struct err *err)
{
    struct account_work *w = s->work;
    struct arena a = {0};
    struct buf after = {0};
    struct list_result page = {.more = true};
    int code = 0;

    while (code == 0 && page.more) {
        struct list_options o = {.prefix = archive_folder(w->account, &a),
                                 .delimiter = STR("/"),
                                 .after = buf_str(&after),
                                 .limit = OBJECT_LIST_MAX};
        code = shelf_list(&w->shelf, &a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++)
            if (!page.entries[i].is_prefix)
                lost_compare(s, &page.entries[i].info);
        buf_reset(&after);
        if (code == 0)
            buf_append_str(&after, page.next);
        arena_reset(&a);
    }
    buf_release(&after);
    arena_release(&a);
    return code;
}

/* Decides about an item after the listing. */
static void lost_judge(struct lost_search *s, struct plan_item *i)
{
    bool lacks_zip = i->old->zip.len && !i->has_zip;

    if (i->has_bundle && !lacks_zip)
        return;
    i->step = PLAN_SYNC;
    if (lacks_zip)
        i->next.zip = STR_EMPTY; /* so that the ZIP file is made again */
    log_warn(s->work->archive->log, "archive.object_lost",
             log_s("account", s->work->job->claim->member), log_s("repository", i->next.name),
             log_z("object", i->has_bundle ? "ZIP file" : "bundle"));
}

int account_find_lost(struct account_work *w, struct err *err)
{
    struct lost_search s = {.work = w};

    map_init(&s.by_name);
    vec_each (&w->plan.items, struct plan_item *, i)
        if (lost_may_be(i))
            map_put(&s.by_name, i->old->name, i);
    int code = s.by_name.len ? lost_list(&s, err) : 0;
    if (code == 0)
        vec_each (&w->plan.items, struct plan_item *, i)
            if (lost_may_be(i))
                lost_judge(&s, i);
    map_release(&s.by_name);
    return code < 0 ? account_fail(w, archive_code_of_storage(code), "list", code, err) : 0;
}
