// Package transcript reads conversations and memories that other programs exported:
// ChatGPT and Claude (conversations.json, also inside their archives), mem0, Zep and
// Graphiti, and lines of JSON.
//
// A file is a sequence of JSON values. Each value, or each element of an array, is
// recognised by its members, so that no format needs to be named. A message has an id
// that follows from the source alone: the same export read twice gives the same ids.
package transcript
