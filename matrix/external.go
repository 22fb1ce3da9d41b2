package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// MappingFormat names the format and version of a mapping file.
const MappingFormat = "acceptance.mapping/v1"

// Mapping says how an engine from elsewhere names tools and fields. What it does not name has the contract's name.
type Mapping struct {
	// Tools maps an operation to the engine's tool; Arguments a field of the contract to the engine's; Results a field of the engine's results to the
	// contract's.
	Tools     map[engine.Operation]string
	Arguments map[string]string
	Results   map[string]string
}

// WithEngine returns a matrix that has one engine more: its file, named after its engine, comes from outside of the matrix and is strict like every
// other. Only such a file may name the command that starts the engine. The data files, and so the matrix's digest, stay as they are; a plan names the
// digest of the engine file beside it. The error is a [*strict.Error] with every problem.
func (m *Matrix) WithEngine(file string, raw []byte) (*Matrix, *EngineFile, error) {
	var problems strict.Problems
	top, ok := strict.Read(file, raw, &problems)
	stem := strings.TrimSuffix(path.Base(file), ".yaml")
	if _, taken := m.engines[stem]; taken {
		problems.Add(file, 1, "", "the matrix has an engine %q of its own; name this one otherwise", bounded(stem))
	}
	var e *EngineFile
	if ok {
		order := make([]string, len(m.requirements))
		for i, r := range m.requirements {
			order[i] = string(r.ID)
		}
		environments := make([]string, len(m.environments))
		for i, env := range m.environments {
			environments[i] = string(env.ID)
		}
		e = readEngine(top, engineContext{name: stem, requirements: m.byID, order: order, environments: environments, profiles: m.profiles, external: true})
	}
	if err := problems.Err(); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(raw)
	e.SHA256 = hex.EncodeToString(sum[:])
	more := *m
	more.engines = maps.Clone(m.engines)
	more.engines[stem] = e
	return &more, e, nil
}

// ReadMapping reads a mapping file. The error is a [*strict.Error] with every problem.
func ReadMapping(file string, raw []byte) (Mapping, error) {
	var problems strict.Problems
	m := Mapping{Tools: map[engine.Operation]string{}, Arguments: map[string]string{}, Results: map[string]string{}}
	if top, ok := strict.Read(file, raw, &problems); ok {
		o := top.Object("format", "tools", "arguments", "results")
		o.Need("format").Enum(MappingFormat)
		tools := o.Get("tools").Object(texts(engine.Operations)...)
		once := map[string]bool{}
		for _, op := range tools.Keys() {
			m.Tools[engine.Operation(op)] = word(tools.Get(op), once)
		}
		arguments := o.Get("arguments").Object(fieldNames(engine.SessionRequest{}, engine.PrepareRequest{}, engine.StateRequest{}, engine.NavigateRequest{}, engine.ClickRequest{},
			engine.TypeRequest{}, engine.ContextRequest{}, engine.ActRequest{})...)
		once = map[string]bool{}
		for _, ours := range arguments.Keys() {
			m.Arguments[ours] = word(arguments.Get(ours), once)
		}
		known := fieldNames(engine.Result{})
		results := o.Get("results").Map()
		once = map[string]bool{}
		for _, theirs := range results.Keys() {
			n := results.Get(theirs)
			if m.Results[theirs] = word(n, once); n.Exists() {
				n.Enum(known...)
			}
		}
	}
	if err := problems.Err(); err != nil {
		return Mapping{}, err
	}
	return m, nil
}

// word reads a name that may be given once.
func word(n strict.Node, once map[string]bool) string {
	text := n.Text()
	if text != "" && once[text] {
		n.Bad("%q occurs twice", bounded(text))
	}
	once[text] = true
	return text
}

// fieldNames lists the names that values of these types have in JSON, at any depth, sorted.
func fieldNames(values ...any) []string {
	var out []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || t == reflect.TypeFor[json.RawMessage]() {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" && !slices.Contains(out, name) {
				out = append(out, name)
			}
			walk(f.Type)
		}
	}
	for _, v := range values {
		walk(reflect.TypeOf(v))
	}
	slices.Sort(out)
	return out
}
