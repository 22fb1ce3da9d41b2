package desktop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// Baseline is the state of a desk that a step must leave as it was.
type Baseline struct {
	ActiveWindow uint32   `json:"active_window"` // as the window manager says, 0 when it says nothing
	InputFocus   uint32   `json:"input_focus"`   // as the server says; 0 none, 1 pointer root
	Stacking     []uint32 `json:"stacking"`      // mapped children of the root, bottom to top; frames by their client's window
	PointerX     int      `json:"pointer_x"`     // root pixels
	PointerY     int      `json:"pointer_y"`
	PointerMask  uint16   `json:"pointer_mask"` // modifiers and buttons that are down
	Clipboard    uint32   `json:"clipboard"`    // owner's window, 0 for none
	Primary      uint32   `json:"primary"`
	Workspace    uint32   `json:"workspace"`
	KeymapSHA256 string   `json:"keymap_sha256"` // of keysyms and modifiers
}

// Field names a part of a Baseline.
type Field string

// Fields of a Baseline.
const (
	FieldActiveWindow Field = "active_window"
	FieldInputFocus   Field = "input_focus"
	FieldStacking     Field = "stacking"
	FieldPointer      Field = "pointer"
	FieldPointerMask  Field = "pointer_mask"
	FieldClipboard    Field = "clipboard"
	FieldPrimary      Field = "primary"
	FieldWorkspace    Field = "workspace"
	FieldKeymap       Field = "keymap"
)

// Difference is one part in which a desk is no longer what it was.
type Difference struct {
	Field   Field  `json:"field"`
	Was, Is string `json:",omitempty"`
}

// Compare lists the parts in which now differs from b, in a fixed order; empty when they are equal.
func (b Baseline) Compare(now Baseline) []Difference {
	var out []Difference
	diff := func(f Field, was, is string) {
		if was != is {
			out = append(out, Difference{f, was, is})
		}
	}
	hex := func(v uint32) string { return fmt.Sprintf("0x%x", v) }
	list := func(ws []uint32) string {
		parts := make([]string, len(ws))
		for i, w := range ws {
			parts[i] = hex(w)
		}
		return strings.Join(parts, " ")
	}
	diff(FieldActiveWindow, hex(b.ActiveWindow), hex(now.ActiveWindow))
	diff(FieldInputFocus, hex(b.InputFocus), hex(now.InputFocus))
	diff(FieldStacking, list(b.Stacking), list(now.Stacking))
	diff(FieldPointer, fmt.Sprintf("%d,%d", b.PointerX, b.PointerY), fmt.Sprintf("%d,%d", now.PointerX, now.PointerY))
	diff(FieldPointerMask, hex(uint32(b.PointerMask)), hex(uint32(now.PointerMask)))
	diff(FieldClipboard, hex(b.Clipboard), hex(now.Clipboard))
	diff(FieldPrimary, hex(b.Primary), hex(now.Primary))
	diff(FieldWorkspace, fmt.Sprint(b.Workspace), fmt.Sprint(now.Workspace))
	diff(FieldKeymap, b.KeymapSHA256, now.KeymapSHA256)
	return out
}

// Snapshot reads the desk's state from the server, behind a barrier.
func (l *Log) Snapshot(ctx context.Context) (Baseline, error) {
	if _, err := l.Barrier(ctx); err != nil {
		return Baseline{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallBudget)
	defer cancel()
	b, err := l.readBaseline(ctx, l.conns[Query])
	if err != nil {
		return Baseline{}, fmt.Errorf("snapshot of the desk: %w", err)
	}
	return b, nil
}

func (l *Log) readBaseline(ctx context.Context, q *x11.Conn) (b Baseline, err error) {
	if b.ActiveWindow, err = rootWord(ctx, q, atomActive); err != nil {
		return b, err
	}
	if b.Workspace, err = rootWord(ctx, q, atomCurrent); err != nil {
		return b, err
	}
	if b.InputFocus, _, err = q.Focus(ctx); err != nil {
		return b, err
	}
	p, err := q.Pointer(ctx)
	if err != nil {
		return b, err
	}
	b.PointerX, b.PointerY, b.PointerMask = int(p.X), int(p.Y), p.Mask
	for _, s := range []struct {
		name string
		to   *uint32
	}{{atomClipboard, &b.Clipboard}, {atomPrimary, &b.Primary}} {
		a, err := q.Atom(ctx, s.name)
		if err != nil {
			return b, err
		}
		if *s.to, err = q.SelectionOwner(ctx, a); err != nil {
			return b, err
		}
	}
	keysyms, modifiers, err := q.Keymap(ctx)
	if err != nil {
		return b, err
	}
	sum := sha256.Sum256(append(keysyms, modifiers...))
	b.KeymapSHA256 = hex.EncodeToString(sum[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.tree.order {
		if n.mapped {
			b.Stacking = append(b.Stacking, l.maker(n))
		}
	}
	return b, nil
}

// rootWord reads a one-value property of the root, 0 when it is absent.
func rootWord(ctx context.Context, q *x11.Conn, name string) (uint32, error) {
	a, err := q.Atom(ctx, name)
	if err != nil {
		return 0, err
	}
	p, err := q.Property(ctx, q.Root(), a, 4)
	if err != nil {
		return 0, err
	}
	if w := p.Words(); len(w) > 0 {
		return w[0], nil
	}
	return 0, nil
}
