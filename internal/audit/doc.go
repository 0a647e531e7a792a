// Package audit is the contract of the truth and of its readable copy. The
// Journal is the AUDIT stream: appending to it is the commit. The Log answers
// questions about it; its backends are sibling folders, and audittest is the
// suite that each must pass.
package audit
