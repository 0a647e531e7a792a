// Package auth authenticates callers by API keys and limits their permissions.
//
// A key belongs to one project, or to the whole installation, and has a role, and
// perhaps a list of users, an expiry and limits. The keys are in a bucket of the
// broker, which every deployment has; the bucket holds hashes only. [Keys]
// changes the bucket, [Ring] follows it and answers from memory, so that a revoked
// key stops working as soon as the change arrives.
package auth
