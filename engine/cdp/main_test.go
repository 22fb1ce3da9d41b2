package cdp

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asUser runs the tests as an ordinary uid when they need a browser and root started them; it is nil without the browser tag.
var asUser func() (code int, done bool)

// childEnv makes this test binary play a browser that does not start.
const childEnv = "CDP_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(play(role))
	}
	if asUser != nil {
		if code, done := asUser(); done {
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// play is a browser with one defect.
func play(role string) int {
	var profile string
	for _, a := range os.Args {
		if p, ok := strings.CutPrefix(a, "--user-data-dir="); ok {
			profile = p
		}
	}
	say := func(content string) { os.WriteFile(filepath.Join(profile, endpointFile), []byte(content), 0o600) }
	stop := make(chan os.Signal, 1)
	switch role {
	case "exits":
		fmt.Fprintln(os.Stderr, "cannot open display")
		return 1
	case "existing":
		fmt.Println("Opening in existing browser session.")
		return 0
	case "bad_file":
		say("70000\n/devtools/browser/x\n")
	case "wrong_port":
		say("1\n/devtools/browser/01234567-89ab-cdef-0123-456789abcdef")
	case "deaf":
		signal.Notify(stop, syscall.SIGTERM)
	}
	signal.Notify(stop, os.Interrupt)
	<-stop // lives until it is killed
	return 0
}
