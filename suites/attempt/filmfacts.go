package attempt

import (
	"strings"

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
	o.MaskedFrames = c.MaskChecks
	o.MasksSolid = len(c.Breaches) == 0
	o.SpanNS = c.SpanNS
	// The film spans the row when its first capture lies before the first step and its last after the last one, within two frames.
	slack := int64(0)
	if r.FPS > 0 {
		slack = 2 * 1e9 / int64(r.FPS)
	}
	first, last := a.firstStep()
	o.CoversRow = c.FirstCapNS > 0 && c.FirstCapNS <= first && c.LastCapNS >= last-slack && c.LastCapNS >= ended-slack*4
	if c.DecodeErrors != "" {
		o.Note = string(a.rules.Bytes([]byte(c.DecodeErrors)))
	}
}

// firstStep is when the row's first step began and its last one ended; the row's own begin and now when it had none.
func (a *Attempt) firstStep() (first, last int64) {
	for _, o := range a.kept {
		if o.Kind == evidence.KindStep {
			if first == 0 {
				first = o.StepInfo.StartNS
			}
			last = o.StepInfo.EndNS
		}
	}
	if first == 0 {
		first = a.began
	}
	return first, last
}
