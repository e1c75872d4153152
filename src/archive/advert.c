/* Messages of git's smart HTTP. */
#include "archive/advert.h"

#include "base/hex.h"

/* The most lines of an answer that are not refs: capabilities, acknowledgements, shallow
 * commits. */
enum { OTHER_LINES_MAX = 100 * 1000 };

static int advert_format(struct git_advert *v, struct str format, struct err *err)
{
    v->is_sha256 = str_eq(format, STR("sha256"));
    if (v->is_sha256 || str_eq(format, STR("sha1")))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "the git server has ids of the unknown kind '" STR_FMT "'",
                   STR_ARG(str_head(format, 32)));
}

/* --- version 2 --- */

static bool words_have(struct str list, struct str word)
{
    struct str one;

    while (str_token(&list, " ", &one))
        if (str_eq(one, word))
            return true;
    return false;
}

static int advert_read_v2(struct git_advert *v, struct pkt_in *in, struct err *err)
{
    struct str line, key, value;
    int code = 0;

    v->is_v2 = v->has_ofs_delta = v->has_side_band = true;
    for (int lines = 0; (code = pkt_read_line(in, &line, NULL, err)) == 0; lines++) {
        if (lines == OTHER_LINES_MAX)
            return err_set(err, ERR_TOO_LARGE, "the git server has too many capabilities");
        str_cut(line, '=', &key, &value);
        if (str_eq(key, STR("object-format")))
            code = advert_format(v, value, err);
        else if (str_eq(key, STR("ls-refs")))
            v->has_unborn = words_have(value, STR("unborn"));
        if (code < 0)
            return code;
    }
    return code == ERR_END ? 0 : code;
}

static void ask_begin(struct buf *out, const struct git_advert *v, const char *command)
{
    pkt_line(out, "command=%s", command);
    pkt_line(out, "object-format=%s", v->is_sha256 ? "sha256" : "sha1");
    pkt_mark(out, PKT_DELIM);
}

void git_ls_refs_ask(struct buf *out, const struct git_advert *v)
{
    ask_begin(out, v, "ls-refs");
    pkt_line(out, "peel");
    pkt_line(out, "symrefs");
    if (v->has_unborn)
        pkt_line(out, "unborn");
    pkt_mark(out, PKT_FLUSH);
}

/* Reads a line of the answer to ls-refs: `<id> <name>[ symref-target:<name>][ peeled:<id>]`, or
 * `unborn HEAD symref-target:<name>`. */
static int ls_refs_line(struct git_refs *refs, struct str line, struct err *err)
{
    struct str id, name, word, rest;

    str_cut(line, ' ', &id, &rest);
    str_cut(rest, ' ', &name, &rest);
    while (str_token(&rest, " ", &word))
        if (str_eq(name, STR("HEAD")) && str_starts(word, STR("symref-target:")))
            git_refs_set_head_target(refs, str_skip(word, sizeof("symref-target:") - 1));
    return str_eq(id, STR("unborn")) ? 0 : git_refs_add(refs, id, name, err);
}

/* Checks the list of refs when it has ended. */
static int advert_end_refs(struct git_refs *refs, struct err *err)
{
    int code = git_refs_sort(refs, err);

    if (code == 0)
        git_refs_leave_folders(refs);
    return code;
}

int git_ls_refs_read(struct git_refs *refs, struct pkt_in *in, struct err *err)
{
    enum pkt_kind mark = PKT_DATA;
    struct str line;
    int code;

    while ((code = pkt_read_line(in, &line, &mark, err)) == 0) {
        code = ls_refs_line(refs, line, err);
        if (code < 0)
            return code;
    }
    if (code == ERR_END && mark != PKT_FLUSH)
        return err_set(err, ERR_PARSE, "the list of refs does not end with a flush");
    return code == ERR_END ? advert_end_refs(refs, err) : code;
}

/* --- versions 0 and 1 --- */

static int advert_caps(struct git_advert *v, struct git_refs *refs, struct str caps,
                       struct err *err)
{
    struct str word, key, value;
    int code = 0;

    while (code == 0 && str_token(&caps, " ", &word)) {
        str_cut(word, '=', &key, &value);
        if (str_eq(key, STR("object-format")))
            code = advert_format(v, value, err);
        else if (str_eq(key, STR("symref")) && str_starts(value, STR("HEAD:")))
            git_refs_set_head_target(refs, str_skip(value, 5));
        else if (str_eq(word, STR("ofs-delta")))
            v->has_ofs_delta = true;
        else if (str_eq(word, STR("side-band-64k")))
            v->has_side_band = true;
    }
    return code;
}

/* Reads one line with a ref. In the first line a NUL follows the ref, and then the capabilities. */
static int advert_ref(struct git_advert *v, struct git_refs *refs, struct str line, bool is_first,
                      struct err *err)
{
    struct str id, name, caps;
    int code = 0;

    if (is_first) {
        str_cut(line, '\0', &line, &caps);
        code = advert_caps(v, refs, caps, err);
        refs->is_sha256 = v->is_sha256;
    }
    str_cut(line, ' ', &id, &name);
    if (code < 0 || str_eq(name, STR("capabilities^{}")))
        return code;
    if (str_eq(id, STR("shallow")))
        return err_set(err, ERR_UNSUPPORTED, "the repository of the git server is shallow");
    return str_ends(name, STR("^{}")) ? 0 : git_refs_add(refs, id, name, err);
}

static int advert_read_v0(struct git_advert *v, struct pkt_in *in, struct git_refs *refs,
                          struct str line, struct err *err)
{
    int code = 0;

    for (bool is_first = true; code == 0; is_first = false) {
        code = advert_ref(v, refs, line, is_first, err);
        if (code == 0)
            code = pkt_read_line(in, &line, NULL, err);
    }
    if (code != ERR_END)
        return code;
    if (!v->has_side_band)
        return err_set(err, ERR_UNSUPPORTED, "the git server does not know side-band-64k");
    return advert_end_refs(refs, err);
}

int git_advert_read(struct git_advert *out, struct pkt_in *in, struct git_refs *refs,
                    struct err *err)
{
    enum pkt_kind mark;
    struct str line;
    int code = pkt_read_line(in, &line, &mark, err);

    *out = (struct git_advert){0};
    if (code == 0 && str_starts(line, STR("# service="))) {
        code = pkt_read_line(in, &line, &mark, err);
        if (code == ERR_END && mark == PKT_FLUSH)
            code = pkt_read_line(in, &line, &mark, err);
    }
    if (code == 0 && str_eq(line, STR("version 1")))
        code = pkt_read_line(in, &line, &mark, err);
    /* An old server sends only a flush packet for an empty repository. */
    if (code == ERR_END && mark == PKT_FLUSH)
        return 0;
    if (code < 0)
        return code == ERR_END ? err_set(err, ERR_PARSE, "the answer is not a list of refs") : code;
    if (!str_eq(line, STR("version 2")))
        return advert_read_v0(out, in, refs, line, err);
    code = advert_read_v2(out, in, err);
    refs->is_sha256 = out->is_sha256;
    return code;
}

/* --- fetching --- */

static void ask_ids(struct buf *out, const struct git_advert *v, const char *word,
                    const unsigned char *ids, size_t count)
{
    size_t len = git_id_len(v->is_sha256);
    char hex[2 * GIT_ID_MAX];

    for (size_t i = 0; i < count; i++) {
        hex_write(hex, ids + i * len, len);
        pkt_line(out, "%s %.*s", word, (int)(2 * len), hex);
    }
}

static void fetch_ask_v2(struct buf *out, const struct git_advert *v, const struct git_fetch *f)
{
    ask_begin(out, v, "fetch");
    pkt_line(out, "ofs-delta");
    pkt_line(out, "no-progress");
    if (f->depth)
        pkt_line(out, "deepen %u", f->depth);
    ask_ids(out, v, "want", f->wants, f->want_count);
    ask_ids(out, v, "have", f->haves, f->have_count);
    pkt_line(out, "done");
    pkt_mark(out, PKT_FLUSH);
}

static void fetch_ask_v0(struct buf *out, const struct git_advert *v, const struct git_fetch *f)
{
    size_t len = git_id_len(v->is_sha256);
    char hex[2 * GIT_ID_MAX];

    hex_write(hex, f->wants, len);
    pkt_line(out, "want %.*s side-band-64k no-progress%s%s agent=git/weir", (int)(2 * len), hex,
             v->has_ofs_delta ? " ofs-delta" : "", v->is_sha256 ? " object-format=sha256" : "");
    ask_ids(out, v, "want", f->wants + len, f->want_count - 1);
    if (f->depth)
        pkt_line(out, "deepen %u", f->depth);
    pkt_mark(out, PKT_FLUSH);
    ask_ids(out, v, "have", f->haves, f->have_count);
    pkt_line(out, "done");
}

void git_fetch_ask(struct buf *out, const struct git_advert *v, const struct git_fetch *f)
{
    BUG_ON(f->want_count == 0);
    (v->is_v2 ? fetch_ask_v2 : fetch_ask_v0)(out, v, f);
}

static int fetch_shallow(const struct git_fetch *f, struct err *err)
{
    return f->depth ? 0
                    : err_set(err, ERR_UNSUPPORTED, "the repository of the git server is shallow");
}

/* Reads up to the beginning of the pack. The answer consists of sections, of which the pack is the
 * last. The first line of a section is its name, and a delimiter packet ends it. */
static int fetch_begin_v2(struct pkt_in *in, const struct git_fetch *f, struct err *err)
{
    struct str line;
    int code = 0;

    for (int lines = 0; lines < OTHER_LINES_MAX; lines++) {
        enum pkt_kind mark = PKT_DATA;
        code = pkt_read_line(in, &line, &mark, err);
        if (code == ERR_END && mark == PKT_DELIM)
            continue;
        if (code == ERR_END)
            return err_set(err, ERR_PARSE, "the git server sent no pack");
        if (code == 0 && str_eq(line, STR("packfile")))
            return 0;
        if (code == 0 && str_eq(line, STR("shallow-info")))
            code = fetch_shallow(f, err);
        if (code < 0)
            return code;
    }
    return err_set(err, ERR_TOO_LARGE, "the git server sends lines without end");
}

/* Skips the ACKs. Without multi_ack a server sends one ACK, for the first of the haves that it
 * knows. git's own server sends a further ACK for each have that is a parent of that one. The
 * packet after the ACKs is not consumed. */
static int fetch_skip_acks(struct pkt_in *in, struct err *err)
{
    struct pkt p;

    for (int lines = 0; lines < OTHER_LINES_MAX; lines++) {
        int code = pkt_read(in, &p, err);
        /* An end is not lost here: the reader of the pack meets it again and reports it. */
        if (code < 0)
            return code == ERR_END ? 0 : code;
        if (p.kind != PKT_DATA || !str_starts(p.data, STR("ACK "))) {
            pkt_unread(in, &p);
            return 0;
        }
    }
    return err_set(err, ERR_TOO_LARGE, "the git server sends lines without end");
}

/* Reads up to the beginning of the pack. With a depth, lines about shallow commits and a flush
 * packet come first. Then comes a NAK, or lines with ACK. The last ACK lines end after their id. */
static int fetch_begin_v0(struct pkt_in *in, const struct git_fetch *f, struct err *err)
{
    bool in_shallow = f->depth > 0;
    struct str line, word, id, more;

    for (int lines = 0; lines < OTHER_LINES_MAX; lines++) {
        enum pkt_kind mark = PKT_DATA;
        int code = pkt_read_line(in, &line, &mark, err);
        if (code == ERR_END && mark == PKT_FLUSH && in_shallow) {
            in_shallow = false;
            continue;
        }
        if (code < 0)
            return code == ERR_END ? err_set(err, ERR_PARSE, "the git server sent no pack") : code;
        str_cut(line, ' ', &word, &more);
        str_cut(more, ' ', &id, &more);
        if (str_eq(word, STR("shallow")) || str_eq(word, STR("unshallow")))
            code = fetch_shallow(f, err);
        else if (str_eq(line, STR("NAK")))
            return 0;
        else if (str_eq(word, STR("ACK")) && more.len == 0)
            return fetch_skip_acks(in, err);
        else if (!str_eq(word, STR("ACK")))
            code = err_set(err, ERR_PARSE, "the git server sent a line that is not expected");
        if (code < 0)
            return code;
    }
    return err_set(err, ERR_TOO_LARGE, "the git server sends lines without end");
}

int git_fetch_begin(struct pkt_in *in, const struct git_advert *v, const struct git_fetch *f,
                    struct err *err)
{
    return v->is_v2 ? fetch_begin_v2(in, f, err) : fetch_begin_v0(in, f, err);
}
