package attempt

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/engine-acceptance/acceptance/redaction"
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
