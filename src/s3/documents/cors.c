/* Reads, writes and matches the cross-origin rules of a bucket. */
#include "s3/documents/cors.h"

#include "meta/document.h"

static const char *const methods[] = {"GET", "PUT", "POST", "DELETE", "HEAD"};

static size_t stars(struct str s)
{
    size_t count = 0;

    for (size_t i = 0; i < s.len; i++)
        count += s.p[i] == '*';
    return count;
}

static int read_list(struct str_list *out, struct arena *a, const struct xml_node *rule,
                     const char *name, struct err *err)
{
    size_t count = document_count(rule, name);
    const struct xml_node *child = xml_child(rule, name);

    out->items = arena_array(a, count, sizeof(*out->items));
    if (count && !out->items)
        return err_code(err, ERR_NO_MEMORY);
    for (; child; child = xml_next(child, name))
        out->items[out->count++] = child->text;
    return 0;
}

static int check_wildcards(const struct str_list *list, const char *name, size_t most,
                           struct err *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (stars(list->items[i]) > most)
            return err_set(
                err, S3_INVALID_REQUEST,
                most ? "%s can not have more than one wildcard." : "%s contains wildcard.", name);
    return 0;
}

/* Refuses control characters, because the values become headers of responses. */
static int check_printable(const struct str_list *list, const char *name, struct err *err)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < list->items[i].len; k++)
            if ((unsigned char)list->items[i].p[k] < 0x20 || list->items[i].p[k] == 0x7f)
                return err_set(err, S3_INVALID_REQUEST, "%s contains a control character.", name);
    return 0;
}

static int cors_check_list(const struct str_list *list, const char *name, size_t most_wildcards,
                           struct err *err)
{
    int code = check_printable(list, name, err);

    return code < 0 ? code : check_wildcards(list, name, most_wildcards, err);
}

static int check_rule(const struct cors_rule *rule, struct err *err)
{
    int code = cors_check_list(&rule->origins, "AllowedOrigin", 1, err);

    if (code == 0)
        code = cors_check_list(&rule->headers, "AllowedHeader", 1, err);
    if (code == 0)
        code = cors_check_list(&rule->expose, "ExposeHeader", 0, err);
    if (code == 0)
        code = check_printable(&rule->methods, "AllowedMethod", err);
    for (size_t i = 0; i < rule->methods.count && code == 0; i++)
        if (document_choice(rule->methods.items[i], methods, ARRAY_SIZE(methods)) < 0)
            code = err_set(err, S3_INVALID_REQUEST,
                           "Found unsupported HTTP method in CORS config. Unsupported method is "
                           "%.*s",
                           (int)size_min(rule->methods.items[i].len, 32),
                           rule->methods.items[i].p ? rule->methods.items[i].p : "");
    if (code == 0 && rule->id.len > 255)
        code = err_set(err, S3_MALFORMED_XML, "ID is longer than 255 characters");
    return code;
}

static int cors_read_rule(struct cors_rule *rule, struct arena *a, const struct xml_node *node,
                          struct err *err)
{
    int code = document_shape(node,
                              "ID? AllowedOrigin+ AllowedMethod+ AllowedHeader* ExposeHeader* "
                              "MaxAgeSeconds?",
                              err);

    rule->max_age = -1;
    rule->id = xml_child_text(node, "ID", STR_EMPTY);
    if (code == 0)
        code = read_list(&rule->origins, a, node, "AllowedOrigin", err);
    if (code == 0)
        code = read_list(&rule->methods, a, node, "AllowedMethod", err);
    if (code == 0)
        code = read_list(&rule->headers, a, node, "AllowedHeader", err);
    if (code == 0)
        code = read_list(&rule->expose, a, node, "ExposeHeader", err);
    if (code == 0)
        code = document_i64(node, "MaxAgeSeconds", &rule->max_age, err);
    if (code == 0 && xml_child(node, "MaxAgeSeconds") && rule->max_age < 0)
        code = err_set(err, S3_MALFORMED_XML, "MaxAgeSeconds is negative");
    return code == 0 ? check_rule(rule, err) : code;
}

int cors_read(struct cors *out, struct arena *a, struct str xml, struct err *err)
{
    struct cors cors = {0};
    struct xml_node *root, *node;
    int code;

    if (xml.len > CORS_MAX_BYTES)
        return err_set(err, S3_MALFORMED_XML, "A CORS configuration has at most %d bytes",
                       CORS_MAX_BYTES);
    code = document_read(&root, a, xml, "CORSConfiguration", err);
    if (code == 0)
        code = document_shape(root, "CORSRule+", err);
    if (code < 0)
        return code;
    if (document_count(root, "CORSRule") > CORS_MAX_RULES)
        return err_set(err, S3_MALFORMED_XML, "A CORS configuration has at most %d rules",
                       CORS_MAX_RULES);
    cors.rules = arena_array(a, CORS_MAX_RULES, sizeof(*cors.rules));
    if (!cors.rules)
        return err_code(err, ERR_NO_MEMORY);
    for (node = xml_child(root, "CORSRule"); node && code == 0; node = xml_next(node, "CORSRule"))
        code = cors_read_rule(&cors.rules[cors.count++], a, node, err);
    if (code == 0)
        *out = cors;
    return code;
}

static void cors_write_list(struct buf *out, const char *name, const struct str_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        xml_element(out, name, list->items[i]);
}

void cors_write(struct buf *out, const struct cors *cors)
{
    document_open(out, "CORSConfiguration");
    for (size_t i = 0; i < cors->count; i++) {
        const struct cors_rule *rule = &cors->rules[i];
        xml_open(out, "CORSRule");
        if (rule->id.len)
            xml_element(out, "ID", rule->id);
        cors_write_list(out, "AllowedOrigin", &rule->origins);
        cors_write_list(out, "AllowedMethod", &rule->methods);
        cors_write_list(out, "AllowedHeader", &rule->headers);
        cors_write_list(out, "ExposeHeader", &rule->expose);
        if (rule->max_age >= 0)
            xml_element_u64(out, "MaxAgeSeconds", (uint64_t)rule->max_age);
        xml_close(out, "CORSRule");
    }
    xml_close(out, "CORSConfiguration");
}

/* Whether `s` matches `pattern`, which has at most one star. */
static bool wildcard_match(struct str pattern, struct str s, bool fold_case)
{
    struct str front, back;
    bool (*equal)(struct str, struct str) = fold_case ? str_ieq : str_eq;

    if (!str_cut(pattern, '*', &front, &back))
        return equal(pattern, s);
    return s.len >= front.len + back.len && equal(str_head(s, front.len), front) &&
           equal(str_skip(s, s.len - back.len), back);
}

static bool list_has(const struct str_list *list, struct str s, bool fold_case)
{
    for (size_t i = 0; i < list->count; i++)
        if (wildcard_match(list->items[i], s, fold_case))
            return true;
    return false;
}

static bool headers_allowed(const struct cors_rule *rule, struct str headers)
{
    struct str name;

    while (str_token(&headers, ",", &name)) {
        name = str_trim(name);
        if (name.len && !list_has(&rule->headers, name, true))
            return false;
    }
    return true;
}

static bool has_any_origin(const struct cors_rule *rule)
{
    for (size_t i = 0; i < rule->origins.count; i++)
        if (str_eq(rule->origins.items[i], STR("*")))
            return true;
    return false;
}

bool cors_match(const struct cors *cors, const struct cors_request *request,
                struct cors_answer *out)
{
    for (size_t i = 0; i < cors->count; i++) {
        const struct cors_rule *rule = &cors->rules[i];
        if (!list_has(&rule->origins, request->origin, false) ||
            !list_has(&rule->methods, request->method, false) ||
            !headers_allowed(rule, request->headers))
            continue;
        *out = (struct cors_answer){rule, *request, has_any_origin(rule)};
        return true;
    }
    return false;
}

int cors_preflight(const struct cors *cors, const struct cors_request *request,
                   struct cors_answer *out, struct err *err)
{
    if (request->origin.len == 0)
        return err_set(err, S3_BAD_REQUEST,
                       "Insufficient information. Origin request header needed.");
    if (request->method.len == 0)
        return err_set(err, S3_BAD_REQUEST,
                       "Invalid Access-Control-Request-Method: it is not given");
    if (!cors)
        return err_set(err, S3_ACCESS_FORBIDDEN,
                       "CORSResponse: CORS is not enabled for this bucket.");
    if (!cors_match(cors, request, out))
        return s3_fail(err, S3_ACCESS_FORBIDDEN);
    return 0;
}

static struct str joined(struct arena *a, const struct str_list *list)
{
    struct buf text = {0};
    struct str s;

    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            buf_append_z(&text, ", ");
        buf_append_str(&text, list->items[i]);
    }
    s = arena_str(a, buf_str(&text));
    buf_release(&text);
    return s;
}

size_t cors_headers(const struct cors_answer *answer, struct arena *a,
                    struct http_header out[CORS_MAX_HEADERS])
{
    const struct cors_rule *rule = answer->rule;
    size_t n = 0;

    out[n++] = (struct http_header){STR("Access-Control-Allow-Origin"),
                                    answer->any_origin ? STR("*") : answer->request.origin};
    out[n++] = (struct http_header){STR("Access-Control-Allow-Methods"), joined(a, &rule->methods)};
    if (answer->request.headers.len)
        out[n++] =
            (struct http_header){STR("Access-Control-Allow-Headers"), answer->request.headers};
    if (rule->expose.count)
        out[n++] =
            (struct http_header){STR("Access-Control-Expose-Headers"), joined(a, &rule->expose)};
    if (rule->max_age >= 0)
        out[n++] = (struct http_header){STR("Access-Control-Max-Age"),
                                        arena_fmt(a, "%lld", (long long)rule->max_age)};
    if (!answer->any_origin)
        out[n++] = (struct http_header){STR("Access-Control-Allow-Credentials"), STR("true")};
    out[n++] = (struct http_header){
        STR("Vary"), STR("Origin, Access-Control-Request-Headers, Access-Control-Request-Method")};
    return n;
}
