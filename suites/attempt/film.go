package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/recorder"
	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/engine-acceptance/acceptance/suites/stage"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// film is the recording of one row, and what it must hide.
type film struct {
	f   *recorder.Film
	dir string
	a   *Attempt
	// stills are on their way; the row's goroutine alone adds to them.
	stills []pending
	// ended is when the last picture was taken.
	ended int64

	mu sync.Mutex
	// wins are the browser's windows as they were measured last.
	wins []stage.Window
	// veiled: the visible tab still holds what another row left there, whose masks this row does not know. unveiled is when that ended.
	veiled   bool
	unveiled int64
}

// veil has the film show the browser's window black until the row's own page is in the visible tab.
func (a *Attempt) veil() {
	if a.film != nil {
		a.film.mu.Lock()
		a.film.veiled = true
		a.film.mu.Unlock()
	}
}

// unveil ends the veil: pictures of from now on are masked by the reports of the row's own pages.
func (a *Attempt) unveil() {
	if a.film != nil {
		a.film.mu.Lock()
		a.film.veiled, a.film.unveiled = false, stage.Mono()
		a.film.mu.Unlock()
	}
}

// startFilm begins the row's film. It is written to scratch, masked already, and moves into the bundle when it is whole.
func (a *Attempt) startFilm(ctx context.Context) error {
	dir, err := os.MkdirTemp(a.scratch, "film-")
	if err != nil {
		return err
	}
	a.film = &film{dir: dir, a: a}
	a.film.f, err = recorder.StartFilm(ctx, recorder.FilmConfig{Display: a.Stage.Desk.Display(), XAuthority: a.Stage.Desk.Xauthority(),
		Path: filepath.Join(dir, "film.mp4"), SidePath: filepath.Join(dir, "frames.jsonl"), RunID: a.run, RowID: string(a.Contract.ID), Commit: a.commit,
		Masks: a.film, Chrome: a.film.chrome})
	if err != nil {
		return err
	}
	a.film.f.Own(a.Stage.Sentinel.Window(), a.Stage.Bystander.Window())
	return nil
}

// aim points the film's second pane at the first window.
func (a *Attempt) aim() {
	if a.film == nil || a.film.f == nil {
		return
	}
	wins := make([]stage.Window, len(a.windows))
	for i, w := range a.windows {
		wins[i] = *w // the film looks at them on its own goroutine, also after the row
	}
	a.film.mu.Lock()
	a.film.wins = wins
	a.film.mu.Unlock()
	if len(a.windows) == 0 {
		a.film.f.Target(0, false)
		return
	}
	a.film.f.Target(a.windows[0].ID, a.actsInVisibleTab())
}

// actsInVisibleTab says whether the row's action goes to the tab that the window shows; else the film says that it cannot be seen.
func (a *Attempt) actsInVisibleTab() bool {
	return a.Contract.Needs == nil || a.Contract.Needs.State != "inactive_tab"
}

// Masks implements [recorder.MaskProvider]: where the pages' secrets are, on the desk. Pages measure from their content area; the window's
// place comes from the window system, for a page's own claim about it is not relied on. Which of several windows shows a page the window system does
// not say, so that its masks lie on each of them.
func (m *film) Masks(fromNS, toNS int64) ([]redaction.Rect, bool) {
	set := m.a.pages.Masks(fromNS, toNS)
	if !set.Known {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.veiled || fromNS < m.unveiled {
		return nil, false
	}
	var out []redaction.Rect
	for _, page := range set.Pages {
		for _, mask := range page.Masks {
			if len(m.wins) == 0 {
				return nil, false // a page shows a secret, and in which window is yet to be found out
			}
			for _, w := range m.wins {
				top := contentTop(w.Client, page.Geometry.InnerH*page.Geometry.DPR)
				x, y := float64(w.Client.X)+mask.Content.X, float64(w.Client.Y+top)+mask.Content.Y
				out = append(out, grown(x, y, mask.Content.W, mask.Content.H))
			}
		}
	}
	return out, true
}

// maskMargin widens masks by a few pixels, for rounding between page and screen.
const maskMargin = 4

func grown(x, y, w, h float64) redaction.Rect {
	return redaction.Rect{X: int(x) - maskMargin, Y: int(y) - maskMargin, W: int(w) + 2*maskMargin + 1, H: int(h) + 2*maskMargin + 1}
}

// contentTop is the height of the browser chrome above the page: what the window's height leaves.
func contentTop(client xwire.Rect, inner float64) int {
	top := client.Height - int(inner)
	if inner <= 0 || top < 0 || top > client.Height {
		return client.Height
	}
	return top
}

// chromeHeight is masked at the top of every browser window while no page has said how high its content is: tab strip and address bar of
// the products under test are lower at scale 1.
const chromeHeight = 140

// chrome implements the film's mask for browser chrome, which shows addresses with ports and tokens.
func (m *film) chrome() []redaction.Rect {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []redaction.Rect
	for _, w := range m.wins {
		height := min(chromeHeight, w.Client.Height)
		for _, page := range m.a.pages.Masks(stage.Mono(), stage.Mono()).Pages {
			if h := page.Geometry.InnerH * page.Geometry.DPR; h > 0 && len(m.wins) == 1 {
				height = contentTop(w.Client, h)
			}
		}
		out = append(out, redaction.Rect{X: w.Frame.X, Y: w.Frame.Y, W: w.Frame.Width, H: w.Client.Y - w.Frame.Y + height})
	}
	return out
}

// still asks for a picture of the desk as it is now. It arrives some frames later, masked; the row goes on meanwhile.
func (a *Attempt) still(ctx context.Context, name string) {
	if a.film == nil || a.film.f == nil {
		return
	}
	done := make(chan error, 1)
	a.film.stills = append(a.film.stills, pending{name, done})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stillBudget) // it may arrive when the row is over
	go func() {
		defer cancel()
		done <- a.film.f.Still(ctx, filepath.Join(a.film.dir, name))
	}()
}

// stillBudget is how long a still may be on its way.
const stillBudget = 20 * time.Second

// pending is a still that is on its way.
type pending struct {
	name string
	done chan error
}

// keepStills waits for the stills and puts them into the row.
func (a *Attempt) keepStills() {
	for _, p := range a.film.stills {
		err := <-p.done
		if err == nil {
			err = a.addFile(p.name, filepath.Join(a.film.dir, p.name))
		}
		if err != nil {
			_ = a.fault("harness", "still %s: %v", p.name, err)
		}
	}
}

func (a *Attempt) addFile(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(a.out.Add(name, f), f.Close())
}

// cutFilm takes no further picture: the row is over. What was taken is still on its way to the encoder.
func (a *Attempt) cutFilm() {
	if a.film == nil || a.film.f == nil {
		return
	}
	a.film.f.Cut()
	a.film.ended = stage.Mono()
}

// stopFilm waits for the end of the film, decodes it whole, and observes what the decoder found.
func (a *Attempt) stopFilm(ctx context.Context) {
	if a.film == nil || a.film.f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	a.keepStills()
	report, err := a.film.f.Stop(ctx)
	o := &evidence.Film{Note: string(a.rules.Bytes([]byte(report.Failed)))}
	if err != nil && o.Note == "" {
		o.Note = string(a.rules.Bytes([]byte(err.Error())))
	}
	side, film := filepath.Join(a.film.dir, "frames.jsonl"), filepath.Join(a.film.dir, "film.mp4")
	if err == nil {
		check, err := recorder.CheckFilm(ctx, film, side, recorder.Expect{})
		if err != nil {
			o.Note = string(a.rules.Bytes([]byte(err.Error())))
		}
		a.filmFacts(o, report, check, a.film.ended)
	}
	for _, f := range []struct{ name, path string }{{"film.mp4", film}, {"frames.jsonl", side}} {
		if err := a.addFile(f.name, f.path); err != nil {
			_ = a.fault("harness", "keep %s: %v", f.name, err)
		}
	}
	a.observe(evidence.Observation{Kind: evidence.KindFilm, Film: o})
	if err := os.RemoveAll(a.film.dir); err != nil {
		_ = a.fault("harness", "remove scratch: %v", fmt.Errorf("film: %w", err))
	}
}
