/* Two storages for tests of copying. */
#include "unit/replica/sides.h"

#include "object/local/local.h"
#include "copy/same.h"

#include <stdio.h>
#include <sys/stat.h>

static struct storage *open_local(struct sides *s, int which)
{
    char folder[256];
    struct local_options o = {.name = which ? "two" : "one",
                              .folder = folder,
                              .db = s->db,
                              .id = (uint32_t)which + 1,
                              .part_min = SIDE_PART_MIN,
                              .reserve_bytes = 1};
    struct err err = {0};

    snprintf(folder, sizeof(folder), "%s/side-%d", test_dir(), which);
    CHECK_OK(local_open(&s->locals[which], &o, &err));
    return s->locals[which];
}

static struct storage *open_remote(struct sides *s)
{
    snprintf(s->far_dir, sizeof(s->far_dir), "%s/far", test_dir());
    CHECK_INT(mkdir(s->far_dir, 0700), 0);
    s->far = remote_lab_start_in(s->far_dir);
    return remote_lab_storage(s->far);
}

void sides_open(struct sides *s, enum side_kind from, enum side_kind to)
{
    char path[256];
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct err err = {0};

    *s = (struct sides){.a = ARENA_INIT(0)};
    snprintf(path, sizeof(path), "%s/sides-db", test_dir());
    CHECK_OK(db_open(&s->db, &d, &err));
    struct storage *one = from == SIDE_LOCAL ? open_local(s, 0) : open_remote(s);
    struct storage *two = to == SIDE_LOCAL ? open_local(s, 1) : open_remote(s);
    s->from = lab_bucket(one, "box");
    s->to = lab_bucket(two, "box");
}

void sides_close(struct sides *s)
{
    s->from->ops->unref(s->from);
    s->to->ops->unref(s->to);
    for (size_t i = 0; i < ARRAY_SIZE(s->locals); i++)
        if (s->locals[i])
            s->locals[i]->ops->close(s->locals[i]);
    if (s->far)
        remote_lab_stop(s->far);
    db_close(s->db);
    arena_release(&s->a);
}

struct copy sides_copy(struct sides *s, const char *key)
{
    return (struct copy){
        .from = s->from, .to = s->to, .key = str_z(key), .user = STR("owner"), .o = &s->o};
}

struct copy_result sides_bring(struct sides *s, const char *key)
{
    struct copy c = sides_copy(s, key);
    struct copy_result out;
    struct err err = {0};

    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    return out;
}

struct object_info sides_head(struct sides *s, struct bucket *b, const char *key)
{
    struct get_result got;
    struct err err = {0};

    CHECK_OK(b->ops->head(b, &s->a, str_z(key), STR_EMPTY, NULL, &got, &err));
    return got.info;
}

void sides_expect_same(struct sides *s, const char *key)
{
    struct object_info from = sides_head(s, s->from, key), to = sides_head(s, s->to, key);
    struct buf body = BUF_INIT(256 * MIB);
    struct get_result got;
    struct err err = {0};

    CHECK_STR(to.etag, from.etag);
    CHECK_INT(to.size, from.size);
    CHECK_INT(to.part_count, from.part_count);
    CHECK(same_object(&from, &to));
    CHECK(same_tags(from.meta.tags, to.meta.tags));
    CHECK_OK(s->from->ops->get(s->from, &s->a, str_z(key), STR_EMPTY, NULL, NULL, &got, &err));
    CHECK_OK(reader_read_all(got.body, &body, &err));
    reader_close(got.body);
    lab_expect(s->to, key, STR_EMPTY, body.len ? buf_str(&body) : STR(""));
    buf_release(&body);
}
