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
	"sync/atomic"
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
		{Name: "names-what-the-browser-issued", Seam: SeamReceipt, Text: "gives the browser's own name of a tab as the name of its generation", Rows: []string{"identifiers-hidden"},
			Kills: kills("B23", "identifier_leaked"),
			parts: func(p *Parts) {
				l := &launches{Adapter: p.Adapter}
				p.Adapter = l
				p.Wrap = func(n engine.Engine) engine.Engine {
					return wrapped{n, func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
						r, err := n.Call(ctx, op, args)
						if b := l.last.Load(); b != nil && op == engine.OpNavigate && r.Receipt != nil {
							if all, err := (*b).Contexts(ctx); err == nil && len(all) > 0 {
								r.Receipt.Generation = string(all[0].Key)
							}
						}
						return r, err
					}}
				}
			}},
		{Name: "tells-its-endpoint", Seam: SeamReceipt, Text: "writes to its standard error where the browser listens", Rows: []string{"identifiers-hidden"},
			Kills: kills("B23", "identifier_leaked"),
			parts: func(p *Parts) {
				p.Adapter = &launches{Adapter: p.Adapter, then: func(b engine.Browser) { fmt.Fprintln(os.Stderr, "connected to", b.Endpoint()) }}
			}},
		{Name: "reports-for-the-page", Seam: SeamAdapter, Text: "posts a report of its own to the fixture server in the page's name", Rows: []string{"type-insert*"},
			Kills: kills("M18", "journal_forged"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &forger{n: n} } }},
	}
}

// launches remembers the browser of the last launch.
type launches struct {
	engine.Adapter
	last atomic.Pointer[engine.Browser]
	then func(engine.Browser)
}

// Launch implements [engine.Adapter].
func (l *launches) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	b, err := l.Adapter.Launch(ctx, spec)
	if err == nil {
		l.last.Store(&b)
		if l.then != nil {
			l.then(b)
		}
	}
	return b, err
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
