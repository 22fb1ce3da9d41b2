package attempt

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
)

const (
	// pageChange bounds how long a page may take to do what it was told.
	pageChange = 3 * time.Second
	// heldUp is how long a page must be silent to count as held up by a dialog: it answers in milliseconds, and on a loaded machine in tens.
	heldUp = 700 * time.Millisecond
	// dialogBudget bounds how long a dialog may take to open.
	dialogBudget = 4 * time.Second
)

// document is the document that a tab shows now.
func (a *Attempt) document(tab *Tab) (fixtures.DocumentID, error) {
	docs := a.docs[tab.Page]
	if len(docs) == 0 {
		return "", fmt.Errorf("no document of %s is known", tab.Page)
	}
	return docs[len(docs)-1], nil
}

// met observes whether something that the row rests on was measured; when it was not, the row ends.
func (a *Attempt) met(name, want, got string, met bool) error {
	a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: name, Want: want, Got: got, Met: met}})
	if !met {
		return ErrStopped
	}
	return nil
}

// PageDoes has the page of a tab change by itself: the fixture server hands its script a word, and the page's own report says that it is
// done. No call of the engine has a part in it.
func (a *Attempt) PageDoes(ctx context.Context, tab *Tab, word string) error {
	id, err := a.document(tab)
	if err != nil {
		return err
	}
	journal := a.Stage.Pages.Journal()
	from := journal.Mark()
	if err := a.pages.Tell(id, word); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, pageChange)
	defer cancel()
	_, err = journal.Wait(limit, from, func(ev fixtures.Event) bool {
		return ev.Document == id && ev.Signed && ev.Type == fixtures.EventState && ev.Control == "done" && ev.Value == word
	})
	got := "done"
	if err != nil {
		got = "no report"
	}
	if err := a.met("page does "+word, "done", got, err == nil); err != nil {
		return err
	}
	if memberOf(ctx) != nil {
		return nil
	}
	return a.closeWindow(ctx)
}

// AwaitDialog waits until the page of a tab is held up: it answers nothing while its process lives and its channel is open.
func (a *Attempt) AwaitDialog(ctx context.Context, tab *Tab) error {
	id, err := a.document(tab)
	if err != nil {
		return err
	}
	held := false
	for end := time.Now().Add(dialogBudget); !held && time.Now().Before(end); {
		if held, err = a.pages.Held(ctx, id, heldUp); err != nil {
			return a.fault("harness", "ask a page whether it is held up: %v", err)
		}
		if !held {
			time.Sleep(heldUp / 7)
		}
	}
	got := "the page answers"
	if held {
		got = "the page is held up"
	}
	if err := a.met("dialog", "the page is held up", got, held); err != nil {
		return err
	}
	if memberOf(ctx) != nil {
		return nil // the group's window of time is closed once, when all have ended
	}
	return a.closeWindow(ctx)
}

// AwaitHold waits until a page of the row has asked the server for time, in the middle of a handler.
func (a *Attempt) AwaitHold(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, pageChange)
	defer cancel()
	_, err := a.Stage.Pages.Journal().Wait(limit, a.journalMark, func(ev fixtures.Event) bool {
		return ev.Row == a.pages.ID() && ev.Type == fixtures.EventRequest && strings.Contains(ev.Value, " -/hold")
	})
	got := "a page waits for its answer"
	if err != nil {
		got = "no request"
	}
	return a.met("page asks", "a page waits for its answer", got, err == nil)
}
