/* The whole S3 gateway: requests over a socket, in front of a local storage. Whatever comes, each
 * answer is a well-formed response, well-formed XML where it says so, and no InternalError.
 *
 * An input is requests with lines "%%" between them. The first line of each says who sends it:
 *   alice, bob   signed in its headers
 *   chunks       by alice, and the body in signed chunks
 *   query        presigned by alice
 *   v2           by alice, version 2
 *   nobody       not signed
 *   raw          the bytes that follow, as they are
 * then come "METHOD target", header lines, an empty line and the body. Host and Content-Length are
 * added when neither is there; x-amz-content-sha256 is what is signed of the body when it is given.
 * ${upload}, ${version}, ${etag} and ${token} are what the answers said last. With SHOW in the
 * environment answers are printed, for who writes an input.
 *
 * Each input has a storage of its own, with the requests of `prelude` done, so that one input alone
 * shows again what it did. The folder is in memory where there is such a place: nothing waits for a
 * disk. A shell that waits for our end removes it, also after a crash. */
#include "base/clock.h"
#include "base/xml.h"
#include "object/digest.h"
#include "os/file.h"
#include "s3/gateway/gateway.h"
#include "s3/notify/notify.h"
#include "sign/sign.h"
#include "unit/server_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_MAX = 64 * 1024, /* fits a socket's buffer, so that sending never waits */
    REQUESTS_MAX = 24,
    HEADERS_MAX = 40,
    SAID_MAX = 256,
    CHUNK = 500,
};

#define KMS_KEY "aws/s3 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define SECRET  "alice-secret-alice-secret"

static const struct {
    struct str name, access, secret;
} people[] = {
    {STR("alice"), STR("AKIAALICE00000000001"), STR(SECRET)},
    {STR("bob"), STR("AKIABOB0000000000001"), STR("bob-secret-bob-secret-bob")},
    {STR("chunks"), STR("AKIAALICE00000000001"), STR(SECRET)},
    {STR("query"), STR("AKIAALICE00000000001"), STR(SECRET)},
    {STR("v2"), STR("AKIAALICE00000000001"), STR(SECRET)},
    {STR("nobody"), STR_EMPTY, STR_EMPTY},
};

static const char prelude[] = "alice\nPUT /box\n\n"
                              "\n%%\nalice\nPUT /box/a\n\nhello"
                              "\n%%\nalice\nPUT /open\nx-amz-object-ownership: ObjectWriter\n\n"
                              "\n%%\nalice\nDELETE /open?publicAccessBlock\n\n"
                              "\n%%\nalice\nPUT /open?acl\nx-amz-acl: public-read-write\n\n"
                              "\n%%\nalice\nPUT /kept\nx-amz-bucket-object-lock-enabled: true\n\n";

enum said { SAID_UPLOAD, SAID_VERSION, SAID_ETAG, SAID_TOKEN, SAID_COUNT };
static const struct {
    struct str mark;
    const char *header;  /* of the answer, or */
    const char *element; /* in its body */
} said_by[SAID_COUNT] = {
    [SAID_UPLOAD] = {STR("${upload}"), NULL, "UploadId"},
    [SAID_VERSION] = {STR("${version}"), "x-amz-version-id", NULL},
    [SAID_ETAG] = {STR("${etag}"), "etag", NULL},
    [SAID_TOKEN] = {STR("${token}"), NULL, "NextContinuationToken"},
};

static struct place {
    char dir[64], socket[96];
    struct db *db;
    struct store *store;
    struct users *users;
    struct notify *notify;
    struct pool *pool;
    _Atomic(int) inside; /* handlers that have the gateway */
    struct http_server *server;
    uint32_t inputs; /* also the storage's id */
    /* of one input: */
    struct routes *routes;
    struct gateway *gateway;
    struct buf said[SAID_COUNT];
} place;

struct message {
    struct arena a;
    struct sign_request r;
    struct http_header headers[HEADERS_MAX + 4];
    size_t count;
    struct str body;
    bool framed; /* the input said how the body ends */
};

/* --- the place --- */

static void must(int code, const struct err *err)
{
    if (code < 0)
        fprintf(stderr, "%s: %s\n", err_name(code), err->text);
    BUG_ON(code < 0);
}

static void remove_at_our_end(const char *dir)
{
    int ends[2];

    BUG_ON(pipe2(ends, O_CLOEXEC) < 0);
    pid_t child = fork();
    BUG_ON(child < 0);
    if (child == 0) {
        setsid(); /* a signal to our group is not for it */
        dup2(ends[0], STDIN_FILENO);
        execl("/bin/sh", "sh", "-c", "read x; rm -rf \"$0\"", dir, (char *)NULL);
        _exit(1);
    }
    close(ends[0]); /* the other one is closed by our end */
}

/* A handler still writes its line of the log when its answer is out. */
static int handle(struct http_request *req, void *ctx)
{
    atomic_fetch_add(&place.inside, 1);
    int code = gateway_handle(req, place.gateway);
    atomic_fetch_sub(&place.inside, 1);
    return code;
}

static void wait_outside(void)
{
    while (atomic_load(&place.inside) > 0)
        sched_yield();
}

static void add_users(const char *key_file, struct err *err)
{
    struct arena a = ARENA_INIT(0);

    must(users_open(&place.users, place.store, key_file, NULL, err), err);
    for (int i = 0; i < 2; i++) {
        struct user_key key = {people[i].access, people[i].secret};
        struct user added,
            wanted = {.id = people[i].name, .name = people[i].name, .keys = &key, .key_count = 1};
        must(users_add(place.users, &a, &wanted, &added, err), err);
    }
    arena_release(&a);
}

static void start_server(struct err *err)
{
    struct http_server_options o = {.handler = handle, .fast_workers = 1};
    char listen[112];

    snprintf(place.socket, sizeof(place.socket), "%s/socket", place.dir);
    snprintf(listen, sizeof(listen), "unix:%s", place.socket);
    must(sock_addr_parse(&o.listen, str_z(listen), err), err);
    o.pool = place.pool = pool_new("fuzz", 2, 16, 256 * KIB);
    must(http_server_start(&place.server, &o, err), err);
}

static void place_close(void)
{
    http_server_free(place.server);
    pool_free(place.pool);
    notify_close(place.notify);
    users_close(place.users);
    store_close(place.store);
    db_close(place.db);
    for (size_t i = 0; i < SAID_COUNT; i++)
        buf_release(&place.said[i]);
}

static void place_open(void)
{
    struct err err = {0};
    char path[96];

    snprintf(place.dir, sizeof(place.dir), "%s/weir-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    BUG_ON(!mkdtemp(place.dir));
    remove_at_our_end(place.dir);
    must(server_db_open(&place.db, place.dir, &err), &err);
    must(store_open_embedded(&place.store, place.db, 3, STORE_VOLATILE, NULL, &err), &err);
    snprintf(path, sizeof(path), "%s/key", place.dir);
    add_users(path, &err);
    struct notify_options notify = {
        .db = place.db, .config = place.store, .key_file = path, .max_pending = 10, .direct = true};
    must(notify_open(&place.notify, &notify, &err), &err);
    /* Nobody listens there: what is told waits, and is given up. */
    must(notify_add_webhook(place.notify, STR("hook"), STR("http://127.0.0.1:1/"), STR_EMPTY, &err),
         &err);
    start_server(&err);
    atexit(place_close);
}

static void objects_path(char out[96])
{
    snprintf(out, 96, "%s/objects-%u", place.dir, place.inputs);
}

static void input_begin(void)
{
    struct storage *s = NULL;
    struct err err = {0};
    char folder[96], keys[96];

    if (place.inputs++ == 0)
        place_open();
    objects_path(folder);
    snprintf(keys, sizeof(keys), "%s/encryption.keys", place.dir);
    if (place.inputs == 1)
        must(file_write_durable(keys, STR(KMS_KEY), 0600, &err), &err);
    struct local_options o = {.name = "local",
                              .folder = folder,
                              .db = place.db,
                              .id = place.inputs,
                              .inline_max = 1000,
                              .reserve_bytes = 1,
                              .part_min = 10};
    must(local_open(&s, &o, &err), &err);
    must(routes_open(&place.routes, place.store, NULL, &err), &err);
    must(routes_add_storage(place.routes, s, &err), &err);
    place.gateway = gateway_new(&(struct gateway_options){.routes = place.routes,
                                                          .users = place.users,
                                                          .domain = STR("s3.test"),
                                                          .website_domain = STR("web.test"),
                                                          .notify = place.notify,
                                                          .allow_v2 = true,
                                                          .key_file = keys,
                                                          .sse_c_over_http = true});
    for (size_t i = 0; i < SAID_COUNT; i++)
        buf_reset(&place.said[i]);
}

static void input_end(void)
{
    struct err err = {0};
    char folder[96];

    wait_outside();
    gateway_free(place.gateway);
    routes_close(place.routes);
    objects_path(folder);
    must(dir_remove_tree(folder, &err), &err);
}

/* --- a request --- */

static void expand(struct buf *out, struct str text)
{
    while (text.len) {
        size_t i = SAID_COUNT;
        if (text.p[0] == '$')
            for (i = 0; i < SAID_COUNT && !str_starts(text, said_by[i].mark); i++)
                ;
        if (i < SAID_COUNT)
            buf_append_str(out, buf_str(&place.said[i]));
        else
            buf_append_char(out, text.p[0]);
        text = str_skip(text, i < SAID_COUNT ? said_by[i].mark.len : 1);
    }
}

static struct str find_header(const struct message *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (str_ieq(m->headers[i].name, str_z(name)))
            return m->headers[i].value;
    return STR_EMPTY;
}

static void add_header(struct message *m, struct str name, struct str value)
{
    m->headers[m->count++] = (struct http_header){name, value};
}

static void read_message(struct message *m, struct str text)
{
    struct str head, target, line;
    ptrdiff_t end = str_find(text, STR("\n\n"));

    head = end < 0 ? text : str_head(text, (size_t)end);
    m->body = end < 0 ? STR_EMPTY : str_skip(text, (size_t)end + 2);
    str_cut(head, '\n', &line, &head);
    str_cut(line, ' ', &m->r.method, &target);
    str_cut(target, '?', &m->r.path, &m->r.query);
    while (m->count < HEADERS_MAX && str_token(&head, "\n", &line)) {
        struct http_header *h = &m->headers[m->count++];
        str_cut(line, ':', &h->name, &h->value);
        h->value = str_trim(h->value);
    }
    if (!find_header(m, "host").p)
        add_header(m, STR("Host"), STR("s3.test"));
    m->framed = find_header(m, "content-length").p || find_header(m, "transfer-encoding").p;
}

static void append_hash(struct buf *out, struct str bytes)
{
    struct digest_value value;

    digest_of(DIGEST_SHA256, bytes, &value);
    buf_append_hex(out, value.bytes, value.len);
}

static struct str keep(struct message *m, struct buf *b)
{
    struct str text = arena_str(&m->a, buf_str(b));

    buf_release(b);
    return text;
}

/* The signature that the input has given, if it has, is taken out: ours is to be looked at. */
static struct str take_payload(struct message *m, struct str fallback)
{
    struct str found = find_header(m, "x-amz-content-sha256");

    for (size_t i = 0; i < m->count;)
        if (str_ieq(m->headers[i].name, STR("x-amz-content-sha256")) ||
            str_ieq(m->headers[i].name, STR("x-amz-date")))
            m->headers[i] = m->headers[--m->count];
        else
            i++;
    return found.len ? found : fallback;
}

static bool sign_in_headers(struct message *m, const struct sign_credentials *c)
{
    struct signed_headers made;

    m->r.headers = m->headers;
    m->r.header_count = m->count;
    if (sign_headers(&made, &m->a, &m->r, c, clock_wall_ms()) < 0)
        return false;
    add_header(m, STR("x-amz-date"), made.date);
    add_header(m, STR("x-amz-content-sha256"), made.content_sha256);
    add_header(m, STR("authorization"), made.authorization);
    return true;
}

static void frame_chunks(struct message *m, const struct sign_credentials *c)
{
    struct str date = find_header(m, "x-amz-date"), signature = find_header(m, "authorization"),
               rest = m->body, piece;
    struct sign_scope scope = {str_head(date, SIGN_DATE_LEN), c->region, c->service};
    struct buf out = BUF_INIT(MIB);
    struct sign_key key;
    char last[SIGN_HEX_LEN];

    sign_derive(&key, c->secret, &scope);
    memcpy(last, signature.p + signature.len - SIGN_HEX_LEN, SIGN_HEX_LEN);
    do {
        struct buf text = BUF_INIT(4096);
        piece = str_head(rest, CHUNK);
        rest = str_skip(rest, piece.len);
        buf_appendf(&text, SIGN_ALGORITHM "-PAYLOAD\n" STR_FMT "\n", STR_ARG(date));
        sign_append_scope(&text, &scope);
        buf_appendf(&text, "\n%.64s\n" SIGN_EMPTY_SHA256 "\n", last);
        append_hash(&text, piece);
        sign_hex(last, &key, buf_str(&text));
        buf_release(&text);
        buf_appendf(&out, "%zx;chunk-signature=%.64s\r\n", piece.len, last);
        buf_append_str(&out, piece);
        buf_append_z(&out, "\r\n");
    } while (piece.len);
    m->body = keep(m, &out);
}

static void sign_chunks(struct message *m, const struct sign_credentials *c)
{
    struct buf length = BUF_INIT(0);

    take_payload(m, STR_EMPTY);
    m->r.payload_hash = STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    buf_append_u64(&length, m->body.len);
    add_header(m, STR("x-amz-decoded-content-length"), keep(m, &length));
    if (sign_in_headers(m, c))
        frame_chunks(m, c);
}

static void sign_in_query(struct message *m, const struct sign_credentials *c)
{
    struct http_header host = {STR("Host"), find_header(m, "host")};
    struct sign_request r = m->r;
    struct buf query = BUF_INIT(INPUT_MAX * 4);

    r.headers = &host;
    r.header_count = 1;
    r.payload_hash = STR(SIGN_UNSIGNED);
    if (sign_query(&query, &r, c, clock_wall_ms(), 60) == 0)
        m->r.query = keep(m, &query);
    buf_release(&query);
}

static void sign_by_v2(struct message *m, const struct sign_credentials *c)
{
    struct buf text = BUF_INIT(INPUT_MAX * 4), value = BUF_INIT(0);
    struct str host = find_header(m, "host"), end = STR(".s3.test"), bucket = STR_EMPTY;
    char date[CLOCK_HTTP_LEN + 1];

    take_payload(m, STR_EMPTY);
    clock_http(clock_wall_ms(), date);
    m->r.headers = m->headers;
    m->r.header_count = m->count;
    if (str_ends(host, end))
        bucket = str_head(host, host.len - end.len);
    if (sign_v2_string(&text, &m->r, str_z(date), bucket) == 0) {
        buf_appendf(&value, "AWS " STR_FMT ":", STR_ARG(c->access_key));
        sign_v2(&value, c->secret, buf_str(&text));
        add_header(m, STR("Date"), arena_str(&m->a, str_z(date)));
        add_header(m, STR("Authorization"), keep(m, &value));
    }
    buf_release(&text);
    buf_release(&value);
}

static void sign_plainly(struct message *m, const struct sign_credentials *c)
{
    struct buf hash = BUF_INIT(0);

    append_hash(&hash, m->body);
    m->r.payload_hash = take_payload(m, keep(m, &hash));
    sign_in_headers(m, c);
}

static void sign(struct message *m, struct str who)
{
    static void (*const ways[ARRAY_SIZE(people)])(struct message *,
                                                  const struct sign_credentials *) = {
        sign_plainly, sign_plainly, sign_chunks, sign_in_query, sign_by_v2, NULL,
    };

    for (size_t i = 0; i < ARRAY_SIZE(people); i++)
        if (str_eq(people[i].name, who) && ways[i]) {
            struct sign_credentials c = {.access_key = people[i].access,
                                         .secret = people[i].secret,
                                         .region = STR("us-east-1"),
                                         .service = STR("s3")};
            ways[i](m, &c);
        }
}

static void write_message(struct buf *out, const struct message *m)
{
    buf_appendf(out, STR_FMT " " STR_FMT "%s" STR_FMT " HTTP/1.1\r\n", STR_ARG(m->r.method),
                STR_ARG(m->r.path), m->r.query.p ? "?" : "", STR_ARG(m->r.query));
    for (size_t i = 0; i < m->count; i++)
        buf_appendf(out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(m->headers[i].name),
                    STR_ARG(m->headers[i].value));
    if (!m->framed)
        buf_appendf(out, "Content-Length: %zu\r\n", m->body.len);
    buf_append_z(out, "\r\n");
    buf_append_str(out, m->body);
}

/* --- the answer --- */

/* All that comes until the server closes, by which its handler has returned. False when it closed
 * before it had read all, so that an answer may be lost. */
static bool exchange(struct buf *answer, struct str bytes)
{
    struct err err = {0};
    char piece[16384];
    ssize_t n;
    int fd;

    must(sock_connect_unix(&fd, place.socket, clock_mono_ns() + 5000000000, &err), &err);
    BUG_ON(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0);
    /* The fuzzer has a timer whose signal interrupts. */
    while (bytes.len && ((n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL)) > 0 || errno == EINTR))
        bytes = str_skip(bytes, n > 0 ? (size_t)n : 0);
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0 || (n < 0 && errno == EINTR))
        buf_append(answer, piece, n > 0 ? (size_t)n : 0);
    close(fd);
    return n == 0 && bytes.len == 0;
}

/* S3 writes characters that XML cannot have as references, which our reader rightly refuses. */
static void check_xml(struct buf *body)
{
    struct arena a = ARENA_INIT(0);
    struct xml_node *root;
    struct err err = {0};

    for (size_t i = 0; i + 1 < body->len; i++)
        if (body->p[i] == '&' && body->p[i + 1] == '#')
            body->p[i] = '_';
    must(xml_read(&root, &a, buf_str(body), &err), &err);
    arena_release(&a);
}

static void remember(const struct http_head *head, struct str body)
{
    for (size_t i = 0; i < SAID_COUNT; i++) {
        struct str found = said_by[i].header ? http_header(head, said_by[i].header) : STR_EMPTY;
        struct str rest;
        char mark[40];
        if (said_by[i].element) {
            snprintf(mark, sizeof(mark), "<%s>", said_by[i].element);
            ptrdiff_t at = str_find(body, str_z(mark));
            if (at >= 0)
                str_cut(str_skip(body, (size_t)at + strlen(mark)), '<', &found, &rest);
        }
        if (found.len && found.len <= SAID_MAX) {
            buf_reset(&place.said[i]);
            buf_append_str(&place.said[i], found);
        }
    }
}

static void read_body(struct buf *out, const struct http_head *head, struct str rest)
{
    struct http_chunked chunked = {0};
    struct err err = {0};
    struct str piece;
    size_t used;

    if (!head->chunked) {
        BUG_ON(!head->has_length || rest.len < head->content_length);
        buf_append_str(out, str_head(rest, head->content_length));
        return;
    }
    while (!chunked.done) {
        BUG_ON(!rest.len);
        must(http_chunked_next(&chunked, rest, &piece, &used, NULL, &err), &err);
        buf_append_str(out, piece);
        rest = str_skip(rest, used);
    }
}

/* The first answer, behind what is only said on the way. */
static int check_answer(struct str bytes, bool to_head)
{
    static struct http_head head;
    struct buf body = BUF_INIT(0);
    struct err err = {0};

    do {
        size_t seen = 0;
        must(http_parse_response(&head, bytes, &seen, &err), &err);
        bytes = str_skip(bytes, head.size);
    } while (head.status < 200);
    BUG_ON(head.status == 500);
    if (http_response_has_body(&head, to_head))
        read_body(&body, &head, bytes);
    if (body.len && str_starts(http_header(&head, "content-type"), STR("application/xml")) &&
        !http_header(&head, "etag").p) /* an object may call itself that */
        check_xml(&body);
    if (getenv("SHOW"))
        fprintf(stderr, "%d " STR_FMT "\n", head.status, STR_ARG(buf_str(&body)));
    remember(&head, buf_str(&body));
    buf_release(&body);
    return head.status;
}

/* The status; 0 when there was no answer. */
static int ask(struct str text)
{
    struct buf expanded = BUF_INIT(MIB), out = BUF_INIT(2 * MIB), answer = BUF_INIT(0);
    struct message m = {0};
    struct str who, rest;
    int status = 0;

    expand(&expanded, text);
    str_cut(buf_str(&expanded), '\n', &who, &rest);
    bool raw = str_eq(who, STR("raw"));
    if (raw) {
        buf_append_str(&out, rest);
    } else {
        read_message(&m, rest);
        sign(&m, who);
        write_message(&out, &m);
    }
    bool whole = exchange(&answer, buf_str(&out));
    BUG_ON(!answer.len && whole && !raw && !m.framed);
    if (answer.len && whole)
        status = check_answer(buf_str(&answer), str_starts(buf_str(&out), STR("HEAD ")));
    arena_release(&m.a);
    buf_release(&expanded);
    buf_release(&out);
    buf_release(&answer);
    return status;
}

static bool next_request(struct str *rest, struct str *request)
{
    ptrdiff_t end = str_find(*rest, STR("\n%%\n"));

    *request = end < 0 ? *rest : str_head(*rest, (size_t)end);
    *rest = end < 0 ? STR_EMPTY : str_skip(*rest, (size_t)end + 4);
    return request->len > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_z(prelude), request;

    if (size == 0 || size > INPUT_MAX)
        return 0;
    input_begin();
    while (next_request(&rest, &request)) {
        int status = ask(request);
        if (status != 200 && status != 204)
            fprintf(stderr, "%d " STR_FMT "\n", status, STR_ARG(request));
        BUG_ON(status != 200 && status != 204);
    }
    rest = str_n(data, size);
    for (int i = 0; i < REQUESTS_MAX && next_request(&rest, &request); i++)
        ask(request);
    input_end();
    return 0;
}
