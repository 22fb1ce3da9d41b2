package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/engine-acceptance/acceptance/engine"
)

// Carrier faults of [Client.CallRaw]. They say that no result came; whose fault that is, the caller decides.
var (
	// ErrTimeout: no answer within the context's deadline.
	ErrTimeout = errors.New("no answer in time")
	// ErrGone: the engine's process or its pipe is gone.
	ErrGone = errors.New("the engine is gone")
	// ErrMalformed: an answer came that is no result.
	ErrMalformed = errors.New("the answer is no result")
	// ErrNotOffered: the engine has no such tool.
	ErrNotOffered = errors.New("the engine has no such tool")
)

// Client calls an engine in another process. It is safe for concurrent use. Close ends the conversation, not the process.
type Client struct {
	session *sdk.ClientSession
	tools   map[string]bool
	mapping Mapping
}

// Connect introduces itself on the engine's pipes and lists its tools. Give ctx a deadline: an engine that never answers is the caller's
// to end. The mapping is the identity for an engine that speaks the contract's names.
func Connect(ctx context.Context, out io.ReadCloser, in io.WriteCloser, names Mapping) (*Client, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "mcp-client", Version: "1"}, &sdk.ClientOptions{Logger: slog.New(slog.DiscardHandler)})
	session, err := c.Connect(ctx, &sdk.IOTransport{Reader: out, Writer: in, MaxLineLength: maxLine}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: %w", err)
	}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("list the engine's tools: %w", err), session.Close())
	}
	client := &Client{session: session, tools: map[string]bool{}, mapping: names}
	for _, t := range list.Tools {
		client.tools[t.Name] = true
	}
	return client, nil
}

// CallRaw calls one tool and returns its structured content as it came, at most [engine.MaxResult] bytes. The error wraps one of the
// carrier faults.
func (c *Client) CallRaw(ctx context.Context, op engine.Operation, args any) (json.RawMessage, error) {
	tool := c.mapping.tool(op)
	if !c.tools[tool] {
		return nil, fmt.Errorf("call %s: %w", op, ErrNotOffered)
	}
	args, err := c.mapping.arguments(args)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w: %v", op, ErrMalformed, err)
	}
	res, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("call %s: %w", op, ErrTimeout)
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), strings.Contains(err.Error(), "closed"):
		return nil, fmt.Errorf("call %s: %w", op, ErrGone)
	default:
		return nil, fmt.Errorf("call %s: %w: %v", op, ErrMalformed, err)
	}
	if res.StructuredContent == nil {
		return nil, fmt.Errorf("call %s: %w: no structured content", op, ErrMalformed)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		raw, err = c.mapping.result(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("call %s: %w: %v", op, ErrMalformed, err)
	}
	return raw, nil
}

// Call implements [engine.Engine] on the caller's side: a result with problems is an error.
func (c *Client) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	raw, err := c.CallRaw(ctx, op, args)
	if err != nil {
		return engine.Result{}, err
	}
	result, problems := engine.ParseResult(raw)
	if len(problems) > 0 {
		return engine.Result{}, fmt.Errorf("call %s: %w: %s", op, ErrMalformed, problems[0])
	}
	return result, nil
}

// Close ends the conversation.
func (c *Client) Close() error { return c.session.Close() }

var _ engine.Engine = (*Client)(nil)
