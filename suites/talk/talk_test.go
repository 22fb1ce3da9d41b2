package talk

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// role answers "echo", refuses "no", ends at "end" and never answers "mute".
func role(r io.Reader, w io.WriteCloser) {
	out := NewWriter(w)
	for q := range Requests(context.Background(), r) {
		switch q.Op {
		case "echo":
			var v map[string]string
			err := q.Decode(&v)
			_ = out.Event(map[string]string{"event": "asked"})
			_ = out.Answer(q, v, err)
		case "no":
			_ = out.Answer(q, nil, errors.New("not today"))
		case "end":
			w.Close()
			return
		}
	}
	w.Close()
}

func pair(event func([]byte)) (*Caller, func()) {
	qr, qw := io.Pipe()
	ar, aw := io.Pipe()
	go role(qr, aw)
	c := NewCaller(qw, ar, event)
	return c, func() { qw.Close(); <-c.Done() }
}

func TestAsk(t *testing.T) {
	g := NewWithT(t)
	var events []string
	c, end := pair(func(l []byte) { events = append(events, string(l)) })
	defer end()
	var back map[string]string
	g.Expect(c.Ask(t.Context(), "echo", map[string]string{"a": "b"}, &back)).To(Succeed())
	g.Expect(back).To(Equal(map[string]string{"a": "b"}))
	g.Expect(events).To(Equal([]string{`{"event":"asked"}`}), "an answer comes after the events before it")
	var remote *RemoteError
	g.Expect(errors.As(c.Ask(t.Context(), "no", nil, nil), &remote)).To(BeTrue())
	g.Expect(remote.Text).To(Equal("not today"))
}

func TestAsk_without_an_answer_ends_with_its_budget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, end := pair(nil)
		defer end()
		began := time.Now()
		g.Expect(c.Ask(t.Context(), "mute", nil, nil)).To(MatchError(context.DeadlineExceeded))
		g.Expect(time.Since(began)).To(Equal(DefaultBudget))
	})
}

func TestAsk_of_a_role_that_ends_fails_at_once(t *testing.T) {
	g := NewWithT(t)
	c, end := pair(nil)
	defer end()
	g.Expect(c.Ask(t.Context(), "end", nil, nil)).To(MatchError(ErrClosed))
	g.Expect(c.Ask(t.Context(), "echo", nil, nil)).To(MatchError(ErrClosed))
}

func TestLines_are_bounded_and_torn_ends_dropped(t *testing.T) {
	g := NewWithT(t)
	var got []string
	keep := func(l []byte) error { got = append(got, string(l)); return nil }
	g.Expect(Lines(strings.NewReader("a\n\nb\ntorn"), keep)).To(Succeed())
	g.Expect(got).To(Equal([]string{"a", "", "b"}))
	got = nil
	g.Expect(Lines(strings.NewReader(strings.Repeat("x", MaxLine)+"\n"), keep)).To(Succeed())
	g.Expect(got).To(HaveLen(1))
	g.Expect(Lines(strings.NewReader(strings.Repeat("x", MaxLine+1)+"\n"), keep)).To(MatchError(ErrLineTooLong))
}

func TestDecode_refuses_unknown_arguments(t *testing.T) {
	g := NewWithT(t)
	var v struct {
		X int `json:"x"`
	}
	g.Expect(Request{Op: "place", Args: []byte(`{"x":1,"speed":2}`)}.Decode(&v)).NotTo(Succeed())
	g.Expect(Request{Op: "place", Args: []byte(`{"x":1}`)}.Decode(&v)).To(Succeed())
}
