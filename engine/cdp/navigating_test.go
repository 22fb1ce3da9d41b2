package cdp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	. "github.com/onsi/gomega"
)

// A question that a document refuses while it goes away is told from one that a page does not answer.
func TestNavigating_waits_for_the_word_of_a_new_document(t *testing.T) {
	g := NewWithT(t)
	refused := &cdproto.Error{Code: -32000, Message: "Internal error"}
	soon, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(errNavigated) })
	g.Expect(navigating(soon, refused)).To(BeTrue())
	g.Expect(navigating(t.Context(), refused)).To(BeFalse(), "nothing was told of a new document")
	other, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	g.Expect(navigating(other, refused)).To(BeFalse())
	began := time.Now()
	g.Expect(navigating(t.Context(), &cdproto.Error{Message: "No target with given id found"})).To(BeFalse())
	g.Expect(navigating(t.Context(), errors.New("of the harness's own"))).To(BeFalse())
	g.Expect(time.Since(began)).To(BeNumerically("<", navigationTold), "only a refusal of the browser is waited for")
}
