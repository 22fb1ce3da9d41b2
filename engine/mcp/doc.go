// Package mcp carries an engine over the Model Context Protocol on standard input and output: [Serve] on the engine's side, [Client] on the
// caller's. Every tool of [engine.Operations] is one MCP tool; its structured content is one [engine.Result]. A refusal is an ordinary
// result, not an MCP error, so that its code is always machine-readable.
package mcp
