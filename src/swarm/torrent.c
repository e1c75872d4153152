/* Torrent files: makes the file name, the web seeds, the info dictionary and its hashes, the whole
 * file, and magnet links. */
#include "swarm/torrent.h"

#include "http/wire.h"
#include "object/digest.h"
#include "swarm/bencode.h"

const char *const torrent_kind_names[TORRENT_KINDS] = {"1", "2", "hybrid"};

bool torrent_kind_parse(enum torrent_kind *out, struct str name)
{
    for (int i = 0; i < TORRENT_KINDS; i++)
        if (str_eq(name, str_z(torrent_kind_names[i]))) {
            *out = (enum torrent_kind)i;
            return true;
        }
    return false;
}

/* --- names --- */

static struct str last_part(struct str key)
{
    struct str last = STR_EMPTY, part;

    while (str_token(&key, "/", &part))
        last = part;
    return last;
}

/* Cuts the next character off *rest. Returns '_' in place of a character that a file name may
 * not contain. */
static struct str take_character(struct str *rest)
{
    size_t len = str_utf8_len(*rest);
    struct str c = str_head(*rest, size_max(len, 1));

    *rest = str_skip(*rest, c.len);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a length above 0 has a pointer */
    return len == 0 || c.p[0] == '\\' || str_utf8_is_control(c) ? STR("_") : c;
}

void torrent_name(struct buf *out, struct str key)
{
    struct str rest = last_part(key);
    size_t begin = out->len;

    if (rest.len == 0)
        rest = STR("object");
    else if (str_eq(rest, STR(".")) || str_eq(rest, STR("..")))
        buf_append_char(out, '_');
    while (rest.len > 0) {
        struct str c = take_character(&rest);
        if (out->len - begin + c.len > TORRENT_NAME_MAX)
            break;
        buf_append_str(out, c);
    }
}

/* --- web seeds --- */

/* Returns the URL up to its last '/' if the file's name follows that '/'; else empty. */
static struct str folder_of(struct str url, struct str name)
{
    struct buf encoded = BUF_INIT(4 * KIB);
    struct str path, query;

    str_cut(url, '?', &path, &query);
    url_encode(&encoded, name, false);
    bool ends = str_ends(path, buf_str(&encoded)) && path.len > encoded.len &&
                path.p[path.len - encoded.len - 1] == '/';
    struct str folder = ends ? str_head(path, path.len - encoded.len) : STR_EMPTY;
    buf_release(&encoded);
    return folder;
}

void torrent_seed(struct torrent_file *f, struct str url)
{
    struct str folder = f->kind == TORRENT_V2 ? folder_of(url, f->name) : STR_EMPTY;

    f->web_seed_count = 0;
    if (url.len && (!folder.len || str_chr(url, '?') >= 0))
        f->web_seeds[f->web_seed_count++] = url;
    if (folder.len)
        f->web_seeds[f->web_seed_count++] = folder;
}

/* --- the info dictionary --- */

/* Writes the file tree of BEP 52 for one file: {name: {"": {length, pieces root}}}. */
static void write_tree(struct bencode_out *w, const struct torrent_file *f)
{
    bencode_key(w, STR("file tree"));
    bencode_open(w, 'd');
    bencode_key(w, f->name);
    bencode_open(w, 'd');
    bencode_key(w, STR_EMPTY);
    bencode_open(w, 'd');
    bencode_member_int(w, "length", (int64_t)f->pieces->size);
    bencode_member_str(w, "pieces root", str_n(f->pieces->root, SHA256_LEN));
    bencode_close(w);
    bencode_close(w);
    bencode_close(w);
}

void torrent_info(struct buf *out, const struct torrent_file *f)
{
    bool v1 = f->kind != TORRENT_V2, v2 = f->kind != TORRENT_V1;
    struct bencode_out w;

    bencode_out_init(&w, out);
    bencode_open(&w, 'd');
    if (v2)
        write_tree(&w, f);
    if (v1)
        bencode_member_int(&w, "length", (int64_t)f->pieces->size);
    if (v2)
        bencode_member_int(&w, "meta version", 2);
    bencode_member_str(&w, "name", f->name);
    bencode_member_int(&w, "piece length", f->pieces->length);
    if (v1)
        bencode_member_str(&w, "pieces", f->pieces->v1);
    if (f->is_private)
        bencode_member_int(&w, "private", 1);
    bencode_close(&w);
}

void torrent_hash(struct torrent_hashes *out, enum torrent_kind kind, struct str info)
{
    struct digest_value value;

    *out = (struct torrent_hashes){.has_v1 = kind != TORRENT_V2, .has_v2 = kind != TORRENT_V1};
    if (out->has_v1) {
        digest_of(DIGEST_SHA1, info, &value);
        memcpy(out->v1, value.bytes, SHA1_LEN);
    }
    if (out->has_v2) {
        digest_of(DIGEST_SHA256, info, &value);
        memcpy(out->v2, value.bytes, SHA256_LEN);
    }
}

/* --- the file --- */

/* Writes the URLs of the trackers. Each URL is a tier of its own, so clients that cannot reach the
 * first tracker use the second. */
static void write_announces(struct bencode_out *w, const struct torrent_file *f)
{
    if (f->announce_count == 0)
        return;
    bencode_member_str(w, "announce", f->announces[0]);
    if (f->announce_count == 1)
        return;
    bencode_key(w, STR("announce-list"));
    bencode_open(w, 'l');
    for (size_t i = 0; i < f->announce_count; i++) {
        bencode_open(w, 'l');
        bencode_str(w, f->announces[i]);
        bencode_close(w);
    }
    bencode_close(w);
}

static void write_layers(struct bencode_out *w, const struct torrent_file *f)
{
    bencode_key(w, STR("piece layers"));
    bencode_open(w, 'd');
    if (f->pieces->layer.len) {
        bencode_key(w, str_n(f->pieces->root, SHA256_LEN));
        bencode_str(w, f->pieces->layer);
    }
    bencode_close(w);
}

/* Writes the web seeds. A single URL is a plain string, not a list, as in libtorrent. */
static void write_seeds(struct bencode_out *w, const struct torrent_file *f)
{
    if (f->web_seed_count == 0)
        return;
    bencode_key(w, STR("url-list"));
    if (f->web_seed_count > 1)
        bencode_open(w, 'l');
    for (size_t i = 0; i < f->web_seed_count; i++)
        bencode_str(w, f->web_seeds[i]);
    if (f->web_seed_count > 1)
        bencode_close(w);
}

void torrent_write(struct buf *out, const struct torrent_file *f, struct str info)
{
    struct bencode_out w;

    bencode_out_init(&w, out);
    bencode_open(&w, 'd');
    write_announces(&w, f);
    if (f->http_seed.len)
        bencode_member_str(&w, "httpseeds", f->http_seed);
    bencode_key(&w, STR("info"));
    bencode_raw(&w, info);
    if (f->kind != TORRENT_V1)
        write_layers(&w, f);
    write_seeds(&w, f);
    bencode_close(&w);
}

/* --- magnet links --- */

static void append_parameter(struct buf *out, const char *name, struct str value)
{
    buf_appendf(out, "&%s=", name);
    url_encode(out, value, false);
}

void torrent_magnet(struct buf *out, const struct torrent_file *f, const struct torrent_hashes *h)
{
    buf_append_z(out, "magnet:?");
    if (h->has_v1) {
        buf_append_z(out, "xt=urn:btih:");
        buf_append_hex(out, h->v1, SHA1_LEN);
    }
    if (h->has_v2) {
        buf_append_z(out, h->has_v1 ? "&xt=urn:btmh:1220" : "xt=urn:btmh:1220");
        buf_append_hex(out, h->v2, SHA256_LEN);
    }
    append_parameter(out, "dn", f->name);
    for (size_t i = 0; i < f->announce_count; i++)
        append_parameter(out, "tr", f->announces[i]);
    for (size_t i = 0; i < f->web_seed_count; i++)
        append_parameter(out, "ws", f->web_seeds[i]);
}
