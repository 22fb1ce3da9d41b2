package attempt

import (
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/recorder"
)

// filmFacts turns the decoder's findings into the observation that the judge reads.
func (a *Attempt) filmFacts(o *evidence.Film, r recorder.FilmReport, c recorder.FilmCheck, ended int64) {
	o.Present = c.Frames > 0
	o.Decodes = c.DecodeExit == 0 && c.DecodeErrors == ""
	o.Frames, o.SideFrames = c.Frames, c.SideFrames
	o.Monotonic = c.PTSMonotonic && c.CapMonotonic
	for _, code := range c.Codes {
		o.CodesTried++
		switch {
		case code.OK && strings.Contains(code.Text, a.run) && strings.Contains(code.Text, string(a.Contract.ID)):
			o.CodesRead++
		case code.Text != "":
			o.CodesWrong++
		}
	}
	if c.Frames > 0 {
		o.BlackRatio = float64(c.BlackFrames) / float64(c.Frames)
	}
	if r.FPS > 0 {
		o.LongestStillNS = int64(c.FrozenFrames) * 1e9 / int64(r.FPS)
	}
	o.MaxGapNS = c.MaxGapNS
	o.MaskedFrames = c.MaskChecks
	o.MasksSolid = len(c.Breaches) == 0
	o.SpanNS = c.SpanNS
	// The film spans the row when its first capture lies before the first step, and its last after the last one and near the clean-up's end.
	first, last := a.firstStep()
	o.CoversRow = c.FirstCapNS > 0 && (first == 0 || c.FirstCapNS <= first) && c.LastCapNS >= last && c.LastCapNS >= ended-filmTail.Nanoseconds()
	if c.DecodeErrors != "" {
		o.Note = string(a.rules.Bytes([]byte(c.DecodeErrors)))
	}
}

// filmTail is how far before the end of the clean-up the last capture may lie: frames are held for later mask reports, and a loaded machine
// captures late.
const filmTail = 2 * time.Second

// firstStep is when the row's first step began and its last one ended; 0 when it came to none.
func (a *Attempt) firstStep() (first, last int64) {
	for _, o := range a.kept {
		if o.Kind == evidence.KindStep {
			if first == 0 {
				first = o.StepInfo.StartNS
			}
			last = o.StepInfo.EndNS
		}
	}
	return first, last
}
