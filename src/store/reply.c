/* Tests what kind of reply a reply is, and prints replies. */
#include "store/reply.h"

bool reply_is_error(const struct reply *r, const char *word)
{
    struct str first;

    if (r->type != REPLY_ERROR)
        return false;
    str_cut(r->str, ' ', &first, &(struct str){0});
    return str_eq(first, str_z(word));
}

static void print_quoted(struct str s, struct buf *out)
{
    buf_append_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\') {
            buf_append_char(out, '\\');
            buf_append_char(out, (char)c);
        } else if (c >= ' ' && c < 0x7f) {
            buf_append_char(out, (char)c);
        } else {
            buf_append_z(out, "\\x");
            buf_append_hex(out, &c, 1);
        }
    }
    buf_append_char(out, '"');
}

void reply_print(struct buf *out, const struct reply *r)
{
    switch (r->type) {
    case REPLY_NIL:
        buf_append_z(out, "nil");
        break;
    case REPLY_STATUS:
        buf_append_str(out, r->str);
        break;
    case REPLY_ERROR:
        buf_append_z(out, "(error) ");
        buf_append_str(out, r->str);
        break;
    case REPLY_INTEGER:
        buf_append_i64(out, r->integer);
        break;
    case REPLY_BULK:
        print_quoted(r->str, out);
        break;
    case REPLY_ARRAY:
        buf_append_char(out, '[');
        for (size_t i = 0; i < r->count; i++) {
            if (i)
                buf_append_z(out, ", ");
            reply_print(out, &r->items[i]);
        }
        buf_append_char(out, ']');
        break;
    }
}
