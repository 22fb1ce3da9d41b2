//go:build browser

package recorder

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/onsi/gomega"
)

// filmer is the environment variable that makes the test binary a process that films until it is killed: display, authority and folder.
const filmer = "RECORDER_TEST_FILMER"

func TestMain(m *testing.M) {
	if v := os.Getenv(filmer); v != "" {
		a := strings.Split(v, "|")
		d := &desk{display: a[0], auth: a[1]}
		cfg := d.config(a[2])
		cfg.Masks = &provider{start: true}
		cfg.Chrome = func() []redaction.Rect { return []redaction.Rect{killedMask} }
		if _, err := StartFilm(context.Background(), cfg); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

// killedMask lies in the middle of a bright window.
var killedMask = redaction.Rect{X: 300, Y: 250, W: 200, H: 100}

// A recorder that is killed at any moment leaves a film that is short but decodes, shows nothing unmasked, and no encoder behind.
func TestFilm_recorder_killed(t *testing.T) {
	d := newDesk(t)
	bright := d.window("bright", redaction.Rect{X: 100, Y: 100, W: 700, H: 500}, 0xf0f0f0)
	defer d.beat(bright, redaction.Rect{W: 700, H: 500}, 100*time.Millisecond)()
	for _, frames := range []int{1, 20, 60} {
		g := gomega.NewWithT(t)
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), filmer+"="+strings.Join([]string{d.display, d.auth, dir}, "|"))
		cmd.Stdout = os.Stderr
		p := child(t, cmd)
		film := filepath.Join(dir, "film.mp4")
		// Killed once the film has grown by so many fragments of about 3 KB.
		g.Eventually(func() int64 {
			st, err := os.Stat(film)
			if err != nil {
				return 0
			}
			return st.Size()
		}, "60s", "5ms").Should(gomega.BeNumerically(">", 1000*frames))
		g.Expect(p.Kill()).To(gomega.Succeed())
		encoders := func() int {
			n := 0
			all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, c := range all {
				if b, err := os.ReadFile(c); err == nil && strings.Contains(string(b), film) {
					n++
				}
			}
			return n
		}
		g.Eventually(encoders, "30s", "20ms").Should(gomega.BeZero(), "the encoder ends with the recorder")
		f := NewLayout(1280, 800)
		c, err := CheckFilm(t.Context(), film, filepath.Join(dir, "frames.jsonl"), Expect{Masked: []Span{{Name: "mask", Rect: f.OnDesk(killedMask)}}})
		if err != nil { // the side file may end in half a line: that too is an error and no pass
			g.Expect(err).To(gomega.MatchError(ErrConfig))
			continue
		}
		t.Logf("killed after %d: %d frames decode, %d in the side file, %d mask checks", frames, c.Frames, c.SideFrames, c.MaskChecks)
		g.Expect(c.Frames).To(gomega.BeNumerically(">=", min(frames-1, 1)), "all but the first kill leave pictures")
		g.Expect(c.Breaches).To(gomega.BeEmpty())
	}
}
