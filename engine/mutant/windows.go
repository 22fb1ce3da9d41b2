package mutant

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync"

	"github.com/engine-acceptance/acceptance/engine"
)

// shift is how far windows of one place are moved apart, in pixels: more than any tolerance.
const shift = 100

// agedWindows moves native windows that lie in one place apart, the older ones less.
type agedWindows struct{ engine.NativePlatform }

// Windows implements [engine.NativePlatform].
func (a *agedWindows) Windows(ctx context.Context, p engine.Process) ([]engine.NativeWindow, error) {
	list, err := a.NativePlatform.Windows(ctx, p)
	out := slices.Clone(list)
	for i := range out {
		for _, o := range list {
			if o.Bounds == list[i].Bounds && o.ID < list[i].ID {
				out[i].Bounds.X += shift
			}
		}
	}
	return out, err
}

// Window implements [engine.NativePlatform].
func (a *agedWindows) Window(ctx context.Context, id uint32, p engine.Process) (engine.NativeWindow, error) {
	w, err := a.NativePlatform.Window(ctx, id, p)
	if err != nil {
		return w, err
	}
	list, err := a.Windows(ctx, p)
	if err != nil {
		return w, err
	}
	if i := slices.IndexFunc(list, func(o engine.NativeWindow) bool { return o.ID == id }); i >= 0 {
		w.Bounds = list[i].Bounds
	}
	return w, nil
}

// aged moves protocol windows that lie in one place apart, the younger ones less: the wrong way round.
type aged struct{ abilities }

func age(b engine.Browser) engine.Browser { return aged{able(b)} }

// Contexts implements [engine.Browser].
func (a aged) Contexts(ctx context.Context) ([]engine.BrowserContext, error) {
	list, err := a.abilities.Contexts(ctx)
	out := slices.Clone(list)
	for i := range out {
		counted := map[engine.WindowKey]bool{}
		for _, o := range list {
			older := cmp.Or(cmp.Compare(len(o.Window), len(list[i].Window)), cmp.Compare(o.Window, list[i].Window))
			if o.Bounds == list[i].Bounds && older > 0 && !counted[o.Window] {
				counted[o.Window] = true
				out[i].Bounds.X += shift
			}
		}
	}
	return out, err
}

// Locate implements [engine.Browser].
func (a aged) Locate(ctx context.Context, c engine.ContextKey) (engine.BrowserContext, error) {
	found, err := a.abilities.Locate(ctx, c)
	if err != nil {
		return found, err
	}
	list, err := a.Contexts(ctx)
	for _, o := range list {
		if o.Key == c {
			found.Bounds = o.Bounds
		}
	}
	return found, err
}

// believesTitles binds the first and the second window that it was asked for in each other's place while the page of the first has not the
// title that it had at the beginning.
type believesTitles struct {
	n     next
	ids   []any
	args  []json.RawMessage
	title string
	mixed bool
}

// Call implements [engine.Engine].
func (b *believesTitles) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if op != engine.OpState || text(args, "mode") != string(engine.ModeBind) {
		return b.n.Call(ctx, op, args)
	}
	id := fields(args)["window_id"]
	at := slices.Index(b.ids, id)
	if at < 0 {
		b.ids, b.args, at = append(b.ids, id), append(b.args, args), len(b.ids)
	}
	r, err := b.n.Call(ctx, op, args)
	if at == 0 && r.Target != nil && len(r.Target.Tabs) > 0 {
		switch title := r.Target.Tabs[0].Title; {
		case title != "Left" && title != "Right":
		case b.title == "":
			b.title = title
		default:
			b.mixed = title != b.title && len(b.args) > 1
		}
	}
	if b.mixed && at < 2 {
		return b.n.Call(ctx, op, b.args[1-at])
	}
	return r, err
}

// oldPlaces gives every window the place that it had at the first look.
type oldPlaces struct {
	engine.NativePlatform
	mu   sync.Mutex
	seen map[uint32]engine.Rect
}

// Window implements [engine.NativePlatform].
func (o *oldPlaces) Window(ctx context.Context, id uint32, p engine.Process) (engine.NativeWindow, error) {
	w, err := o.NativePlatform.Window(ctx, id, p)
	if err != nil {
		return w, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.seen[id]; !known {
		o.seen[id] = w.Bounds
	}
	w.Bounds = o.seen[id]
	return w, nil
}

// provesOnce asks for each window once.
type provesOnce struct {
	engine.NativePlatform
	mu    sync.Mutex
	known map[uint32]engine.NativeWindow
}

// Window implements [engine.NativePlatform].
func (o *provesOnce) Window(ctx context.Context, id uint32, p engine.Process) (engine.NativeWindow, error) {
	w, err := o.NativePlatform.Window(ctx, id, p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.known[id] = w
	}
	if old, known := o.known[id]; known {
		return old, nil
	}
	return w, err
}

// trustsPorts proves nothing of an endpoint.
type trustsPorts struct{ engine.NativePlatform }

// OwnsEndpoint implements [engine.NativePlatform].
func (trustsPorts) OwnsEndpoint(context.Context, engine.Process, netip.AddrPort) error { return nil }

// newestPage reads and types in the page that came last.
type newestPage struct {
	abilities
	mu  sync.Mutex
	age map[engine.ContextKey]int
}

// newest is the context that was seen first last; of those that were seen at once any but the one that is asked for.
func (n *newestPage) newest(ctx context.Context, c engine.ContextKey) engine.BrowserContext {
	list, err := n.abilities.Contexts(ctx)
	if err != nil {
		return engine.BrowserContext{Key: c}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	round := len(n.age)
	for _, o := range list {
		if _, known := n.age[o.Key]; !known {
			n.age[o.Key] = round
		}
	}
	best := engine.BrowserContext{Key: c}
	for _, o := range list {
		if best.Document == "" || n.age[o.Key] > n.age[best.Key] {
			best = o
		}
	}
	return best
}

// Locate implements [engine.Browser].
func (n *newestPage) Locate(ctx context.Context, c engine.ContextKey) (engine.BrowserContext, error) {
	found, err := n.abilities.Locate(ctx, c)
	if at := n.newest(ctx, c); err == nil && at.Document != "" {
		found.Document = at.Document
	}
	return found, err
}

// Snapshot implements [engine.Snapshotter].
func (n *newestPage) Snapshot(ctx context.Context, c engine.ContextKey, most int) (engine.PageSnapshot, error) {
	return n.abilities.Snapshot(ctx, n.newest(ctx, c).Key, most)
}

// Type implements [engine.Typer].
func (n *newestPage) Type(ctx context.Context, c engine.ContextKey, node engine.NodeRef, text string, mode engine.TypeMode, replace bool) (engine.Outcome, error) {
	return n.abilities.Type(ctx, n.newest(ctx, c).Key, node, text, mode, replace)
}

// currentPage sends every text to the control of that role and name in the snapshot that was taken last.
type currentPage struct {
	n next

	mu   sync.Mutex
	last json.RawMessage
	refs []engine.Ref
	seen map[string]engine.Ref
}

// Call implements [engine.Engine].
func (c *currentPage) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if op == engine.OpType {
		c.mu.Lock()
		old := c.seen[text(args, "ref")]
		for _, ref := range c.refs {
			if ref.Role == old.Role && ref.Name == old.Name {
				for _, name := range []string{"session", "target_id", "tab_id"} {
					args = with(args, name, fields(c.last)[name])
				}
				args = with(args, "ref", ref.Ref)
			}
		}
		c.mu.Unlock()
	}
	r, err := c.n.Call(ctx, op, args)
	if err == nil && r.Snapshot != nil {
		c.mu.Lock()
		c.last, c.refs = args, r.Snapshot.Refs
		for _, ref := range c.refs {
			c.seen[ref.Ref] = ref
		}
		c.mu.Unlock()
	}
	return r, err
}
