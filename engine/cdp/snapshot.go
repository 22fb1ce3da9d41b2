package cdp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/domsnapshot"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/engine-acceptance/acceptance/engine"
)

var _ engine.Snapshotter = (*Browser)(nil)

const (
	// defaultNodes is the number of nodes listed when the caller names none.
	defaultNodes = 300
	// maxNodes is the greatest number of nodes that can be listed.
	maxNodes = 50_000
	// maxText bounds a name, value or title, in bytes.
	maxText = 1024
	// maxFrames bounds the frames that are read.
	maxFrames = 200
)

// roles that can be acted on, with what they take besides a click.
var roles = map[string][]engine.Action{
	"button": {engine.ActionClick}, "link": {engine.ActionClick}, "checkbox": {engine.ActionClick}, "radio": {engine.ActionClick},
	"switch": {engine.ActionClick}, "tab": {engine.ActionClick}, "menuitem": {engine.ActionClick}, "menuitemcheckbox": {engine.ActionClick},
	"menuitemradio": {engine.ActionClick}, "option": {engine.ActionClick}, "treeitem": {engine.ActionClick}, "slider": {engine.ActionClick},
	"disclosuretriangle": {engine.ActionClick}, "combobox": {engine.ActionClick}, "listbox": {engine.ActionClick},
	"textbox": {engine.ActionClick, engine.ActionType}, "searchbox": {engine.ActionClick, engine.ActionType},
	"spinbutton": {engine.ActionClick, engine.ActionType}, "date": {engine.ActionClick}, "datetime": {engine.ActionClick},
	"inputtime": {engine.ActionClick}, "colorwell": {engine.ActionClick},
}

// node is what a NodeKey says: the session, the frame and the browser's own node number.
type node struct {
	target  target.ID
	frame   cdp.FrameID
	backend cdp.BackendNodeID
}

func (n node) key() engine.NodeKey {
	return engine.NodeKey(string(n.target) + "/" + string(n.frame) + "/" + strconv.FormatInt(int64(n.backend), 10))
}

func parseNode(k engine.NodeKey) (node, bool) {
	parts := strings.Split(string(k), "/")
	if len(parts) != 3 {
		return node{}, false
	}
	id, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || id <= 0 || parts[0] == "" || parts[1] == "" {
		return node{}, false
	}
	return node{target: target.ID(parts[0]), frame: cdp.FrameID(parts[1]), backend: cdp.BackendNodeID(id)}, true
}

// frameInfo is one frame of a snapshot.
type frameInfo struct {
	s      *session
	id     cdp.FrameID
	loader cdp.LoaderID
	kind   string // main, same_site, other_site
}

// Snapshot lists what can be acted on, from the browser's own accessibility tree of the main frame and of the frames of its process; a
// frame of another process is read through its own session. maxNodes 0 means 300.
//
// The snapshot is of one document: the frames are read before and after, and any difference is ref_retired with reason document.
func (b *Browser) Snapshot(ctx context.Context, c engine.ContextKey, limit int) (engine.PageSnapshot, error) {
	snap, err := b.snapshot(ctx, c, limit)
	if err != nil {
		return engine.PageSnapshot{}, refuse(engine.OpState, engine.ActionSnapshot, engine.RouteEngine, err)
	}
	return snap, nil
}

func (b *Browser) snapshot(ctx context.Context, c engine.ContextKey, limit int) (engine.PageSnapshot, error) {
	if limit <= 0 {
		limit = defaultNodes
	}
	limit = min(limit, maxNodes)
	s, err := b.link.page(ctx, targetOf(c))
	if err != nil {
		return engine.PageSnapshot{}, err
	}
	if s.dialogOpen() {
		return engine.PageSnapshot{}, errDialog
	}
	ctx, stop := s.whileDocument(ctx)
	defer stop()
	snap, err := b.readDocument(ctx, s, limit)
	if err != nil && navigating(ctx, err) {
		err = errNavigated
	}
	return snap, err
}

// navigationTold is how long the word of a new document may come after the refusal of a question that was asked of the old one: they come from
// two processes.
const navigationTold = 250 * time.Millisecond

// navigating says whether a question was refused because its document went away: ctx, of [session.whileDocument], ends when that is told.
func navigating(ctx context.Context, err error) bool {
	var wire *cdproto.Error
	if !errors.As(err, &wire) || targetMissing(wire) {
		return false
	}
	select {
	case <-ctx.Done():
		return errors.Is(context.Cause(ctx), errNavigated)
	case <-time.After(navigationTold):
		return false
	}
}

// readDocument lists the document that a page shows now.
func (b *Browser) readDocument(ctx context.Context, s *session, limit int) (engine.PageSnapshot, error) {
	document := s.document()
	frames, unread, err := b.frames(ctx, s)
	if err != nil {
		return engine.PageSnapshot{}, err
	}
	snap := engine.PageSnapshot{Document: engine.DocumentKey(document), Provenance: engine.ProvenanceAccessibility, Omitted: map[string]int{}}
	if unread > 0 {
		snap.Omitted["unprovable_frame"] = unread
	}

	trees := make([]*pending, len(frames))
	for i, f := range frames {
		f.s.keepTree()
		trees[i] = f.s.send("Accessibility.getFullAXTree", accessibility.GetFullAXTreeParams{FrameID: f.id})
	}
	boxes := map[*session]*pending{}
	hidden := 0
	for _, f := range frames {
		if boxes[f.s] == nil {
			boxes[f.s] = f.s.send("DOMSnapshot.captureSnapshot", domsnapshot.CaptureSnapshotParams{ComputedStyles: []string{}})
		}
	}
	for i, f := range frames {
		var tree axTree
		if err := trees[i].wait(ctx, &tree); err != nil {
			if f.kind != "main" && !errors.Is(err, errDialog) && !errors.Is(err, errLost) && !errors.Is(err, errViolation) {
				snap.Omitted["unprovable_frame"]++
				continue
			}
			return engine.PageSnapshot{}, err
		}
		for j := range tree.Nodes {
			n := &tree.Nodes[j]
			role := n.role()
			actions, listed := roles[role]
			if n.Ignored || !listed || n.BackendDOMNodeID <= 0 {
				continue
			}
			snap.Total++
			if len(snap.Nodes) >= limit {
				continue
			}
			states, flags := n.states()
			pn := engine.PageNode{
				Node: node{target: f.s.target, frame: f.id, backend: n.BackendDOMNodeID}.key(), Role: role, Name: bounded(n.Name.text(), maxText),
				Value: bounded(n.Value.text(), maxText), States: states, Frame: f.kind, Visibility: "unknown",
			}
			editable := flags["editable"] || slices.Contains(actions, engine.ActionType)
			switch {
			case flags["disabled"]:
			case editable && !flags["readonly"]:
				pn.Actions = []engine.Action{engine.ActionClick, engine.ActionType}
			default:
				pn.Actions = []engine.Action{engine.ActionClick}
			}
			snap.Nodes = append(snap.Nodes, pn)
		}
	}
	seen := map[engine.NodeKey]string{}
	for bs, p := range boxes {
		var res boxSnapshot
		if err := p.wait(ctx, &res); err != nil {
			if bs == s {
				return engine.PageSnapshot{}, err
			}
			continue
		}
		res.visibility(bs, bs == s, seen)
	}
	for i := range snap.Nodes {
		if v := seen[snap.Nodes[i].Node]; v != "" {
			snap.Nodes[i].Visibility = v
		}
	}
	if hidden, err = evaluate[int](ctx, s, hiddenScript); err != nil {
		return engine.PageSnapshot{}, err
	}
	if hidden > 0 {
		snap.Omitted["hidden"] = hidden
	}
	if over := snap.Total - len(snap.Nodes); over > 0 {
		snap.Omitted["budget"] = over
	}
	snap.Total += hidden

	after, _, err := b.frames(ctx, s)
	if err != nil {
		return engine.PageSnapshot{}, err
	}
	if s.document() != document || !slices.Equal(frames, after) {
		return engine.PageSnapshot{}, errNavigated
	}
	return snap, nil
}

// frames lists the frames of a page and of its children of other processes; unread counts the ones beyond the bound or not to be asked.
func (b *Browser) frames(ctx context.Context, s *session) (list []frameInfo, unread int, err error) {
	var site string
	var add func(of *session, t *page.FrameTree, depth int)
	add = func(of *session, t *page.FrameTree, depth int) {
		if t == nil || t.Frame == nil {
			return
		}
		kind := "same_site"
		switch own := siteOf(t.Frame); {
		case of == s && depth == 0:
			kind, site = "main", own
		case own != site && own != "":
			kind = "other_site"
		}
		if len(list) >= maxFrames || depth > 64 {
			unread++
			return
		}
		list = append(list, frameInfo{s: of, id: t.Frame.ID, loader: t.Frame.LoaderID, kind: kind})
		for _, c := range t.ChildFrames {
			add(of, c, depth+1)
		}
	}
	for i, of := range append([]*session{s}, sorted(b.link.children(s))...) {
		if i > 0 && of.await(ctx) != nil {
			unread++
			continue
		}
		tree, err := call(ctx, of, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			if i > 0 {
				unread++
				continue
			}
			return nil, 0, err
		}
		add(of, tree.FrameTree, 0)
	}
	return list, unread, nil
}

func sorted(list []*session) []*session {
	slices.SortFunc(list, func(a, b *session) int { return strings.Compare(string(a.target), string(b.target)) })
	return list
}

// siteOf names the site of a frame, empty for a document that inherits its site (about:blank, srcdoc).
func siteOf(f *cdp.Frame) string {
	if f.DomainAndRegistry != "" {
		return f.DomainAndRegistry
	}
	_, host, ok := strings.Cut(f.SecurityOrigin, "://")
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return host
}

// axTree is the part of an accessibility tree that we read; the typed one keeps sources and relations that nobody needs.
type axTree struct {
	Nodes []axNode `json:"nodes"`
}

type axNode struct {
	Ignored          bool              `json:"ignored"`
	Role             axValue           `json:"role"`
	Name             axValue           `json:"name"`
	Value            axValue           `json:"value"`
	Properties       []axProperty      `json:"properties"`
	BackendDOMNodeID cdp.BackendNodeID `json:"backendDOMNodeId"`
}

type axProperty struct {
	Name  string  `json:"name"`
	Value axValue `json:"value"`
}

type axValue struct {
	Value jsonv2.Value `json:"value"`
}

// text reads a string, number or boolean as text.
func (v axValue) text() string {
	if len(v.Value) == 0 {
		return ""
	}
	if v.Value[0] != '"' {
		return string(v.Value)
	}
	var s string
	if jsonv2.Unmarshal(v.Value, &s) != nil {
		return ""
	}
	return s
}

func (n *axNode) role() string { return strings.ToLower(n.Role.text()) }

// states lists the states in a fixed order, and returns the flags that decide about actions.
func (n *axNode) states() (list []string, flags map[string]bool) {
	flags = map[string]bool{}
	for _, p := range n.Properties {
		v := p.Value.text()
		switch p.Name {
		case "checked", "pressed":
			switch v {
			case "true":
				list = append(list, p.Name)
			case "mixed":
				list = append(list, "mixed")
			case "false":
				list = append(list, "not_"+p.Name)
			}
		case "expanded":
			if v == "true" {
				list = append(list, "expanded")
			} else {
				list = append(list, "collapsed")
			}
		case "disabled", "readonly", "required", "selected", "focused", "multiline", "modal":
			if v == "true" {
				flags[p.Name] = true
				list = append(list, p.Name)
			}
		case "invalid":
			if v != "false" && v != "" {
				list = append(list, "invalid")
			}
		case "editable":
			flags["editable"] = v == "plaintext" || v == "richtext"
		}
	}
	slices.Sort(list)
	return list, flags
}

// boxSnapshot is the part of DOMSnapshot that says where nodes are.
type boxSnapshot struct {
	Documents []struct {
		FrameID       int     `json:"frameId"`
		ScrollOffsetX float64 `json:"scrollOffsetX"`
		ScrollOffsetY float64 `json:"scrollOffsetY"`
		Nodes         struct {
			BackendNodeID        []cdp.BackendNodeID `json:"backendNodeId"`
			ContentDocumentIndex struct {
				Index []int `json:"index"`
				Value []int `json:"value"`
			} `json:"contentDocumentIndex"`
		} `json:"nodes"`
		Layout struct {
			NodeIndex []int       `json:"nodeIndex"`
			Bounds    [][]float64 `json:"bounds"`
		} `json:"layout"`
	} `json:"documents"`
	Strings []string `json:"strings"`
}

// visibility says for every node with a box whether it lies in the viewport of its own frame, whose size is the box of its root. It does
// not see scrolling ancestors inside the frame; a click tests the point itself.
func (r *boxSnapshot) visibility(s *session, main bool, out map[engine.NodeKey]string) {
	for di := range r.Documents {
		d := &r.Documents[di]
		if d.FrameID < 0 || d.FrameID >= len(r.Strings) || len(d.Layout.Bounds) == 0 || len(d.Layout.Bounds[0]) < 4 {
			continue
		}
		frame := cdp.FrameID(r.Strings[d.FrameID])
		w, h := d.Layout.Bounds[0][2], d.Layout.Bounds[0][3]
		for i, ni := range d.Layout.NodeIndex {
			if i >= len(d.Layout.Bounds) || ni < 0 || ni >= len(d.Nodes.BackendNodeID) || len(d.Layout.Bounds[i]) < 4 {
				continue
			}
			x, y, bw, bh := d.Layout.Bounds[i][0]-d.ScrollOffsetX, d.Layout.Bounds[i][1]-d.ScrollOffsetY, d.Layout.Bounds[i][2], d.Layout.Bounds[i][3]
			word := "scrolled_away"
			if bw <= 0 || bh <= 0 {
				word = "unknown"
			} else if x < w && y < h && x+bw > 0 && y+bh > 0 {
				word = "in_view"
			}
			if !main && di == 0 || di > 0 {
				// Where the frame itself lies in the page is not part of this answer.
				if word == "in_view" {
					word = "unknown"
				}
			}
			out[node{target: s.target, frame: frame, backend: d.Nodes.BackendNodeID[ni]}.key()] = word
		}
	}
}

// bounded cuts text to at most n bytes at a rune boundary and drops control characters.
func bounded(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
