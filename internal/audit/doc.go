// Package audit is the contract of the AUDIT stream and of its readable copy. The
// Journal is the stream: to append to it is the commit. The Log answers queries about
// it; its backends are sibling folders, and audittest is the suite that each must pass.
package audit
