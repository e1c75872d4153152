/* What heads and trailers share; for the files of wire.h only. */
#ifndef HTTP_WIRE_INT_H
#define HTTP_WIRE_INT_H

#include "http/wire.h"

/* tchar of RFC 9110 section 5.6.2: what names and methods are made of. */
extern const bool http_token_char[256];

/* May a field value hold this byte? Tab, space, visible and obs-text; no other control (9110 5.5).
 */
static inline bool http_value_char(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

#endif
