// Package filter holds portable conditions on facts, episodes and audit records:
// their syntax tree, the parsers of its two notations, JSON and the WHERE fragment
// of SQL, and [Match], which defines what a filter means. [Weaken] translates a
// filter for a backend as far as the backend can express it.
//
// The rules of comparison: numbers compare as numbers; strings of metadata that are
// both RFC 3339 or a date compare as times; other strings compare by code point; a
// string never equals a number. A list matches if any element does. A field that is
// missing, null or, where it is built in, empty matches nothing but ne, nin and NOT.
package filter
