package attempt

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// Target is a window that a row bound under a name.
type Target struct {
	Name    string
	ID      string
	Session string
	Window  *stage.Window
	Tabs    []*Tab
}

// Tab is one tab of a bound window. Page is the reference by which observations name it.
type Tab struct {
	ID     string
	Target *Target
	Page   string
	// Title is the tab's title when the arrangement bound it.
	Title string
	// Mark is set for tabs that the row opened: their pages' titles carry it.
	Mark string
}

// Snapshot is a snapshot that a row took under a name.
type Snapshot struct {
	Tab  *Tab
	Refs []engine.Ref
}

// Session resolves a session name of a step; empty is the row's own.
func (a *Attempt) Session(s matrix.Step) (string, error) {
	name, _ := s.Args["session"].(string)
	if name == "" {
		return a.session, nil
	}
	a.nameMu.Lock()
	id, ok := a.sessions[name]
	a.nameMu.Unlock()
	if !ok {
		return "", fmt.Errorf("no session %q was started", name)
	}
	return id, nil
}

// NameSession keeps a session under a name; the empty name is the row's own.
func (a *Attempt) NameSession(name, id string) {
	if name == "" {
		a.session = id
		return
	}
	a.nameMu.Lock()
	defer a.nameMu.Unlock()
	a.sessions[name] = id
}

// Target resolves the name of a bound window.
func (a *Attempt) Target(name string) (*Target, error) {
	a.nameMu.Lock()
	defer a.nameMu.Unlock()
	if t := a.targets[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("no window is bound as %q", name)
}

// Tab resolves a tab reference.
func (a *Attempt) Tab(ref string) (*Tab, error) {
	r, err := matrix.ParseTabRef(ref)
	if err != nil {
		return nil, err
	}
	if r.Name != "" {
		a.nameMu.Lock()
		defer a.nameMu.Unlock()
		if t := a.tabs[r.Name]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("no tab is named %q", r.Name)
	}
	t, err := a.Target(r.Target)
	if err != nil {
		return nil, err
	}
	if r.Tab > len(t.Tabs) {
		return nil, fmt.Errorf("%s has %d tabs, the row speaks of tab %d", r.Target, len(t.Tabs), r.Tab)
	}
	return t.Tabs[r.Tab-1], nil
}

// NameTab keeps an opened tab under a name.
func (a *Attempt) NameTab(name string, t *Tab) {
	a.nameMu.Lock()
	defer a.nameMu.Unlock()
	a.tabs[name] = t
}

// Ref resolves a node reference to the ref that the engine gave, and its tab. A node that the snapshot does not list, or lists twice, is
// ErrStopped: the snapshot's own expectations say so.
func (a *Attempt) Ref(node string) (string, *Tab, error) {
	n, err := matrix.ParseNodeRef(node)
	if err != nil {
		return "", nil, err
	}
	a.nameMu.Lock()
	snap := a.snapshots[n.Snapshot]
	a.nameMu.Unlock()
	if snap == nil {
		return "", nil, fmt.Errorf("no snapshot is named %q", n.Snapshot)
	}
	var found []engine.Ref
	for _, r := range snap.Refs {
		if r.Role == n.Role && r.Name == n.Name {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return "", snap.Tab, fmt.Errorf("snapshot %s lists %s %q %d times, want once", n.Snapshot, n.Role, n.Name, len(found))
	}
	return found[0].Ref, snap.Tab, nil
}

// pageName is how observations name a tab: by the name under which the row binds that window first, so that expectations and observations
// agree.
func (a *Attempt) pageName(launch, window, tab int) string {
	return fmt.Sprintf("%s/tab %d", a.Contract.WindowName(launch, window), tab)
}

// Text is a text argument of a step, empty when absent.
func Text(s matrix.Step, name string) string {
	v, _ := s.Args[name].(string)
	return v
}

// Int is a number argument of a step, 0 when absent.
func Int(s matrix.Step, name string) int {
	switch v := s.Args[name].(type) {
	case int:
		return v
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}

// Bool is a yes-or-no argument of a step, false when absent.
func Bool(s matrix.Step, name string) bool {
	v, _ := s.Args[name].(bool)
	return v
}

// NameSnapshot keeps a snapshot under a name.
func (a *Attempt) NameSnapshot(name string, s *Snapshot) {
	a.nameMu.Lock()
	defer a.nameMu.Unlock()
	a.snapshots[name] = s
}

// nameTarget keeps a bound window under a name.
func (a *Attempt) nameTarget(name string, t *Target) {
	a.nameMu.Lock()
	defer a.nameMu.Unlock()
	a.targets[name] = t
}
