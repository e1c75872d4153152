/* Patterns of policies: wildcards and variables, compiled to bytes that UTF-8 never has. */
#include "s3/access/policy_int.h"

static bool is_special(char c)
{
    return (unsigned char)c >= PATTERN_CLOSE;
}

/* Compiles the variable at the front of *in, behind its "${". ${*}, ${?} and ${$} stand for the
 * characters themselves. */
static int compile_variable(struct buf *out, struct str *in)
{
    struct str inside, name, fallback, suffix;
    enum policy_key key;
    bool has_fallback;

    if (!str_cut(*in, '}', &inside, in))
        return ERR_PARSE;
    if (inside.len == 1 && strchr("*?$", inside.p[0])) {
        buf_append_char(out, inside.p[0]);
        return 0;
    }
    has_fallback = str_cut(inside, ',', &name, &fallback);
    name = str_trim(name);
    fallback = str_trim(fallback);
    if (!policy_key_find(name, &key, &suffix))
        return ERR_PARSE;
    buf_append_char(out, (char)PATTERN_OPEN);
    buf_append_str(out, name);
    if (has_fallback) {
        if (fallback.len < 2 || fallback.p[0] != '\'' || fallback.p[fallback.len - 1] != '\'')
            return ERR_PARSE;
        buf_append_char(out, (char)PATTERN_DEFAULT);
        buf_append(out, fallback.p + 1, fallback.len - 2);
    }
    buf_append_char(out, (char)PATTERN_CLOSE);
    return 0;
}

int pattern_compile(struct pattern *out, struct arena *a, struct str text, unsigned flags)
{
    struct buf bytes = BUF_INIT(2 * POLICY_MAX_BYTES);
    struct pattern p = {0};
    int code = 0;

    while (text.len && code == 0) {
        char c = text.p[0];
        if ((flags & PATTERN_VARIABLES) && str_starts(text, STR("${"))) {
            text = str_skip(text, 2);
            code = compile_variable(&bytes, &text);
            continue;
        }
        if ((flags & PATTERN_WILD) && (c == '*' || c == '?')) {
            c = (char)(c == '*' ? PATTERN_ANY : PATTERN_ONE);
            p.wild = true;
        }
        buf_append_char(&bytes, c);
        text = str_skip(text, 1);
    }
    p.variables = bytes.len && memchr(bytes.p, PATTERN_OPEN, bytes.len) != NULL;
    p.text = arena_str(a, buf_str(&bytes));
    if (code == 0)
        code = buf_error(&bytes);
    buf_release(&bytes);
    if (code < 0)
        return code;
    *out = p;
    return arena_error(a);
}

/* Gets the value of a variable. `name` is the text between PATTERN_OPEN and PATTERN_CLOSE: the
 * variable's name, and its default if it has one. Returns false when the variable has no value. */
static bool variable_value(struct str name, const struct policy_request *r, struct str *out)
{
    struct str fallback, suffix;
    struct policy_values values = {0};
    enum policy_key key;
    bool has_fallback = str_cut(name, (char)PATTERN_DEFAULT, &name, &fallback);

    if (policy_key_find(name, &key, &suffix) && r->value(r->ctx, key, suffix, &values) &&
        values.count == 1) {
        *out = values.items[0];
        for (size_t i = 0; i < out->len; i++)
            if (is_special(out->p[i]))
                return false;
        return true;
    }
    *out = fallback;
    return has_fallback;
}

bool pattern_expand(const struct pattern *p, const struct policy_request *r, struct str *out)
{
    struct str rest = p->text, literal, name, value;
    struct buf bytes = BUF_INIT(64 * KIB);
    bool whole = true;

    if (!p->variables) {
        *out = p->text;
        return true;
    }
    while (whole && rest.len) {
        bool open = str_cut(rest, (char)PATTERN_OPEN, &literal, &rest);
        buf_append_str(&bytes, literal);
        if (!open)
            break;
        str_cut(rest, (char)PATTERN_CLOSE, &name, &rest);
        whole = variable_value(name, r, &value);
        if (whole)
            buf_append_str(&bytes, value);
    }
    if (bytes.failed)
        r->arena->failed = true;
    *out = arena_str(r->arena, buf_str(&bytes));
    buf_release(&bytes);
    return whole && !r->arena->failed;
}

struct str pattern_never(const struct pattern *p)
{
    struct str rest = p->text, literal, name, suffix;
    enum policy_key key;

    while (p->variables && str_cut(rest, (char)PATTERN_OPEN, &literal, &rest)) {
        str_cut(rest, (char)PATTERN_CLOSE, &name, &rest);
        if (str_chr(name, (char)PATTERN_DEFAULT) < 0 && policy_key_find(name, &key, &suffix) &&
            !policy_keys[key].is_given)
            return name;
    }
    return STR_EMPTY;
}

/* --- matching ---
 *
 * A pattern is cut at its stars. The first piece must stand at the front of the string, the last at
 * its end. Each piece between them is matched so that it ends as early as possible. Later pieces
 * then have the most room, so nothing is ever tried again. A piece of plain characters is found by
 * memmem(), in linear time. A piece with question marks is found with bit masks, in blocks of 64
 * characters. All in all the cost is at most the string's length times a 64th of the pattern's. */

enum {
    PIECE_BITS = 64,
    SEARCH_MAX = 64 * 1024 /* bytes; more than a request's head or a form's field can have */
};

/* The search for a piece in the string `s`. The piece is matched block by block. Bit i of `ends` is
 * set if a match of all blocks so far can end just before byte i of `s`. */
struct search {
    struct str s;
    bool fold_case;
    size_t first, last; /* bits of `ends` outside of first..last are not set */
    uint64_t ends[SEARCH_MAX / 64 + 1];
};

static bool search_bit(const struct search *f, size_t i)
{
    return f->ends[i / 64] >> (i % 64) & 1;
}

static void search_set(struct search *f, size_t i, bool on)
{
    uint64_t bit = UINT64_C(1) << (i % 64);

    f->ends[i / 64] = on ? f->ends[i / 64] | bit : f->ends[i / 64] & ~bit;
}

/* Whether byte i of the string is the second, third or fourth byte of a character. */
static bool is_inside(struct str s, size_t i)
{
    if (((unsigned char)s.p[i] & 0xc0) != 0x80)
        return false;
    for (size_t back = 1; back <= 3 && back <= i; back++)
        if (str_utf8_len(str_skip(s, i - back)) > back)
            return true;
    return false;
}

struct block_masks {
    /* Bit j of of_byte[c] is set if character j of the block is c, bit j of `ones` if it is a
     * '?'. */
    uint64_t of_byte[256], ones;
};

static void block_masks(struct block_masks *m, struct str block, bool fold_case)
{
    memset(m, 0, sizeof(*m));
    for (size_t j = 0; j < block.len; j++) {
        unsigned char c = (unsigned char)block.p[j];
        uint64_t bit = UINT64_C(1) << j;
        if (c == PATTERN_ONE) {
            m->ones |= bit;
            continue;
        }
        m->of_byte[c] |= bit;
        if (fold_case && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
            m->of_byte[c ^ 0x20] |= bit;
    }
}

/* Continues the search by one block. `ends` has the places where the previous blocks can end; they
 * are replaced by the places where this block can end. With `first_only` only the first such place
 * is found. */
static void search_block(struct search *f, struct str block, bool first_only)
{
    struct block_masks m;
    uint64_t states = 0, done = UINT64_C(1) << (block.len - 1);
    size_t i = f->first, last = f->last;
    bool begins = search_bit(f, i);

    block_masks(&m, block, f->fold_case);
    search_set(f, i, false);
    f->first = f->s.len + 1;
    for (; i < f->s.len && (states || i <= last); i++) {
        uint64_t entered = states << 1 | begins;
        uint64_t ones = is_inside(f->s, i) ? states & m.ones : entered & m.ones;
        states = (entered & m.of_byte[(unsigned char)f->s.p[i]]) | ones;
        begins = i < last && search_bit(f, i + 1);
        search_set(f, i + 1, states & done);
        if (states & done) {
            f->first = size_min(f->first, i + 1);
            f->last = i + 1;
            if (first_only)
                return;
        }
    }
}

/* Searches for a piece of the pattern. The piece must begin at `from`, or, if `anywhere`, there or
 * later; if `to_end`, it must end at the end of the string. Returns the first place where it can
 * end, or -1 if it is not found. */
static ptrdiff_t search_piece(struct search *f, struct str piece, size_t from, bool anywhere,
                              bool to_end)
{
    if (piece.len > f->s.len - from || f->s.len > SEARCH_MAX)
        return -1;
    f->first = from;
    f->last = anywhere ? f->s.len : from;
    memset(f->ends, anywhere ? 0xff : 0, (f->s.len / 64 + 1) * sizeof(f->ends[0]));
    search_set(f, from, true);
    while (piece.len && f->first <= f->s.len) {
        struct str block = str_head(piece, PIECE_BITS);
        piece = str_skip(piece, block.len);
        search_block(f, block, !piece.len && !to_end);
    }
    if (f->first > f->s.len || (to_end && f->last != f->s.len))
        return -1;
    return (ptrdiff_t)(to_end ? f->last : f->first);
}

/* Does the same as search_piece(), for a piece without question marks. Upper and lower case count
 * as different. */
static ptrdiff_t find_plain(struct str s, struct str piece, size_t from, bool anywhere, bool to_end)
{
    size_t room = s.len - from;
    const char *at;

    if (piece.len > room || (!anywhere && to_end && piece.len != room))
        return -1;
    if (piece.len == 0)
        return (ptrdiff_t)(to_end ? s.len : from);
    if (!anywhere || to_end) {
        at = s.p + (to_end ? s.len - piece.len : from);
        return memcmp(at, piece.p, piece.len) == 0 ? at - s.p + (ptrdiff_t)piece.len : -1;
    }
    at = memmem(s.p + from, room, piece.p, piece.len);
    return at ? at - s.p + (ptrdiff_t)piece.len : -1;
}

static ptrdiff_t find_piece(struct search *f, struct str piece, size_t from, bool anywhere,
                            bool to_end)
{
    if (!f->fold_case && (!piece.len || !memchr(piece.p, PATTERN_ONE, piece.len)))
        return find_plain(f->s, piece, from, anywhere, to_end);
    return search_piece(f, piece, from, anywhere, to_end);
}

bool pattern_match(struct str p, struct str s, bool fold_case)
{
    struct search f; /* search_piece() fills in the bits */
    struct str piece;
    ptrdiff_t at = 0;
    bool anywhere = false, more = true;

    f.s = s;
    f.fold_case = fold_case;
    while (more && at >= 0) {
        more = str_cut(p, (char)PATTERN_ANY, &piece, &p);
        at = find_piece(&f, piece, (size_t)at, anywhere, !more);
        anywhere = true;
    }
    return at >= 0;
}
