package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/mcp"
)

// answer is an engine that gives one fixed answer and keeps what it was asked.
type answer struct {
	result engine.Result
	asked  chan json.RawMessage
}

func (a *answer) Call(_ context.Context, _ engine.Operation, args json.RawMessage) (engine.Result, error) {
	a.asked <- args
	return a.result, nil
}

// connect joins a client to a server over two pipes.
func connect(t *testing.T, e engine.Engine) *mcp.Client {
	t.Helper()
	g := gomega.NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	toServerR, toServerW := io.Pipe()
	toClientR, toClientW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcp.Serve(ctx, e, "test", toServerR, toClientW) }()
	client, err := mcp.Connect(ctx, toClientR, toServerW, mcp.Mapping{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { client.Close(); cancel(); <-done })
	return client
}

func TestCall(t *testing.T) {
	t.Run("a_refusal_travels_with_its_code_and_detail", func(t *testing.T) {
		g := gomega.NewWithT(t)
		want := engine.Refusal{Code: engine.CodeRefStale, Operation: engine.OpClick, Trigger: "ref_retired", Detail: engine.Detail{Reason: "snapshot"}}
		a := &answer{result: engine.Refused(&want), asked: make(chan json.RawMessage, 1)}
		got, err := connect(t, a).Call(t.Context(), engine.OpClick, json.RawMessage(`{"session":"x","unknown_field":1}`))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(*got.Refusal).To(gomega.Equal(want))
		g.Expect(string(<-a.asked)).To(gomega.ContainSubstring("unknown_field"), "arguments reach the engine unchecked, so that it refuses them itself")
	})
	t.Run("a_tool_that_is_not_there_is_not_offered", func(t *testing.T) {
		g := gomega.NewWithT(t)
		_, err := connect(t, &answer{asked: make(chan json.RawMessage, 1)}).Call(t.Context(), "browser_teleport", nil)
		g.Expect(err).To(gomega.MatchError(mcp.ErrNotOffered))
	})
	t.Run("a_result_without_status_is_malformed", func(t *testing.T) {
		g := gomega.NewWithT(t)
		_, err := connect(t, &answer{asked: make(chan json.RawMessage, 1)}).Call(t.Context(), engine.OpClick, json.RawMessage(`{}`))
		g.Expect(err).To(gomega.MatchError(mcp.ErrMalformed))
	})
}

// An engine from elsewhere has names of its own; what comes back has the contract's.
func TestMapping(t *testing.T) {
	g := gomega.NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server := sdk.NewServer(&sdk.Implementation{Name: "acme", Version: "1"}, nil)
	asked := make(chan string, 1)
	answer := `{"outcome":"ok","snapshot":{"snapshot_id":"s","refs":[{"element":"e1","role":"button"}]}}`
	server.AddTool(&sdk.Tool{Name: "page_click", InputSchema: &jsonschema.Schema{Type: "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		asked <- string(r.Params.Arguments)
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(answer)}, nil
	})
	toServerR, toServerW := io.Pipe()
	toClientR, toClientW := io.Pipe()
	go func() { _ = server.Run(ctx, &sdk.IOTransport{Reader: toServerR, Writer: toClientW}) }()
	client, err := mcp.Connect(ctx, toClientR, toServerW, mcp.Mapping{Tools: map[engine.Operation]string{engine.OpClick: "page_click"},
		Arguments: map[string]string{"ref": "element"}, Results: map[string]string{"element": "ref", "outcome": "status"}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer client.Close()
	raw, err := client.CallRaw(ctx, engine.OpClick, map[string]any{"ref": "e1", "session": "x"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(<-asked).To(gomega.MatchJSON(`{"element":"e1","session":"x"}`))
	g.Expect(string(raw)).To(gomega.MatchJSON(`{"status":"ok","snapshot":{"snapshot_id":"s","refs":[{"ref":"e1","role":"button"}]}}`))
	_, err = client.CallRaw(ctx, engine.OpType, map[string]any{})
	g.Expect(err).To(gomega.MatchError(mcp.ErrNotOffered), "what is not mapped has the contract's name, and this engine has no such tool")
	answer = `{"outcome":"ok","status":"refused"}`
	_, err = client.CallRaw(ctx, engine.OpClick, map[string]any{})
	<-asked
	g.Expect(err).To(gomega.MatchError(mcp.ErrMalformed), "a field under two names is no result")
}
