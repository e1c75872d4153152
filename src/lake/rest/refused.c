/* Operations of lakeFS's API that weir does not serve. Each of them answers 501 with a reason. */
#include "lake/rest/web.h"

static rest_fn op_refused;

#define USERS_REASON                                                                               \
    "weir has no groups, policies or access lists of lakeFS; give rights by bucket policies, and " \
    "manage users with weir user"
#define LOGIN_REASON   "weir has no external identities; log in with an access key"
#define SETUP_REASON   "weir is set up by its configuration"
#define GC_REASON      "weir collects garbage by itself"
#define SYMLINK_REASON "weir makes no symlink files"
#define USAGE_REASON   "weir counts usage in its metrics"

/* A row for an operation that is refused. The parameters in its path are not described, because no
 * code reads them. */
#define REFUSED(method, path, access, name, why)                                                   \
    {                                                                                              \
        (method), "/api/v1" path, (access), "Answers 501: " why ".", op_refused,                   \
            .more = &(const struct web_op){name, why}, .media = "application/json", .quick = true  \
    }

static const struct rest_row refused_rows[] = {
    REFUSED(HTTP_POST, "/setup_comm_prefs", REST_ANYONE, "setupCommPrefs", SETUP_REASON),
    REFUSED(HTTP_POST, "/auth/external/principal/login", REST_ANYONE, "externalPrincipalLogin",
            LOGIN_REASON),
    REFUSED(HTTP_POST, "/sts/login", REST_ANYONE, "stsLogin", LOGIN_REASON),
    REFUSED(HTTP_GET, "/auth/groups", REST_USER, "listGroups", USERS_REASON),
    REFUSED(HTTP_POST, "/auth/groups", REST_USER, "createGroup", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/groups/{groupId}", REST_USER, "getGroup", USERS_REASON),
    REFUSED(HTTP_DELETE, "/auth/groups/{groupId}", REST_USER, "deleteGroup", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/policies", REST_USER, "listPolicies", USERS_REASON),
    REFUSED(HTTP_POST, "/auth/policies", REST_USER, "createPolicy", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/policies/{policyId}", REST_USER, "getPolicy", USERS_REASON),
    REFUSED(HTTP_PUT, "/auth/policies/{policyId}", REST_USER, "updatePolicy", USERS_REASON),
    REFUSED(HTTP_DELETE, "/auth/policies/{policyId}", REST_USER, "deletePolicy", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/groups/{groupId}/members", REST_USER, "listGroupMembers",
            USERS_REASON),
    REFUSED(HTTP_PUT, "/auth/groups/{groupId}/members/{userId}", REST_USER, "addGroupMembership",
            USERS_REASON),
    REFUSED(HTTP_DELETE, "/auth/groups/{groupId}/members/{userId}", REST_USER,
            "deleteGroupMembership", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/users/{userId}/groups", REST_USER, "listUserGroups", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/users/{userId}/policies", REST_USER, "listUserPolicies", USERS_REASON),
    REFUSED(HTTP_PUT, "/auth/users/{userId}/policies/{policyId}", REST_USER, "attachPolicyToUser",
            USERS_REASON),
    REFUSED(HTTP_DELETE, "/auth/users/{userId}/policies/{policyId}", REST_USER,
            "detachPolicyFromUser", USERS_REASON),
    REFUSED(HTTP_POST, "/auth/users/{userId}/external/principals", REST_USER,
            "createUserExternalPrincipal", LOGIN_REASON),
    REFUSED(HTTP_DELETE, "/auth/users/{userId}/external/principals", REST_USER,
            "deleteUserExternalPrincipal", LOGIN_REASON),
    REFUSED(HTTP_GET, "/auth/users/{userId}/external/principals/ls", REST_USER,
            "listUserExternalPrincipals", LOGIN_REASON),
    REFUSED(HTTP_GET, "/auth/external/principals", REST_USER, "getExternalPrincipal", LOGIN_REASON),
    REFUSED(HTTP_GET, "/auth/groups/{groupId}/policies", REST_USER, "listGroupPolicies",
            USERS_REASON),
    REFUSED(HTTP_PUT, "/auth/groups/{groupId}/policies/{policyId}", REST_USER,
            "attachPolicyToGroup", USERS_REASON),
    REFUSED(HTTP_DELETE, "/auth/groups/{groupId}/policies/{policyId}", REST_USER,
            "detachPolicyFromGroup", USERS_REASON),
    REFUSED(HTTP_POST, "/auth/groups/{groupId}/acl", REST_USER, "setGroupACL", USERS_REASON),
    REFUSED(HTTP_GET, "/auth/groups/{groupId}/acl", REST_USER, "getGroupACL", USERS_REASON),
    REFUSED(HTTP_POST, "/repositories/{repository}/refs/{branch}/symlink", REST_USER,
            "createSymlinkFile", SYMLINK_REASON),
    REFUSED(HTTP_POST, "/repositories/{repository}/gc/prepare_commits", REST_USER,
            "prepareGarbageCollectionCommits", GC_REASON),
    REFUSED(HTTP_POST, "/repositories/{repository}/gc/prepare_commits/async", REST_USER,
            "prepareGarbageCollectionCommitsAsync", GC_REASON),
    REFUSED(HTTP_GET, "/repositories/{repository}/gc/prepare_commits/status", REST_USER,
            "prepareGarbageCollectionCommitsStatus", GC_REASON),
    REFUSED(HTTP_POST, "/repositories/{repository}/gc/prepare_uncommited", REST_USER,
            "prepareGarbageCollectionUncommitted", GC_REASON),
    REFUSED(HTTP_GET, "/usage-report/summary", REST_USER, "getUsageReportSummary", USAGE_REASON),
    REFUSED(HTTP_GET, "/oidc/callback", REST_ANYONE, "oauthCallback", LOGIN_REASON),
};
const struct rest_table web_refused_rows = WEB_ROWS(refused_rows);

static int op_refused(struct rest_call *c, struct err *err)
{
    const struct web_op *op = c->row->more;

    return err_set(err, ERR_UNSUPPORTED, "%s is not served: %s", op->id, op->reason);
}
