package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// work is how the person works during a row: a character every 120 ms, and every eighth stroke a click into the own window.
func (s *Stage) work(ctx context.Context) (person.Work, error) {
	w, err := s.Sentinel.Where(ctx)
	if err != nil {
		return person.Work{}, err
	}
	return person.Work{Every: 120 * time.Millisecond, ClickEvery: 8, X: w.Client.X + w.Client.Width/2, Y: w.Client.Y + w.Client.Height - 60}, nil
}

// account is where the open part of the person's account of a row begins, and the sum of the parts before.
type account struct {
	open            bool
	strokes, window uint64
	bystander       uint64
	sum             evidence.Person
}

// PersonBegins begins the person's account of a row, and the work.
func (s *Stage) PersonBegins(ctx context.Context) error {
	s.account = account{}
	return s.PersonResumes(ctx)
}

// PersonResumes opens the next part of the account and goes on with the work.
func (s *Stage) PersonResumes(ctx context.Context) error {
	if err := s.Sentinel.Echo(ctx); err != nil {
		return err
	}
	if err := s.Bystander.Echo(ctx); err != nil {
		return err
	}
	s.account.open, s.account.strokes, s.account.window, s.account.bystander = true, s.Person.Mark(), s.Sentinel.Mark(), s.Bystander.Mark()
	w, err := s.work(ctx)
	if err != nil {
		return err
	}
	return s.Person.Work(ctx, w)
}

// PersonWorks reports whether the person is at work.
func (s *Stage) PersonWorks() bool { return s.account.open }

// PersonPauses stops the work, waits until the last stroke is with the server and the window's log is drained, and adds what was injected
// and what arrived to the account.
func (s *Stage) PersonPauses(ctx context.Context) error {
	if err := s.Person.Pause(ctx); err != nil {
		return err
	}
	// The window manager holds a click back until it has looked at it; only after a round trip through it is the window's log complete.
	if err := s.ManagerTrip(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.Sentinel.Echo(ctx), s.Bystander.Echo(ctx), s.Person.Err(), s.Sentinel.Err(), s.Bystander.Err()); err != nil {
		return err
	}
	if !s.account.open {
		return nil
	}
	s.account.open = false
	r := person.Check(s.Person.Since(s.account.strokes), s.Sentinel.Since(s.account.window), person.DefaultLate)
	sum := &s.account.sum
	sum.Injected += r.Injected
	sum.Received += r.Received
	sum.Lost += len(r.Lost)
	sum.Duplicated += len(r.Duplicated)
	sum.Disordered += len(r.Disordered)
	sum.Foreign += len(r.Foreign)
	sum.Forged += len(r.Forged)
	sum.LatestNS = max(sum.LatestNS, r.LatestNS)
	for _, e := range s.Bystander.Since(s.account.bystander) {
		switch e.Kind {
		case sentinel.KeyPress, sentinel.KeyRelease, sentinel.ButtonPress, sentinel.ButtonRelease, sentinel.Motion:
			sum.Stray++
		}
	}
	for _, n := range r.Lost {
		for _, st := range s.Person.Since(s.account.strokes) {
			if st.N == n && len(sum.LostStrokes) < maxLost {
				sum.LostStrokes = append(sum.LostStrokes, fmt.Sprintf("%s %d at %d", st.Kind, st.N, st.Began))
			}
		}
	}
	return nil
}

// maxLost bounds the lost strokes that an account names.
const maxLost = 10

// PersonAccount stops the work and returns the account of the row.
func (s *Stage) PersonAccount(ctx context.Context) (evidence.Person, error) {
	err := s.PersonPauses(ctx)
	return s.account.sum, err
}

// ClickInto has the person click into a browser window, near its lower right corner, where the windows that such clicks open do not cover it,
// after moving the own window out of the way: so windows come to be that no engine opened. It belongs to the prepare phase.
func (s *Stage) ClickInto(ctx context.Context, w *Window) error {
	if where, err := s.Sentinel.Where(ctx); err != nil {
		return err
	} else if where.Shown {
		if _, err := s.Sentinel.Minimise(ctx); err != nil {
			return err
		}
	}
	if err := s.Measure(ctx, w); err != nil {
		return err
	}
	return s.Person.Link(ctx, w.Client.X+w.Client.Width*9/10, w.Client.Y+w.Client.Height*9/10)
}

// titleBar is a little more than the height of the window manager's title bar, in pixels: openbox's stock theme has 20.
const titleBar = 22

// TakeBack makes sure that the person's window has the focus before a row begins: a row before may have left the desk otherwise.
func (s *Stage) TakeBack(ctx context.Context) error {
	w, err := s.Sentinel.Where(ctx)
	if err != nil || w.Focused && w.Shown && w.Overlapped == 0 {
		return err
	}
	return s.Cover(ctx, matrix.PersonCovers, nil)
}

// Cover places the person's window relative to the browser's windows, raises it and gives it the focus, as the person would. Without a
// browser window it goes to its own place.
func (s *Stage) Cover(ctx context.Context, how matrix.Person, frames []xwire.Rect) error {
	place, err := s.placeFor(how, frames)
	if err != nil {
		return err
	}
	if _, err := s.Sentinel.Raise(ctx); err != nil {
		var other *sentinel.PlacementError
		if !errors.As(err, &other) {
			return err
		}
	}
	if _, err := s.Sentinel.Place(ctx, place); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err = s.Sentinel.Raise(ctx)
	return err
}

// InPlace says whether the person's window already is where [Stage.Cover] would put it, on top and with the focus.
func (s *Stage) InPlace(ctx context.Context, how matrix.Person, frames []xwire.Rect) (bool, error) {
	place, err := s.placeFor(how, frames)
	if err != nil {
		return false, err
	}
	w, err := s.Sentinel.Where(ctx)
	return err == nil && w.Client == place && w.Focused && w.Shown && w.Overlapped == 0, err
}

// placeFor is where the person's window goes, in root pixels of its client area.
func (s *Stage) placeFor(how matrix.Person, frames []xwire.Rect) (xwire.Rect, error) {
	place, screen := home, xwire.Rect{Width: s.x.Width, Height: s.x.Height}
	if len(frames) > 0 {
		target := union(frames)
		switch how {
		case matrix.PersonCovers:
			place = sentinel.Fully(target, screen)
		case matrix.PersonPartlyCovers:
			place = sentinel.Partly(target, screen, 0.5)
		case matrix.PersonBeside:
			var err error
			if place, err = sentinel.Beside(target, screen); err != nil {
				return place, err
			}
		default:
			return place, fmt.Errorf("no place %q for the person's window", how)
		}
	}
	// A window manager keeps a title bar on the screen: a client area that begins higher than the bar is tall would be pushed down. The bar
	// covers what is above it, too.
	if down := titleBar - place.Y; down > 0 {
		place.Y, place.Height = titleBar, place.Height-down
	}
	return place, nil
}

// union is the smallest rectangle around all.
func union(all []xwire.Rect) xwire.Rect {
	out := all[0]
	for _, r := range all[1:] {
		right, bottom := max(out.X+out.Width, r.X+r.Width), max(out.Y+out.Height, r.Y+r.Height)
		out.X, out.Y = min(out.X, r.X), min(out.Y, r.Y)
		out.Width, out.Height = right-out.X, bottom-out.Y
	}
	return out
}
