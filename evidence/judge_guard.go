package evidence

import (
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// desk holds D1 to D6 and D8 where they are absolute, whatever a receipt says: who may do what, and in which phase, stands in actors.yaml.
func (j *judgement) desk() {
	for _, o := range j.of(KindDesk) {
		d := o.Desk
		if WorthIn(o.Phase) != WorthAbsolute || d.Reason == ReadDisclosed {
			continue
		}
		switch ChargeOf(d.Actor, d.Request != "") {
		case ChargeNobody:
			continue
		case ChargeEnvironment:
			j.add("J5", ReasonEnvironmentFault, o, "a process that is neither engine, browser nor ours%s did %s (%s)", d.process(), d.Reason, d.Request)
			continue
		}
		if j.ofPage(o) {
			continue // the receipt that must tell of it is judged with disclosures
		}
		if want, known := deskReasons[d.Reason]; !known || want != d.Requirement {
			j.add("J1", ReasonObservationsBad, o, "desk event with reason %q under %s, which is no violation of the desk", d.Reason, d.Requirement)
			continue
		}
		if standsIn[d.Reason] && j.expectedRefusal(o.Step) != nil {
			j.add("R5", d.Reason, o, "%s by %s%s (%s), where an action was refused", d.Reason, d.Actor, d.process(), d.Request)
		}
		j.add(d.Requirement, d.Reason, o, "%s by %s%s on the %s window (%s, seen by %s)", d.Reason, d.Actor, d.process(), d.Window, d.Request, d.Channel)
	}
}

// process reads ", pid 12 chromium", and nothing where the process is not known.
func (d *Desk) process() string {
	if d.PID == 0 {
		return ""
	}
	return fmt.Sprintf(", pid %d %s", d.PID, d.Exe)
}

// standsIn are the ways in which desktop input could stand in for an action that an engine has not (R5).
var standsIn = map[Reason]bool{ReasonFocusLeft: true, ReasonPointerMoved: true, ReasonPointerWarped: true, ReasonPointerGrabbed: true, ReasonMasterAdded: true,
	ReasonInputLeaked: true, ReasonInputForged: true, ReasonClipboardTaken: true, ReasonPrimaryTaken: true, ReasonKeymapChanged: true, ReasonKeyboardGrabbed: true}

// person holds D7.
func (j *judgement) person() {
	all := j.of(KindPerson)
	if len(all) == 0 {
		j.add("D7", ReasonTooFewSeen, j.end(), "nothing is known about the person's input")
	}
	for _, o := range all {
		p := o.Person
		// A row that ended before the person's turn, because the engine refused or what it needs was not there, is judged by that.
		if p.Injected < minPersonEvents && !j.interrupted() {
			j.add("D7", ReasonTooFewSeen, o, "the person made %d inputs, want at least %d", p.Injected, minPersonEvents)
		}
		if p.Lost > 0 {
			j.add("D7", ReasonPersonInputLost, o, "%d of %d inputs of the person did not arrive", p.Lost, p.Injected)
		}
		if p.Duplicated > 0 {
			j.add("D7", ReasonPersonInputTwice, o, "%d inputs of the person arrived twice", p.Duplicated)
		}
		if p.Disordered > 0 {
			j.add("D7", ReasonPersonInputOrder, o, "%d inputs of the person arrived out of order", p.Disordered)
		}
		j.late("D7", ReasonPersonInputLate, o, time.Duration(p.LatestNS), personLate)
		if p.Foreign > 0 {
			j.add("D4", ReasonInputLeaked, o, "%d inputs reached the person's window that the person did not make", p.Foreign)
		}
		if p.Forged > 0 {
			j.add("D4", ReasonInputForged, o, "%d forged inputs reached the person's window", p.Forged)
		}
		if p.Stray > 0 {
			j.add("D4", ReasonInputLeaked, o, "%d inputs reached the bystander's window, to which nobody types", p.Stray)
		}
	}
}

// system judges processes, profiles, sockets and files. Facts that a row must have are asked for by name; a fact that is missing was not
// looked at, and that is the harness's fault.
func (j *judgement) system() {
	byFact := map[string][]Observation{}
	for _, o := range j.of(KindSystem) {
		byFact[o.System.Fact] = append(byFact[o.System.Fact], o)
	}
	// What a refused program was looked at before belongs to the row that forbids it; elsewhere to S10.
	probed := matrix.RequirementID("S10")
	if j.row.Expect.Probes == "none" {
		probed = j.row.Requirement
	}
	type rule struct {
		fact        string
		requirement matrix.RequirementID
		reason      Reason
	}
	for _, r := range []rule{
		{FactProfileMode, "S1", ReasonProfileMode},
		{FactProfileUsed, "S1", ReasonProfileUnused}, {FactProfileGone, "S1", ReasonProfileLeft}, {FactProcessesGone, "S1", ReasonProcessLeft},
		{FactSandboxOn, "J11", ReasonSandboxOff}, {FactLoopbackOnly, "S13", ReasonListenerExposed}, {FactNoRequests, probed, ReasonProbed},
		{FactNoConnections, probed, ReasonProbed}, {FactEndpointUntouched, "S5", ReasonProbed}, {FactDecoyUntouched, j.row.Requirement, ReasonDecoyReached}, {FactPersonProfiles, "S3", ReasonProfileTouched}, {FactUnchanged, "R2", ReasonRefusalMutated}, {FactBystanderAlive, "S3", ReasonBystanderHarmed},
		{FactOneConnection, j.row.Requirement, ReasonEffectRepeated}, {FactEngineLives, j.row.Requirement, ReasonEngineGone},
		{FactCut, "J5", ReasonHarnessFault}, {FactGarbled, "J5", ReasonHarnessFault}, {FactEngineKilled, "J5", ReasonHarnessFault},
		{FactBrowserKilled, "J5", ReasonHarnessFault}, {FactRenderersKilled, "J5", ReasonHarnessFault}, {FactFrozen, "J5", ReasonHarnessFault},
		{FactThawed, "J5", ReasonHarnessFault}, {FactEngineAgain, "J5", ReasonHarnessFault}, {FactIdentifiersHeard, "J1", ReasonTooFewSeen}, {FactNotAsked, "B13", ReasonProbed},
		{FactKilledProcesses, "S11", ReasonProcessLeft}, {FactKilledProfiles, "S11", ReasonProfileLeft},
	} {
		for _, o := range byFact[r.fact] {
			if !o.System.Holds {
				j.add(r.requirement, r.reason, o, "%s does not hold: %s (%d)", r.fact, o.System.Detail, o.System.Count)
			}
		}
	}
	known := map[string]bool{}
	for _, f := range SystemFacts {
		known[f] = true
	}
	for _, fact := range sortedKeys(byFact) {
		if !known[fact] {
			j.add("J1", ReasonObservationsBad, byFact[fact][0], "unknown system fact %q", fact)
		}
	}
	need := func(fact, why string) {
		if len(byFact[fact]) == 0 && !j.interrupted() {
			j.add("J1", ReasonTooFewSeen, j.end(), "%s was not measured: %s", fact, why)
		}
	}
	for _, fact := range []string{FactPersonProfiles, FactLoopbackOnly} {
		need(fact, "it is looked at in every row")
	}
	if !j.endsWithoutEngine() {
		need(FactEngineLives, "an engine that ends by itself must not go unseen")
	}
	if p := j.row.Expect.Profile; p != nil {
		for _, fact := range []string{FactProfileOwn, FactProfileMode, FactProfileUsed, FactProfileGone, FactProcessesGone, FactSandboxOn, FactLoopbackOnly} {
			need(fact, "the row is about the profile")
		}
		for _, o := range byFact[FactProfileOwn] {
			if !o.System.Holds {
				j.add("S1", ReasonProfileNotOwn, o, "the browser does not run on a profile of its own: %s", o.System.Detail)
			}
		}
	}
	if m := j.row.Desk.Machine; m == "endpoint_stale" || m == "endpoint_elsewhere" {
		need(FactDecoyUntouched, "the endpoint file names another program's port")
	}
	if j.row.Expect.Identifiers != "" {
		need(FactIdentifiersHeard, "the row is about what the browser issues")
	}
	if j.row.Expect.Probes == "none" {
		need(FactNoRequests, "the row forbids probing")
		need(FactNoConnections, "the row forbids probing")
	}
	if len(j.row.Expect.Refusal) > 0 {
		for _, o := range j.of(KindCall) {
			if o.Call.Status == engine.StatusRefused && j.expectedRefusal(o.Step) != nil {
				need(FactUnchanged, "a refusal must change nothing")
			}
		}
	}
	if slices.ContainsFunc(j.row.Expect.Blocks, func(r matrix.BlockExpect) bool { return r.None }) {
		need(FactUnchanged, "a refusal must change nothing")
	}
	for _, s := range j.row.Steps {
		if s.Verb == "change" && s.Text("component") == "endpoint" {
			need(FactNotAsked, "the row puts a listener in the place of the browser's")
		}
		if s.Verb == "cut" && len(j.stepCalls[s.Name]) == 0 {
			need(FactCut, "the row cuts a connection")
		}
		if s.Verb == "thaw" && s.Text("when") == "dialled" {
			need(FactOneConnection, "the row counts new connections")
		}
		if s.Verb == "garble" && !j.interrupted() && !slices.ContainsFunc(byFact[FactGarbled], func(o Observation) bool { return o.System.Detail == s.Text("with") }) {
			j.add("J1", ReasonTooFewSeen, j.end(), "%s was not measured: the row garbles messages (%s)", FactGarbled, s.Text("with"))
		}
		if s.Verb == "attach" && s.Text("product") == "chromium" {
			need(FactEndpointUntouched, "the person's browser has an endpoint")
		}
		if fact := losses[s.Verb+" "+s.Text("process")]; fact != "" {
			need(fact, "the row loses a process")
		}
		if s.Verb == "start_engine" {
			need(FactEngineAgain, "the row starts the engine again")
		}
		if s.Verb == "kill" && s.Text("process") == "engine" {
			for _, fact := range []string{FactEngineKilled, FactKilledProcesses, FactKilledProfiles} {
				need(fact, "the row kills the engine")
			}
		}
	}
}

// endsWithoutEngine reports that the row itself kills the engine and starts none again.
func (j *judgement) endsWithoutEngine() bool {
	killed := false
	for _, s := range j.row.Steps {
		killed = s.Verb == "kill" && s.Text("process") == "engine" || killed && s.Verb != "start_engine"
	}
	return killed
}

// losses is the fact that each way to lose a process leaves behind.
var losses = map[string]string{"kill browser": FactBrowserKilled, "kill renderers": FactRenderersKilled, "freeze browser": FactFrozen, "thaw browser": FactThawed}

// scans holds P1, P7, P10 and B23.
func (j *judgement) scans() {
	seen := map[string]bool{}
	for _, o := range j.of(KindScan) {
		s := o.Scan
		seen[s.What] = true
		if !s.ControlFound || s.Files == 0 {
			j.add("P7", ReasonScanBlind, o, "the scan of %s looked at %d files and found its control: %t", s.What, s.Files, s.ControlFound)
		}
		for _, f := range s.Findings {
			switch {
			case s.What == "engine_files":
				j.add("P8", ReasonEngineLeaked, o, "canary %s (%s) stands in a file that the engine wrote, as %s", f.Canary, f.Channel, f.Encoding)
			case s.What != "engine_raw":
				j.add("P1", ReasonBundleLeaked, o, "canary %s (%s) stands in %s as %s", f.Canary, f.Channel, f.Where, f.Encoding)
			case f.Channel == "identifier":
				j.add("B23", ReasonIdentifierLeaked, o, "an identifier that the browser issued stands in %s as %s", f.Where, f.Encoding)
			default:
				j.add("P10", ReasonEngineLeaked, o, "canary %s (%s) stands in the engine's %s as %s", f.Canary, f.Channel, f.Where, f.Encoding)
			}
		}
	}
	for _, what := range []string{"engine_raw", "engine_files", "bundle"} {
		if !seen[what] {
			j.add("P7", ReasonScanBlind, j.end(), "%s was not scanned", what)
		}
	}
}

// film holds V1 to V5 as far as a decoder can say.
func (j *judgement) film() {
	all := j.of(KindFilm)
	if len(all) != 1 {
		j.add("V1", ReasonFilmMissing, j.end(), "%d films, want one", len(all))
	}
	for _, o := range all {
		f := o.Film
		switch {
		case !f.Present || f.Frames == 0:
			j.add("V1", ReasonFilmMissing, o, "no film: %s", f.Note)
			continue
		case !f.Decodes || !f.Monotonic:
			j.add("V1", ReasonFilmUndecodable, o, "decodes %t, monotonic %t: %s", f.Decodes, f.Monotonic, f.Note)
		case f.Frames != f.SideFrames:
			j.add("V1", ReasonFilmShort, o, "%d frames decode, %d were recorded", f.Frames, f.SideFrames)
		}
		if f.CodesTried == 0 || f.CodesRead < f.CodesTried || f.CodesWrong > 0 {
			j.add("V2", ReasonFilmUnstamped, o, "of %d frames tried %d codes were read and %d named another run, row or time", f.CodesTried, f.CodesRead, f.CodesWrong)
		}
		if !f.CoversRow {
			j.add("V3", ReasonFilmShort, o, "the film spans %v and not the whole row", time.Duration(f.SpanNS))
		}
		if gap := time.Duration(f.MaxGapNS); gap > longestGap {
			j.add("V3", ReasonFilmShort, o, "nothing was filmed for %v", gap.Round(time.Millisecond))
		}
		if f.BlackRatio > 0.9 {
			j.add("V4", ReasonFilmBlack, o, "%.0f %% of the film is black", f.BlackRatio*100)
		}
		if time.Duration(f.LongestStillNS) > longestStill {
			j.add("V4", ReasonFilmFrozen, o, "the film stands still for %v while the person types", time.Duration(f.LongestStillNS))
		}
		if !f.MasksSolid {
			j.add("P2", ReasonMaskBroken, o, "a masked area is not solid")
		}
	}
}
