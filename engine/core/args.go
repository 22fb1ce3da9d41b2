package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
)

// decode reads the arguments of one call strictly into v, a pointer to a request struct. It returns the limitation and the field of the
// first problem, or two empty strings. Beyond what encoding/json checks: names match exactly, no name occurs twice, null is no value, and no
// text holds half of a surrogate pair, which would silently become another text.
func decode(raw json.RawMessage, v any) (limitation, field string) {
	if len(raw) > engine.MaxArgs {
		return "too_large", "arguments"
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if !utf8.Valid(raw) || halfSurrogate(raw) {
		return "invalid_argument", "arguments"
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if f, ok := shape(dec, reflect.TypeOf(v).Elem(), "arguments", 0); !ok {
		return "invalid_argument", f
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "invalid_argument", "arguments"
	}
	if err := json.Unmarshal(raw, v); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) && typ.Field != "" {
			return "invalid_argument", typ.Field
		}
		return "invalid_argument", "arguments"
	}
	return "", ""
}

// maxDepth bounds the nesting of arguments: an object, an object or list in it, and values.
const maxDepth = 4

// shape walks one JSON value beside the type that it is for.
func shape(dec *json.Decoder, typ reflect.Type, field string, depth int) (string, bool) {
	if depth > maxDepth {
		return field, false
	}
	tok, err := dec.Token()
	if err != nil {
		return field, false
	}
	switch tok {
	case json.Delim('{'):
		if typ.Kind() != reflect.Struct {
			return field, false
		}
		seen := map[string]bool{}
		for dec.More() {
			key, err := dec.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return field, false
			}
			sub, known := fieldType(typ, name)
			if !known || seen[name] {
				return unknownField(field, name, known), false
			}
			seen[name] = true
			path := name
			if depth > 0 {
				path = field + "." + name
			}
			if f, ok := shape(dec, sub, path, depth+1); !ok {
				return f, false
			}
		}
		_, err := dec.Token()
		return field, err == nil
	case json.Delim('['):
		if typ.Kind() != reflect.Slice {
			return field, false
		}
		for dec.More() {
			if f, ok := shape(dec, typ.Elem(), field, depth+1); !ok {
				return f, false
			}
		}
		_, err := dec.Token()
		return field, err == nil
	case nil:
		return field, false
	}
	// A bare value: encoding/json checks its type and range. At the top there must be an object.
	return field, depth > 0 && typ.Kind() != reflect.Struct && typ.Kind() != reflect.Slice
}

// unknownField names the parent for a name that the caller made up: hostile text does not travel in a refusal.
func unknownField(parent, name string, known bool) string {
	if known {
		return name
	}
	return parent
}

func fieldType(typ reflect.Type, name string) (reflect.Type, bool) {
	for i := range typ.NumField() {
		if tag, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); tag == name {
			return typ.Field(i).Type, true
		}
	}
	return nil, false
}

// halfSurrogate finds a \u escape that is one half of a pair without the other.
func halfSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		v, ok := hex4(raw, i+2)
		if !ok {
			return false // a syntax error, found elsewhere
		}
		i += 5
		switch {
		case v >= 0xdc00 && v <= 0xdfff:
			return true
		case v >= 0xd800 && v <= 0xdbff:
			if i+2 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return true
			}
			low, ok := hex4(raw, i+3)
			if !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

func hex4(raw []byte, at int) (rune, bool) {
	if at+4 > len(raw) {
		return 0, false
	}
	var v rune
	for _, c := range raw[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// checkURL allows http and https with a host, and the blank page.
func checkURL(raw string) (limitation string) {
	if len(raw) > maxURL {
		return "too_large"
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] <= ' ' || raw[i] == 0x7f || raw[i] == '\\' {
			return "invalid_argument"
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return "invalid_argument"
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" || u.Opaque != "" || u.Hostname() == "" {
			return "invalid_argument"
		}
		return ""
	case "about":
		if strings.EqualFold(u.Opaque, "blank") {
			return ""
		}
	}
	return "scheme_not_allowed"
}
