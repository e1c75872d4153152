/* Payloads of tasks. */
#include "coord/payload.h"
#include "unit/test.h"

#include <stdio.h>

static const struct task_payload_object objects[] = {{{"a\n", 2}, 7, true}, {{"b", 1}, 0, false}};
static const struct task_payload whole = {.id = {.user = {"u:1", 3},
                                                 .bucket = {"photos", 6},
                                                 .from = {"main", 4},
                                                 .to = {"backup", 6},
                                                 .to_bucket = {"photos-2", 8}},
                                          .object = {"a \"b\"/\xc3\xbc:t", 10},
                                          .version = {"v1", 2},
                                          .prefix = {"a/", 2},
                                          .size = 123,
                                          .objects = objects,
                                          .object_count = 2};

static int read_as(struct task_payload *out, const char *text, enum task_payload_kind kind)
{
    static struct arena a;
    struct err err = {0};

    arena_release(&a);
    a = ARENA_INIT(0);
    return task_payload_read(out, &a, str_z(text), kind, &err);
}

TEST(payload, what_was_written_is_read_back)
{
    for (int kind = PAYLOAD_BUCKET; kind < PAYLOAD_KINDS; kind++) {
        struct arena a = ARENA_INIT(0);
        struct buf text = {0};
        struct task_payload got;
        struct err err = {0};

        task_payload_write(&text, &whole, (enum task_payload_kind)kind);
        CHECK_OK(task_payload_read(&got, &a, buf_str(&text), (enum task_payload_kind)kind, &err));
        CHECK_STR(got.id.user, whole.id.user);
        CHECK_STR(got.id.bucket, whole.id.bucket);
        CHECK_STR(got.id.from, whole.id.from);
        CHECK_STR(got.id.to, whole.id.to);
        CHECK_STR(got.id.to_bucket, whole.id.to_bucket);
        if (kind == PAYLOAD_OBJECT || kind == PAYLOAD_COPY) {
            CHECK_STR(got.object, whole.object);
            CHECK_STR(got.version, whole.version);
        }
        if (kind == PAYLOAD_COPY)
            CHECK_INT(got.size, 123);
        CHECK_INT(got.object_count, kind == PAYLOAD_COPIES || kind == PAYLOAD_EVENTS ? 2 : 0);
        for (size_t i = 0; i < got.object_count; i++) {
            CHECK_STR(got.objects[i].name, objects[i].name);
            CHECK_INT(got.objects[i].size, kind == PAYLOAD_COPIES ? objects[i].size : 0);
            CHECK_INT(got.objects[i].absent, kind == PAYLOAD_COPIES && objects[i].absent);
        }
        if (kind == PAYLOAD_LIST)
            CHECK_STR(got.prefix, whole.prefix);
        buf_release(&text);
        arena_release(&a);
    }
}

static void expect_written(enum task_payload_kind kind, const struct task_payload *p,
                           const char *want)
{
    struct buf text = {0};

    task_payload_write(&text, p, kind);
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

/* Other tools read them, and tasks of an older weir may be in the queue. */
TEST(payload, fields_and_their_order_stay)
{
    struct task_payload p = {
        .id = {.user = STR("u"), .bucket = STR("box"), .from = STR("a"), .to = STR("b")},
        .object = STR("k"),
        .objects = objects,
        .object_count = 2};

    expect_written(PAYLOAD_OBJECT, &p,
                   "{\"FromStorage\":\"a\",\"ToStorage\":\"b\",\"ToBucket\":null,\"User\":\"u\","
                   "\"Object\":{\"Bucket\":\"box\",\"Name\":\"k\",\"Version\":\"\"}}");
    p.created_at = STR("2025-07-22T10:00:00Z");
    expect_written(PAYLOAD_BUCKET, &p,
                   "{\"FromStorage\":\"a\",\"ToStorage\":\"b\",\"ToBucket\":null,"
                   "\"CreatedAt\":\"2025-07-22T10:00:00Z\",\"User\":\"u\",\"Bucket\":\"box\"}");
    p.created_at = STR_EMPTY;
    expect_written(PAYLOAD_EVENTS, &p,
                   "{\"FromStorage\":\"a\",\"ToStorage\":\"b\",\"ToBucket\":null,\"User\":\"u\","
                   "\"Bucket\":\"box\",\"Objs\":[{\"Name\":\"a\\n\"},{\"Name\":\"b\"}]}");
    expect_written(PAYLOAD_COPIES, &p,
                   "{\"FromStorage\":\"a\",\"ToStorage\":\"b\",\"ToBucket\":null,\"User\":\"u\","
                   "\"Bucket\":\"box\",\"Objs\":[{\"Name\":\"a\\n\",\"Size\":7,\"Absent\":true},"
                   "{\"Name\":\"b\",\"Size\":0}]}");
}

TEST(payload, those_of_chorus_are_read)
{
    struct task_payload p;

    CHECK_INT(read_as(&p,
                      "{\"Object\":{\"Bucket\":\"photos\",\"Name\":\"a.jpg\",\"Version\":\"\"},"
                      "\"FromStorage\":\"main\",\"ToStorage\":\"backup\",\"ToBucket\":null,"
                      "\"CreatedAt\":\"2025-07-22T10:00:00Z\",\"ObjSize\":123,\"Deleted\":false,"
                      "\"User\":\"user1\"}",
                      PAYLOAD_OBJECT),
              0);
    CHECK_STR(p.id.bucket, STR("photos"));
    CHECK_STR(p.object, STR("a.jpg"));
    CHECK_INT(p.id.to_bucket.len, 0);
}

TEST(payload, what_is_missing_or_too_long_is_refused)
{
    static char name[2000], text[3000];
    struct task_payload p;

#define REST "\"FromStorage\":\"a\",\"ToStorage\":\"b\",\"User\":\"u\""
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":\"box\"}", PAYLOAD_BUCKET), 0);
    CHECK_INT(read_as(&p, "{" REST "}", PAYLOAD_BUCKET), ERR_INVALID);
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":7}", PAYLOAD_BUCKET), ERR_INVALID);
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":\"\"}", PAYLOAD_BUCKET), ERR_INVALID);
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":\"box\"}", PAYLOAD_OBJECT), ERR_INVALID);
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":\"box\"}", PAYLOAD_COPY), ERR_INVALID);
    CHECK_INT(read_as(&p, "{" REST ",\"Bucket\":\"box\",\"Obj\":[]}", PAYLOAD_COPY), ERR_INVALID);
    CHECK_INT(read_as(&p, "{\"Bucket\":\"box\"}", PAYLOAD_BUCKET), ERR_INVALID);
    CHECK_INT(read_as(&p, "[]", PAYLOAD_BUCKET), ERR_INVALID);
    CHECK_INT(read_as(&p, "", PAYLOAD_BUCKET), ERR_INVALID);
    for (size_t len = 1024; len <= 1025; len++) {
        memset(name, 'k', sizeof(name));
        snprintf(text, sizeof(text), "{" REST ",\"Object\":{\"Bucket\":\"box\",\"Name\":\"%.*s\"}}",
                 (int)len, name);
        CHECK_INT(read_as(&p, text, PAYLOAD_OBJECT), len == 1024 ? 0 : ERR_INVALID);
    }
}
