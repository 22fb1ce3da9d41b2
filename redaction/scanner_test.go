package redaction

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/onsi/gomega"
)

func testScanner(t testing.TB) (*Scanner, []Canary) {
	cs, err := NewCanaries(rand.Reader, []Channel{"typed", "cookie", "url-query"})
	if err != nil {
		t.Fatal(err)
	}
	cs = append(cs, Canary{"odd", "password", "Pa ss<w>örd & 100%/?+x"})
	s, err := NewScanner(cs)
	if err != nil {
		t.Fatal(err)
	}
	return s, cs
}

func TestScan_finds_every_encoding_wherever_the_blocks_end(t *testing.T) {
	s, cs := testScanner(t)
	for _, c := range cs {
		for _, f := range distinctForms(c.Value) {
			for _, lead := range []int{0, 1, scanBlock - 3, scanBlock - len(f.lit), scanBlock} {
				g := gomega.NewWithT(t)
				text := strings.Repeat(".", lead) + string(f.lit) + "..."
				for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text))} {
					found, err := s.Scan(t.Context(), r, "f")
					g.Expect(err).NotTo(gomega.HaveOccurred())
					g.Expect(found).NotTo(gomega.BeEmpty(), "%s %s at %d", c.ID, f.name, lead)
					g.Expect(found[0].CanaryID).To(gomega.Equal(c.ID))
					g.Expect(found[0].Channel).To(gomega.Equal(c.Channel))
					g.Expect(found[0].Offset).To(gomega.BeEquivalentTo(lead))
					g.Expect(fmt.Sprintf("%+v %#v", found, c)).NotTo(gomega.ContainSubstring(c.Value))
				}
			}
		}
	}
}

func TestScan_finds_what_other_encoders_make(t *testing.T) {
	s, cs := testScanner(t)
	v := cs[0].Value
	half := len(v) / 2
	for name, text := range map[string]string{
		"base64 in a longer text":      base64.StdEncoding.EncodeToString([]byte("user:" + v + ":more")),
		"base64 in lines":              base64.StdEncoding.EncodeToString([]byte(v))[:20] + "\r\n" + base64.StdEncoding.EncodeToString([]byte(v))[20:],
		"two lines":                    v[:half] + "\n      " + v[half:],
		"escaped line end":             v[:half] + `\n` + v[half:],
		"quoted-printable soft break":  v[:half] + "=\r\n" + v[half:],
		"mixed case":                   strings.ToUpper(v[:half]) + strings.ToLower(v[half:]),
		"letters apart":                strings.Join(strings.Split(v, ""), " "),
		"UTF-16 at an odd place":       "x" + string(Encodings(v)[UTF16BE]),
		"UTF-16 in lines":              string(Encodings(v[:half])[UTF16LE]) + "\r\x00\n\x00" + string(Encodings(v[half:])[UTF16LE]),
		"hex dump":                     strings.Join(strings.Split(string(Encodings(v)[HexUpper]), ""), "\t"),
		"split across reads and lines": strings.Repeat("x", scanBlock-half) + v[:half] + "\\" + "n" + v[half:],
	} {
		g := gomega.NewWithT(t)
		found, err := s.Scan(t.Context(), iotest.DataErrReader(strings.NewReader(text)), name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(found).To(gomega.HaveLen(1), name)
		g.Expect(found[0].CanaryID).To(gomega.Equal(cs[0].ID))
	}
}

func TestScan_a_read_error_is_no_clean_result(t *testing.T) {
	g := gomega.NewWithT(t)
	s, cs := testScanner(t)
	bad := errors.New("bad sector")
	found, err := s.Scan(t.Context(), io.MultiReader(strings.NewReader(cs[0].Value), iotest.ErrReader(bad)), "f")
	g.Expect(err).To(gomega.MatchError(bad))
	g.Expect(found).To(gomega.HaveLen(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Scan(ctx, strings.NewReader("x"), "f")
	g.Expect(err).To(gomega.MatchError(context.Canceled))
}

func TestScanDir(t *testing.T) {
	g := gomega.NewWithT(t)
	s, cs := testScanner(t)
	dir := t.TempDir()
	write := func(name string, b []byte) {
		p := filepath.Join(dir, name)
		g.Expect(os.MkdirAll(filepath.Dir(p), 0o755)).To(gomega.Succeed())
		g.Expect(os.WriteFile(p, b, 0o644)).To(gomega.Succeed())
	}
	write("clean.txt", []byte("nothing here"))
	rep, err := s.ScanDir(t.Context(), dir, ScanOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(rep.ControlFound).To(gomega.BeTrue())
	g.Expect(rep.Findings).To(gomega.BeEmpty())
	g.Expect(rep.Files).To(gomega.Equal(1))
	g.Expect(rep.Bytes).To(gomega.BeEquivalentTo(12))

	write("rows/a/leak.log", []byte("x "+cs[0].Value))
	write("rows/"+cs[1].Value+"/film.mp4", []byte("\x00\x00\x00\x18ftypisom"))
	var z bytes.Buffer
	gz := gzip.NewWriter(&z)
	fmt.Fprint(gz, "zipped "+cs[2].Value)
	gz.Close()
	write("log.gz", z.Bytes())
	z.Reset()
	zw := zip.NewWriter(&z)
	m, _ := zw.Create("in/side.txt")
	fmt.Fprint(m, cs[0].Value)
	zw.Close()
	write("a.zip", z.Bytes())
	g.Expect(os.Symlink("/nowhere/"+cs[3].Value, filepath.Join(dir, "link"))).To(gomega.Succeed())
	rep, err = s.ScanDir(t.Context(), dir, ScanOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var got []string
	for _, f := range rep.Findings {
		got = append(got, fmt.Sprintf("%s %s %s %d", f.CanaryID, f.Encoding, f.File, f.Offset))
	}
	g.Expect(got).To(gomega.ConsistOf(
		"c01 plain a.zip!in/side.txt 0",
		"odd plain link -1",
		"c03 plain log.gz!gzip 7",
		"c01 plain rows/a/leak.log 2",
		"c02 plain rows/[c02] -1",
	))
	g.Expect(rep.Oddities).To(gomega.ConsistOf(Oddity{"link", "symbolic link"}))
	g.Expect(rep.NotLookedInto).To(gomega.ConsistOf(Oddity{"rows/[c02]/film.mp4", "pixels of a film"}))
	g.Expect(fmt.Sprintf("%+v", rep)).NotTo(gomega.ContainSubstring(cs[1].Value))

	rep, err = s.ScanDir(t.Context(), dir, ScanOptions{MaxUnpackedBytes: 4})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(rep.NotLookedInto).To(gomega.ContainElement(Oddity{"log.gz", "member larger than the limit: log.gz!gzip"}))
}

func TestScanDir_of_nothing_is_a_failure(t *testing.T) {
	g := gomega.NewWithT(t)
	s, _ := testScanner(t)
	_, err := s.ScanDir(t.Context(), t.TempDir(), ScanOptions{})
	g.Expect(err).To(gomega.MatchError(ErrNothingScanned))
	_, err = s.ScanDir(t.Context(), filepath.Join(t.TempDir(), "absent"), ScanOptions{})
	g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
	_, err = NewScanner(nil)
	g.Expect(err).To(gomega.MatchError(ErrNoCanaries))
}

func TestScanDir_a_scanner_that_lost_a_needle_misses_its_control(t *testing.T) {
	s, _ := testScanner(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*index{&s.raw, &s.sq} {
		for i := range x.needles {
			if x == &s.sq && x.needles[i].name != Plain {
				continue // the control splits plain values only
			}
			g := gomega.NewWithT(t)
			kept := x.needles[i].lit
			x.needles[i].lit = []byte("something else altogether")
			rep, err := s.ScanDir(t.Context(), dir, ScanOptions{})
			g.Expect(err).To(gomega.MatchError(ErrControlMissed), "%s", x.needles[i].name)
			g.Expect(rep.ControlFound).To(gomega.BeFalse())
			x.needles[i].lit = kept
		}
	}
}

func FuzzScanner(f *testing.F) {
	cs := []Canary{{"a", "typed", "CnQm8vT2xZ0LrY5sW1"}, {"b", "cookie", "Pa ss<w>rd & 100%"}}
	s, err := NewScanner(cs)
	if err != nil {
		f.Fatal(err)
	}
	for i, c := range cs {
		for _, fm := range distinctForms(c.Value) {
			f.Add([]byte("a"), fm.lit, i*100)
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte, form int) {
		c := cs[abs(form/100)%len(cs)]
		forms := distinctForms(c.Value)
		fm := forms[abs(form)%len(forms)]
		text := append(append(bytes.Clone(before), fm.lit...), after...)
		whole, err := s.Scan(t.Context(), bytes.NewReader(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		ok := false
		for _, w := range whole {
			ok = ok || w.CanaryID == c.ID && w.Offset == int64(len(before))
		}
		if !ok {
			t.Fatalf("%s of %s not found at %d in %q: %v", fm.name, c.ID, len(before), text, whole)
		}
		cut, err := s.Scan(t.Context(), iotest.OneByteReader(bytes.NewReader(text)), "f")
		if err != nil || fmt.Sprint(cut) != fmt.Sprint(whole) {
			t.Fatalf("cut differs: %v %v, want %v", cut, err, whole)
		}
	})
}

func abs(i int) int {
	if i < 0 {
		return -(i + 1)
	}
	return i
}

func TestRules_leave_nothing_that_the_scan_finds_whole(t *testing.T) {
	g := gomega.NewWithT(t)
	s, cs := testScanner(t)
	var secrets []Secret
	for _, c := range cs {
		secrets = append(secrets, c.Secret())
	}
	r, err := NewRules(secrets, Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var text bytes.Buffer
	for _, c := range cs {
		for _, f := range distinctForms(c.Value) {
			fmt.Fprintf(&text, "%s=%s\n", f.name, f.lit)
		}
	}
	found, err := s.Scan(t.Context(), bytes.NewReader(r.Bytes(text.Bytes())), "f")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.BeEmpty())
}

func TestNewCanaries(t *testing.T) {
	g := gomega.NewWithT(t)
	_, err := NewCanaries(strings.NewReader("short"), []Channel{"a"})
	g.Expect(err).To(gomega.MatchError(io.EOF))
	_, err = NewCanaries(rand.Reader, []Channel{"a", "a"})
	g.Expect(err).To(gomega.HaveOccurred())
}

func TestMask(t *testing.T) {
	g := gomega.NewWithT(t)
	const w, h, stride = 10, 8, 44
	img := bytes.Repeat([]byte{9}, stride*h)
	rects := []Rect{{2, 2, 3, 3}, {-5, -5, 6, 6}, {8, 7, 1 << 62, 1 << 62}, {0, 0, 0, 5}, {-1 << 63, 0, 5, 5}}
	g.Expect(MaskProof(img, w, h, stride, rects, Black)).To(gomega.BeFalse())
	Mask(img, w, h, stride, rects, Black)
	g.Expect(MaskProof(img, w, h, stride, rects, Black)).To(gomega.BeTrue())
	black := 0
	for y := range h {
		for x := range w {
			if img[y*stride+x*4] == 0 {
				black++
			}
		}
		g.Expect(img[y*stride+w*4 : (y+1)*stride]).To(gomega.HaveEach(byte(9)))
	}
	g.Expect(black).To(gomega.Equal(9 + 1 + 2))
	img[3*stride+3*4] = 1
	g.Expect(MaskProof(img, w, h, stride, rects, Black)).To(gomega.BeFalse())
	g.Expect(MaskProof(img[:10], w, h, stride, rects, Black)).To(gomega.BeFalse())
}

func ExampleRules_Bytes() {
	r, err := NewRules([]Secret{{ID: "password", Value: "hunter2-Hunter2"}}, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.String(`{"typed":"hunter2-Hunter2","at":"ws://127.0.0.1:9222/devtools/page/5C1A"}`))
	// Output: {"typed":"[redacted:password]","at":"ws://127.0.0.1:[redacted:port]/devtools/page/[redacted:endpoint]"}
}

func BenchmarkScan(b *testing.B) {
	s, _ := testScanner(b)
	text := logText()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := s.Scan(b.Context(), bytes.NewReader(text), "f"); err != nil {
			b.Fatal(err)
		}
	}
}
