package cdp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

func TestDeclarationIsTotal(t *testing.T) {
	g := NewWithT(t)
	d := New(Config{}).Declare()
	g.Expect(d.Total()).To(Succeed())
	for _, c := range d.Claims {
		g.Expect(c.Declared && c.Delivery == engine.DeliveryForeground).To(BeFalse(), "foreground is never declared")
		g.Expect(c.Declared && c.State == engine.StateMinimised).To(BeFalse())
	}
	at := func(a engine.Action, r engine.Route, s engine.State) engine.Claim {
		return d.Lookup(engine.Capability{Action: a, Route: r, Delivery: engine.DeliveryBackground, State: s})
	}
	g.Expect(at(engine.ActionClick, engine.RouteTrustedInput, engine.StateInactiveTab).Declared).To(BeTrue())
	g.Expect(at(engine.ActionClick, engine.RouteTrustedInput, engine.StateVisibleTab).Limitation).To(Equal("would_raise"))
	g.Expect(at(engine.ActionType, engine.RouteTrustedInput, engine.StateCovered).Declared).To(BeTrue())
}

// TestLaunchFailure: each way not to start has its reason, comes within the budget, and leaves no process.
func TestLaunchFailure(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for role, reason := range map[string]string{"exits": "exited", "existing": "profile_in_use", "silent": "no_endpoint", "bad_file": "no_endpoint",
		"wrong_port": "no_endpoint", "deaf": "no_endpoint"} {
		t.Run(role, func(t *testing.T) {
			g := NewWithT(t)
			var log strings.Builder
			profile := filepath.Join(t.TempDir(), `odd "päth" of it`)
			g.Expect(os.Mkdir(profile, 0o700)).To(Succeed())
			// A file of an earlier run must not be believed.
			g.Expect(os.WriteFile(filepath.Join(profile, endpointFile), []byte("1\n/devtools/browser/01234567-89ab-cdef-0123-456789abcdef"), 0o600)).To(Succeed())
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := New(Config{Binary: self, Log: &log}).launch(ctx, engine.LaunchSpec{ProfileDir: profile, Env: []string{childEnv + "=" + role}})
			g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", reason), log.String())
			g.Expect(engine.AsRefusal(err).Trigger).To(Equal("launch_failed"))
			g.Expect(time.Since(start)).To(BeNumerically("<", 4*time.Second))
			g.Expect((&child{pid: -1}).family(profile)).To(BeEmpty())
			if role == "exits" {
				g.Expect(log.String()).To(ContainSubstring("cannot open display"))
			}
		})
	}
}

func TestLaunchFailureBeforeStart(t *testing.T) {
	g := NewWithT(t)
	_, err := New(Config{Binary: "/nonexistent/browser"}).launch(t.Context(), engine.LaunchSpec{ProfileDir: t.TempDir()})
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "no_binary"))
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = New(Config{Binary: self}).launch(t.Context(), engine.LaunchSpec{ProfileDir: filepath.Join(t.TempDir(), "none")})
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "profile_unwritable"))
	held := t.TempDir()
	g.Expect(os.Symlink(fmt.Sprintf("host-%d", os.Getpid()), filepath.Join(held, "SingletonLock"))).To(Succeed())
	_, err = New(Config{Binary: self}).launch(t.Context(), engine.LaunchSpec{ProfileDir: held})
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "profile_in_use"))
}

func TestParseEndpoint(t *testing.T) {
	const good = "41613\n/devtools/browser/01234567-89ab-cdef-0123-456789abcdef"
	for name, c := range map[string]struct {
		in string
		ok bool
	}{
		"good": {good, true}, "final_newline": {good + "\n", true}, "empty": {"", false}, "half": {"41613", false}, "half_line": {"41613\n", false},
		"three_lines": {good + "\nx", false}, "port_0": {"0\n/devtools/browser/01234567-89ab-cdef-0123-456789abcdef", false},
		"port_70000": {"70000\n/devtools/browser/01234567-89ab-cdef-0123-456789abcdef", false}, "page": {"1\n/devtools/page/x", false},
		"header_injection": {"1\n/devtools/browser/0123 HTTP/1.1\r\nX: y6-89ab-cdef-0123-45", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parseEndpoint(c.in)
			NewWithT(t).Expect(err == nil).To(Equal(c.ok))
		})
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	g := NewWithT(t)
	l := &tail{max: 10}
	for i := range 100 {
		fmt.Fprintf(l, "%d\n", i)
	}
	g.Expect(len(l.buf)).To(Equal(10))
	g.Expect(l.last(2)).To(Equal("98\n99"))
}
