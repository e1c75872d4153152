/* A remote storage against peers that fail, lie or break off: nothing of it is taken as absent, as
 * a whole body or as a success (docs/remote-storage.md, M1 to M7). */
#include "base/log.h"
#include "object/remote/remote_int.h"
#include "os/file.h"
#include "unit/http/peer.h"
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define XML(status, body) "HTTP/1.1 " status "\r\nContent-Type: application/xml\r\n\r\n" body
#define ERROR(code)       "<Error><Code>" code "</Code><Message>words</Message></Error>"

/* What the peer says to everything but the look for the bucket: a head without a length, which is
 * added, and a body. */
struct script {
    const char *answer;
    const char *raw; /* instead: as it is, and the connection ends */
    atomic_uint requests;
    atomic_ullong body_bytes;
};

struct fixture {
    struct peer *peer;
    struct storage *storage;
    struct bucket *bucket;
    struct arena a;
    struct err err;
};

static void say(struct peer_conn *c, const char *answer, bool to_head)
{
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    struct buf out = BUF_INIT(0);

    buf_append(&out, answer, (size_t)(body - answer) - 2);
    buf_appendf(&out, "Content-Length: %zu\r\n\r\n", strlen(body));
    if (!to_head)
        buf_append_z(&out, body);
    peer_write(c, buf_str(&out));
    buf_release(&out);
}

static bool play_one(struct peer_conn *c, struct script *s, struct peer_request *r)
{
    bool to_head = r->head.method == HTTP_HEAD;

    if (to_head && str_eq(r->head.target, STR("/box"))) {
        say(c, "HTTP/1.1 200 OK\r\n\r\n", true);
        return true;
    }
    atomic_fetch_add(&s->requests, 1);
    bool whole = peer_read_body(c, r);
    atomic_fetch_add(&s->body_bytes, r->body.len);
    if (whole && s->raw)
        peer_write_z(c, s->raw);
    else if (whole)
        say(c, s->answer, to_head);
    return whole && !s->raw;
}

static void play(struct peer_conn *c, const void *ctx)
{
    struct script *s = (struct script *)(uintptr_t)ctx;
    struct peer_request r;
    bool go_on = true;

    while (go_on && peer_read_head(c, &r)) {
        go_on = play_one(c, s, &r);
        peer_request_release(&r);
    }
}

static struct fixture begin_with(peer_fn *fn, struct script *s)
{
    struct fixture f = {.peer = peer_start(fn, s, NULL), .a = ARENA_INIT(0)};
    struct remote_options o = {.name = STR("far"), .url = str_z(peer_url(f.peer))};
    struct remote_credential c = {STR("alice"), STR("AKALICE"), STR("alices-secret")};
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(remote_open(&f.storage, &o, &err));
    CHECK_OK(remote_set_credential(f.storage, &c, &err));
    CHECK_OK(f.storage->ops->open_bucket(&f.bucket, f.storage, STR("alice"), STR("box"), &err));
    return f;
}

static struct fixture begin(struct script *s)
{
    return begin_with(play, s);
}

/* One that the next call finds, and that may turn out to be dead. */
static void keep_connection(struct fixture *f)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(f->storage->ops->open_bucket(&b, f->storage, STR("alice"), STR("box"), &err));
    b->ops->unref(b);
}

static void end(struct fixture *f)
{
    f->bucket->ops->unref(f->bucket);
    f->storage->ops->close(f->storage);
    arena_release(&f->a);
    peer_stop(f->peer);
}

/* --- every call that can say "absent" --- */

static int call_head(struct fixture *f)
{
    struct get_result got;
    return f->bucket->ops->head(f->bucket, &f->a, STR("k"), STR_EMPTY, NULL, &got, &f->err);
}

static int call_get(struct fixture *f)
{
    struct get_result got;
    int code =
        f->bucket->ops->get(f->bucket, &f->a, STR("k"), STR_EMPTY, NULL, NULL, &got, &f->err);
    reader_close(got.body);
    return code;
}

static int call_remove(struct fixture *f)
{
    struct remove_options o = {0};
    struct remove_result out;
    return f->bucket->ops->remove(f->bucket, &f->a, STR("k"), &o, &out, &f->err);
}

static int call_list(struct fixture *f)
{
    struct list_options o = {.limit = 10};
    struct list_result out;
    return f->bucket->ops->list(f->bucket, &f->a, &o, &out, &f->err);
}

static int call_list_versions(struct fixture *f)
{
    struct list_options o = {.limit = 10};
    struct list_result out;
    return f->bucket->ops->list_versions(f->bucket, &f->a, &o, &out, &f->err);
}

static int call_list_uploads(struct fixture *f)
{
    struct list_options o = {.limit = 10};
    struct upload_list out;
    return f->bucket->ops->list_uploads(f->bucket, &f->a, &o, &out, &f->err);
}

static const struct upload_info upload = {.key = {"k", 1}, .id = {"id", 2}};

static int call_list_parts(struct fixture *f)
{
    struct part_list out;
    return f->bucket->ops->list_parts(f->bucket, &f->a, &upload, 0, 10, &out, &f->err);
}

static int call_abort(struct fixture *f)
{
    return f->bucket->ops->upload_abort(f->bucket, &upload, &f->err);
}

static int call_finish(struct fixture *f)
{
    struct upload_part part = {.number = 1, .etag = STR("e")};
    struct put_options o = {0};
    struct put_result out;
    return f->bucket->ops->upload_finish(f->bucket, &f->a, &upload, &part, 1, &o, &out, &f->err);
}

static int call_copy(struct fixture *f)
{
    struct object_info source = {.key = STR("from"), .etag = STR("e"), .size = 1};
    struct put_options o = {0};
    struct put_result out;
    return f->bucket->ops->copy(f->bucket, &f->a, STR("k"), f->bucket, &source, &o, &out, &f->err);
}

static int call_put(struct fixture *f)
{
    struct put_options o = {0};
    struct put_result out;
    struct str_reader body;

    str_reader_init(&body, STR("hello"));
    return f->bucket->ops->put(f->bucket, &f->a, STR("k"), &body.reader, 5, &o, &out, &f->err);
}

static int call_document(struct fixture *f)
{
    struct str out;
    return f->bucket->ops->get_document(f->bucket, &f->a, "policy", &out, &f->err);
}

static int call_info(struct fixture *f)
{
    struct bucket_info out;
    return f->bucket->ops->info(f->bucket, &f->a, &out, &f->err);
}

static int call_remove_bucket(struct fixture *f)
{
    return f->storage->ops->remove_bucket(f->storage, STR("alice"), STR("box"), &f->err);
}

static int (*const calls[])(struct fixture *) = {
    call_head,         call_get,        call_remove, call_list,          call_list_versions,
    call_list_uploads, call_list_parts, call_abort,  call_finish,        call_copy,
    call_put,          call_document,   call_info,   call_remove_bucket,
};

static void expect_no_absence(struct script *s)
{
    struct fixture f = begin(s);

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        int code = calls[i](&f);
        if (code >= 0 || code == ERR_NOT_FOUND || code == ERR_NO_BUCKET)
            test_fail(__FILE__, __LINE__, "call %zu is %s after: %s", i, err_name(code),
                      s->raw ? s->raw : s->answer);
    }
    end(&f);
}

TEST(remote_peer, errors_are_never_absence_nor_success)
{
    static const char *const answers[] = {
        XML("500 Internal Server Error", ERROR("InternalError")),
        XML("503 Slow Down", ERROR("SlowDown")),
        "HTTP/1.1 502 Bad Gateway\r\n\r\n<html>no</html>",
        "HTTP/1.1 404 Not Found\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\n\r\n<html>not here</html>",
        XML("404 Not Found", ERROR("AccessDenied")),
        XML("404 Not Found", "<Error><Code>NoSuchKey"),
        XML("404 Not Found", "<Other><Code>NoSuchKey</Code></Other>"),
        XML("400 Bad Request", ERROR("NoSuchKey")),
        XML("500 Internal Server Error", ERROR("NoSuchBucket")),
        XML("403 Forbidden", ERROR("NoSuchKey")),
        "HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        "HTTP/1.1 405 Method Not Allowed\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct script s = {.answer = answers[i]};
        expect_no_absence(&s);
    }
}

TEST(remote_peer, who_breaks_off_has_said_nothing)
{
    static const char *const raw[] = {
        "",
        "HTTP/1.1 404 Not Found\r\nContent-Le",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n<Error><Code>NoSuchKey</Code>",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "SMTP ready\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
        struct script s = {.raw = raw[i]};
        expect_no_absence(&s);
    }
}

TEST(remote_peer, what_is_absent_says_so_in_two_ways)
{
    struct script s = {.answer = XML("404 Not Found", ERROR("NoSuchKey"))};
    struct fixture f = begin(&s);
    struct bucket *other = NULL;

    CHECK_ERR(call_head(&f), ERR_NOT_FOUND);
    CHECK_INT(s.requests, 2); /* the HEAD, and the GET that says why */
    CHECK_ERR(call_get(&f), ERR_NOT_FOUND);
    end(&f);
    s = (struct script){.answer = XML("404 Not Found", ERROR("NoSuchBucket"))};
    f = begin(&s);
    CHECK_ERR(call_head(&f), ERR_NO_BUCKET);
    CHECK_ERR(call_list(&f), ERR_NO_BUCKET);
    CHECK_ERR(f.storage->ops->open_bucket(&other, f.storage, STR("alice"), STR("other"), &f.err),
              ERR_NO_BUCKET);
    end(&f);
    s = (struct script){.answer = "HTTP/1.1 404 Not Found\r\nx-amz-delete-marker: true\r\n"
                                  "x-amz-version-id: v1\r\n\r\n"};
    f = begin(&s);
    CHECK_ERR(call_head(&f), ERR_NOT_FOUND);
    CHECK_ERR(call_get(&f), ERR_NOT_FOUND);
    end(&f);
}

TEST(remote_peer, an_error_inside_a_success_is_the_error)
{
    struct script s = {.answer = XML("200 OK", ERROR("InternalError"))};
    struct fixture f = begin(&s);

    CHECK_ERR(call_finish(&f), ERR_PEER);
    CHECK_ERR(call_copy(&f), ERR_PEER);
    CHECK_ERR(call_list(&f), ERR_PEER);
    end(&f);
    s.answer = XML("200 OK", ERROR("NoSuchUpload"));
    f = begin(&s);
    CHECK_ERR(call_finish(&f), ERR_PEER); /* absence needs the status too */
    end(&f);
    s.answer = XML("200 OK", ERROR("SlowDown"));
    f = begin(&s);
    CHECK_ERR(call_copy(&f), ERR_BUSY);
    end(&f);
}

/* --- bodies --- */

TEST(remote_peer, a_body_cut_short_fails_its_reader)
{
    struct script s = {.raw = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 10\r\n\r\nhello"};
    struct fixture f = begin(&s);
    struct get_result got;
    struct buf text = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(f.bucket->ops->get(f.bucket, &f.a, STR("k"), STR_EMPTY, NULL, NULL, &got, &err));
    CHECK_INT(got.len, 10);
    CHECK_ERR(reader_read_all(got.body, &text, &err), ERR_CLOSED);
    reader_close(got.body);
    buf_release(&text);
    end(&f);
}

static void expect_get(const char *raw, const struct object_range *range, int want)
{
    struct script s = {.raw = raw};
    struct fixture f = begin(&s);
    struct get_result got;
    int code = f.bucket->ops->get(f.bucket, &f.a, STR("k"), STR_EMPTY, NULL, range, &got, &f.err);

    if (code != want)
        test_fail(__FILE__, __LINE__, "%s (%s) after: %s", err_name(code), f.err.text, raw);
    reader_close(got.body);
    end(&f);
}

#define OBJECT(status, more) "HTTP/1.1 " status "\r\nETag: \"e\"\r\n" more "\r\n"

TEST(remote_peer, an_answer_that_is_not_that_object_is_refused)
{
    struct object_range range = {RANGE_FROM_TO, 2, 4};

    expect_get(OBJECT("200 OK", "Content-Length: 3\r\n") "abc", NULL, 0);
    expect_get("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", NULL, ERR_PEER);
    expect_get(OBJECT("200 OK", "Transfer-Encoding: chunked\r\n") "3\r\nabc\r\n0\r\n\r\n", NULL,
               ERR_PEER);
    expect_get(OBJECT("200 OK", "") "abc", NULL, ERR_PEER);
    expect_get(OBJECT("206 Partial", "Content-Length: 3\r\nContent-Range: bytes 2-4/9\r\n") "abc",
               &range, 0);
    expect_get(OBJECT("206 Partial", "Content-Length: 3\r\nContent-Range: bytes 2-5/9\r\n") "abc",
               &range, ERR_PEER);
    expect_get(OBJECT("206 Partial", "Content-Length: 3\r\nContent-Range: bytes 2-4/4\r\n") "abc",
               &range, ERR_PEER);
    expect_get(OBJECT("206 Partial", "Content-Length: 3\r\n") "abc", &range, ERR_PEER);
    expect_get(OBJECT("200 OK", "Content-Length: 3\r\n") "abc", &range, ERR_PEER);
}

enum { LARGE = 4 * 1024 * 1024 };

static int refuse(void *ctx, struct object_meta *meta, struct err *err)
{
    (void)ctx;
    (void)meta;
    return err_set(err, ERR_INVALID, "BadDigest");
}

static int put_large(struct fixture *f, const struct put_options *o, uint64_t size)
{
    struct put_result out;
    struct str_reader body;
    char *bytes = xcalloc(1, LARGE);

    str_reader_init(&body, str_n(bytes, LARGE));
    int code =
        f->bucket->ops->put(f->bucket, &f->a, STR("k"), &body.reader, size, o, &out, &f->err);
    free(bytes);
    return code;
}

TEST(remote_peer, a_refused_body_never_arrives_whole)
{
    struct script s = {.answer = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\n\r\n"};
    struct put_options refused = {.verify = refuse}, plain = {0};
    struct fixture f = begin(&s);

    CHECK_ERR(put_large(&f, &refused, LARGE), ERR_INVALID);
    CHECK_STR(str_z(f.err.text), STR("BadDigest"));
    CHECK_ERR(put_large(&f, &plain, LARGE + 1), ERR_CLOSED);
    CHECK_ERR(put_large(&f, &plain, LARGE - 1), ERR_INVALID);
    CHECK_INT(put_large(&f, &plain, LARGE), 0);
    end(&f); /* after which the peer has read all that came */
    CHECK_INT(s.requests, 4);
    CHECK(s.body_bytes < 4 * (unsigned long long)LARGE);
}

/* Says that all is well before it has read the body, and reads on. */
static void answer_early(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    while (peer_read_head(c, &r)) {
        say(c, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\n\r\n", r.head.method == HTTP_HEAD);
        if (r.head.method == HTTP_PUT)
            peer_wait_end(c);
        peer_request_release(&r);
    }
    (void)ctx;
}

TEST(remote_peer, a_success_before_the_body_was_proved_is_none)
{
    struct script unused = {.answer = "HTTP/1.1 200 OK\r\n\r\n"};
    struct fixture f = begin(&unused), early = {.a = ARENA_INIT(0)};
    struct put_options refused = {.verify = refuse};
    struct remote_credential c = {STR("alice"), STR("AKALICE"), STR("alices-secret")};
    struct err err = {0};

    early.peer = peer_start(answer_early, NULL, NULL);
    struct remote_options o = {.name = STR("far"), .url = str_z(peer_url(early.peer))};
    CHECK_OK(remote_open(&early.storage, &o, &err));
    CHECK_OK(remote_set_credential(early.storage, &c, &err));
    CHECK_OK(early.storage->ops->open_bucket(&early.bucket, early.storage, STR("alice"), STR("box"),
                                             &err));
    int code = put_large(&early, &refused, LARGE); /* by the answer, or by the refusal */
    CHECK(code == ERR_PEER || code == ERR_INVALID);
    end(&early);
    end(&f);
}

/* --- M8: what may be sent again --- */

/* Of each two removals the first gets the end of the connection instead of an answer. */
static void end_once(struct peer_conn *c, const void *ctx)
{
    struct script *s = (struct script *)(uintptr_t)ctx;
    struct peer_request r;
    bool go_on = true;

    while (go_on && peer_read(c, &r)) {
        bool removes = r.head.method == HTTP_DELETE;
        go_on = !removes || atomic_fetch_add(&s->requests, 1) % 2 == 1;
        if (go_on)
            say(c, "HTTP/1.1 204 No Content\r\n\r\n", true);
        peer_request_release(&r);
    }
    peer_request_release(&r);
}

static int try_remove(struct fixture *f, struct remove_options o)
{
    struct remove_result out;

    return f->bucket->ops->remove(f->bucket, &f->a, STR("k"), &o, &out, &f->err);
}

TEST(remote_peer, removals_are_sent_again_only_when_twice_is_once)
{
    struct script s = {0};
    struct fixture f = begin_with(end_once, &s);
    struct object_conditions rows[] = {{.if_match = STR("x")},
                                       {.if_none_match = STR("x")},
                                       {.if_unmodified_since_ms = 1000},
                                       {.if_modified_at_ms = 1000},
                                       {.has_if_size = true, .if_size = 1}};

    CHECK_INT(try_remove(&f, (struct remove_options){.version = STR("v")}), 0);
    CHECK_INT(s.requests, 2);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        s.requests = 0;
        keep_connection(&f);
        CHECK_INT(
            try_remove(&f, (struct remove_options){.version = STR("v"), .conditions = rows[i]}),
            ERR_CLOSED);
        CHECK_INT(s.requests, 1);
    }
    s.requests = 0;
    keep_connection(&f);
    CHECK_INT(try_remove(&f, (struct remove_options){0}), ERR_CLOSED);
    s.requests = 0;
    keep_connection(&f);
    CHECK_INT(f.bucket->ops->set_document(f.bucket, "policy", STR_EMPTY, &f.err), 0);
    CHECK_INT(s.requests, 2);
    s.requests = 0;
    CHECK_INT(f.storage->ops->remove_bucket(f.storage, STR("alice"), STR("box"), &f.err),
              ERR_CLOSED);
    CHECK_INT(s.requests, 1);
    end(&f);
}

/* --- listings --- */

static int list(struct fixture *f, struct list_options o, struct list_result *out)
{
    return f->bucket->ops->list(f->bucket, &f->a, &o, out, &f->err);
}

#define PAGE(more, inside)                                                                         \
    XML("200 OK", "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>" more           \
                  "</IsTruncated>" inside "</ListBucketResult>")
#define KEY(k)    "<Contents><Key>" k "</Key><Size>1</Size><ETag>\"e\"</ETag></Contents>"
#define PREFIX(p) "<CommonPrefixes><Prefix>" p "</Prefix></CommonPrefixes>"

TEST(remote_peer, listings_that_make_no_sense_are_refused)
{
    static const struct {
        const char *page;
        struct list_options o;
    } cases[] = {
        {PAGE("false", KEY("b")), {.prefix = {"a", 1}, .limit = 10}},
        {PAGE("false", KEY("a")), {.after = {"a", 1}, .limit = 10}},
        {PAGE("false", KEY("a")), {.after = {"b", 1}, .limit = 10}},
        {PAGE("false", PREFIX("a/")), {.after = {"b", 1}, .delimiter = {"/", 1}, .limit = 10}},
        {PAGE("true", ""), {.limit = 10}},
        {PAGE("false", PREFIX("a/")), {.limit = 10}},
        {PAGE("false", KEY("a/b")), {.delimiter = {"/", 1}, .limit = 10}},
        {PAGE("false", PREFIX("a/b")), {.delimiter = {"/", 1}, .limit = 10}},
        {PAGE("true", PREFIX("a/")), {.after = {"a/", 2}, .delimiter = {"/", 1}, .limit = 10}},
        {PAGE("false", KEY("")), {.limit = 10}},
        {PAGE("false", KEY("%zz")), {.limit = 10}},
        {PAGE("false", "<Contents><Key>a</Key></Contents>"), {.limit = 10}},
        {PAGE("false", "<Contents><Key>a</Key><Size>-1</Size></Contents>"), {.limit = 10}},
        {XML("200 OK", "<!DOCTYPE x><ListBucketResult/>"), {.limit = 10}},
        {XML("200 OK", "<ListVersionsResult/>"), {.limit = 10}},
        {XML("200 OK", ""), {.limit = 10}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct script s = {.answer = cases[i].page};
        struct fixture f = begin(&s);
        struct list_result out;
        int code = list(&f, cases[i].o, &out);
        if (code != ERR_PEER)
            test_fail(__FILE__, __LINE__, "case %zu is %s", i, err_name(code));
        end(&f);
    }
}

/* A simple server: it knows buckets and objects, and no parameter of them. */
static void play_simple(struct peer_conn *c, const void *ctx)
{
    struct peer_request r;

    (void)ctx;
    while (peer_read_head(c, &r)) {
        bool buckets = str_eq(r.head.target, STR("/")) || str_starts(r.head.target, STR("/?"));
        say(c,
            buckets ? XML("200 OK", "<ListAllMyBucketsResult><Buckets><Bucket><Name>box</Name>"
                                    "</Bucket></Buckets></ListAllMyBucketsResult>")
                    : XML("200 OK", "<?xml version=\"1.0\"?><ListBucketResult><Name>box</Name>"
                                    "<IsTruncated>false</IsTruncated></ListBucketResult>"),
            r.head.method == HTTP_HEAD);
        peer_request_release(&r);
    }
}

TEST(remote_peer, a_peer_that_lists_when_it_is_asked_for_a_document_has_none)
{
    struct script s = {0};
    struct fixture f = begin_with(play_simple, &s);
    struct bucket_info info;
    struct err err = {0};
    struct str text;

    CHECK_OK(f.bucket->ops->info(f.bucket, &f.a, &info, &err));
    CHECK(info.versions == VERSIONS_NEVER && !info.object_lock);
    CHECK_INT(f.bucket->ops->get_document(f.bucket, &f.a, "tagging", &text, &err), ERR_UNSUPPORTED);
    struct list_options o = {.limit = 10};
    struct list_result page;
    struct upload_list uploads;
    CHECK_INT(f.bucket->ops->list_versions(f.bucket, &f.a, &o, &page, &err), ERR_UNSUPPORTED);
    CHECK_INT(f.bucket->ops->list_uploads(f.bucket, &f.a, &o, &uploads, &err), ERR_UNSUPPORTED);
    end(&f);
}

TEST(remote_peer, listings_come_out_in_order_and_cut)
{
    struct script s = {.answer = PAGE("false", KEY("c%2Bd") KEY("a+b") KEY("%C3%BC") PREFIX("b/"))};
    struct fixture f = begin(&s);
    struct list_result out;
    struct err err = {0};

    CHECK_OK(list(&f, (struct list_options){.delimiter = STR("/"), .limit = 10}, &out));
    CHECK_INT(out.count, 4);
    CHECK(!out.more);
    CHECK_STR(out.entries[0].info.key, STR("a b"));
    CHECK(out.entries[1].is_prefix);
    CHECK_STR(out.entries[2].info.key, STR("c+d"));
    CHECK_STR(out.entries[3].info.key, STR("\xc3\xbc"));
    CHECK_OK(list(&f, (struct list_options){.delimiter = STR("/"), .limit = 2}, &out));
    CHECK_INT(out.count, 2);
    CHECK(out.more);
    CHECK_STR(out.next, STR("b/"));
    end(&f);
}

/* --- secrets --- */

TEST(remote_peer, a_count_is_the_peers_own_or_there_is_none)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nX-RGW-Object-Count: 12\r\nX-RGW-Bytes-Used: 340\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\n\r\n", ERR_UNSUPPORTED},
        {"HTTP/1.1 200 OK\r\nX-RGW-Object-Count: 12\r\n\r\n", ERR_UNSUPPORTED},
        {"HTTP/1.1 200 OK\r\nX-RGW-Object-Count: -1\r\nX-RGW-Bytes-Used: 3\r\n\r\n", ERR_PEER},
        {"HTTP/1.1 200 OK\r\nX-RGW-Object-Count: 12\r\nX-RGW-Bytes-Used: 1 MB\r\n\r\n", ERR_PEER},
        {"HTTP/1.1 403 Forbidden\r\n\r\n", ERR_DENIED},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct script s = {.answer = rows[i].answer};
        struct fixture f = begin(&s);
        struct remote_count count = {1, 2};
        CHECK_ERR(remote_count(f.bucket, &count, &f.err), rows[i].code);
        CHECK_INT(count.versions, rows[i].code == 0 ? 12 : 1);
        CHECK_INT(count.bytes, rows[i].code == 0 ? 340 : 2);
        CHECK_INT(s.requests, 1);
        end(&f);
    }
}

TEST(remote_peer, secrets_are_in_no_log_and_no_error)
{
    struct script s = {.answer = XML("403 Forbidden", ERROR("SignatureDoesNotMatch"))};
    struct peer *p = peer_start(play, &s, NULL);
    char path[256], text[64 * 1024];
    struct log log = {0};
    struct remote_credential c = {STR("alice"), STR("AKALICE"), STR("alices-secret")};
    struct storage *storage = NULL;
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof(path), "%s/log", test_dir());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    log.sink = log_sink_new(fd, LOG_DEBUG, LOG_TEXT);
    struct remote_options o = {.name = STR("far"), .url = str_z(peer_url(p)), .log = &log};
    CHECK_OK(remote_open(&storage, &o, &err));
    CHECK_OK(remote_set_credential(storage, &c, &err));
    CHECK_ERR(storage->ops->check(storage, &err), ERR_DENIED);
    CHECK(strstr(err.text, "SignatureDoesNotMatch") && !strstr(err.text, "alices-secret"));
    peer_stop(p);
    for (int i = 0; i < 5; i++) /* until it is down, which is logged */
        CHECK(storage->ops->check(storage, &err) < 0 && !strstr(err.text, "alices-secret"));
    storage->ops->close(storage);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    CHECK(n > 0);
    text[n] = '\0';
    CHECK(strstr(text, "upstream.down"));
    CHECK(!strstr(text, "alices-secret") && !strstr(text, "Signature="));
    log_sink_free(log.sink);
    close(fd);
}
