package desktop

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The table is total: every kind has a word for every role, and every reason has its requirement.
func TestViolationTable(t *testing.T) {
	g := NewWithT(t)
	_, err := parseTable(violationsYAML)
	g.Expect(err).NotTo(HaveOccurred())
	used := map[Reason]bool{}
	for _, k := range Kinds() {
		for r := range roleCount {
			req, reason := Violation(Event{Kind: k, Role: r})
			want, known := requirementOf[reason]
			g.Expect(known || reason == "").To(BeTrue(), "%s %s", k, r)
			g.Expect(req).To(Equal(want), "%s %s", k, r)
			used[reason] = true
		}
	}
	for reason := range requirementOf {
		g.Expect(used).To(HaveKey(reason))
	}
}

func TestViolation(t *testing.T) {
	for _, tc := range []struct {
		kind        Kind
		role        WindowRole
		requirement Requirement
		reason      Reason
	}{
		{FocusOut, Person, "D1", ReasonFocusLeft},
		{FocusOut, Bystander, "", ""},
		{FocusIn, Person, "", ""},
		{FocusIn, Target, "D1", ReasonFocusLeft},
		{FocusInside, Person, "", ""},
		{FocusGrab, Person, "D6", ReasonKeyboardGrabbed},
		{StackingChanged, Other, "D2", ReasonStackingChanged},
		{CoverChanged, Target, "D2", ReasonCoverChanged},
		{WindowMoved, Person, "D2", ReasonCoverChanged},
		{WindowMoved, Target, "", ""},
		{ReqWarp, Root, "D3", ReasonPointerWarped},
		{DeviceMotion, NoWindow, "D3", ReasonPointerMoved},
		{ReqGrabPointer, Target, "D3", ReasonPointerGrabbed},
		{MasterAdded, NoWindow, "D3", ReasonMasterAdded},
		{DeviceKey, NoWindow, "D4", ReasonInputLeaked},
		{SendInput, Person, "D4", ReasonInputForged},
		{SendInput, NoWindow, "D4", ReasonInputForged},
		{SendInput, Target, "", ""},
		{AbovePerson, Other, "D5", ReasonWindowAbovePerson},
		{ReqUrgency, Sibling, "D5", ReasonUrgencyRaised},
		{SendWorkspace, Root, "D5", ReasonWorkspaceChanged},
		{OpacityChanged, Person, "D5", ReasonOpacityChanged},
		{ReqClipboard, Sibling, "D6", ReasonClipboardTaken},
		{PrimaryChanged, Other, "D6", ReasonPrimaryTaken},
		{ReqKeymap, NoWindow, "D6", ReasonKeymapChanged},
		{ReqGrabKeyboard, Root, "D6", ReasonKeyboardGrabbed},
		{ReqGrabKey, Root, "D6", ReasonHotkeyGrabbed},
		{ReqGrabServer, NoWindow, "D6", ReasonServerGrabbed},
		{ReqRead, Person, "", ReasonWindowRead},
		{KindNone, NoWindow, "", ""},
		{kindCount, Person, "", ""},
	} {
		t.Run(tc.kind.String()+"/"+tc.role.String(), func(t *testing.T) {
			g := NewWithT(t)
			req, reason := Violation(Event{Kind: tc.kind, Role: tc.role})
			g.Expect(req).To(Equal(tc.requirement))
			g.Expect(reason).To(Equal(tc.reason))
		})
	}
}

func TestParseTable(t *testing.T) {
	whole := string(violationsYAML)
	for _, tc := range []struct{ name, text, want string }{
		{"a missing kind is an error", strings.Replace(whole, "  focus_out:", "  # focus_out:", 1), `kind "focus_out" is missing`},
		{"an unknown kind is an error", whole + "  focus_lost: {else: quiet}\n", `unknown kind "focus_lost"`},
		{"an unknown reason is an error", strings.Replace(whole, "{else: clipboard_taken}", "{else: clipboard_stolen}", 1), `unknown reason "clipboard_stolen"`},
		{"an unknown role is an error", strings.Replace(whole, "{person: focus_left,", "{persona: focus_left,", 1), `unknown role "persona"`},
		{"no else is an error", strings.Replace(whole, "{else: stacking_changed}", "{person: stacking_changed}", 1), "no else"},
		{"another format is an error", strings.Replace(whole, "violations/1", "violations/2", 1), "got format"},
		{"an unknown key is an error", whole + "kind: {}\n", "field kind not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := parseTable([]byte(tc.text))
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestNamesReadBack(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, k := range Kinds() {
		b, err := k.MarshalText()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(b).NotTo(BeEmpty(), "kind %d has no name", k)
		g.Expect(seen).NotTo(HaveKey(string(b)))
		seen[string(b)] = true
		var back Kind
		g.Expect(back.UnmarshalText(b)).To(Succeed())
		g.Expect(back).To(Equal(k))
	}
	var (
		k Kind
		c Channel
		r WindowRole
	)
	g.Expect(k.UnmarshalText([]byte("focus"))).NotTo(Succeed())
	g.Expect(c.UnmarshalText([]byte("rec"))).NotTo(Succeed())
	g.Expect(r.UnmarshalText([]byte(""))).NotTo(Succeed())
	g.Expect(r.UnmarshalText([]byte("person"))).To(Succeed())
	g.Expect(r).To(Equal(Person))
	_, err := kindCount.MarshalText()
	g.Expect(err).To(HaveOccurred())
}
