//go:build browser

package bench

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/mcp"
)

// times collects durations of one thing.
type times []time.Duration

// at returns a quantile, in milliseconds.
func (t times) at(q float64) float64 {
	s := slices.Clone(t)
	slices.Sort(s)
	return float64(s[min(len(s)-1, int(float64(len(s))*q))].Nanoseconds()) / 1e6
}

// since appends the time that has passed and returns now.
func (t *times) since(begin time.Time) time.Time {
	now := time.Now()
	*t = append(*t, now.Sub(begin))
	return now
}

// BenchmarkEngine runs every measurement in one browser on one desk. In each, the two sides take turns, so that what else the machine does
// hits both.
func BenchmarkEngine(b *testing.B) {
	r := newRig(b)
	b.Run("proof", r.proof)
	b.Run("click/one", func(b *testing.B) { r.clicks(b, "/one.html") })
	b.Run("click/big", func(b *testing.B) { r.clicks(b, "/big.html") })
	b.Run("mcp", r.carrier)
	b.Run("snapshot", r.snapshots)
}

// proof compares the re-proof before an action, as receipts state it, with the same questions asked bare: the window system's seven in one
// round trip, the kernel's, and the browser's.
func (r *rig) proof(b *testing.B) {
	args := r.click(r.load(b, "/one.html"))
	r.call(b, engine.OpClick, args)
	bare := r.openBare(b)
	defer bare.close()
	var ours, same times
	for b.Loop() {
		rc := r.call(b, engine.OpClick, args).Receipt
		ours = append(ours, time.Duration(rc.Durations.ProofMS*float64(time.Millisecond)))
		begin := time.Now()
		if err := bare.ask(b.Context()); err != nil {
			b.Fatal(err)
		}
		same.since(begin)
	}
	b.ReportMetric(ours.at(.5), "p50-ms")
	b.ReportMetric(ours.at(.95), "p95-ms")
	b.ReportMetric(same.at(.5), "bare-p50-ms")
	b.ReportMetric(same.at(.95), "bare-p95-ms")
	b.ReportMetric(ours.at(.5)/same.at(.5), "p50-ratio")
	b.ReportMetric(ours.at(.95)/same.at(.95), "p95-ratio")
}

// clicks compares a trusted click with proof and receipt, as a caller inside the engine's process sees it, with chromedp's own click on the
// same control of the same tab, found by selector each time, and with chromedp's click on a node found before.
func (r *rig) clicks(b *testing.B, path string) {
	args := r.click(r.load(b, path))
	r.call(b, engine.OpClick, args)
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := chromedp.Run(r.bare, chromedp.Click("#go")); err != nil {
		b.Fatal(err)
	}
	nodes, err := chromedp.Run(r.bare, chromedp.Nodes("#go"))
	if err != nil || len(nodes) != 1 {
		b.Fatal(nodes, err)
	}
	var ours, bare, node times
	for b.Loop() {
		t := time.Now()
		r.raw(b, r.engine, engine.OpClick, raw)
		t = ours.since(t)
		if _, err := chromedp.Run(r.bare, chromedp.Click("#go")); err != nil {
			b.Fatal(err)
		}
		t = bare.since(t)
		if _, err := chromedp.Run(r.bare, chromedp.MouseClickNode(nodes[0])); err != nil {
			b.Fatal(err)
		}
		node.since(t)
	}
	b.ReportMetric(ours.at(.5), "ours-ms")
	b.ReportMetric(bare.at(.5), "bare-ms")
	b.ReportMetric(node.at(.5), "bare-node-ms")
	b.ReportMetric(ours.at(.5)/bare.at(.5), "ratio")
}

// carrier compares one call over MCP and two pipes with the same call in process: one that is answered from the store, and a click.
func (r *rig) carrier(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	toServer, fromClient, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	toClient, fromServer, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- mcp.Serve(ctx, r.engine, "bench", toServer, fromServer) }()
	client, err := mcp.Connect(ctx, toClient, fromClient, mcp.Mapping{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = client.Close() // the server ends with its pipe, and says so
		<-served
	}()
	ended := r.call(b, engine.OpSessionStart, engine.SessionRequest{}).Session.ID
	end, err := json.Marshal(engine.SessionRequest{Session: ended})
	if err != nil {
		b.Fatal(err)
	}
	r.raw(b, r.engine, engine.OpSessionEnd, end) // ending it once more is no error and asks no browser
	click, err := json.Marshal(r.click(r.load(b, "/one.html")))
	if err != nil {
		b.Fatal(err)
	}
	r.raw(b, client, engine.OpClick, click)
	var direct, piped, directClick, pipedClick times
	for b.Loop() {
		t := time.Now()
		r.raw(b, r.engine, engine.OpSessionEnd, end)
		t = direct.since(t)
		r.raw(b, client, engine.OpSessionEnd, end)
		t = piped.since(t)
		r.raw(b, r.engine, engine.OpClick, click)
		t = directClick.since(t)
		r.raw(b, client, engine.OpClick, click)
		pipedClick.since(t)
	}
	b.ReportMetric(1000*(piped.at(.5)-direct.at(.5)), "added-µs")
	b.ReportMetric(directClick.at(.5), "click-ms")
	b.ReportMetric(pipedClick.at(.5), "click-mcp-ms")
	b.ReportMetric(pipedClick.at(.5)/directClick.at(.5), "click-ratio")
}

// snapshots compares a snapshot of 1,000 controls, proof included, with the browser's own accessibility tree of the same page, decoded
// into chromedp's types and nothing more.
func (r *rig) snapshots(b *testing.B) {
	r.load(b, "/big.html")
	args, err := json.Marshal(engine.StateRequest{Session: r.session, Mode: engine.ModeSnapshot, TargetID: r.target, TabID: r.tab})
	if err != nil {
		b.Fatal(err)
	}
	tree := func(ctx context.Context, t *chromedp.Target) (int, error) {
		res, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		return len(res.Nodes), err
	}
	var ours, bare times
	for b.Loop() {
		t := time.Now()
		snap := r.raw(b, r.engine, engine.OpState, args).Snapshot
		t = ours.since(t)
		n, err := chromedp.Run(r.bare, chromedp.Action[int](tree))
		if err != nil {
			b.Fatal(err)
		}
		bare.since(t)
		if len(snap.Refs) != 1001 || n < 1001 {
			b.Fatalf("%d refs, %d nodes, of 1,001 controls", len(snap.Refs), n)
		}
	}
	b.ReportMetric(ours.at(.5), "ours-ms")
	b.ReportMetric(bare.at(.5), "bare-ms")
	b.ReportMetric(ours.at(.5)/bare.at(.5), "ratio")
}
