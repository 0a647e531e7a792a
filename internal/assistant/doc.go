// Package assistant connects Palimpsest to the assistants that people run: it plans
// the changes of their configuration files, and answers their hooks.
//
// A plan adds the MCP server and hooks to the files of one assistant, or removes
// them. It keeps everything else in the files, and nothing is written before the
// plan is applied.
//
// A hook is a command that the assistant starts at an event, with the event as JSON
// on standard input. At the start of a session and at a prompt the answer is the
// known facts, as additional context in the format that the assistant documents.
// Prompts and replies are recorded; before the assistant compacts a conversation,
// and at its end, the session is ended so that it is consolidated.
package assistant
