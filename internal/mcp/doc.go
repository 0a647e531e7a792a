// Package mcp lets a model use the memory over the Model Context Protocol.
//
//	MCP client ─▶ stdio, streamable HTTP ─▶ tools, resources, prompts ─▶ Memory: the native HTTP API
//
// Tools are the same over both transports. They call the native API and have no
// access of their own to stores or streams. Their errors are sentences that tell
// a model what to do next.
package mcp
