package cdp

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"github.com/engine-acceptance/acceptance/engine"
)

var _ engine.Typer = (*Browser)(nil)

// maxKeysUnderWay bounds the key events that are sent before one is answered.
const maxKeysUnderWay = 64

// prepared is what js/prepare.js returns, readback what js/readback.js returns.
type (
	prepared struct {
		Problem string  `json:"problem"`
		Empty   bool    `json:"empty"`
		Before  *string `json:"before"`
	}
	readback struct {
		State  string `json:"state"`
		Points int    `json:"points"`
	}
)

// Type enters text at the end of a control, or in place of what it holds. Insert sends the text as one input event with no key events;
// keystrokes sends trusted key events for each code point. What arrived is read back: whole is confirmed, a prefix is partial with
// input_incomplete, nothing at all is suspected_noop, and anything else (the page rewrites its input) is unverifiable.
func (b *Browser) Type(ctx context.Context, c engine.ContextKey, n engine.NodeRef, text string, mode engine.TypeMode, replace bool) (engine.Outcome, error) {
	points := utf8.RuneCountInString(text)
	out := engine.Outcome{Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput, Requested: points}
	fail := func(err error) (engine.Outcome, error) {
		return engine.Outcome{}, refuse(engine.OpType, engine.ActionType, engine.RouteTrustedInput, err)
	}
	if !utf8.ValidString(text) || (mode != "" && mode != engine.TypeInsert && mode != engine.TypeKeystrokes) {
		return fail(unavailable(engine.OpType, "argument", "invalid_argument", engine.ActionType, engine.RouteTrustedInput))
	}
	if mode == engine.TypeKeystrokes && strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\r' && unicode.IsControl(r) }) {
		// A tab or an escape is a key that leaves the control, and the rest of the text would go elsewhere.
		return fail(unavailable(engine.OpType, "argument", "invalid_argument", engine.ActionType, engine.RouteTrustedInput))
	}
	s, leave, err := b.enter(ctx, c)
	if err != nil {
		return fail(err)
	}
	defer leave()
	ctx, stop := s.whileDocument(ctx)
	defer stop()
	standing := b.stand(ctx, c, s)
	t, err := b.find(ctx, s, n)
	if err == nil {
		err = prepare(ctx, t, false, replace, n.Value, nil)
	}
	st := <-standing
	if err = errors.Join(st.err, err); err != nil {
		return fail(err)
	}
	defer t.s.release()
	if t.ignored {
		return fail(errNode)
	}
	if st.parked {
		if err := s.emulate(ctx); err != nil {
			return fail(err)
		}
	}
	if err := s.settle(ctx); err != nil {
		return fail(err)
	}
	out.FocusEmulated = s.emulates()
	var p prepared
	if err := prepare(ctx, t, true, replace, n.Value, &p); err != nil {
		return fail(err)
	}
	out.Before = p.Before
	var last *pending
	if replace && !p.Empty && (text == "" || mode == engine.TypeKeystrokes) {
		last = t.s.backspace()
	}
	switch {
	case text == "":
	case mode == engine.TypeKeystrokes:
		last, err = t.s.keystrokes(ctx, text)
	default:
		last = t.s.send("Input.insertText", input.InsertTextParams{Text: text})
	}
	if last != nil && last.id == 0 && mode != engine.TypeKeystrokes {
		return fail(last.err)
	}
	if err == nil && last != nil {
		err = last.wait(ctx, nil)
	}
	if err != nil && (mode == engine.TypeKeystrokes || !(errors.Is(err, errDialog) || errors.Is(err, errNavigated))) {
		return afterDispatch(out, engine.OpType, engine.ActionType, err), nil
	}
	if err == nil {
		var r readback
		if r, err = resultOf[readback](ctx, t.s.on(t.object, readbackScript, []string{text})); err == nil {
			return judge(out, r, points), nil
		}
	}
	// A dialog, or a document that went away with what it was given.
	out.Effect, out.Delivered = engine.EffectUnverifiable, points
	return out, nil
}

// judge turns what was read back into an outcome.
func judge(out engine.Outcome, r readback, points int) engine.Outcome {
	switch r.State {
	case "whole":
		out.Effect, out.Delivered = engine.EffectConfirmed, points
	case "prefix":
		out.Effect, out.Delivered = engine.EffectPartial, r.Points
		out.Refusal = refusal(engine.OpType, engine.CodeInputIncomplete, "prefix_only", engine.Detail{RequestedChars: points, DeliveredChars: r.Points})
	case "unchanged":
		out.Effect = engine.EffectSuspectedNoop
	default:
		out.Effect, out.Delivered = engine.EffectUnverifiable, points
	}
	return out
}

// prepare checks a control and, when act is true, focuses it and places the caret.
// expected is the value that is to be replaced, nil for any.
func prepare(ctx context.Context, t found, act, replace bool, expected *string, out *prepared) error {
	p, err := resultOf[prepared](ctx, t.s.on(t.object, prepareScript, act, replace, expectation(expected)))
	if err != nil {
		return err
	}
	switch p.Problem {
	case "":
	case "gone":
		return errNode
	case "value_changed":
		return unavailable(engine.OpType, "value_changed", "value_changed", engine.ActionType, engine.RouteTrustedInput)
	case "not_editable", "disabled", "read_only", "hidden":
		return cannot(engine.OpType, p.Problem, engine.ActionType, engine.RouteTrustedInput)
	default:
		return violation("prepare answered with an unknown word")
	}
	if out != nil {
		*out = p
	}
	return nil
}

// expectation is an expected value as the script takes it: in a list, for an empty string and an empty list are left out on the wire.
func expectation(value *string) []*string { return []*string{value} }

// backspace deletes what is selected and returns the key's release.
func (s *session) backspace() *pending {
	p := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Backspace", Code: "Backspace", WindowsVirtualKeyCode: 8, NativeVirtualKeyCode: 8}
	s.send("Input.dispatchKeyEvent", p).forget()
	p.Type = input.DispatchKeyEventTypeKeyUp
	return s.send("Input.dispatchKeyEvent", p)
}

// keystrokes sends the keys of a text in order, a bounded number under way, and returns the last.
func (s *session) keystrokes(ctx context.Context, text string) (*pending, error) {
	var under []*pending
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		for _, k := range keysOf(r) {
			under = append(under, s.send("Input.dispatchKeyEvent", k))
		}
		for len(under) > maxKeysUnderWay {
			if err := under[0].wait(ctx, nil); err != nil {
				return nil, err
			}
			under = under[1:]
		}
	}
	for len(under) > 1 {
		if err := under[0].wait(ctx, nil); err != nil {
			return nil, err
		}
		under = under[1:]
	}
	return under[0], nil
}

// keysOf returns the events of one code point. Beyond ASCII there is no key on the reference keyboard, and chromedp's table gives some of
// those code points to function keys; they get key events without an identity and one char event, as an input method would send.
func keysOf(r rune) []*input.DispatchKeyEventParams {
	if r < utf8.RuneSelf {
		return kb.Encode(r)
	}
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Unidentified"}
	char, up := down, down
	char.Type, char.Text, char.UnmodifiedText = input.DispatchKeyEventTypeChar, string(r), string(r)
	up.Type = input.DispatchKeyEventTypeKeyUp
	return []*input.DispatchKeyEventParams{&down, &char, &up}
}
