package core

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

// FuzzDecode holds that arguments never make the decoder panic, and that what it lets through is exactly what was written: decoded again
// from its own encoding it is the same.
func FuzzDecode(f *testing.F) {
	for _, c := range enginetest.HostileArguments(enginetest.Scope{Session: "bs-a", Target: "bt-a", Tab: "tb-a", Box: "sn-a:0"}) {
		if len(c.Args) < 4096 {
			f.Add([]byte(c.Args))
		}
	}
	f.Add([]byte(`{"session":"s","target_id":"t","ref":"r","text":"\ud83d\ude00","replace":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, fresh := range []func() any{
			func() any { return new(engine.TypeRequest) }, func() any { return new(engine.PrepareRequest) },
			func() any { return new(engine.StateRequest) }, func() any { return new(engine.ActRequest) }, func() any { return new(struct{}) },
		} {
			v := fresh()
			if limitation, field := decode(data, v); limitation != "" {
				if len(field) > engine.MaxDetailValue || strings.ContainsAny(field, "/: \n") {
					t.Fatalf("field %q", field)
				}
				continue
			}
			again, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			w := fresh()
			if limitation, field := decode(again, w); limitation != "" || !reflect.DeepEqual(v, w) {
				t.Fatalf("%s: %s %s", again, limitation, field)
			}
			if req, ok := v.(*engine.TypeRequest); ok && (!utf8.ValidString(req.Text) || strings.ContainsRune(req.Text, utf8.RuneError) && !strings.Contains(string(data), "\uFFFD") && !strings.Contains(strings.ToLower(string(data)), `\ufffd`)) {
				t.Fatalf("text %q from %q", req.Text, data)
			}
		}
	})
}

// FuzzURL holds that nothing but http, https and the blank page passes, whatever a browser would make of the text.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a/", "https://a:1/?q#f", "about:blank", "javascript:1", "\x00javascript:1", "JAVASCRIPT:1", "http:a", "http://", "view-source:http://a", "about:config"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkURL(s) != "" {
			return
		}
		lower := strings.ToLower(s)
		if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "about:blank") {
			t.Fatalf("let %q through", s)
		}
	})
}
