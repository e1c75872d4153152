/* Bytes to hexadecimal digits and back. */
#include "base/hex.h"

void hex_write(char *out, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        *out++ = digits[from[i] >> 4];
        *out++ = digits[from[i] & 15];
    }
}

bool hex_parse_any_case(struct str text, void *out, size_t len)
{
    unsigned char *to = out;

    if (text.len / 2 != len || text.len % 2)
        return false;
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);
        if ((high | low) < 0)
            return false;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool hex_parse(struct str text, void *out, size_t len)
{
    if (!hex_parse_any_case(text, out, len))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] >= 'A' && text.p[i] <= 'F')
            return false;
    return true;
}
