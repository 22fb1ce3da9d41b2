package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

func parseObservation(raw []byte) (evidence.Observation, error) {
	var o evidence.Observation
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return o, err
	}
	again, err := json.Marshal(o)
	if err != nil {
		return o, err
	}
	if !bytes.Equal(again, raw) {
		return o, errors.New("not in the form that is written")
	}
	return o, checkPayload(o)
}

// payloads lists the index and JSON name of every payload field of an observation: its pointers to structs.
var payloads = func() (fields []struct {
	index int
	name  string
}) {
	t := reflect.TypeFor[evidence.Observation]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			name, _, _ := bytes.Cut([]byte(f.Tag.Get("json")), []byte(","))
			fields = append(fields, struct {
				index int
				name  string
			}{i, string(name)})
		}
	}
	return fields
}()

// checkPayload says whether exactly the payload that belongs to the kind is set.
func checkPayload(o evidence.Observation) error {
	// A kind's payload bears its name; a step's does not, for "step" is the name of the step.
	want := string(o.Kind)
	if o.Kind == evidence.KindStep {
		want = "step_info"
	}
	known := false
	v := reflect.ValueOf(&o).Elem()
	for _, p := range payloads {
		known = known || p.name == want
		if set := !v.Field(p.index).IsNil(); set != (p.name == want) {
			return fmt.Errorf("kind %.40q: payload %s set is %t, want %t", o.Kind, p.name, set, p.name == want)
		}
	}
	if !known {
		return fmt.Errorf("kind %.40q is unknown", o.Kind)
	}
	switch o.Phase {
	case evidence.PhasePrepare, evidence.PhaseBackground, evidence.PhaseCleanup:
		return nil
	}
	return fmt.Errorf("phase %.40q is unknown", o.Phase)
}

// DecodeDocument reads one JSON document of a bundle into v: canonical JSON and a newline, with exactly the fields of v, each once.
func DecodeDocument(raw []byte, v any) error {
	body, ok := bytes.CutSuffix(raw, []byte("\n"))
	if !ok {
		return errors.New("the newline at the end is missing")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	again, err := canonical.Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, body) {
		return fmt.Errorf("not the canonical JSON of its fields: byte %d differs", firstDifference(again, body))
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, pathless(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return raw, err
}
