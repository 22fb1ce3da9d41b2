package canonical_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// The vectors of RFC 8785: sections 3.2.2 and 3.2.3, appendix B.
func TestTransform(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"rfc_3.2.2": {`{
			"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			"literals": [null, true, false]
		}`, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		"rfc_3.2.3": {`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		"empty":          {` { "b" : [ ] , "a" : { } } `, `{"a":{},"b":[]}`},
		"minus_zero":     {`-0`, `0`},
		"html_unescaped": {`"\u003ca\u003e&"`, `"<a>&"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			got, err := canonical.Transform([]byte(c.in))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(got)).To(gomega.Equal(c.want))
			g.Expect(canonical.Check(got)).To(gomega.Succeed())
			if c.in != c.want {
				g.Expect(canonical.Check([]byte(c.in))).To(gomega.MatchError(canonical.ErrNotCanonical))
			}
		})
	}
}

func TestMarshalNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324", 0x7fefffffffffffff: "1.7976931348623157e+308",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef50: "1e+21", 0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x41b3de4355555553: "333333333.3333332",
	} {
		f := math.Float64frombits(bits)
		got, err := canonical.Marshal(f)
		if want == "999999999999999700000" { // encoding/json writes it as an integer, and an integer that large is refused
			if err == nil {
				t.Errorf("%v: want an error", f)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%x: got %s, %v, want %s", bits, got, err, want)
		}
	}
}

func TestTransformRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "two_values": "1 2", "duplicate": `{"a":1,"b":2,"a":3}`, "duplicate_in_order": `{"a":1,"a":3}`, "duplicate_escaped": `{"a":1,"\u0061":3}`,
		"lone_surrogate": `"\ud800"`, "swapped_surrogates": `"\udc00\ud800"`, "invalid_utf8": "\"\xff\"", "big_integer": "9007199254740993",
		"leading_zero": "01", "open_string": `"a`, "control": "\"a\x01\"", "comma": "[1,]", "deep": strings.Repeat("[", 80) + strings.Repeat("]", 80),
		"nan": "NaN", "infinite": "1e999", "cut_escape": `"\u12`, "word": "nul", "bare_minus": "-",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := canonical.Transform([]byte(in))
			var syntax *canonical.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a syntax error", err)
			}
		})
	}
}

func FuzzTransform(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[true,null,"x\u20ac"]}`, `[1e30,-0.5]`, `"\ud83d\ude00"`, "\"\xff\"", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := canonical.Transform(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is no JSON: %q", raw)
		}
		twice, err := canonical.Transform(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("not a fixed point: %q then %q, %v", once, twice, err)
		}
	})
}

func ExampleMarshal() {
	b, _ := canonical.Marshal(map[string]any{"title": "<b>", "budget_ns": 5_000_000_000, "axes": []string{"x"}})
	fmt.Println(string(b))
	// Output: {"axes":["x"],"budget_ns":5000000000,"title":"<b>"}
}
