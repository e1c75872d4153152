/* A webhook's receiver. */
#include "unit/s3/notify_lab.h"

#include <stdio.h>

static int handle(struct http_request *req, void *ctx)
{
    struct receiver *r = ctx;
    struct err err = {0};
    struct str body;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    code = http_request_read_all(req, MIB, &body, &err);
    if (code < 0)
        return code;
    mutex_lock(&r->lock);
    while (r->stopped)
        cond_wait(&r->came, &r->lock);
    int status = r->status ? r->status : 200;
    struct received call = {
        arena_str(&r->arena, http_request_head(req)->path),
        arena_str(&r->arena, http_header(http_request_head(req), "x-weir-signature")),
        arena_str(&r->arena, body), status};
    vec_push(&r->calls, call);
    cond_broadcast(&r->came);
    mutex_unlock(&r->lock);
    http_respond(req, status);
    if (status == 302)
        http_respond_header(req, STR("Location"), STR("/elsewhere"));
    return http_send(req, STR("thanks"));
}

void receiver_start(struct receiver *r)
{
    *r = (struct receiver){0};
    mutex_init(&r->lock, "receiver");
    cond_init(&r->came);
    lab_start(&r->lab, (struct http_server_options){.handler = handle, .ctx = r});
    snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u", (unsigned)r->lab.port);
}

void receiver_stop(struct receiver *r)
{
    receiver_hold(r, false);
    lab_end(&r->lab);
    vec_release(&r->calls);
    arena_release(&r->arena);
    cond_release(&r->came);
    mutex_release(&r->lock);
}

void receiver_answer(struct receiver *r, int status)
{
    mutex_lock(&r->lock);
    r->status = status;
    mutex_unlock(&r->lock);
}

void receiver_hold(struct receiver *r, bool on)
{
    mutex_lock(&r->lock);
    r->stopped = on;
    cond_broadcast(&r->came);
    mutex_unlock(&r->lock);
}

static size_t count_taken(const struct receiver *r)
{
    size_t count = 0;

    vec_each (&r->calls, const struct received *, c)
        count += c->status / 100 == 2;
    return count;
}

size_t receiver_taken(struct receiver *r)
{
    mutex_lock(&r->lock);
    size_t count = count_taken(r);
    mutex_unlock(&r->lock);
    return count;
}

void receiver_wait(struct receiver *r, size_t taken)
{
    mutex_lock(&r->lock);
    while (count_taken(r) < taken)
        cond_wait(&r->came, &r->lock);
    mutex_unlock(&r->lock);
}

void receiver_wait_calls(struct receiver *r, size_t calls)
{
    mutex_lock(&r->lock);
    while (r->calls.len < calls)
        cond_wait(&r->came, &r->lock);
    mutex_unlock(&r->lock);
}

struct received receiver_get(struct receiver *r, size_t i)
{
    struct received found = {0};

    mutex_lock(&r->lock);
    vec_each (&r->calls, const struct received *, c)
        if (c->status / 100 == 2 && i-- == 0)
            found = *c;
    mutex_unlock(&r->lock);
    CHECK(found.body.p);
    return found;
}
