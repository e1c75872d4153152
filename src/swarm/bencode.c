/* Bencode: a writer that appends to a buf, and a strict reader of borrowed bytes. */
#include "swarm/bencode.h"

/* --- writing --- */

void bencode_out_init(struct bencode_out *w, struct buf *out)
{
    w->out = out;
    w->depth = 0;
}

/* Checks, before a value is written into a dictionary, that its key was written. */
static void begin_value(struct bencode_out *w)
{
    struct bencode_level *level = w->depth ? &w->levels[w->depth - 1] : NULL;

    if (!level || !level->dictionary)
        return;
    BUG_ON(!level->value);
    level->value = false;
}

static void append_str(struct buf *out, struct str s)
{
    buf_append_u64(out, s.len);
    buf_append_char(out, ':');
    buf_append_str(out, s);
}

void bencode_open(struct bencode_out *w, char kind)
{
    BUG_ON(kind != 'd' && kind != 'l');
    BUG_ON(w->depth == BENCODE_MAX_DEPTH);
    begin_value(w);
    w->levels[w->depth++] = (struct bencode_level){.dictionary = kind == 'd'};
    buf_append_char(w->out, kind);
}

void bencode_close(struct bencode_out *w)
{
    BUG_ON(w->depth == 0 || w->levels[w->depth - 1].value);
    w->depth--;
    buf_append_char(w->out, 'e');
}

void bencode_key(struct bencode_out *w, struct str key)
{
    struct bencode_level *level = w->depth ? &w->levels[w->depth - 1] : NULL;

    BUG_ON(!level || !level->dictionary || level->value);
    /* A key must be greater than the key before it. This is not checked after the buf has failed,
     * because the buf may lack the key before. */
    BUG_ON(level->keys && !w->out->failed &&
           str_cmp(str_n(w->out->p + level->key_at, level->len), key) >= 0);
    append_str(w->out, key);
    level->value = level->keys = true;
    level->key_at = w->out->len - size_min(key.len, w->out->len);
    level->len = key.len;
}

void bencode_int(struct bencode_out *w, int64_t v)
{
    begin_value(w);
    buf_append_char(w->out, 'i');
    buf_append_i64(w->out, v);
    buf_append_char(w->out, 'e');
}

void bencode_str(struct bencode_out *w, struct str s)
{
    begin_value(w);
    append_str(w->out, s);
}

void bencode_str_head(struct bencode_out *w, size_t len)
{
    begin_value(w);
    buf_append_u64(w->out, len);
    buf_append_char(w->out, ':');
}

void bencode_raw(struct bencode_out *w, struct str value)
{
    begin_value(w);
    buf_append_str(w->out, value);
}

void bencode_member_int(struct bencode_out *w, const char *key, int64_t v)
{
    bencode_key(w, str_z(key));
    bencode_int(w, v);
}

void bencode_member_str(struct bencode_out *w, const char *key, struct str s)
{
    bencode_key(w, str_z(key));
    bencode_str(w, s);
}

/* --- reading. A parse function advances a cursor. It returns NULL, or a text that says what is
 * wrong at the cursor. --- */

static const char *parse_value(struct bencode *out, struct str *at, size_t depth);

static bool at_digit(struct str s)
{
    return s.len > 0 && s.p[0] >= '0' && s.p[0] <= '9';
}

/* Reads the digits at the front of *at. False: there is no digit, or a '0' stands before other
 * digits. */
static bool take_digits(struct str *at, struct str *digits)
{
    struct str rest = *at;

    while (at_digit(rest))
        rest = str_skip(rest, 1);
    *digits = str_head(*at, at->len - rest.len);
    *at = rest;
    return digits->len == 1 || (digits->len > 1 && digits->p[0] != '0');
}

static bool take_char(struct str *at, char c)
{
    if (at->len == 0 || at->p[0] != c)
        return false;
    *at = str_skip(*at, 1);
    return true;
}

static const char *parse_int(struct bencode *out, struct str *at)
{
    struct str begin = str_skip(*at, 1), digits;

    *at = begin;
    bool minus = take_char(at, '-');

    if (!take_digits(at, &digits) || (minus && digits.p[0] == '0'))
        return "not the one form of an integer";
    if (str_i64(str_head(begin, begin.len - at->len), &out->num) < 0)
        return "an integer that is too large";
    if (!take_char(at, 'e'))
        return "an integer without an end";
    out->kind = BENCODE_INT;
    return NULL;
}

static const char *parse_str(struct str *out, struct str *at)
{
    struct str digits;
    uint64_t len = 0;

    if (!take_digits(at, &digits) || str_u64(digits, &len) < 0)
        return "not the one form of a length";
    if (!take_char(at, ':'))
        return "a length without a colon";
    if (len > at->len)
        return "a string that goes past the end";
    *out = str_head(*at, (size_t)len);
    *at = str_skip(*at, (size_t)len);
    return NULL;
}

static const char *parse_key(struct str *last, bool *first, struct str *at)
{
    struct str key;
    const char *why = parse_str(&key, at);

    if (why)
        return why;
    if (!*first && str_cmp(*last, key) >= 0)
        return "keys that are not in order, or twice";
    *last = key;
    *first = false;
    return NULL;
}

static const char *parse_container(struct bencode *out, struct str *at, size_t depth)
{
    bool dictionary = at->p[0] == 'd', first = true;
    struct str begin = str_skip(*at, 1), key = {0};
    struct bencode one;
    const char *why = NULL;

    if (depth == BENCODE_MAX_DEPTH)
        return "too deep";
    *at = begin;
    while (at->len > 0 && at->p[0] != 'e') {
        if (dictionary && (why = parse_key(&key, &first, at)) != NULL)
            return why;
        if ((why = parse_value(&one, at, depth + 1)) != NULL)
            return why;
    }
    out->inside = str_head(begin, begin.len - at->len);
    out->kind = dictionary ? BENCODE_DICT : BENCODE_LIST;
    return take_char(at, 'e') ? NULL : "a list or dictionary without an end";
}

static const char *parse_value(struct bencode *out, struct str *at, size_t depth)
{
    struct str begin = *at;
    const char *why = NULL;

    *out = (struct bencode){.kind = BENCODE_STR};
    if (at_digit(*at))
        why = parse_str(&out->str, at);
    else if (at->len > 0 && at->p[0] == 'i')
        why = parse_int(out, at);
    else if (at->len > 0 && (at->p[0] == 'l' || at->p[0] == 'd'))
        why = parse_container(out, at, depth);
    else
        why = at->len ? "not the beginning of a value" : "the end where a value should be";
    out->bytes = str_head(begin, begin.len - at->len);
    return why;
}

int bencode_read(struct bencode *out, struct str *rest, struct err *err)
{
    struct bencode value;
    struct str at = *rest;
    const char *why = parse_value(&value, &at, 0);

    if (why)
        return err_set(err, ERR_PARSE, "bencode, byte %zu: %s", rest->len - at.len, why);
    *out = value;
    *rest = at;
    return 0;
}

int bencode_read_all(struct bencode *out, struct str text, struct err *err)
{
    struct bencode value;
    struct str rest = text;
    int code = bencode_read(&value, &rest, err);

    if (code < 0)
        return code;
    if (rest.len > 0)
        return err_set(err, ERR_PARSE, "bencode, byte %zu: more behind the value",
                       text.len - rest.len);
    *out = value;
    return 0;
}

bool bencode_next(const struct bencode *of, struct str *inside, struct str *key,
                  struct bencode *out)
{
    *key = STR_EMPTY;
    if (inside->len == 0)
        return false;
    /* bencode_read() has accepted these bytes, so reading cannot fail. */
    if (of->kind == BENCODE_DICT)
        BUG_ON(parse_str(key, inside) != NULL);
    BUG_ON(parse_value(out, inside, 0) != NULL);
    return true;
}

int bencode_find(const struct bencode *of, struct bencode *out, struct str key,
                 enum bencode_kind kind)
{
    struct str inside = of->inside, name;
    struct bencode one;

    if (of->kind != BENCODE_DICT)
        return ERR_TYPE;
    while (bencode_next(of, &inside, &name, &one)) {
        if (!str_eq(name, key))
            continue;
        if (one.kind != kind)
            return ERR_TYPE;
        *out = one;
        return 0;
    }
    return ERR_NOT_FOUND;
}
