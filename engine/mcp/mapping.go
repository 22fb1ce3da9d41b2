package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/engine-acceptance/acceptance/engine"
)

// Mapping says how an engine from elsewhere names what the contract names. The zero value is the identity. It renames and does nothing else: values,
// types and meaning are the contract's.
type Mapping struct {
	// Tools maps an operation to the engine's own name of the tool; what is not named has the contract's name.
	Tools map[engine.Operation]string `json:"tools,omitempty"`
	// Arguments maps a field of the arguments to the engine's own name, at the top of every call.
	Arguments map[string]string `json:"arguments,omitempty"`
	// Results maps the engine's own name of a field to the contract's, at any depth of a result.
	Results map[string]string `json:"results,omitempty"`
}

// tool is the engine's name of an operation.
func (m Mapping) tool(op engine.Operation) string {
	if name, ok := m.Tools[op]; ok {
		return name
	}
	return string(op)
}

// arguments renames the fields of a call's arguments. Arguments that are no object reach the engine as they are, so that it refuses them itself.
func (m Mapping) arguments(args any) (any, error) {
	if len(m.Arguments) == 0 {
		return args, nil
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments: %w", err)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return args, nil
	}
	out := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		if theirs, ok := m.Arguments[name]; ok {
			name = theirs
		}
		out[name] = value
	}
	return out, nil
}

// result renames the fields of a result at any depth. A field that is there under both names is an error: which one counts would be a guess.
func (m Mapping) result(raw json.RawMessage) (json.RawMessage, error) {
	if len(m.Results) == 0 {
		return raw, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err := m.rename(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (m Mapping) rename(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			ours := name
			if mapped, ok := m.Results[name]; ok {
				ours = mapped
			}
			if _, twice := out[ours]; twice {
				return nil, fmt.Errorf("field %q is there under two names", ours)
			}
			renamed, err := m.rename(value)
			if err != nil {
				return nil, err
			}
			out[ours] = renamed
		}
		return out, nil
	case []any:
		for i := range v {
			renamed, err := m.rename(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = renamed
		}
	}
	return v, nil
}
