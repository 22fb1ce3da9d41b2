package attempt

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// tokenForm finds what a browser issues as identifiers: UUIDs and long hexadecimal ids.
var tokenForm = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9A-F]{32}`)

// maxEndpointFile bounds what is read of an endpoint file in a profile.
const maxEndpointFile = 4096

// rememberIdentifiers reads, right after a launch, what the browser wrote about its endpoint at the top of its profile: identifiers that no
// result, receipt or message of the engine may hold (contract B23).
func (a *Attempt) rememberIdentifiers(profile string) {
	entries, err := os.ReadDir(profile)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.Contains(strings.ToLower(e.Name()), "port") && !strings.HasSuffix(e.Name(), "Server.json") || !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(profile, e.Name()))
		if err != nil {
			continue
		}
		s := bufio.NewScanner(bytes.NewReader(b[:min(len(b), maxEndpointFile)]))
		for s.Scan() {
			a.issued = append(a.issued, tokenForm.FindAllString(s.Text(), -1)...)
		}
	}
	a.issued = append(a.issued, filepath.Base(profile))
}

// portsOf are the ports that the processes of a browser listen on.
func portsOf(held []listener, browser []process.Entry) []uint16 {
	var out []uint16
	for _, l := range held {
		if slices.ContainsFunc(browser, func(e process.Entry) bool { return e.PID == l.pid }) && !slices.Contains(out, l.addr.Port()) {
			out = append(out, l.addr.Port())
		}
	}
	return out
}

// leastIdentifiers is how many identifiers the taps must have heard: of the browser, a tab, its document and a conversation about it there is
// one each.
const leastIdentifiers = 4

// wireAccount ends the taps, remembers what they heard, and says how much that was.
func (a *Attempt) wireAccount() {
	if a.Contract.Expect.Identifiers == "" {
		return
	}
	heard := 0
	for _, t := range a.taps {
		close(t.stop)
		<-t.wire.done
		_ = unix.Close(t.wire.fd)
		tokens, _, err := t.wire.found()
		if err != nil {
			_ = a.fault("environment", "listen to the browser's answers: %v", err)
		}
		heard += len(tokens)
		a.issued = append(a.issued, tokens...)
	}
	a.taps = nil
	a.Fact(evidence.FactIdentifiersHeard, heard >= leastIdentifiers && len(a.ports) > 0, heard, fmt.Sprintf("%d endpoints", len(a.ports)))
}

// portsIn finds the ports that browsers of this row listen on as numbers of their own in what the engine wrote. They are too short for the
// scan for secrets.
func (a *Attempt) portsIn(name string, content []byte) []evidence.ScanFinding {
	var out []evidence.ScanFinding
	for i, port := range a.ports {
		number := regexp.MustCompile(fmt.Sprintf(`(?:^|[^0-9])%d(?:[^0-9]|$)`, port))
		if number.Match(content) {
			out = append(out, evidence.ScanFinding{Canary: fmt.Sprintf("p%02d", i+1), Channel: "identifier", Encoding: "number", Where: name})
		}
	}
	return out
}

// identifiers are what the browsers of this row issued, as things to be looked for in the engine's output.
func (a *Attempt) identifiers() []redaction.Canary {
	var out []redaction.Canary
	seen := map[string]bool{}
	for i, id := range a.issued {
		if len(id) < redaction.MinSecretBytes || seen[id] {
			continue
		}
		seen[id] = true
		out = append(out, redaction.Canary{ID: fmt.Sprintf("i%02d", i+1), Channel: "identifier", Value: id})
	}
	return out
}
