/* Gists of an account, as the forge lists them. */
#include "archive/forge_int.h"
#include "archive/link.h"

#include "base/clock.h"

static const struct forge_field gist_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct forge_gist, id), true},
    {"git_pull_url", FORGE_FIELD_TEXT, offsetof(struct forge_gist, url), true},
};
static const struct forge_fields gist_fields = FORGE_FIELDS(gist_rows);

/* Whether the gist may be fetched: its URL must be on the forge's own origin, or on the forge's
 * host for gists. */
static bool gist_may_be_fetched(const struct forge *f, struct arena *a, struct forge_gist *g)
{
    if (link_same_origin(g->url, f->git))
        return true;
    g->foreign = true;
    return link_same_origin(g->url, arena_fmt(a, "https://gist." STR_FMT, STR_ARG(f->host)));
}

bool forge_read_gist(struct scan *s, struct arena *a, const struct forge *f, struct forge_gist *out)
{
    *out = (struct forge_gist){0};
    forge_read_object(s, a, &gist_fields, out);
    return !s->wrong && gist_may_be_fetched(f, a, out);
}

static int gists_read_page(struct forge_session *s, struct str body, forge_gist_fn *each, void *ctx,
                           struct forge_fault *fault, struct err *err)
{
    struct arena a = ARENA_INIT(MIB);
    struct scan scan;
    int code = 0;

    scan_init(&scan, body);
    scan_open(&scan, '[');
    while (code == 0 && scan_more(&scan)) {
        struct forge_gist g;
        arena_reset(&a);
        if (forge_read_gist(&scan, &a, forge_session_forge(s), &g))
            code = each(ctx, &g, err);
    }
    if (code == 0 && scan_end(&scan, err) < 0)
        code = forge_malformed(fault, ERR_PARSE, err);
    arena_release(&a);
    return code;
}

int forge_gists(struct forge_session *s, struct arena *a, struct str login, int64_t since_ms,
                forge_gist_fn *each, void *ctx, struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_PAGE_BYTES_MAX);
    char since[CLOCK_ISO_LEN + 1];
    struct forge_walk w;
    int code = 0;

    *fault = (struct forge_fault){0};
    if (!s->row->gists_path)
        return 0;
    struct str path = forge_path(a, s->row->gists_path, login);
    if (since_ms > 0) {
        clock_iso(since_ms, since);
        path = arena_fmt(a, STR_FMT "&since=%.19sZ", STR_ARG(path), since);
    }
    forge_walk_init(&w, s, a, path);
    while (code == 0 && w.next.len) {
        struct forge_page page;
        code = forge_walk_step(&w, NULL, STR_EMPTY, &body, &page, fault, err);
        if (code == 0)
            code = gists_read_page(s, buf_str(&body), each, ctx, fault, err);
    }
    forge_walk_release(&w);
    buf_release(&body);
    return code;
}
