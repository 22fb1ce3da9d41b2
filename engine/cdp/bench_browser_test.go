//go:build browser

package cdp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/engine-acceptance/acceptance/engine"
)

// controls is a page of n buttons and n labelled inputs.
func controls(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<button id=b%d>Button %d</button> <label>Field %d <input id=f%d></label>\n", i, i, i, i)
	}
	return b.String()
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// TestSnapshotOf1000 measures and prints; the reach is 150 ms. What is asserted is that all 1,000 are there.
func TestSnapshotOf1000(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, map[string]string{"/big.html": controls(500)})
	b := launchOn(t, d, Config{})
	list, err := b.Contexts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Navigate(t.Context(), list[0].Key, s.URL+"/big.html"); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 5000} {
		var took []time.Duration
		for range 9 {
			start := time.Now()
			snap, err := b.Snapshot(t.Context(), list[0].Key, limit)
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
			want := 1000
			if limit == 0 {
				want = defaultNodes
			}
			if snap.Total != 1000 || len(snap.Nodes) != want || snap.Omitted["budget"] != 1000-want {
				t.Fatalf("total %d, listed %d, omitted %v", snap.Total, len(snap.Nodes), snap.Omitted)
			}
		}
		t.Logf("limit %d: median %v, worst %v", limit, median(took), took[len(took)-1])
	}
}

// BenchmarkClick compares a trusted click in a parked tab with proof, by this adapter, with chromedp's own click on the same control, in
// one run and one browser, interleaved.
func BenchmarkClick(bench *testing.B) {
	d := newDesk(bench)
	s := newSite(bench, map[string]string{"/one.html": "<button id=go>Go</button>", "/big.html": "<button id=go>Go</button>" + controls(500)})
	b := launchOn(bench, d, Config{})
	list, err := b.Contexts(bench.Context())
	if err != nil {
		bench.Fatal(err)
	}
	for _, path := range []string{"/one.html", "/big.html"} {
		bench.Run(path[1:4], func(bench *testing.B) {
			tab, err := b.OpenContext(bench.Context(), list[0].Key)
			if err != nil {
				bench.Fatal(err)
			}
			defer b.CloseContext(context.Background(), tab.Key)
			if _, err := b.Navigate(bench.Context(), tab.Key, s.URL+path); err != nil {
				bench.Fatal(err)
			}
			n := ref(bench, b, tab.Key, "button", "Go")
			// chromedp on the same tab, over a connection of its own.
			file, err := readBounded(b.profile+"/"+endpointFile, maxEndpointFile)
			if err != nil {
				bench.Fatal(err)
			}
			addr, wsPath, err := parseEndpoint(file)
			if err != nil {
				bench.Fatal(err)
			}
			actx, cancel := remote.NewAllocator(context.Background(), "ws://"+addr.String()+wsPath)
			defer cancel()
			cctx, cancelTab := chromedp.NewContext(actx, chromedp.WithTargetID(target.ID(tab.Key)))
			// Cancelling would close the tab; the browser's end does.
			_ = cancelTab
			if _, err := chromedp.Run(cctx, chromedp.Click("#go")); err != nil {
				bench.Fatal(err)
			}
			nodes, err := chromedp.Run(cctx, chromedp.Nodes("#go"))
			if err != nil || len(nodes) != 1 {
				bench.Fatal(nodes, err)
			}
			var ours, bare, node []time.Duration
			for bench.Loop() {
				start := time.Now()
				if _, err := b.Click(bench.Context(), tab.Key, n, engine.RouteTrustedInput); err != nil {
					bench.Fatal(err)
				}
				middle := time.Now()
				if _, err := chromedp.Run(cctx, chromedp.Click("#go")); err != nil {
					bench.Fatal(err)
				}
				end := time.Now()
				if _, err := chromedp.Run(cctx, chromedp.MouseClickNode(nodes[0])); err != nil {
					bench.Fatal(err)
				}
				ours, bare, node = append(ours, middle.Sub(start)), append(bare, end.Sub(middle)), append(node, time.Since(end))
			}
			a, c, n2 := median(ours), median(bare), median(node)
			bench.ReportMetric(float64(n2.Microseconds()), "node-click-µs")
			bench.ReportMetric(float64(a.Microseconds()), "ours-µs")
			bench.ReportMetric(float64(c.Microseconds()), "chromedp-µs")
			bench.ReportMetric(float64(a)/float64(c), "ratio")
		})
	}
}
