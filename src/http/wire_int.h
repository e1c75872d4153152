/* Tables that the parsers of heads and trailers share; only for the files that implement wire.h. */
#ifndef HTTP_WIRE_INT_H
#define HTTP_WIRE_INT_H

#include "http/wire.h"

/* The characters that header names and methods may have: tchar of RFC 9110 section 5.6.2. */
extern const bool http_token_char[256];

/* Whether a header's value may contain this byte: tab, space, visible characters and bytes from
 * 0x80 on, but no other control character (RFC 9110 section 5.5). */
static inline bool http_value_char(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

#endif
