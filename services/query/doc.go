// Package query answers over HTTP, and models over MCP.
//
//	memory store, audit log, AUDIT ─▶ query ─▶ HTTP, MCP
//	       HTTP, MCP ─▶ query ─▶ EPISODES, COMMANDS, ACCESS
//
// It reads the projections. What it writes is an event on a subject, like
// anyone's: it never writes an episode or a fact itself. A caller who waits is
// answered from the store, once the outcome of its request is there.
package query
