/* Website configurations: reads and writes them, and finds the object or redirect for a key. */
#include "s3/documents/website.h"

#include "http/wire.h"
#include "meta/document.h"

static int website_read_status(const struct xml_node *node, const char *name, int low, int high,
                               int *out, struct err *err)
{
    int64_t status = 0;
    int code = document_i64(node, name, &status, err);

    if (code < 0 || !xml_child(node, name))
        return code;
    if (status < low || status > high)
        return err_set(err, S3_INVALID_REQUEST, "The provided HTTP redirect code is not valid");
    *out = (int)status;
    return 0;
}

static int check_protocol(struct str protocol, struct err *err)
{
    if (protocol.len && !str_eq(protocol, STR("http")) && !str_eq(protocol, STR("https")))
        return err_set(err, S3_INVALID_REQUEST,
                       "Invalid protocol, protocol can be http or https. If not defined the "
                       "protocol will be selected automatically.");
    return 0;
}

static int read_redirect(struct website_redirect *out, const struct xml_node *node, struct err *err)
{
    int code = document_shape(node,
                              "Protocol? HostName? ReplaceKeyPrefixWith? ReplaceKeyWith? "
                              "HttpRedirectCode?",
                              err);

    if (code < 0)
        return code;
    if (!node->children)
        return err_set(err, S3_MALFORMED_XML, "Redirect is empty");
    out->protocol = xml_child_text(node, "Protocol", STR_EMPTY);
    out->host = xml_child_text(node, "HostName", STR_EMPTY);
    out->has_replace_prefix = xml_child(node, "ReplaceKeyPrefixWith") != NULL;
    out->replace_prefix = xml_child_text(node, "ReplaceKeyPrefixWith", STR_EMPTY);
    out->replace_key = xml_child_text(node, "ReplaceKeyWith", STR_EMPTY);
    if (out->has_replace_prefix && xml_child(node, "ReplaceKeyWith"))
        return err_set(err, S3_INVALID_REQUEST,
                       "You can only define ReplaceKeyPrefix or ReplaceKey but not both.");
    code = website_read_status(node, "HttpRedirectCode", 300, 399, &out->status, err);
    return code == 0 ? check_protocol(out->protocol, err) : code;
}

static int website_read_rule(struct website_rule *rule, const struct xml_node *node,
                             struct err *err)
{
    const struct xml_node *condition = xml_child(node, "Condition");
    int code = document_shape(node, "Condition? Redirect!", err);

    if (code == 0 && condition) {
        code = document_shape(condition, "KeyPrefixEquals? HttpErrorCodeReturnedEquals?", err);
        if (code == 0 && !condition->children)
            code = err_set(err, S3_MALFORMED_XML, "Condition is empty");
        rule->key_prefix = xml_child_text(condition, "KeyPrefixEquals", STR_EMPTY);
        if (code == 0)
            code = website_read_status(condition, "HttpErrorCodeReturnedEquals", 400, 599,
                                       &rule->on_status, err);
    }
    return code == 0 ? read_redirect(&rule->redirect, xml_child(node, "Redirect"), err) : code;
}

static int website_read_rules(struct website *site, struct arena *a, const struct xml_node *node,
                              struct err *err)
{
    size_t count = document_count(node, "RoutingRule");
    const struct xml_node *rule = xml_child(node, "RoutingRule");
    int code = document_shape(node, "RoutingRule*", err);

    if (code == 0 && count > WEBSITE_MAX_RULES)
        code = err_set(err, S3_INVALID_REQUEST, "A website has at most %d routing rules",
                       WEBSITE_MAX_RULES);
    if (code < 0)
        return code;
    site->rules = arena_array(a, count, sizeof(*site->rules));
    if (count && !site->rules)
        return err_code(err, ERR_NO_MEMORY);
    for (; rule && code == 0; rule = xml_next(rule, "RoutingRule"))
        code = website_read_rule(&site->rules[site->rule_count++], rule, err);
    return code;
}

static int read_redirect_all(struct website *site, const struct xml_node *root, struct err *err)
{
    const struct xml_node *node = xml_child(root, "RedirectAllRequestsTo");
    int code = document_shape(node, "HostName! Protocol?", err);

    if (code < 0)
        return code;
    if (node->next || root->children != node)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "RedirectAllRequestsTo cannot be provided in conjunction with other "
                       "elements.");
    site->redirect_all.host = xml_child(node, "HostName")->text;
    site->redirect_all.protocol = xml_child_text(node, "Protocol", STR_EMPTY);
    if (site->redirect_all.host.len == 0)
        return err_set(err, S3_INVALID_ARGUMENT, "HostName is empty");
    return check_protocol(site->redirect_all.protocol, err);
}

static int read_pages(struct website *site, struct arena *a, const struct xml_node *root,
                      struct err *err)
{
    const struct xml_node *index = xml_child(root, "IndexDocument");
    const struct xml_node *error = xml_child(root, "ErrorDocument");
    const struct xml_node *rules = xml_child(root, "RoutingRules");
    int code;

    if (!index)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "A value for IndexDocument Suffix must be provided if "
                       "RedirectAllRequestsTo is empty");
    code = document_shape(index, "Suffix!", err);
    if (code < 0)
        return code;
    site->index = xml_child(index, "Suffix")->text;
    if (site->index.len == 0 || str_chr(site->index, '/') >= 0)
        return err_set(err, S3_INVALID_ARGUMENT, "The IndexDocument Suffix is not well formed");
    if (error)
        code = document_shape(error, "Key!", err);
    if (code == 0 && error) {
        site->error = xml_child(error, "Key")->text;
        if (site->error.len == 0)
            code = err_set(err, S3_INVALID_ARGUMENT, "The ErrorDocument Key is not well formed");
    }
    return code == 0 && rules ? website_read_rules(site, a, rules, err) : code;
}

int website_read(struct website *out, struct arena *a, struct str xml, struct err *err)
{
    struct website site = {0};
    struct xml_node *root;
    int code = document_read(&root, a, xml, "WebsiteConfiguration", err);

    if (code == 0)
        code = document_shape(
            root, "RedirectAllRequestsTo? IndexDocument? ErrorDocument? RoutingRules?", err);
    if (code < 0)
        return code;
    code = xml_child(root, "RedirectAllRequestsTo") ? read_redirect_all(&site, root, err)
                                                    : read_pages(&site, a, root, err);
    if (code == 0)
        *out = site;
    return code;
}

static void write_text(struct buf *out, const char *name, struct str text)
{
    if (text.len)
        xml_element(out, name, text);
}

static void write_redirect(struct buf *out, const struct website_redirect *redirect)
{
    xml_open(out, "Redirect");
    write_text(out, "Protocol", redirect->protocol);
    write_text(out, "HostName", redirect->host);
    if (redirect->has_replace_prefix)
        xml_element(out, "ReplaceKeyPrefixWith", redirect->replace_prefix);
    write_text(out, "ReplaceKeyWith", redirect->replace_key);
    xml_element_u64(out, "HttpRedirectCode", redirect->status ? (uint64_t)redirect->status : 301);
    xml_close(out, "Redirect");
}

static void website_write_rule(struct buf *out, const struct website_rule *rule)
{
    xml_open(out, "RoutingRule");
    if (rule->key_prefix.len || rule->on_status) {
        xml_open(out, "Condition");
        write_text(out, "KeyPrefixEquals", rule->key_prefix);
        if (rule->on_status)
            xml_element_u64(out, "HttpErrorCodeReturnedEquals", (uint64_t)rule->on_status);
        xml_close(out, "Condition");
    }
    write_redirect(out, &rule->redirect);
    xml_close(out, "RoutingRule");
}

static void write_pages(struct buf *out, const struct website *site)
{
    xml_open(out, "IndexDocument");
    xml_element(out, "Suffix", site->index);
    xml_close(out, "IndexDocument");
    if (site->error.len) {
        xml_open(out, "ErrorDocument");
        xml_element(out, "Key", site->error);
        xml_close(out, "ErrorDocument");
    }
    if (site->rule_count) {
        xml_open(out, "RoutingRules");
        for (size_t i = 0; i < site->rule_count; i++)
            website_write_rule(out, &site->rules[i]);
        xml_close(out, "RoutingRules");
    }
}

void website_write(struct buf *out, const struct website *site)
{
    document_open(out, "WebsiteConfiguration");
    if (site->redirect_all.host.len) {
        xml_open(out, "RedirectAllRequestsTo");
        xml_element(out, "HostName", site->redirect_all.host);
        write_text(out, "Protocol", site->redirect_all.protocol);
        xml_close(out, "RedirectAllRequestsTo");
    } else {
        write_pages(out, site);
    }
    xml_close(out, "WebsiteConfiguration");
}

struct str website_key(const struct website *site, struct arena *a, struct str key)
{
    if (key.len && key.p[key.len - 1] != '/')
        return key;
    return arena_fmt(a, STR_FMT STR_FMT, STR_ARG(key), STR_ARG(site->index));
}

const struct website_rule *website_rule(const struct website *site, struct str key, int status)
{
    for (size_t i = 0; i < site->rule_count; i++)
        if (site->rules[i].on_status == status && str_starts(key, site->rules[i].key_prefix))
            return &site->rules[i];
    return NULL;
}

void website_location(struct buf *out, const struct website_redirect *redirect, struct str prefix,
                      struct str key, struct str protocol, struct str host)
{
    buf_append_str(out, redirect->protocol.len ? redirect->protocol : protocol);
    buf_append_z(out, "://");
    buf_append_str(out, redirect->host.len ? redirect->host : host);
    buf_append_char(out, '/');
    if (redirect->replace_key.len) {
        url_encode(out, redirect->replace_key, true);
        return;
    }
    if (redirect->has_replace_prefix) {
        url_encode(out, redirect->replace_prefix, true);
        key = str_skip(key, prefix.len);
    }
    url_encode(out, key, true);
}
