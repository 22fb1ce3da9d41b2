package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/engine-acceptance/acceptance/engine"
)

// maxLine bounds one message in either direction: the arguments or the result, with room for the carrier's own fields.
const maxLine = engine.MaxResult + 1<<16

// Serve answers calls for e on in and out until ctx ends or in is closed. Calls run concurrently. version is printed to clients.
func Serve(ctx context.Context, e engine.Engine, version string, in io.ReadCloser, out io.WriteCloser) error {
	server := sdk.NewServer(&sdk.Implementation{Name: "acceptance-engine", Version: version}, &sdk.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	output, err := jsonschema.For[engine.Result](nil)
	if err != nil {
		return fmt.Errorf("describe results: %w", err)
	}
	for _, op := range engine.Operations {
		input, err := inputSchema(op)
		if err != nil {
			return fmt.Errorf("describe %s: %w", op, err)
		}
		server.AddTool(&sdk.Tool{Name: string(op), Description: descriptions[op], InputSchema: input, OutputSchema: output}, handler(e, op))
	}
	return server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine})
}

// handler hands the raw arguments on: the engine checks them itself and answers with a refusal that has a code.
func handler(e engine.Engine, op engine.Operation) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		result, err := e.Call(ctx, op, req.Params.Arguments)
		if err != nil {
			return nil, err
		}
		text := "ok"
		if result.Refusal != nil {
			text = fmt.Sprintf("refused (%s)", result.Refusal.Code)
		}
		body, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("encode the result of %s: %w", op, err)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(body)}, nil
	}
}

// inputSchema is the published schema of a tool's arguments.
func inputSchema(op engine.Operation) (*jsonschema.Schema, error) {
	switch op {
	case engine.OpDeclaration:
		return &jsonschema.Schema{Type: "object"}, nil
	case engine.OpSessionStart, engine.OpSessionEnd:
		return jsonschema.For[engine.SessionRequest](nil)
	case engine.OpPrepare:
		return jsonschema.For[engine.PrepareRequest](nil)
	case engine.OpState:
		return jsonschema.For[engine.StateRequest](nil)
	case engine.OpNavigate:
		return jsonschema.For[engine.NavigateRequest](nil)
	case engine.OpClick:
		return jsonschema.For[engine.ClickRequest](nil)
	case engine.OpType:
		return jsonschema.For[engine.TypeRequest](nil)
	case engine.OpContext:
		return jsonschema.For[engine.ContextRequest](nil)
	default:
		return jsonschema.For[engine.ActRequest](nil)
	}
}

var descriptions = map[engine.Operation]string{
	engine.OpDeclaration:  "What this engine declares: the total table of actions, routes, deliveries and states.",
	engine.OpSessionStart: "Start a session: the scope of everything that is minted later.",
	engine.OpSessionEnd:   "End a session: revokes everything minted in it, ends its browser, removes its profile. Idempotent.",
	engine.OpPrepare:      "Launch an isolated browser, or ask to attach to a running one.",
	engine.OpState:        "Bind a native window (mode bind) or list what can be acted on in a tab (mode snapshot).",
	engine.OpNavigate:     "Load a URL (http, https, about) in a tab, in the background.",
	engine.OpClick:        "Activate a control named by a ref.",
	engine.OpType:         "Enter text into a control named by a ref.",
	engine.OpPointer:      "Hover, double click, right click, scroll or drag.",
	engine.OpSelect:       "Choose an option.",
	engine.OpDialog:       "Inspect or answer a dialog.",
	engine.OpUpload:       "Set the files of a file control.",
	engine.OpDownload:     "Download through a control.",
	engine.OpContext:      "Open or close a tab.",
	engine.OpScreenshot:   "A picture of a tab.",
}
