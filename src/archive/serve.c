/* The server's side of git's smart HTTP. */
#include "archive/serve.h"

#include "archive/pkt.h"
#include "base/hex.h"

#include <stdlib.h>

bool serve_is_safe(const struct bundle_old *bundle, const struct audit_verdict *audit)
{
    if (bundle->objects == 0 || (bundle->has_meta && bundle->meta.appends == 0))
        return true;
    return audit && audit->ok && audit->doubles == 0 &&
           str_eq(str_z(audit->etag), bundle->info.etag);
}

/* --- refs --- */

static const char *serve_format(const struct bundle_header *h)
{
    return h->refs.is_sha256 ? "sha256" : "sha1";
}

static void serve_hex(char out[2 * GIT_ID_MAX + 1], const unsigned char *id,
                      const struct bundle_header *h)
{
    size_t len = git_id_len(h->refs.is_sha256);

    hex_write(out, id, len);
    out[2 * len] = '\0';
}

static void serve_advert_v2(struct buf *out, const struct bundle_header *h)
{
    pkt_line(out, "version 2");
    pkt_line(out, "agent=weir");
    pkt_line(out, "ls-refs=unborn");
    pkt_line(out, "fetch");
    pkt_line(out, "object-format=%s", serve_format(h));
    pkt_mark(out, PKT_FLUSH);
}

/* Appends the capabilities of version 0, which follow a NUL after the first ref. */
static void serve_capabilities(struct buf *out, const struct bundle_header *h)
{
    const struct git_refs *r = &h->refs;

    buf_append_z(out, "side-band-64k ofs-delta no-progress ");
    if (r->has_head && r->head_target.len)
        buf_appendf(out, "symref=HEAD:" STR_FMT " ", STR_ARG(r->head_target));
    buf_appendf(out, "object-format=%s agent=weir", serve_format(h));
}

/* Appends a line of version 0. The first line also has the capabilities. */
static void serve_line(struct buf *out, const struct bundle_header *h, const char *id,
                       struct str name, bool is_first)
{
    struct buf caps = {0};

    if (is_first)
        serve_capabilities(&caps, h);
    size_t len = 4 + strlen(id) + 1 + name.len + (is_first ? 1 + caps.len : 0) + 1;
    buf_appendf(out, "%04zx%s " STR_FMT, len, id, STR_ARG(name));
    if (is_first) {
        buf_append_char(out, '\0');
        buf_append_str(out, buf_str(&caps));
    }
    buf_append_char(out, '\n');
    buf_release(&caps);
}

static void serve_advert_v0(struct buf *out, const struct bundle_header *h)
{
    const struct git_refs *r = &h->refs;
    char id[2 * GIT_ID_MAX + 1];
    bool is_first = true;

    if (r->has_head) {
        serve_hex(id, r->head, h);
        serve_line(out, h, id, STR("HEAD"), is_first);
        is_first = false;
    }
    vec_each (&r->list, const struct git_ref *, ref) {
        serve_hex(id, git_ref_id(ref), h);
        serve_line(out, h, id, git_ref_name(ref), is_first);
        is_first = false;
    }
    if (is_first) {
        static const unsigned char none[GIT_ID_MAX];
        serve_hex(id, none, h);
        serve_line(out, h, id, STR("capabilities^{}"), true);
    }
    pkt_mark(out, PKT_FLUSH);
}

void serve_advert(struct buf *out, const struct bundle_header *h, bool is_v2)
{
    pkt_line(out, "# service=git-upload-pack");
    pkt_mark(out, PKT_FLUSH);
    if (is_v2)
        serve_advert_v2(out, h);
    else
        serve_advert_v0(out, h);
}

/* --- the ids of a header --- */

/* All ids that a client may ask for, sorted. They include former tips, because a client may have
 * listed the refs before the last sync. */
struct serve_ids {
    const unsigned char **list;
    size_t count, id_len;
};

static int serve_id_order(const void *a, const void *b, void *len)
{
    return memcmp(*(const unsigned char *const *)a, *(const unsigned char *const *)b,
                  *(size_t *)len);
}

static void serve_ids_init(struct serve_ids *s, const struct bundle_header *h)
{
    size_t n = 0;

    s->id_len = git_id_len(h->refs.is_sha256);
    s->list = xcalloc(h->refs.list.len + h->points.len + 1, sizeof(*s->list));
    vec_each (&h->refs.list, const struct git_ref *, ref)
        s->list[n++] = git_ref_id(ref);
    vec_each (&h->points, const struct header_point *, point)
        s->list[n++] = git_ref_id(&point->ref);
    if (h->refs.has_head)
        s->list[n++] = h->refs.head;
    s->count = n;
    qsort_r(s->list, n, sizeof(*s->list), serve_id_order, &s->id_len);
}

static bool serve_ids_have(const struct serve_ids *s, const unsigned char *id)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(s->list[middle], id, s->id_len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && memcmp(s->list[low], id, s->id_len) == 0;
}

/* --- reading requests --- */

struct ask_read {
    struct serve_ask *ask;
    struct arena *arena;
    struct pkt_in in;
    struct serve_ids ids;
    const struct bundle_header *header;
};

/* Reads a line `want <id>[ capabilities]`; only the first line has capabilities (v0). */
static void ask_want(struct ask_read *r, struct str line)
{
    unsigned char id[GIT_ID_MAX];
    struct str hex, words, word;

    str_cut(line, ' ', &hex, &words);
    if (!r->ids.list)
        serve_ids_init(&r->ids, r->header);
    if (!hex_parse(hex, id, r->ids.id_len))
        r->ask->refusal = "a wanted id cannot be read";
    else if (!serve_ids_have(&r->ids, id))
        r->ask->refusal = "upload-pack: not our ref";
    r->ask->wants++;
    while (str_token(&words, " ", &word))
        r->ask->side_band |= str_eq(word, STR("side-band-64k"));
}

/* Whether the line asks only for a part of the history or of the objects. */
static bool ask_is_partial(struct str line)
{
    static const char *const words[] = {"shallow ", "deepen ", "deepen-", "filter ", "want-ref "};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_starts(line, str_z(words[i])))
            return true;
    return false;
}

static void ask_fetch_line(struct ask_read *r, struct str line)
{
    if (str_starts(line, STR("want ")))
        ask_want(r, str_skip(line, 5));
    else if (str_starts(line, STR("have ")))
        r->ask->haves = true;
    else if (str_eq(line, STR("done")))
        r->ask->done = true;
    else if (ask_is_partial(line))
        r->ask->refusal = "weir serves whole repositories only: no shallow clones, no filters";
}

static void ask_prefix(struct ask_read *r, struct str prefix)
{
    struct serve_ask *ask = r->ask;

    if (ask->prefix_count == SERVE_PREFIXES_MAX)
        ask->all_prefixes = true;
    else
        ask->prefixes[ask->prefix_count++] = arena_str(r->arena, prefix);
}

static void ask_ls_refs_line(struct ask_read *r, struct str line)
{
    if (str_starts(line, STR("ref-prefix ")))
        ask_prefix(r, str_skip(line, 11));
    else if (str_eq(line, STR("symrefs")))
        r->ask->symrefs = true;
    else if (str_eq(line, STR("unborn")))
        r->ask->unborn = true;
}

static void ask_capability(struct ask_read *r, struct str line)
{
    if (str_eq(line, STR("command=ls-refs")))
        r->ask->command = SERVE_LS_REFS;
    else if (str_eq(line, STR("command=fetch")))
        r->ask->command = SERVE_FETCH;
    else if (str_starts(line, STR("command=")))
        r->ask->refusal = "weir does not know this command";
    else if (str_starts(line, STR("object-format=")) &&
             !str_eq(str_skip(line, 14), str_z(serve_format(r->header))))
        r->ask->refusal = "the repository has another kind of ids";
}

static struct str ask_line(const struct pkt *p)
{
    struct str line = p->data;

    if (line.len && line.p[line.len - 1] == '\n')
        line.len--;
    return line;
}

/* Version 2: the command and capabilities, a delimiter, arguments, a flush. */
static int ask_read_v2(struct ask_read *r, struct err *err)
{
    bool arguments = false;
    struct pkt p;
    int code;

    while ((code = pkt_read(&r->in, &p, err)) == 0 && p.kind != PKT_FLUSH) {
        if (p.kind == PKT_DELIM)
            arguments = true;
        else if (p.kind == PKT_DATA && !arguments)
            ask_capability(r, ask_line(&p));
        else if (p.kind == PKT_DATA && r->ask->command == SERVE_LS_REFS)
            ask_ls_refs_line(r, ask_line(&p));
        else if (p.kind == PKT_DATA)
            ask_fetch_line(r, ask_line(&p));
    }
    return code;
}

/* Version 0: wants, a flush, haves with flushes between them, and perhaps `done`. */
static int ask_read_v0(struct ask_read *r, struct err *err)
{
    struct pkt p;
    int code;

    while ((code = pkt_read(&r->in, &p, err)) == 0)
        if (p.kind == PKT_DATA)
            ask_fetch_line(r, ask_line(&p));
    r->ask->command = r->ask->wants ? SERVE_FETCH : SERVE_NOTHING;
    return code;
}

int serve_ask_read(struct serve_ask *out, struct arena *a, struct reader *body, bool is_v2,
                   const struct bundle_header *h, struct err *err)
{
    struct ask_read r = {.ask = out, .arena = a, .header = h};

    *out = (struct serve_ask){.is_v2 = is_v2};
    pkt_in_init(&r.in, body);
    int code = is_v2 ? ask_read_v2(&r, err) : ask_read_v0(&r, err);
    pkt_in_release(&r.in);
    free(r.ids.list);
    if (code < 0 && code != ERR_END)
        return code;
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- answers --- */

static bool serve_shows(const struct serve_ask *ask, struct str name)
{
    if (ask->prefix_count == 0 || ask->all_prefixes)
        return true;
    for (size_t i = 0; i < ask->prefix_count; i++)
        if (str_starts(name, ask->prefixes[i]))
            return true;
    return false;
}

static void serve_head(struct buf *out, const struct serve_ask *ask, const struct bundle_header *h)
{
    const struct git_refs *r = &h->refs;
    char id[2 * GIT_ID_MAX + 1];

    if (!serve_shows(ask, STR("HEAD")) || (!r->has_head && !(ask->unborn && r->head_target.len)))
        return;
    serve_hex(id, r->head, h);
    if (ask->symrefs && r->head_target.len)
        pkt_line(out, "%s HEAD symref-target:" STR_FMT, r->has_head ? id : "unborn",
                 STR_ARG(r->head_target));
    else if (r->has_head)
        pkt_line(out, "%s HEAD", id);
}

static void serve_ls_refs(struct buf *out, const struct serve_ask *ask,
                          const struct bundle_header *h)
{
    char id[2 * GIT_ID_MAX + 1];

    serve_head(out, ask, h);
    vec_each (&h->refs.list, const struct git_ref *, ref)
        if (serve_shows(ask, git_ref_name(ref))) {
            serve_hex(id, git_ref_id(ref), h);
            pkt_line(out, "%s " STR_FMT, id, STR_ARG(git_ref_name(ref)));
        }
    pkt_mark(out, PKT_FLUSH);
}

/* Writes the answer to a fetch of version 2, and returns whether the pack follows it. A client that
 * still lists its haves is answered that the server is ready, because the pack has every object
 * anyway. */
static bool serve_fetch_v2(struct buf *out, const struct serve_ask *ask)
{
    if (ask->wants == 0) {
        pkt_mark(out, PKT_FLUSH);
        return false;
    }
    if (!ask->done) {
        pkt_line(out, "acknowledgments");
        pkt_line(out, "ready");
        pkt_mark(out, PKT_DELIM);
    }
    pkt_line(out, "packfile");
    return true;
}

/* Writes the answer to a fetch of version 0, and returns whether the pack follows it. The client
 * lists its haves in several requests, and the pack follows only the last of them. */
static bool serve_fetch_v0(struct buf *out, const struct serve_ask *ask)
{
    pkt_line(out, "NAK");
    return ask->done;
}

bool serve_answer(struct buf *out, const struct serve_ask *ask, const struct bundle_header *h)
{
    if (ask->refusal) {
        pkt_line(out, "ERR %s", ask->refusal);
        return false;
    }
    switch (ask->command) {
    case SERVE_LS_REFS:
        serve_ls_refs(out, ask, h);
        return false;
    case SERVE_FETCH:
        return ask->is_v2 ? serve_fetch_v2(out, ask) : serve_fetch_v0(out, ask);
    default:
        return false; /* git sends such a request to test its keys */
    }
}
