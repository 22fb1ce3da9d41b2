package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// leaks are engines that tell too much, or tell it to the wrong one.
func leaks() []Mutant {
	return []Mutant{
		{Name: "logs-what-is-typed", Seam: SeamReceipt, Text: "writes typed text to its standard error", Rows: []string{"raw-output-clean"},
			Kills: kills("P10", "engine_leaked"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpType {
					fmt.Fprintf(os.Stderr, "typing %q\n", text(args, "text"))
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "keeps-what-is-typed", Seam: SeamStore, Text: "writes typed text to a file of its own", Rows: []string{"artifacts-clean"},
			Kills: kills("P8", "engine_leaked"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpType {
					_ = os.WriteFile(filepath.Join(os.Getenv("XDG_STATE_HOME"), "last-typed"), []byte(text(args, "text")), 0o600)
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "reports-for-the-page", Seam: SeamAdapter, Text: "posts a report of its own to the fixture server in the page's name", Rows: []string{"type-insert*"},
			Kills: kills("M18", "journal_forged"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &forger{n: n} } }},
	}
}

// forger posts to where the last page came from.
type forger struct {
	n    next
	page string
}

// Call implements [engine.Engine].
func (f *forger) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if u := text(args, "url"); strings.HasPrefix(u, "http") {
		f.page = u
	}
	if op == engine.OpType && f.page != "" {
		f.post(ctx)
	}
	return f.n.Call(ctx, op, args)
}

func (f *forger) post(ctx context.Context) {
	at, err := url.Parse(f.page)
	if err != nil {
		return
	}
	at = at.ResolveReference(&url.URL{Path: "-/report"})
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(`page e 1 00 {"t":"input","c":"full-name","v":"Ada","u":true,"x":{}}`))
	if err != nil {
		return
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
