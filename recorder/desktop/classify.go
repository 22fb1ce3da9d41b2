package desktop

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Requirement is the id of a requirement about the desk, D1 to D6 and D8; empty for none.
type Requirement string

// Reason says what happened, from a closed list; empty for nothing.
type Reason string

// Reasons. WindowRead is no violation by itself: its requirement is empty.
const (
	ReasonFocusLeft         Reason = "focus_left"
	ReasonStackingChanged   Reason = "stacking_changed"
	ReasonCoverChanged      Reason = "cover_changed"
	ReasonPointerMoved      Reason = "pointer_moved"
	ReasonPointerWarped     Reason = "pointer_warped"
	ReasonPointerGrabbed    Reason = "pointer_grabbed"
	ReasonMasterAdded       Reason = "master_added"
	ReasonInputLeaked       Reason = "input_leaked"
	ReasonInputForged       Reason = "input_forged"
	ReasonWindowAbovePerson Reason = "window_above_person"
	ReasonUrgencyRaised     Reason = "urgency_raised"
	ReasonWorkspaceChanged  Reason = "workspace_changed"
	ReasonOpacityChanged    Reason = "opacity_changed"
	ReasonClipboardTaken    Reason = "clipboard_taken"
	ReasonPrimaryTaken      Reason = "primary_taken"
	ReasonKeymapChanged     Reason = "keymap_changed"
	ReasonKeyboardGrabbed   Reason = "keyboard_grabbed"
	ReasonHotkeyGrabbed     Reason = "hotkey_grabbed"
	ReasonServerGrabbed     Reason = "server_grabbed"
	ReasonWindowRead        Reason = "window_read"
	ReasonBusAction         Reason = "bus_action"
	ReasonAccessAction      Reason = "accessibility_action"
)

var requirementOf = map[Reason]Requirement{
	ReasonFocusLeft: "D1", ReasonStackingChanged: "D2", ReasonCoverChanged: "D2",
	ReasonPointerMoved: "D3", ReasonPointerWarped: "D3", ReasonPointerGrabbed: "D3", ReasonMasterAdded: "D3",
	ReasonInputLeaked: "D4", ReasonInputForged: "D4",
	ReasonWindowAbovePerson: "D5", ReasonUrgencyRaised: "D5", ReasonWorkspaceChanged: "D5", ReasonOpacityChanged: "D5",
	ReasonClipboardTaken: "D6", ReasonPrimaryTaken: "D6", ReasonKeymapChanged: "D6", ReasonKeyboardGrabbed: "D6",
	ReasonHotkeyGrabbed: "D6", ReasonServerGrabbed: "D6",
	ReasonBusAction: "D8", ReasonAccessAction: "D8",
	ReasonWindowRead: "",
}

// Requirements lists every reason with the requirement that it breaks, empty for none.
func Requirements() map[Reason]Requirement { return maps.Clone(requirementOf) }

const violationsFormat = "acceptance.desk-violations/1"

//go:embed violations.yaml
var violationsYAML []byte

// table is the reason for every kind and role; it is total.
type table struct {
	reasons  [kindCount][roleCount]Reason
	services []service
}

// service is what programs may say to a service of the session. No members are all of them.
type service struct {
	To        string   `yaml:"to"`
	Interface string   `yaml:"interface"`
	Members   []string `yaml:"members"`
	Why       string   `yaml:"why"`
}

var violations = sync.OnceValues(func() (*table, error) { return parseTable(violationsYAML) })

// parseTable reads the table of violations: for every kind a reason per role, and `else` for the roles that are
// not named. `quiet` is no violation. A missing or unknown kind, role or reason is an error.
func parseTable(b []byte) (*table, error) {
	var doc struct {
		Format string                       `yaml:"format"`
		Kinds  map[string]map[string]string `yaml:"kinds"`

		Services []service `yaml:"services"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("violations: %w", err)
	}
	if doc.Format != violationsFormat {
		return nil, fmt.Errorf("violations: got format %q, want %q", doc.Format, violationsFormat)
	}
	var t table
	var errs []error
	for name, roles := range doc.Kinds {
		var k Kind
		if err := k.UnmarshalText([]byte(name)); err != nil || k == KindNone {
			errs = append(errs, fmt.Errorf("violations: unknown kind %q", name))
			continue
		}
		reasons := map[string]Reason{}
		for role, text := range roles {
			reason := Reason(text)
			if text == "quiet" {
				reason = ""
			} else if _, ok := requirementOf[reason]; !ok {
				errs = append(errs, fmt.Errorf("violations: %s: %s: unknown reason %q", name, role, text))
			}
			for r := range strings.SplitSeq(role, "|") {
				if r != "else" && !slices.Contains(roleNames[:], r) {
					errs = append(errs, fmt.Errorf("violations: %s: unknown role %q", name, r))
				}
				if _, twice := reasons[r]; twice {
					errs = append(errs, fmt.Errorf("violations: %s: role %q twice", name, r))
				}
				reasons[r] = reason
			}
		}
		rest, ok := reasons["else"]
		if !ok {
			errs = append(errs, fmt.Errorf("violations: %s: no else", name))
		}
		for r := range roleCount {
			reason, named := reasons[roleNames[r]]
			if !named {
				reason = rest
			}
			t.reasons[k][r] = reason
		}
	}
	for i, s := range doc.Services {
		if s.To == "" || s.Interface == "" || s.Why == "" {
			errs = append(errs, fmt.Errorf("violations: services[%d]: to, interface and why must be there", i))
		}
	}
	t.services = doc.Services
	for _, k := range Kinds() {
		if _, ok := doc.Kinds[k.String()]; !ok {
			errs = append(errs, fmt.Errorf("violations: kind %q is missing", k))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &t, nil
}

// Violation says which requirement an event breaks and why, by its kind and role alone. Both are empty for an
// event that breaks none; a read of a window has a reason without a requirement. It does not say who is to be
// charged: the caller knows the processes.
func Violation(ev Event) (Requirement, Reason) {
	t, err := violations()
	if err != nil || ev.Kind >= kindCount || ev.Role >= roleCount {
		return "", "" // Start refuses to run on a broken table, so no event comes here
	}
	reason := t.reasons[ev.Kind][ev.Role]
	return requirementOf[reason], reason
}
