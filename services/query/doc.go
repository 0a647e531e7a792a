// Package query answers over HTTP, and models over MCP.
//
//	memory store, audit log, AUDIT ─▶ query ─▶ HTTP, MCP
//	       HTTP, MCP ─▶ query ─▶ EPISODES, COMMANDS, ACCESS
//
// It reads the projections, and writes by publishing events on subjects: it never
// writes an episode or a fact itself. A waiting caller is answered from the store,
// once the outcome of its request is there.
package query
