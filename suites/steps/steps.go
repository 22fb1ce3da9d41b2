// Package steps holds what the verbs of the row language do, one verb a file. The language itself, with the fields of each verb, is
// matrix.Verbs; a test holds that the two lists are the same.
package steps

import "github.com/engine-acceptance/acceptance/suites/attempt"

// Verbs maps each verb to what it does.
var Verbs = map[string]attempt.Do{
	"start_session": startSession,
	"end_session":   endSession,
	"prepare":       prepare,
	"attach":        attach,
	"bind":          bind,
	"snapshot":      snapshot,
	"navigate":      navigate,
	"click":         click,
	"type":          typeText,
	"open_tab":      openTab,
	"close_tab":     closeTab,
	"call":          call,
	"repeat":        repeat,
	"race":          race,
	"cut":           cut,
	"garble":        garble,
	"freeze":        freeze,
	"thaw":          thaw,
	"start_engine":  startEngine,
	"kill":          kill,
	"page_does":     pageDoes,
	"await_dialog":  awaitDialog,
	"place":         place,
	"person_clicks": personClicks,
	"impersonate":   impersonate,
	"change":        change,
	"wait":          wait,
	"page_acts":     pageActs,
	"report_forged": reportForged,
}
