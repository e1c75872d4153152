/* A local storage with a bucket and a shard of it. */
#include "unit/object/shard_lab.h"

const struct sealed_key shard_lab_key = {.bytes = "0123456789abcdef0123456789abcde"};

struct bucket *shard_lab_bucket(struct shard_lab *lab, struct str name)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(local_open_bucket(&b, lab->l.lab.storage, STR_EMPTY, name, &err));
    return b;
}

void shard_lab_begin(struct shard_lab *lab, char letter, const struct bucket_info *state)
{
    char whole[] = "whole-?", shard[] = "shard-?";
    struct bucket_info info = state ? *state : (struct bucket_info){0};
    struct err err = {0};

    whole[sizeof(whole) - 2] = shard[sizeof(shard) - 2] = letter;
    info.name = str_z(whole);
    info.owner = STR("owner");
    CHECK_OK(local_create_bucket(lab->l.lab.storage, &info, &err));
    lab->whole = shard_lab_bucket(lab, info.name);
    CHECK_OK(local_make_shard(lab->whole, str_z(shard), &err));
    lab->shard = shard_lab_bucket(lab, str_z(shard));
}

void shard_lab_end(struct shard_lab *lab)
{
    lab->whole->ops->unref(lab->whole);
    lab->shard->ops->unref(lab->shard);
    local_lab_expect_whole(&lab->l);
}

void shard_lab_open(struct shard_lab *lab)
{
    *lab = (struct shard_lab){.a = ARENA_INIT(0)};
    local_lab_open(&lab->l, NULL);
}

void shard_lab_close(struct shard_lab *lab)
{
    local_lab_close(&lab->l);
    arena_release(&lab->a);
}

/* --- describing a bucket --- */

static void add_meta(struct buf *out, const struct object_meta *m)
{
    for (size_t i = 0; i < m->header_count; i++)
        buf_appendf(out, " " STR_FMT "=" STR_FMT, STR_ARG(m->headers[i].name),
                    STR_ARG(m->headers[i].value));
    buf_appendf(out, " tags=" STR_FMT " acl=" STR_FMT " owner=" STR_FMT " class=" STR_FMT,
                STR_ARG(m->tags), STR_ARG(m->acl), STR_ARG(m->owner), STR_ARG(m->storage_class));
    buf_appendf(out, " envelope=" STR_FMT " sum=%d/" STR_FMT " retain=%lld%s%s",
                STR_ARG(m->encryption), (int)m->checksum.type, STR_ARG(m->checksum.value),
                (long long)m->retain_until_ms, m->retain_compliance ? " compliance" : "",
                m->legal_hold ? " hold" : "");
}

static void add_parts(struct buf *out, const struct part_list *list)
{
    CHECK(!list->more);
    for (size_t i = 0; i < list->count; i++)
        buf_appendf(out, "\n  part %u %llu %lld " STR_FMT, list->parts[i].number,
                    (unsigned long long)list->parts[i].size, (long long)list->parts[i].modified_ms,
                    STR_ARG(list->parts[i].etag));
}

static void add_body(struct bucket *b, struct arena *a, const struct object_info *info,
                     struct buf *out)
{
    struct buf body = BUF_INIT(0);
    struct get_result got;
    struct part_list parts;
    struct err err = {0};

    CHECK_OK(b->ops->get(b, a, info->key, info->version, NULL, NULL, &got, &err));
    CHECK_STR(got.info.version, info->version);
    CHECK_INT(got.info.is_latest, info->is_latest);
    add_meta(out, &got.info.meta);
    if (got.unlock)
        CHECK_OK(got.unlock(got.body, &shard_lab_key, &err));
    CHECK_OK(reader_read_all(got.body, &body, &err));
    reader_close(got.body);
    CHECK_INT(body.len, info->size);
    buf_appendf(out, " body=%016llx", (unsigned long long)hash_xxh3(buf_str(&body), 0));
    CHECK_OK(b->ops->object_parts(b, a, info, 0, OBJECT_MAX_PARTS, &parts, &err));
    add_parts(out, &parts);
    buf_release(&body);
}

static void add_version(struct bucket *b, struct arena *a, const struct object_info *info,
                        struct buf *out)
{
    buf_appendf(out, STR_FMT " " STR_FMT "%s%s %llu %lld " STR_FMT, STR_ARG(info->key),
                STR_ARG(info->version), info->is_latest ? "*" : "", info->is_marker ? "!" : "",
                (unsigned long long)info->size, (long long)info->modified_ms, STR_ARG(info->etag));
    if (!info->is_marker)
        add_body(b, a, info, out);
    buf_append_char(out, '\n');
}

static void add_uploads(struct bucket *b, struct arena *a, struct buf *out)
{
    struct list_options all = {.limit = OBJECT_LIST_MAX};
    struct upload_list list;
    struct part_list parts;
    struct err err = {0};

    CHECK_OK(b->ops->list_uploads(b, a, &all, &list, &err));
    for (size_t i = 0; i < list.count; i++) {
        const struct upload_info *u = &list.uploads[i];
        buf_appendf(out, "upload " STR_FMT " " STR_FMT " %lld", STR_ARG(u->key), STR_ARG(u->id),
                    (long long)u->started_ms);
        add_meta(out, &u->meta);
        CHECK_OK(b->ops->list_parts(b, a, u, 0, OBJECT_MAX_PARTS, &parts, &err));
        add_parts(out, &parts);
        buf_append_char(out, '\n');
    }
}

void shard_lab_describe(struct bucket *b, struct buf *out)
{
    struct list_options o = {.limit = 7}; /* several pages */
    struct arena a = ARENA_INIT(0);
    struct list_result page;
    struct bucket_usage u;
    struct err err = {0};

    do {
        CHECK_OK(b->ops->list_versions(b, &a, &o, &page, &err));
        for (size_t i = 0; i < page.count; i++)
            add_version(b, &a, &page.entries[i].info, out);
        o.after = page.next;
        o.after_version = page.next_version;
    } while (page.more);
    add_uploads(b, &a, out);
    CHECK_OK(b->ops->usage(b, &u, &err));
    buf_appendf(out, "%llu objects of %llu bytes, %llu old versions of %llu bytes\n",
                (unsigned long long)u.objects, (unsigned long long)u.bytes,
                (unsigned long long)u.old_versions, (unsigned long long)u.old_bytes);
    arena_release(&a);
}
