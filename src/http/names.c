/* Texts of HTTP methods and status codes. */
#include "http/wire.h"

static const struct str methods[] = {
    [HTTP_GET] = {"GET", 3},     [HTTP_HEAD] = {"HEAD", 4},     [HTTP_PUT] = {"PUT", 3},
    [HTTP_POST] = {"POST", 4},   [HTTP_DELETE] = {"DELETE", 6}, [HTTP_OPTIONS] = {"OPTIONS", 7},
    [HTTP_PATCH] = {"PATCH", 5},
};

/* The texts of the HTTP status codes. Source: RFC 9110 section 15 and RFC 6585. */
static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {206, "Partial Content"},
    {204, "No Content"},
    {304, "Not Modified"},
    {404, "Not Found"},
    {100, "Continue"},
    {101, "Switching Protocols"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {205, "Reset Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

enum http_method http_method(struct str text)
{
    for (size_t m = 0; m < ARRAY_SIZE(methods); m++)
        if (str_eq(text, methods[m]))
            return (enum http_method)m;
    return HTTP_METHOD_OTHER;
}

const char *http_method_name(enum http_method m)
{
    return m < HTTP_METHOD_OTHER ? methods[m].p : "OTHER";
}

const char *http_reason(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}
