package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

var testSecrets = []Secret{
	{"pw", "hunter2-Hunter2"},
	{"key", "sk-test-9f8e7d6c5b4a"},
	{"long", "Ada ☂ <tag> & 'x' + 100%"},
	{"url", "https://x:y@z/?q=1"},
	{"num", "4012888888881881"},
	{"hexish", "0041bcdef"},
	{"tail", "6c5b4a-and-more"},
}

func testRules(t testing.TB) *Rules {
	r, err := NewRules(testSecrets, Options{Tokens: []TokenRule{{ID: "tok", Prefix: "ghp_", Class: AlnumToken, Min: 8, Max: 64}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRules(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	for _, tc := range []struct{ name, in, want string }{
		{"plain secret", "a hunter2-Hunter2 b", "a [redacted:pw] b"},
		{"secret at both ends", "hunter2-Hunter2hunter2-Hunter2", "[redacted:pw][redacted:pw]"},
		{"overlapping secrets leave nothing of either", "sk-test-9f8e7d6c5b4a-and-more", "[redacted:key]"},
		{"lower case", "HUNTER2-HUNTER2", "[redacted:pw]"},
		{"base64", "aHVudGVyMi1IdW50ZXIy", "[redacted:pw]"},
		{"hex", "68756e746572322d48756e74657232", "[redacted:pw]"},
		{"number stays a number", `{"card":4012888888881881}`, `{"card":9999999999999999}`},
		{"loopback port", "listening on 127.0.0.1:9222, [::1]:80 and localhost:5", "listening on 127.0.0.1:[redacted:port], [::1]:[redacted:port] and localhost:[redacted:port]"},
		{"loopback port in a query", "u=http%3A%2F%2F127.0.0.1%3A9222%2F", "u=http%3A%2F%2F127.0.0.1%3A[redacted:port]%2F"},
		{"port as a number", `{"port": 9222,"debugPort":"9222"}`, `{"port": 0,"debugPort":"[redacted:port]"}`},
		{"port as a flag", "--remote-debugging-port=9222", "--remote-debugging-port=[redacted:port]"},
		{"no port", "report=1234 support: 12", "report=1234 support: 12"},
		{"endpoint", "ws://127.0.0.1:9222/devtools/browser/0d9a1a0c-1111-2222-3333-444455556666", "ws://127.0.0.1:[redacted:port]/devtools/browser/[redacted:endpoint]"},
		{"session", "/session/0d9a1a0c-1111-2222-3333-444455556666/url", "/session/[redacted:endpoint]/url"},
		{"userinfo", "https://user:p@ss@host/path", "https://[redacted:userinfo]@host/path"},
		{"raw cookie", "Cookie: a=b; c=\"d\"; e\r\nX: y", "Cookie: [redacted:cookie]\r\nX: y"},
		{"raw cookie in JSON", `{"h":"Cookie: a=b\r\nX: y","n":1}`, `{"h":"Cookie: [redacted:cookie]\r\nX: y","n":1}`},
		{"cookie field", `{"Set-Cookie":"a=\"b\"; c","n":1}`, `{"Set-Cookie":"[redacted:cookie]","n":1}`},
		{"cookie list", `{"Cookie": ["a", "b"],"n":["c"]}`, `{"Cookie": ["[redacted:cookie]", "[redacted:cookie]"],"n":["c"]}`},
		{"cookie pair", `{"name":"Cookie","value":"a=b"}`, `{"name":"Cookie","value":"[redacted:cookie]"}`},
		{"cookie in JSON in JSON", `{"m":"{\"Authorization\":\"Basic x\\\"y\",\"n\":1}"}`, `{"m":"{\"Authorization\":\"[redacted:authorization]\",\"n\":1}"}`},
		{"authorization", "proxy-authorization: Bearer abc def\nnext", "proxy-authorization: [redacted:authorization]\nnext"},
		{"x cookie", "h/unix:99  MIT-MAGIC-COOKIE-1  " + digest[:32] + "\n", "h/unix:99  MIT-MAGIC-COOKIE-1  [redacted:xcookie]\n"},
		{"x cookie file", "\x00\x12MIT-MAGIC-COOKIE-1\x00\x10" + digest[:16] + "\x01", "\x00\x12MIT-MAGIC-COOKIE-1[redacted:xcookie]\x01"},
		{"token rule", "ghp_abcdefgh1234 ghp_short", "ghp_[redacted:tok] ghp_short"},
		{"half an escape never stays", `{"a":"\u0041bcdef"}`, `{"a":"[redacted:hexish]"}`},
		{"digests and ids stay", `{"sha256":"` + digest + `","ref":"r-17","row":"type[axis=v]"}`, `{"sha256":"` + digest + `","ref":"r-17","row":"type[axis=v]"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			r := testRules(t)
			g.Expect(r.String(tc.in)).To(gomega.Equal(tc.want))
			checkProperties(t, r, []byte(tc.in), 1)
		})
	}
}

// split writes in through a Writer in pieces whose sizes come from seed.
func split(r *Rules, in []byte, seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var out bytes.Buffer
	w := r.Writer(&out)
	for len(in) > 0 {
		n := 1
		if rnd.IntN(2) == 0 {
			n += rnd.IntN(40)
		}
		n = min(n, len(in))
		w.Write(in[:n])
		in = in[n:]
	}
	w.Close()
	return out.Bytes()
}

func checkProperties(t *testing.T, r *Rules, in []byte, seed uint64) {
	t.Helper()
	out := r.Bytes(in)
	for s := seed; s < seed+3; s++ {
		if got := split(r, in, s); !bytes.Equal(got, out) {
			t.Fatalf("output depends on the split (seed %d)\nin    %q\nwhole %q\nsplit %q", s, in, out, got)
		}
	}
	if again := r.Bytes(out); !bytes.Equal(again, out) {
		t.Fatalf("twice differs from once\nin    %q\nonce  %q\ntwice %q", in, out, again)
	}
	for _, s := range testSecrets {
		for _, f := range distinctForms(s.Value) {
			if bytes.Contains(out, f.lit) {
				t.Fatalf("secret %s survives as %s in %q, from %q", s.ID, f.name, out, in)
			}
		}
	}
	if json.Valid(in) && !json.Valid(out) {
		t.Fatalf("JSON broken\nin  %q\nout %q", in, out)
	}
}

// tokens is what random texts are put together from: pieces of everything that the rules look at.
func tokens() []string {
	out := []string{"Cookie", "cookie:", "Authorization", `"`, `\"`, `\\`, `\`, ":", " ", ",", "value", "[", "]", "{", "}", "\r\n", `\r\n`, "port", "=", "9222",
		"127.0.0.1", "localhost:", "[::1]:", "://", "@", "user:pw", "/", "/devtools/", "browser/", "0d9a1a0c-1111-2222-3333-444455556666",
		"/session/", "MIT-MAGIC-COOKIE-1", "0123456789abcdef0123456789abcdef", "\x00\x10", "ghp_", "abcdefgh", `\u00`, `\u0041`, "[redacted:pw]", "é", "%3A", "x"}
	for _, s := range testSecrets {
		for _, f := range distinctForms(s.Value) {
			out = append(out, string(f.lit), string(f.lit[:len(f.lit)/2]), string(f.lit[len(f.lit)/2:]))
		}
	}
	return out
}

func TestRules_random_texts(t *testing.T) {
	r := testRules(t)
	words := tokens()
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var b strings.Builder
		for range 1 + rnd.IntN(12) {
			b.WriteString(words[rnd.IntN(len(words))])
		}
		text := b.String()
		checkProperties(t, r, []byte(text), seed)
		// The same text as a JSON value: structure and keys must come through.
		doc, _ := json.Marshal(map[string]any{"id": "row-1", "text": text, "nested": `{"t":"` + text})
		checkProperties(t, r, doc, seed)
		var got map[string]any
		if err := json.Unmarshal(r.Bytes(doc), &got); err != nil || len(got) != 3 || got["id"] != "row-1" {
			t.Fatalf("structure changed: %v %q -> %q", err, doc, r.Bytes(doc))
		}
	}
}

func FuzzRules(f *testing.F) {
	r, err := NewRules(testSecrets, Options{Tokens: []TokenRule{{ID: "tok", Prefix: "ghp_", Class: AlnumToken, Min: 8, Max: 64}}})
	if err != nil {
		f.Fatal(err)
	}
	for i, w := range tokens() {
		f.Add([]byte(`{"a":"`+w+`"}`), uint64(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) { checkProperties(t, r, in, seed) })
}

func TestFuzz_corpus_is_kept(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, target := range []string{"FuzzRules", "FuzzScanner"} {
		files, err := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*"))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(files).NotTo(gomega.BeEmpty(), target)
		for _, f := range files {
			b, err := os.ReadFile(f)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(b)).To(gomega.HavePrefix("go test fuzz v1\n"), f)
		}
	}
}

func TestNewRules_refuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		secrets []Secret
		opts    Options
		kind    error
	}{
		{"a short secret", []Secret{{"a", "1234567"}}, Options{}, ErrSecretTooShort},
		{"a secret of three different bytes", []Secret{{"a", "abcabcabcabc"}}, Options{}, ErrSecretTooShort},
		{"a quote", []Secret{{"a", `abc"defgh`}}, Options{}, ErrSecretUnsafe},
		{"a line end", []Secret{{"a", "abc\ndefgh"}}, Options{}, ErrSecretUnsafe},
		{"bytes that are not UTF-8", []Secret{{"a", "abc\xffdefgh"}}, Options{}, ErrSecretUnsafe},
		{"a secret inside a replacement", []Secret{{"a", "redacted:"}}, Options{}, ErrSecretCollides},
		{"a secret that begins like a replacement ends", []Secret{{"a", "]abcdefgh"}}, Options{}, ErrSecretCollides},
		{"a secret in kept text", []Secret{{"a", "password"}}, Options{Keep: []string{`"password":`}}, ErrSecretCollides},
		{"an id twice", []Secret{{"a", "abcdefgh"}, {"a", "abcdefghi"}}, Options{}, ErrRuleNotCompiled},
		{"a built-in id", []Secret{{"port", "abcdefgh"}}, Options{}, ErrRuleNotCompiled},
		{"a malformed id", []Secret{{"A b", "abcdefgh"}}, Options{}, ErrRuleNotCompiled},
		{"an unknown class", nil, Options{Tokens: []TokenRule{{ID: "t", Prefix: "abc", Class: "any", Min: 1, Max: 2}}}, ErrRuleNotCompiled},
		{"a token rule without bounds", nil, Options{Tokens: []TokenRule{{ID: "t", Prefix: "abc", Class: HexToken}}}, ErrRuleNotCompiled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			r, err := NewRules(tc.secrets, tc.opts)
			g.Expect(r).To(gomega.BeNil())
			g.Expect(err).To(gomega.MatchError(tc.kind))
			var se *SecretError
			g.Expect(errors.As(err, &se)).To(gomega.BeTrue())
			for _, s := range tc.secrets {
				if s.Value != "password" && s.Value != "redacted:" { // public words of these cases
					g.Expect(err.Error()).NotTo(gomega.ContainSubstring(s.Value))
				}
			}
		})
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriter_reports_the_first_error_for_ever(t *testing.T) {
	g := gomega.NewWithT(t)
	w := testRules(t).Writer(&failing{after: 1})
	_, err := fmt.Fprintln(w, "fine line")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for range 2 {
		_, err = fmt.Fprintln(w, "lost line")
		g.Expect(err).To(gomega.MatchError("disk full"))
	}
	g.Expect(w.Close()).To(gomega.MatchError("disk full"))
}

func TestWriter_holds_back_only_what_is_undecided(t *testing.T) {
	g := gomega.NewWithT(t)
	var out bytes.Buffer
	w := testRules(t).Writer(&out)
	w.Write([]byte("a whole line of a log\n"))
	g.Expect(out.Len()).To(gomega.BeNumerically(">=", 20))
	w.Write([]byte("Cookie: " + strings.Repeat("x", 1<<20)))
	g.Expect(out.String()).To(gomega.HaveSuffix("[redacted:cookie]"))
	g.Expect(cap(w.(*writer).held)).To(gomega.BeNumerically("<", 64<<10))
	g.Expect(w.Close()).To(gomega.Succeed())
}

// logText is about 1 MB of the lines that a run writes.
func logText() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"n":%d,"t":"2026-01-02T03:04:05.%06dZ","kind":"protocol","method":"Input.dispatchKeyEvent","session":"S%032x","params":{"type":"keyDown","text":"\u0041\n","modifiers":0}}`+"\n", i, i, i*7919)
		if i%50 == 0 {
			fmt.Fprintf(&b, "opened ws://127.0.0.1:9222/devtools/browser/0d9a1a0c-1111-2222-3333-444455556666 with hunter2-Hunter2\n")
		}
	}
	return b.Bytes()
}

// BenchmarkRules_and_peer compares the rule set with a peer that knows less, bytes.ReplaceAll over plain values, and with strings.Replacer over the same literals.
func BenchmarkRules_and_peer(b *testing.B) {
	text := logText()
	b.Run("rules", func(b *testing.B) {
		r := testRules(b)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r.Bytes(text)
		}
	})
	b.Run("writer-4k", func(b *testing.B) {
		r := testRules(b)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			w := r.Writer(&bytes.Buffer{})
			for i := 0; i < len(text); i += 4096 {
				w.Write(text[i:min(i+4096, len(text))])
			}
			w.Close()
		}
	})
	b.Run("peer-bytes-replace-plain-only", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			out := text
			for _, s := range testSecrets {
				out = bytes.ReplaceAll(out, []byte(s.Value), []byte("[redacted:"+s.ID+"]"))
			}
		}
	})
	b.Run("peer-strings-replacer-all-forms", func(b *testing.B) {
		var pairs []string
		for _, s := range testSecrets {
			for _, f := range distinctForms(s.Value) {
				pairs = append(pairs, string(f.lit), "[redacted:"+s.ID+"]")
			}
		}
		rep := strings.NewReplacer(pairs...)
		s := string(text)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			rep.Replace(s)
		}
	})
}
