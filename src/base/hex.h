/* Bytes to hexadecimal digits and back. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include "base/str.h"

/* Returns the value of a digit in either case, 0 to 15, or -1 when `c` is not a hexadecimal digit.
 */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes 2 * len digits in lower case, without a NUL. */
void hex_write(char *out, const void *bytes, size_t len);

/* These functions read a text of exactly 2 * `len` digits. They return false when the text is
 * anything else; `out` may then be partly written. hex_parse accepts only lower case, as
 * hex_write() writes it, so that each value has exactly one text. */
bool hex_parse(struct str text, void *out, size_t len);
bool hex_parse_any_case(struct str text, void *out, size_t len);

#endif
