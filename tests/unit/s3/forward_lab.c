/* A gateway in front of a remote storage, and bodies framed as clients do. */
#include "unit/s3/forward_lab.h"

#include "base/clock.h"
#include "os/file.h"
#include "sign/base64.h"
#include "sign/sign.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct storage *pair_add(struct pair *p, const char *name, const char *url)
{
    struct user_key key = gate_key(ALICE);
    struct remote_options o = {.name = str_z(name), .url = str_z(url)};
    struct remote_credential c = {STR("alice-id"), key.access, key.secret};
    struct storage *s;
    struct err err = {0};

    CHECK_OK(remote_open(&s, &o, &err));
    CHECK_OK(remote_set_credential(s, &c, &err));
    CHECK_OK(routes_add_storage(p->front.routes, s, &err));
    return s;
}

static void begin(struct pair *p, const char *url)
{
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    gate_start(&p->front);
    p->remote = pair_add(p, "back", url);
    CHECK_OK(routes_set_main(p->front.routes, STR("back"), &err));
}

void pair_start(struct pair *p)
{
    struct err err = {0};
    char dir[256], url[64];

    *p = (struct pair){0};
    snprintf(dir, sizeof(dir), "%s/back", test_dir());
    CHECK_OK(dir_make(dir, 0700, &err));
    gate_start_in(&p->back, dir);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", p->back.lab.port);
    begin(p, url);
}

void pair_start_peer(struct pair *p, peer_fn *fn, const void *ctx)
{
    *p = (struct pair){0};
    p->peer = peer_start(fn, ctx, NULL);
    begin(p, peer_url(p->peer));
}

void pair_stop(struct pair *p)
{
    gate_stop(&p->front);
    if (p->peer)
        peer_stop(p->peer);
    else
        gate_stop(&p->back);
}

void pair_checksum(char out[64], enum digest_kind kind, struct str body)
{
    struct digest_value value;
    struct buf text = BUF_INIT(63);

    digest_of(kind, body, &value);
    base64_encode(&text, str_n(value.bytes, value.len));
    snprintf(out, 64, STR_FMT, STR_ARG(buf_str(&text)));
    buf_release(&text);
}

/* --- chunks --- */

/* What signs the chunks of one request. */
struct chain {
    struct sign_key key;
    struct str timestamp, scope;
    char last[SIGN_HEX_LEN];
};

static void hash_hex(struct buf *out, struct str bytes)
{
    struct digest_value value;

    digest_of(DIGEST_SHA256, bytes, &value);
    buf_append_hex(out, value.bytes, value.len);
}

/* The next signature: of a chunk's bytes, or of a trailer's lines. */
static void sign_next(struct chain *c, const char *what, struct str bytes)
{
    struct buf text = BUF_INIT(4096);

    buf_appendf(&text, "%s\n" STR_FMT "\n" STR_FMT "\n%.64s\n", what, STR_ARG(c->timestamp),
                STR_ARG(c->scope), c->last);
    if (strcmp(what, SIGN_ALGORITHM "-PAYLOAD") == 0)
        buf_append_z(&text, SIGN_EMPTY_SHA256 "\n");
    hash_hex(&text, bytes);
    sign_hex(c->last, &c->key, buf_str(&text));
    buf_release(&text);
}

static void append_chunk(struct buf *out, struct chain *c, const struct framed *f, struct str bytes)
{
    buf_appendf(out, "%zx", bytes.len);
    if (f->is_signed) {
        sign_next(c, SIGN_ALGORITHM "-PAYLOAD", bytes);
        buf_appendf(out, ";chunk-signature=%.64s", c->last);
    }
    buf_append_z(out, "\r\n");
    buf_append_str(out, bytes);
    if (bytes.len)
        buf_append_z(out, "\r\n");
}

static void append_framed(struct buf *out, struct chain *c, const struct framed *f, struct str body)
{
    while (body.len) {
        struct str piece = str_head(body, f->chunk);
        append_chunk(out, c, f, piece);
        body = str_skip(body, piece.len);
    }
    append_chunk(out, c, f, STR_EMPTY);
    if (f->trailer)
        buf_appendf(out, "%s\r\n", f->trailer);
    if (f->trailer && f->is_signed) {
        struct buf lines = BUF_INIT(256);
        buf_appendf(&lines, "%s\n", f->trailer);
        sign_next(c, SIGN_ALGORITHM "-TRAILER", buf_str(&lines));
        buf_appendf(out, "x-amz-trailer-signature:%.64s\r\n", c->last);
        buf_release(&lines);
    }
    buf_append_z(out, "\r\n");
}

/* Of "AWS4-HMAC-SHA256 Credential=KEY/scope, ..., Signature=hex". */
static void begin_chain(struct chain *c, struct arena *a, const struct signed_headers *made)
{
    struct str date = str_head(made->date, SIGN_DATE_LEN);
    struct sign_scope scope = {date, STR("us-east-1"), STR("s3")};
    struct buf text = BUF_INIT(256);

    sign_derive(&c->key, gate_key(ALICE).secret, &scope);
    sign_append_scope(&text, &scope);
    c->scope = arena_str(a, buf_str(&text));
    c->timestamp = made->date;
    memcpy(c->last, made->authorization.p + made->authorization.len - SIGN_HEX_LEN, SIGN_HEX_LEN);
    buf_release(&text);
}

void pair_put_framed(struct pair *p, const char *path, const struct framed *f, struct str body,
                     bool damage, int status)
{
    struct arena a = ARENA_INIT(0);
    struct buf out = BUF_INIT(0), framed = BUF_INIT(0);
    struct user_key key = gate_key(ALICE);
    struct sign_credentials by = {key.access, key.secret, STR("us-east-1"), STR("s3"), NULL};
    struct str length = arena_fmt(&a, "%zu", body.len), name = STR_EMPTY, value;
    struct http_header headers[8] = {{STR("host"), STR("127.0.0.1")},
                                     {STR("x-amz-decoded-content-length"), length},
                                     {STR("content-encoding"), STR("aws-chunked,gzip")}};
    size_t count = 3;
    struct signed_headers made;
    struct chain chain;

    if (f->trailer) {
        str_cut(str_z(f->trailer), ':', &name, &value);
        headers[count++] = (struct http_header){STR("x-amz-trailer"), name};
        headers[count++] = (struct http_header){STR("x-amz-sdk-checksum-algorithm"), STR("CRC32")};
    }
    struct sign_request r = {.method = STR("PUT"),
                             .path = str_z(path),
                             .headers = headers,
                             .header_count = count,
                             .payload_hash = str_z(f->payload)};
    CHECK_INT(sign_headers(&made, &a, &r, &by, clock_wall_ms()), 0);
    begin_chain(&chain, &a, &made);
    append_framed(&framed, &chain, f, body);
    if (damage)
        framed.p[str_find(buf_str(&framed), STR("\r\n")) + 2 + 5] ^= 1;
    buf_appendf(&out,
                "PUT %s HTTP/1.1\r\nContent-Length: %zu\r\nAuthorization: " STR_FMT
                "\r\nx-amz-date: " STR_FMT "\r\nx-amz-content-sha256: %s\r\n",
                path, framed.len, STR_ARG(made.authorization), STR_ARG(made.date), f->payload);
    for (size_t i = 0; i < count; i++)
        buf_appendf(&out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(headers[i].name),
                    STR_ARG(headers[i].value));
    buf_append_z(&out, "\r\n");
    buf_append_str(&out, buf_str(&framed));
    lab_say(p->front.fd, buf_str(&out));
    gate_answer(&p->front);
    if (p->front.head.status != status)
        test_fail(__FILE__, __LINE__, "%s answers %d, not %d: " STR_FMT, path, p->front.head.status,
                  status, STR_ARG(p->front.body));
    if (!p->front.head.keep_alive) {
        close(p->front.fd);
        p->front.fd = lab_dial(&p->front.lab);
    }
    buf_release(&out);
    buf_release(&framed);
    arena_release(&a);
}
