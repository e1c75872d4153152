/* Encodes and decodes base64 with two tables: the alphabet, and the value of each character. */
#include "sign/base64.h"
#include "base/err.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

void base64_encode(struct buf *out, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = size_min(3, bytes.len - i);
        unsigned char in[3] = {0};
        memcpy(in, bytes.p + i, n);
        char text[4] = {alphabet[in[0] >> 2], alphabet[(in[0] & 3) << 4 | in[1] >> 4],
                        n > 1 ? alphabet[(in[1] & 15) << 2 | in[2] >> 6] : '=',
                        n > 2 ? alphabet[in[2] & 63] : '='};
        buf_append(out, text, sizeof(text));
    }
}

/* Decodes four characters into 1 to 3 bytes and returns the number of bytes, or 0 when the
 * characters are malformed. */
static size_t decode_group(const char *p, bool last, unsigned char out[3])
{
    int a = base64_value(p[0]), b = base64_value(p[1]), c = base64_value(p[2]),
        d = base64_value(p[3]);
    size_t padding = !last || p[3] != '=' ? 0 : p[2] == '=' ? 2 : 1;

    if (padding > 0)
        d = 0;
    if (padding > 1)
        c = 0;
    if (a < 0 || b < 0 || c < 0 || d < 0 || (padding == 2 && b & 15) || (padding == 1 && c & 3))
        return 0;
    out[0] = (unsigned char)(a << 2 | b >> 4);
    out[1] = (unsigned char)(b << 4 | c >> 2);
    out[2] = (unsigned char)(c << 6 | d);
    return 3 - padding;
}

int base64_decode(struct buf *out, struct str text)
{
    if (text.len % 4 != 0)
        return ERR_PARSE;
    for (size_t i = 0; i < text.len; i += 4) {
        unsigned char bytes[3];
        size_t n = decode_group(text.p + i, i + 4 == text.len, bytes);
        if (n == 0)
            return ERR_PARSE;
        buf_append(out, bytes, n);
    }
    return buf_error(out);
}

int base64_decode_exact(void *out, size_t len, struct str text)
{
    struct buf b = BUF_INIT(len);
    int code = text.len == (len + 2) / 3 * 4 ? base64_decode(&b, text) : ERR_PARSE;

    if (code == 0 && b.len == len)
        memcpy(out, b.p, len);
    else
        code = ERR_PARSE;
    buf_release(&b);
    return code;
}

void base64url_encode(struct buf *out, struct str bytes)
{
    size_t from = out->len;

    base64_encode(out, bytes);
    if (buf_error(out) < 0)
        return;
    while (out->len > from && out->p[out->len - 1] == '=')
        out->p[--out->len] = '\0';
    for (char *p = out->p + from; p < out->p + out->len; p++)
        *p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
}

int base64url_decode(struct buf *out, struct str text)
{
    struct buf plain = BUF_INIT(text.len + 4);
    int code = str_chr(text, '+') < 0 && str_chr(text, '/') < 0 ? 0 : ERR_PARSE;

    for (size_t i = 0; i < text.len; i++)
        buf_append_char(&plain, (char)(text.p[i] == '-'   ? '+'
                                       : text.p[i] == '_' ? '/'
                                                          : text.p[i]));
    while (plain.len % 4)
        buf_append_char(&plain, '=');
    if (code == 0)
        code = str_chr(text, '=') < 0 ? base64_decode(out, buf_str(&plain)) : ERR_PARSE;
    buf_release(&plain);
    return code;
}
