/* Copying from and to peers that fail, lie, or know less than S3. */
#include "object/remote/remote.h"
#include "copy/copy.h"
#include "copy/grants.h"
#include "unit/http/peer.h"
#include "unit/replica/sides.h"

#include <signal.h>
#include <stdatomic.h>

#define XML(status, body) "HTTP/1.1 " status "\r\nContent-Type: application/xml\r\n\r\n" body
#define ERROR(code)       "<Error><Code>" code "</Code><Message>words</Message></Error>"

/* What the peer says of objects; the bucket is there. */
struct script {
    const char *answer; /* a head without a length, and a body; NULL: breaks off */
    atomic_uint conditional, plain;
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

static bool is_about_bucket(const struct peer_request *r)
{
    return r->head.method == HTTP_HEAD && str_eq(r->head.target, STR("/box"));
}

static void play_source(struct peer_conn *c, const void *ctx)
{
    const struct script *s = ctx;
    struct peer_request r;
    bool go_on = true;

    while (go_on && peer_read(c, &r)) {
        if (is_about_bucket(&r))
            say(c, "HTTP/1.1 200 OK\r\n\r\n", true);
        else if (s->answer)
            say(c, s->answer, r.head.method == HTTP_HEAD);
        go_on = is_about_bucket(&r) || s->answer;
        peer_request_release(&r);
    }
}

struct far {
    struct sides s;
    struct peer *peer;
    struct storage *storage;
    struct bucket *bucket;
};

/* `sides` are open. */
static void far_connect(struct far *f, peer_fn *fn, const struct script *script)
{
    struct remote_options o = {.name = STR("far")};
    struct remote_credential key = {STR("owner"), STR("AKOWNER"), STR("the-owners-secret")};
    struct err err = {0};

    f->peer = peer_start(fn, script, NULL);
    o.url = str_z(peer_url(f->peer));
    CHECK_OK(remote_open(&f->storage, &o, &err));
    CHECK_OK(remote_set_credential(f->storage, &key, &err));
    CHECK_OK(f->storage->ops->open_bucket(&f->bucket, f->storage, STR("owner"), STR("box"), &err));
}

static void far_disconnect(struct far *f)
{
    f->bucket->ops->unref(f->bucket);
    f->storage->ops->close(f->storage);
    peer_stop(f->peer);
}

static void far_open(struct far *f, peer_fn *fn, const struct script *script)
{
    signal(SIGPIPE, SIG_IGN);
    sides_open(&f->s, SIDE_LOCAL, SIDE_LOCAL);
    far_connect(f, fn, script);
}

static void far_close(struct far *f)
{
    far_disconnect(f);
    sides_close(&f->s);
}

TEST(copy_peer, only_a_definite_answer_means_absent)
{
    static const struct {
        const char *answer;
        int code;
    } cases[] = {
        {XML("403 Forbidden", ERROR("AccessDenied")), ERR_DENIED},
        {XML("503 Slow Down", ERROR("SlowDown")), ERR_UNAVAILABLE},
        {XML("503 Service Unavailable", ""), ERR_UNAVAILABLE},
        {XML("500 Internal Server Error", ERROR("InternalError")), ERR_PEER},
        {XML("404 Not Found", "<html>no such page</html>"), ERR_PEER},
        {XML("404 Not Found", ERROR("NoSuchBucket")), ERR_NO_BUCKET},
        {NULL, ERR_CLOSED},
    };

    struct far f;

    signal(SIGPIPE, SIG_IGN);
    sides_open(&f.s, SIDE_LOCAL, SIDE_LOCAL);
    lab_put(f.s.to, &f.s.a, "k", STR("precious"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct script script = {.answer = cases[i].answer};
        struct copy_result out;
        struct err err = {0};

        far_connect(&f, play_source, &script);
        struct copy c = sides_copy(&f.s, "k");
        c.from = f.bucket;
        CHECK_ERR(copy_object(&out, &f.s.a, &c, &err), cases[i].code);
        CHECK_ERR(copy_removal(&out, &f.s.a, &c, &err), cases[i].code);
        lab_expect(f.s.to, "k", STR_EMPTY, STR("precious"));
        far_disconnect(&f);
    }
    sides_close(&f.s);
}

TEST(copy_peer, what_is_no_list_of_access_holds_nothing_up)
{
    struct script script = {
        .answer = XML("200 OK", "<AccessControlPolicy><Owner><ID>1</ID></Owner><AccessControlList>"
                                "<Grant/><Permission>FULL_CONTROL</Permission></AccessControlList>"
                                "</AccessControlPolicy>")};
    struct err err = {0};
    struct acl acl;
    struct far f;

    far_open(&f, play_source, &script);
    lab_put(f.s.from, &f.s.a, "k", STR("x"));
    struct grants_of of = {f.bucket, STR("k")};
    CHECK_ERR(grants_read(&acl, &f.s.a, &of, &err), ERR_UNSUPPORTED);
    struct copy c = sides_copy(&f.s, "k");
    c.to = f.bucket;
    CHECK_OK(copy_acl(&f.s.a, &c, false, &err));
    far_close(&f);
}

TEST(copy_peer, a_definite_answer_removes)
{
    struct script script = {.answer = XML("404 Not Found", ERROR("NoSuchKey"))};
    struct copy_result out;
    struct far f;
    struct err err = {0};

    far_open(&f, play_source, &script);
    struct copy c = sides_copy(&f.s, "k");
    c.from = f.bucket;
    lab_put(f.s.to, &f.s.a, "k", STR("old"));
    CHECK_OK(copy_object(&out, &f.s.a, &c, &err));
    CHECK_INT(out.outcome, COPY_ABSENT);
    CHECK_OK(copy_removal(&out, &f.s.a, &c, &err));
    CHECK_INT(out.outcome, COPY_REMOVED);
    lab_expect(f.s.to, "k", STR_EMPTY, (struct str){0});
    far_close(&f);
}

/* Knows no conditions on PUT. */
static void play_destination(struct peer_conn *c, const void *ctx)
{
    struct script *s = (struct script *)(uintptr_t)ctx;
    struct peer_request r;

    while (peer_read(c, &r)) {
        bool conditional = http_header(&r.head, "If-None-Match").len > 0;
        if (is_about_bucket(&r)) {
            say(c, "HTTP/1.1 200 OK\r\n\r\n", true);
        } else if (r.head.method != HTTP_PUT) {
            say(c, XML("404 Not Found", ERROR("NoSuchKey")), r.head.method == HTTP_HEAD);
        } else {
            atomic_fetch_add(conditional ? &s->conditional : &s->plain, 1);
            say(c,
                conditional ? XML("501 Not Implemented", ERROR("NotImplemented"))
                            : "HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\n",
                false);
        }
        peer_request_release(&r);
    }
}

/* Has the object, and takes a condition on a PUT only as `answer` says, or none if it is NULL. */
static void play_odd(struct peer_conn *c, const void *ctx)
{
    struct script *s = (struct script *)(uintptr_t)ctx;
    struct peer_request r;

    while (peer_read(c, &r)) {
        struct str wanted = http_header(&r.head, "If-Match");
        if (is_about_bucket(&r)) {
            say(c, "HTTP/1.1 200 OK\r\n\r\n", true);
        } else if (r.head.method != HTTP_PUT) {
            say(c, "HTTP/1.1 200 OK\r\nETag: \"old\"\r\n\r\nolder", r.head.method == HTTP_HEAD);
        } else {
            bool taken = !wanted.len || (s->answer && str_eq(wanted, str_z(s->answer)));
            atomic_fetch_add(wanted.len ? &s->conditional : &s->plain, 1);
            say(c,
                taken ? "HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\n"
                      : XML("412 Precondition Failed", ERROR("PreconditionFailed")),
                false);
        }
        peer_request_release(&r);
    }
}

TEST(copy_peer, a_condition_that_holds_and_is_refused_is_put_otherwise)
{
    static const struct {
        const char *taken;
        unsigned conditional, plain, conditional_next;
    } cases[] = {{"old", 2, 0, 3}, {NULL, 2, 1, 4}};
    struct far f;

    signal(SIGPIPE, SIG_IGN);
    sides_open(&f.s, SIDE_LOCAL, SIDE_LOCAL);
    lab_put(f.s.from, &f.s.a, "k", STR("body"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct script script = {.answer = cases[i].taken};
        struct copy_result out;
        struct err err = {0};

        far_connect(&f, play_odd, &script);
        struct copy c = sides_copy(&f.s, "k");
        c.to = f.bucket;
        CHECK_OK(copy_object(&out, &f.s.a, &c, &err));
        CHECK_INT(out.outcome, COPY_MADE);
        CHECK_INT(atomic_load(&script.conditional), cases[i].conditional);
        CHECK_INT(atomic_load(&script.plain), cases[i].plain);
        CHECK_OK(copy_object(&out, &f.s.a, &c, &err)); /* what the storage takes is known by now */
        CHECK_INT(atomic_load(&script.conditional), cases[i].conditional_next);
        far_disconnect(&f);
    }
    sides_close(&f.s);
}

TEST(copy_peer, a_destination_without_conditions_is_written_without)
{
    struct script script = {0};
    struct copy_result out;
    struct far f;
    struct err err = {0};

    far_open(&f, play_destination, &script);
    struct copy c = sides_copy(&f.s, "k");
    c.to = f.bucket;
    lab_put(f.s.from, &f.s.a, "k", STR("body"));
    CHECK_OK(copy_object(&out, &f.s.a, &c, &err));
    CHECK_INT(out.outcome, COPY_MADE);
    CHECK_INT(atomic_load(&script.conditional), 1);
    CHECK_INT(atomic_load(&script.plain), 1);
    far_close(&f);
}
