/* Calls through libcurl: keeps a pool of libcurl handles, and retries failed calls. C1, C2 and so
 * on are rules of docs/upstream.md. */
#include "http/client_int.h"
#include "base/clock.h"
#include "base/ids.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

enum { FIRST_WAIT_MS = 200, MAX_WAIT_MS = 20 * MS_PER_S, CANCEL_CHECK_MS = 50 };

static void global_init(void)
{
    BUG_ON(curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK);
}

struct client *client_new(const struct client_options *o)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct client *c = xcalloc(1, sizeof(*c));

    pthread_once(&once, global_init);
    c->ca_file = o->ca_file ? xstrdup(o->ca_file) : NULL;
    c->unix_path = o->unix_path ? xstrdup(o->unix_path) : NULL;
    c->direct = o->direct;
    c->user_agent = xstrdup(o->user_agent ? o->user_agent : "weir");
    c->tls_insecure = o->tls_insecure;
    c->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : 10 * MS_PER_S;
    c->timeout_ms = o->timeout_ms ? o->timeout_ms : MS_PER_MINUTE;
    c->max_attempts = o->max_attempts ? o->max_attempts : 4;
    mutex_init(&c->lock, "client");
    return c;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    vec_each (&c->idle, CURL **, handle)
        curl_easy_cleanup(*handle);
    vec_release(&c->idle);
    vec_each (&c->lines, struct client_line *, line) {
        curl_easy_cleanup(line->easy);
        curl_multi_cleanup(line->multi);
    }
    vec_release(&c->lines);
    mutex_release(&c->lock);
    free(c->ca_file);
    free(c->unix_path);
    free(c->user_agent);
    free(c);
}

uint64_t client_retry_after_ms(struct str value, int64_t wall_ms, uint64_t max_ms)
{
    uint64_t seconds, ms;
    int64_t date;

    if (str_u64(value, &seconds) == 0)
        ms = seconds < max_ms / MS_PER_S ? seconds * MS_PER_S : max_ms;
    else if (clock_parse_http(value, &date) == 0)
        ms = date > wall_ms ? (uint64_t)(date - wall_ms) : 0;
    else
        return UINT64_MAX;
    return ms < max_ms ? ms : max_ms;
}

int64_t client_retry_after_s(const struct client_response *r, int64_t max_s)
{
    uint64_t ms = client_retry_after_ms(client_header(r, "retry-after"), clock_wall_ms(),
                                        (uint64_t)max_s * MS_PER_S);

    return ms == UINT64_MAX ? -1 : (int64_t)((ms + MS_PER_S - 1) / MS_PER_S);
}

static bool canceled(const struct client_request *r)
{
    return r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed);
}

/* Waits before the next attempt as rule C2 of docs/upstream.md says. Returns false when the call
 * was canceled. */
static bool wait_before(unsigned attempt, struct str retry_after, const struct client_request *r)
{
    uint64_t most = (uint64_t)FIRST_WAIT_MS << (attempt < 7 ? attempt : 7);
    uint64_t wait = client_retry_after_ms(retry_after, clock_wall_ms(), CLIENT_RETRY_AFTER_MAX_MS);

    if (wait == UINT64_MAX)
        wait = random_below((most < MAX_WAIT_MS ? most : MAX_WAIT_MS) + 1);
    uint64_t end = clock_mono_ms() + wait;
    for (uint64_t now; (now = clock_mono_ms()) < end && !canceled(r);)
        poll(NULL, 0, (int)(end - now < CANCEL_CHECK_MS ? end - now : CANCEL_CHECK_MS));
    return !canceled(r);
}

/* Copies the response into `out` and the arena. The lines of `a->head` become headers. */
static int response_hand_over(struct client_response *out, struct attempt *a, struct arena *arena,
                              struct err *err)
{
    struct str lines = arena_str(arena, buf_str(&a->head)), line;

    *out = (struct client_response){.status = a->status};
    out->headers = arena_array(arena, a->header_count, sizeof(*out->headers));
    out->body = arena_str(arena, buf_str(&a->body));
    out->url = arena_str(arena, str_z(a->hop.url));
    if (arena_error(arena) < 0)
        return err_set(err, ERR_TOO_LARGE, "a response larger than the memory for it");
    while (lines.len) {
        struct http_header *h = &out->headers[out->header_count++];
        str_cut(lines, '\n', &line, &lines);
        str_cut(str_head(line, line.len - 1), ':', &h->name, &h->value);
        h->value = str_trim(h->value);
    }
    return 0;
}

static bool attempt_again(const struct attempt *a, int rc)
{
    if (a->last || a->delivered)
        return false;
    if (rc == 0)
        return attempt_refused(a);
    return a->again == AGAIN_ALWAYS || (a->again == AGAIN_IF_REPEATABLE && a->repeatable);
}

int client_call(struct client *c, struct arena *arena, struct client_response *out,
                const struct client_request *r, struct err *err)
{
    unsigned most = r->no_retry ? 1 : c->max_attempts, n = 0;
    int rc;

    for (bool more = true; more;) {
        struct attempt a;

        attempt_init(&a, c, r);
        a.last = ++n >= most;
        rc = canceled(r) ? err_code(err, ERR_CANCELED) : attempt_run(&a, err);
        more = attempt_again(&a, rc);
        if (more && !wait_before(n - 1, a.retry_after, r)) {
            more = false;
            rc = err_code(err, ERR_CANCELED);
        } else if (!more && rc == 0) {
            rc = response_hand_over(out, &a, arena, err);
        }
        attempt_release(&a);
    }
    if (rc == 0)
        out->attempts = n;
    return rc;
}

int client_open(struct client_stream **out, struct client *c, struct arena *arena,
                struct client_response *head, const struct client_request *r,
                const struct client_limits *l, struct err *err)
{
    unsigned most = r->no_retry ? 1 : c->max_attempts, n = 0;
    uint64_t began_ns = clock_mono_ns();
    int rc;

    for (bool more = true; more;) {
        struct client_stream *s = client_stream_new(c, r, l);
        struct attempt *a = client_stream_attempt(s);

        a->last = ++n >= most;
        rc = canceled(r) ? err_code(err, ERR_CANCELED) : client_stream_begin(s, began_ns, err);
        more = attempt_again(a, rc);
        if (more && !wait_before(n - 1, a->retry_after, r)) {
            more = false;
            rc = err_code(err, ERR_CANCELED);
        } else if (!more && rc == 0) {
            rc = response_hand_over(head, a, arena, err);
        }
        if (more || rc < 0)
            client_stream_close(s);
        else
            *out = s;
    }
    if (rc == 0)
        head->attempts = n;
    return rc;
}

struct str client_header(const struct client_response *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (str_ieq(r->headers[i].name, str_z(name)))
            return r->headers[i].value;
    return STR_EMPTY;
}
