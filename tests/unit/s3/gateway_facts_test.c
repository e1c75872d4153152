/* What the gateway keeps of a bucket is never older than the last change that was answered. */
#include "os/thread.h"
#include "unit/s3/gateway_lab.h"

#include <stdio.h>
#include <unistd.h>

enum { READERS = 3, CHANGES = 300 };

#define POLICY_BEGIN                                                                               \
    "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\","        \
    "\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::box/"

/* A connection of its own to the same gateway. */
static struct gate gate_beside(struct gate *g)
{
    struct gate beside = *g;

    beside.fd = lab_dial(&g->lab);
    beside.raw = (struct buf){0};
    return beside;
}

static void gate_beside_end(struct gate *g)
{
    close(g->fd);
    buf_release(&g->raw);
}

TEST(gateway_facts, a_bucket_made_again_is_not_the_old_one)
{
    struct gate g;

    gate_start(&g);
    for (int i = 0; i < 3; i++) {
        gate_do(&g, "PUT /box", 200);
        gate_ask(&g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", STR_EMPTY, 200);
        gate_ask(&g, NOBODY, "GET /box", NULL, STR_EMPTY, 200);
        gate_do(&g, "DELETE /box", 204);
        gate_ask(&g, NOBODY, "GET /box", NULL, STR_EMPTY, 404);
        gate_ask(&g, BOB, "PUT /box", NULL, STR_EMPTY, 200);
        gate_ask(&g, NOBODY, "GET /box", NULL, STR_EMPTY, 403);
        gate_do(&g, "GET /box", 403);
        gate_ask(&g, BOB, "DELETE /box", NULL, STR_EMPTY, 204);
    }
    gate_stop(&g);
}

TEST(gateway_facts, every_kept_document_is_seen_when_it_was_set)
{
    static const char cors[] =
        "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>"
        "http://a.example</AllowedOrigin></CORSRule></CORSConfiguration>";
    struct gate g;

    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    gate_ask(&g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    for (int i = 0; i < 2; i++) {
        gate_ask(&g, ALICE, "GET /box/key", "origin: http://a.example", STR_EMPTY, 200);
        CHECK(!gate_header(&g, "access-control-allow-origin").p);
        gate_ask(&g, ALICE, "PUT /box?cors", NULL, STR(cors), 200);
        gate_ask(&g, ALICE, "GET /box/key", "origin: http://a.example", STR_EMPTY, 200);
        CHECK(gate_header(&g, "access-control-allow-origin").p);
        gate_do(&g, "DELETE /box?cors", 204);
    }
    gate_ask(&g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
             200);
    gate_ask(&g, ALICE, "PUT /box/key", NULL, STR("y"), 200);
    gate_do(&g, "GET /box/key", 200);
    CHECK(gate_header(&g, "x-amz-version-id").len > 0);
    gate_stop(&g);
}

struct race {
    _Atomic(int) begun, done; /* number of the last change that was sent, and answered */
    _Atomic(bool) stop;
};

struct reader_thread {
    struct thread thread;
    struct race *race;
    struct gate g;
    int seen[2]; /* answers that let in, and that did not */
    int wrong;
};

/* An even change lets everybody in, an odd one nobody. Between what was answered before we asked
 * and what was sent before we were answered there must be a change that explains the answer. */
static void read_on(void *ctx)
{
    struct reader_thread *r = ctx;
    struct race *race = r->race;

    while (!atomic_load(&race->stop)) {
        int before = atomic_load(&race->done);
        lab_say(r->g.fd, STR("GET /box/key HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
        gate_answer(&r->g);
        int after = atomic_load(&race->begun);
        bool in = r->g.head.status == 200;
        r->seen[in]++;
        if (before == after && in != (before % 2 == 0))
            r->wrong++;
    }
}

TEST(gateway_facts, no_request_sees_a_policy_that_was_replaced_before_it)
{
    struct reader_thread readers[READERS] = {0};
    struct race race = {0};
    struct gate g;
    struct err err = {0};

    gate_start(&g);
    gate_do(&g, "PUT /box", 200);
    gate_ask(&g, ALICE, "PUT /box/key", NULL, STR("x"), 200);
    gate_ask(&g, ALICE, "PUT /box?policy", NULL, STR(POLICY_BEGIN "*\"}]}"), 204);
    for (int i = 0; i < READERS; i++) {
        readers[i].race = &race;
        readers[i].g = gate_beside(&g);
        CHECK_OK(thread_start(&readers[i].thread, "reader", 0, read_on, &readers[i], &err));
    }
    for (int i = 1; i <= CHANGES; i++) {
        atomic_store(&race.begun, i);
        gate_ask(&g, ALICE, "PUT /box?policy", NULL,
                 i % 2 ? STR(POLICY_BEGIN "other\"}]}") : STR(POLICY_BEGIN "*\"}]}"), 204);
        atomic_store(&race.done, i);
        /* As seen by who made the change, at once. */
        gate_ask(&g, NOBODY, "GET /box/key", NULL, STR_EMPTY, i % 2 ? 403 : 200);
    }
    atomic_store(&race.stop, true);
    int seen[2] = {0};
    for (int i = 0; i < READERS; i++) {
        thread_join(&readers[i].thread);
        gate_beside_end(&readers[i].g);
        CHECK_INT(readers[i].wrong, 0);
        seen[0] += readers[i].seen[0];
        seen[1] += readers[i].seen[1];
    }
    CHECK(seen[0] > 0 && seen[1] > 0);
    gate_stop(&g);
}
