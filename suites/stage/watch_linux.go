package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watch sees who touches the person's profiles: every opening, reading, linking, writing, renaming and change of rights, in a directory of
// them or of such a directory (inotify(7)). It cannot say who it was; nobody but its own control has any business there.
type Watch struct {
	fd   *os.File
	done chan struct{}

	mu      sync.Mutex
	places  map[int]place
	touched []string
	// seen counts openings of each product's control file, asked those that the control made.
	seen, asked map[string]int
	lost        error
	moved       chan struct{}
}

// place is one watched directory or file.
type place struct {
	product string
	// control is the base name of the file that the control opens here, empty elsewhere.
	control string
}

// everything that can be done to a file or directory. A mere look at its attributes is not seen.
const everything = unix.IN_ACCESS | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_OPEN | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watchProfiles begins to watch the person's profiles below a home, which must be there.
func watchProfiles(home string) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the person's profiles: %w", err)
	}
	w := &Watch{fd: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), places: map[int]place{}, seen: map[string]int{}, asked: map[string]int{}, moved: make(chan struct{})}
	for _, p := range personProfiles {
		root := filepath.Join(home, p.dir)
		control := filepath.Join(root, p.files[0])
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() {
				// A link to a file changes the file alone: its directory is not told.
				wd, err := unix.InotifyAddWatch(fd, path, unix.IN_ATTRIB)
				if err == nil {
					w.places[wd] = place{product: p.product}
				}
				return err
			}
			at := place{product: p.product}
			if path == filepath.Dir(control) {
				at.control = filepath.Base(control)
			}
			wd, err := unix.InotifyAddWatch(fd, path, everything)
			if err == nil {
				w.places[wd] = at
			}
			return err
		})
		if err != nil {
			_ = w.fd.Close()
			return nil, fmt.Errorf("watch the person's profiles: %w", err)
		}
	}
	// The walk itself opened directories that were watched by then.
	if err := w.drain(fd); err != nil {
		_ = w.fd.Close()
		return nil, fmt.Errorf("watch the person's profiles: %w", err)
	}
	w.touched, w.seen = nil, map[string]int{}
	go w.read()
	return w, nil
}

// drain reads what is there.
func (w *Watch) drain(fd int) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		w.take(buf[:n])
	}
}

func (w *Watch) read() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.fd.Read(buf)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				w.mu.Lock()
				w.lost = err
				w.mu.Unlock()
			}
			return
		}
		w.take(buf[:n])
	}
}

// take reads struct inotify_event values: wd, mask, cookie, len, name.
func (w *Watch) take(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask, size := int(int32(binary.NativeEndian.Uint32(b))), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
		b = b[unix.SizeofInotifyEvent:]
		if size > len(b) {
			w.lost = errors.New("malformed event")
			return
		}
		name := strings.TrimRight(string(b[:size]), "\x00")
		b = b[size:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			w.lost = errors.New("events were lost")
			continue
		}
		at, known := w.places[wd]
		if !known || mask&unix.IN_IGNORED != 0 {
			continue
		}
		if at.control != "" && name == at.control {
			if mask&unix.IN_OPEN != 0 {
				w.seen[at.product]++
			}
			if mask&^(unix.IN_OPEN|unix.IN_ACCESS) == 0 {
				continue // who opened it is told by how often it was opened
			}
		}
		if len(w.touched) < maxTouched {
			w.touched = append(w.touched, at.product+": "+deed(mask))
		}
	}
	close(w.moved)
	w.moved = make(chan struct{})
}

// maxTouched bounds what is remembered between two looks.
const maxTouched = 64

func deed(mask uint32) string {
	for _, d := range []struct {
		bit  uint32
		word string
	}{{unix.IN_MODIFY, "written"}, {unix.IN_ACCESS, "read"}, {unix.IN_CREATE, "something was made there"}, {unix.IN_DELETE, "something was removed there"},
		{unix.IN_DELETE_SELF, "removed"}, {unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF, "renamed"}, {unix.IN_ATTRIB, "linked, or its rights changed"}, {unix.IN_OPEN, "opened"}} {
		if mask&d.bit != 0 {
			return d.word
		}
	}
	return "touched"
}

// controlBudget bounds how long the kernel may take to tell of a control.
const controlBudget = time.Second

// WatchReport is what a [Watch] saw since the last report.
type WatchReport struct {
	// Touched says product and deed of each touch that was not the control's.
	Touched []string
	// Products counts the products whose control was seen; Of is how many there are.
	Products, Of int
	// Lost is set when events were lost.
	Lost error
}

// Report opens one file in each of the person's profiles, waits until that was seen, and says what was seen besides since the last report.
func (w *Watch) Report(ctx context.Context, home string) (WatchReport, error) {
	w.mu.Lock()
	for _, p := range personProfiles {
		w.asked[p.product]++
	}
	w.mu.Unlock()
	for _, p := range personProfiles {
		f, err := os.Open(filepath.Join(home, p.dir, p.files[0]))
		if err != nil {
			return WatchReport{}, fmt.Errorf("control in the profile of %s: %w", p.product, err)
		}
		_ = f.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, controlBudget)
	defer cancel()
	for {
		w.mu.Lock()
		r := WatchReport{Of: len(personProfiles), Lost: w.lost}
		for _, p := range personProfiles {
			if w.seen[p.product] >= w.asked[p.product] {
				r.Products++
			}
		}
		moved := w.moved
		if r.Products == r.Of || ctx.Err() != nil {
			r.Touched, w.touched = w.touched, nil
			for _, p := range personProfiles {
				if w.seen[p.product] > w.asked[p.product] {
					r.Touched = append(r.Touched, p.product+": opened")
				}
				w.seen[p.product], w.asked[p.product] = 0, 0
			}
			w.mu.Unlock()
			return r, nil
		}
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() error {
	err := w.fd.Close()
	<-w.done
	return err
}
