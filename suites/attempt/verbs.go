package attempt

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/redaction"
)

// UnlessExpected is nil when the present step expects a refusal, else [ErrStopped]: later steps rest on what did not come. Within a group it
// is nil, for one refusal among many calls ends nothing; the judge counts them.
func (a *Attempt) UnlessExpected(ctx context.Context) error {
	if memberOf(ctx) != nil || a.expectsRefusal(a.step) {
		return nil
	}
	return ErrStopped
}

// Expand replaces the variables of a text: {{canary NAME}} by the row's canary of that channel, {{page NAME}} by the address of a page.
func (a *Attempt) Expand(text string) (string, error) {
	vars, err := matrix.Variables(text)
	if err != nil {
		return "", err
	}
	for _, v := range vars {
		value, known := a.value(v)
		if !known {
			return "", fmt.Errorf("variable {{%s %s}} has no value here", v.Kind, v.Name)
		}
		text = strings.ReplaceAll(text, "{{"+v.Kind+" "+v.Name+"}}", value)
	}
	return text, nil
}

func (a *Attempt) value(v matrix.Variable) (string, bool) {
	switch v.Kind {
	case "canary":
		for _, c := range a.canaries {
			if c.Channel == redaction.Channel(v.Name) {
				return c.Value, true
			}
		}
	case "page":
		return a.pages.URL(v.Name), true
	}
	return "", false
}

// ForTab marks an address of the fixture server as a tab's, so that the page's reports say which tab they are from. Other addresses stay as
// they are.
func (a *Attempt) ForTab(address string, tab *Tab) string {
	if !strings.HasPrefix(address, a.pages.URL("")) {
		return address
	}
	rest, fragment, marked := strings.Cut(address, "#")
	separator := "?"
	if strings.Contains(rest, "?") {
		separator = "&"
	}
	rest += separator + "tab=" + url.QueryEscape(tab.Page)
	if marked {
		rest += "#" + fragment
	}
	return rest
}

// Wait lets a time pass in which no call is in flight, and collects what happened in it. Inside a block it only lets time pass.
func (a *Attempt) Wait(ctx context.Context, d time.Duration) error {
	if err := pause(ctx, d); err != nil {
		return a.fault("harness", "wait: %v", err)
	}
	if laneOf(ctx) != nil {
		return nil
	}
	return a.closeWindow(ctx)
}

// ForgeReport posts a report that pretends to come from the page of a tab, from this process, which is not the browser. Its signature is
// as good as one can make it without the page's key.
func (a *Attempt) ForgeReport(ctx context.Context, tab *Tab, control, value string) error {
	docs := a.docs[tab.Page]
	if len(docs) == 0 {
		return fmt.Errorf("no document of %s is known", tab.Page)
	}
	body := fmt.Sprintf(`%s e 9999 %s {"t":"input","c":%q,"v":%q,"u":true,"x":{}}`, docs[len(docs)-1], strings.Repeat("0", 64), control, value)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.pages.URL("-/report"), strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a.fault("harness", "post a false report: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		return a.fault("harness", "post a false report: %v", err)
	}
	return a.closeWindow(ctx)
}
